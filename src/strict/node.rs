//! A parsed input without its notation: what YAML and JSON have in common.

/// A value as read, keys in the order of the text, no key twice.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true` or `false`; YAML 1.2, so `yes` is a string.
    Bool(bool),
    Number(serde_json::Number),
    String(String),
    List(Vec<Node>),
    /// A mapping with string keys.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The type's name as a message to people uses it, with an article.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }

    /// The scalar in short, for messages; empty for lists and mappings.
    pub fn preview(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::String(value) => value.chars().take(40).collect(),
            Self::Null | Self::List(_) | Self::Map(_) => String::new(),
        }
    }
}

impl From<Node> for serde_json::Value {
    fn from(node: Node) -> Self {
        match node {
            Node::Null => Self::Null,
            Node::Bool(value) => Self::Bool(value),
            Node::Number(value) => Self::Number(value),
            Node::String(value) => Self::String(value),
            Node::List(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Node::Map(entries) => {
                Self::Object(entries.into_iter().map(|(key, value)| (key, Self::from(value))).collect())
            }
        }
    }
}

impl From<serde_json::Value> for Node {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(value) => Self::Number(value),
            Value::String(value) => Self::String(value),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(map) => Self::Map(map.into_iter().map(|(key, value)| (key, Self::from(value))).collect()),
        }
    }
}
