//! What the driver tells a rule.

use almanac_plugin_abi::{self as abi, Array, Pair, Str, complexity};

use super::longer::{Longer, texts};
use crate::Complexity;

/// A call that has ended, to ask for suggestions after.
#[derive(Debug, Clone, Default)]
pub struct Call {
    tool: String,
    mode: Option<String>,
    complexity: i32,
    outputs: u64,
    branches: bool,
    session: Option<String>,
    goal: Option<String>,
    history: Vec<String>,
    context: Vec<(String, String)>,
}

impl Call {
    /// A call of this tool, about which nothing else is known.
    pub fn after(tool: &str) -> Self {
        Self { tool: tool.to_owned(), ..Self::default() }
    }

    /// The mode it ran in.
    #[must_use]
    pub fn mode(mut self, mode: &str) -> Self {
        self.mode = Some(mode.to_owned());
        self
    }

    /// How complex its result was.
    #[must_use]
    pub fn complexity(mut self, degree: Complexity) -> Self {
        self.complexity = match degree {
            Complexity::Simple => complexity::SIMPLE,
            Complexity::Moderate => complexity::MODERATE,
            Complexity::Complex => complexity::COMPLEX,
            Complexity::Other(other) => other,
        };
        self
    }

    /// How many results it gave.
    #[must_use]
    pub fn outputs(mut self, outputs: u64) -> Self {
        self.outputs = outputs;
        self
    }

    /// Whether its result has open branches.
    #[must_use]
    pub fn branches(mut self, branches: bool) -> Self {
        self.branches = branches;
        self
    }

    /// The session it belongs to.
    #[must_use]
    pub fn session(mut self, id: &str) -> Self {
        self.session = Some(id.to_owned());
        self
    }

    /// What the agent is after.
    #[must_use]
    pub fn goal(mut self, goal: &str) -> Self {
        self.goal = Some(goal.to_owned());
        self
    }

    /// Tools called recently, the oldest first.
    #[must_use]
    pub fn history(mut self, tools: &[&str]) -> Self {
        self.history = tools.iter().map(ToString::to_string).collect();
        self
    }

    /// A further fact about the result. The daemon orders facts by key, and so does this.
    #[must_use]
    pub fn fact(mut self, key: &str, value: &str) -> Self {
        self.context.push((key.to_owned(), value.to_owned()));
        self.context.sort();
        self
    }

    /// Calls `with` with the request in C's terms.
    pub(super) fn with_raw<T>(&self, with: impl FnOnce(*const abi::Request) -> T) -> T {
        let history = texts(&self.history);
        let context: Vec<_> = self
            .context
            .iter()
            .map(|(key, value)| Longer::new(Pair { key: Str::new(key), value: Str::new(value) }))
            .collect();
        let request = Longer::new(abi::Request {
            struct_size: Longer::<abi::Request>::SIZE,
            complexity: self.complexity,
            generation: 1,
            tool: Str::new(&self.tool),
            mode: Str::from(self.mode.as_deref()),
            session_id: Str::from(self.session.as_deref()),
            goal: Str::from(self.goal.as_deref()),
            num_outputs: self.outputs,
            has_branches: self.branches.into(),
            reserved: 0,
            history: Array::new(&history),
            context: Array::new(&context),
            deadline_ns: 0,
        });
        with(&raw const request.known)
    }
}

/// A tool of the catalog that the driver tells.
#[derive(Debug, Clone, Default)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its category; may be empty.
    pub category: String,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// Words by which it is found.
    pub keywords: Vec<String>,
}

impl Tool {
    /// A tool without capabilities and keywords.
    pub fn new(name: &str, category: &str) -> Self {
        Self { name: name.to_owned(), category: category.to_owned(), ..Self::default() }
    }
}
