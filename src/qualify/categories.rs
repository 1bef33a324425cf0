//! The groups in which tools are offered, and the networks that messages speak of: `categories.yaml`.
//!
//! An agent's user thinks in groups ("the Polymarket tools"), and a client shows them. The file says which there are, by what
//! names a message may call them and which tools they hold; a document's category that the file does not know is a category all
//! the same, with its name and nothing more. Pure: read from text, compared with a catalog by [`Board`].

mod board;
mod phrase;
pub mod shelf;

use std::collections::BTreeSet;
use std::path::Path;

pub use board::Board;
pub(super) use board::Mention;
pub(super) use phrase::Words;

use crate::strict::decode::decode;
use crate::strict::diagnostic::Diagnostic;
use crate::strict::read::{Limits, yaml};
use crate::strict::{At, FromNode, Node};

/// The file that ships.
const SHIPPED: &str = include_str!("../../config/categories.yaml");

/// Largest file, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// Longest name of a category or network, in characters; as of a tool.
const MAX_NAME: usize = 128;

/// Categories and networks as they are configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Categories {
    /// In the file's order.
    pub categories: Vec<Category>,
    /// In the file's order.
    pub networks: Vec<Network>,
}

/// A group of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Category {
    /// Its name on the wire.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What a message calls it, besides its name. Written with capitals, they count; its name written with capitals is what
    /// it is called then.
    pub aliases: Vec<String>,
    /// Words that speak for it.
    pub keywords: Vec<String>,
    /// Is it offered whatever the message is?
    pub always: bool,
    /// Its tools serve these networks only: without one of them named, likeness alone does not qualify it.
    pub networks: Vec<String>,
    /// Documents of these categories belong to it; its own name by default.
    pub categories: Vec<String>,
    /// These tools belong to it.
    pub tools: Vec<String>,
    /// Documents in folders of these names belong to it.
    pub families: Vec<String>,
}

/// A network that messages speak of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Its name on the wire.
    pub name: String,
    /// What a message calls it, besides its name. Written with capitals, they count.
    pub aliases: Vec<String>,
}

impl Categories {
    /// Those that ship.
    pub fn shipped() -> Self {
        Self::parse(Path::new("categories.yaml"), SHIPPED.as_bytes()).expect("a test reads the file that ships")
    }

    /// Reads a file's content, or says all that is wrong with it.
    pub fn parse(path: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        let node = yaml(content, &Limits::of_bytes(MAX_FILE_BYTES))
            .map_err(|error| vec![Diagnostic::unreadable(path, content, &error)])?;
        let node = if node == Node::Null { Node::Map(Vec::new()) } else { node };
        decode(node).map_err(|faults| {
            let text = String::from_utf8_lossy(content);
            faults.iter().map(|fault| Diagnostic::fault(path, &text, fault)).collect()
        })
    }
}

impl FromNode for Categories {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let networks: Vec<Network> = fields.or_default("networks");
            let categories: Vec<Category> = fields.or_default("categories");
            for name in repeated(networks.iter().map(|network| &network.name)) {
                fields.bad_value("networks", format!("the network `{name}` stands twice"));
            }
            for name in repeated(categories.iter().map(|category| &category.name)) {
                fields.bad_value("categories", format!("the category `{name}` stands twice"));
            }
            let known: BTreeSet<&str> = networks.iter().map(|network| network.name.as_str()).collect();
            for category in &categories {
                for network in category.networks.iter().filter(|network| !known.contains(network.as_str())) {
                    let message =
                        format!("the category `{}` serves the network `{network}`, which is not listed", category.name);
                    fields.bad_value("categories", message);
                }
            }
            Self { categories, networks }
        })
    }
}

fn repeated<'n>(names: impl Iterator<Item = &'n String>) -> Vec<&'n String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

/// A name that can stand on the wire.
#[derive(Default)]
struct Name(String);

impl FromNode for Name {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let name = String::from_node(node, at)?;
        if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
            at.bad_value(format!("a name has 1 to {MAX_NAME} characters, none of them a control character"));
        }
        Some(Self(name))
    }
}

impl FromNode for Category {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            name: fields.required::<Name>("name").0,
            description: fields.required("description"),
            aliases: fields.or_default("aliases"),
            keywords: fields.or_default("keywords"),
            always: fields.or_default("always"),
            networks: fields.or_default("networks"),
            categories: fields.or_default("categories"),
            tools: fields.or_default("tools"),
            families: fields.or_default("families"),
        })
    }
}

impl FromNode for Network {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self { name: fields.required::<Name>("name").0, aliases: fields.or_default("aliases") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_has_the_vocabularies() {
        let shipped = Categories::shipped();
        let names: Vec<&str> = shipped.categories.iter().map(|category| category.name.as_str()).collect();
        let expected = [
            "required",
            "solana",
            "ethereum",
            "bsc",
            "polygon",
            "hedera",
            "base",
            "ordiscan",
            "coinglass",
            "defillama",
            "advanced-search",
            "lunarcrush",
            "messari",
            "swell",
            "polymarket",
            "cross-chain",
            "opensea",
        ];
        assert_eq!(names[..expected.len()], expected);
        let always: Vec<&str> = shipped
            .categories
            .iter()
            .filter(|category| category.always)
            .map(|category| category.name.as_str())
            .collect();
        assert_eq!(always, ["required"]);
        let networks: Vec<&str> = shipped.networks.iter().map(|network| network.name.as_str()).collect();
        assert_eq!(networks, ["solana", "ethereum", "bsc", "polygon", "hedera", "bitcoin", "base"]);
    }

    fn check(text: &str, expected: &[(&str, usize)]) {
        let faults = Categories::parse(Path::new("c.yaml"), text.as_bytes()).err().unwrap_or_default();
        let found: Vec<(&str, usize)> = faults.iter().map(|fault| (fault.code.as_str(), fault.line)).collect();
        assert_eq!(found, expected, "{faults:#?} in {text}");
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        check("", &[]);
        check("categories: []", &[]);
        check("categories:\n- {name: a, description: d}\n- {name: a, description: d}", &[("bad-value", 2)]);
        check("categories:\n- {name: a, description: d, networks: [mars]}", &[("bad-value", 2)]);
        check(
            "networks:\n- {name: a, alias: [x]}\ncategories:\n- {name: '', description: 1}",
            &[("unknown-key", 2), ("bad-value", 4), ("wrong-type", 4)],
        );
    }
}
