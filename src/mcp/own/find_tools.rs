//! `find_tools`: which tools fit a task, and what is each?

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::address::Address;
use super::super::shown::{Shown, named};
use super::{OwnError, Reach, ToolResult};
use crate::access::Grant;
use crate::blocking;
use crate::catalog::{Entry, next};
use crate::engine::finding::{FoundTool, ToolQuery};
use crate::engine::{Asked, Engine, Generation};
use crate::strict::decode::decode;
use crate::strict::{Fields, FromNode, Node, Word};
use crate::text::head::head;
use crate::wire::qualify::round;

const DESCRIPTION: &str = "Find tools by what is to be done, in words, or describe tools by exact names. \
    The answer has names, descriptions, input schemas and expected seconds (half of all calls, nine in ten).";

/// Bytes of servers' names that are shown.
const MAX_NAMES: usize = 240;

/// What the tool does, for whoever finds the tools of these servers by it.
pub(super) fn description(servers: &[String]) -> String {
    if servers.is_empty() {
        return DESCRIPTION.to_owned();
    }
    let servers = named(servers, MAX_NAMES);
    format!("{DESCRIPTION} First find, then call what was found by call_tool. Servers: {servers}.")
}

/// Tools that are found if nobody says, and at most.
const LIMIT: [usize; 2] = [8, 25];

/// Longest query, in bytes.
const MAX_QUERY: usize = 8 * 1024;

/// Longest description, in characters.
const MAX_DESCRIPTION: usize = 300;

/// Tools that are found with their schemas if nobody says.
const WITH_SCHEMA: usize = 3;

/// Names that stand in for tools that were not found.
const NEAREST: usize = 3;

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What is to be done."},
            "names": {"type": "array", "items": {"type": "string"}, "description": "Exact names, instead of a query."},
            "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT[1], "default": LIMIT[0]},
            "detail": {
                "enum": Detail::WORDS,
                "description": "How much to say of each; by default schemas of the first three.",
            },
        },
    })
}

/// What is said of each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "a detail")]
enum Detail {
    Names,
    Brief,
    Schema,
}

#[derive(Debug, Default, FromNode)]
#[node(check = check_one)]
struct Arguments {
    query: Option<String>,
    names: Option<Vec<String>>,
    limit: Option<usize>,
    detail: Option<Detail>,
}

fn check_one(arguments: &Arguments, fields: &mut Fields<'_>) {
    match (&arguments.query, &arguments.names) {
        (Some(_), Some(_)) => fields.bad_value("names", "either `query` or `names`, not both"),
        (None, None) => fields.bad_value("query", "say by `query` what is to be done, or name tools by `names`"),
        (Some(query), None) if query.len() > MAX_QUERY => {
            fields.bad_value("query", format!("a query has at most {MAX_QUERY} bytes"));
        }
        (None, Some(names)) if names.len() > LIMIT[1] => {
            fields.bad_value("names", format!("at most {} names", LIMIT[1]));
        }
        _ => {}
    }
    if arguments.limit.is_some_and(|limit| !(1..=LIMIT[1]).contains(&limit)) {
        fields.bad_value("limit", format!("must be 1 to {}", LIMIT[1]));
    }
}

/// What was found.
#[derive(Debug, Serialize)]
struct FoundAnswer {
    /// What a call of one of them names, so that it is found better next time.
    #[serde(skip_serializing_if = "Option::is_none")]
    search_id: Option<String>,
    tools: Vec<Described>,
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
    /// What comes nearest where nothing fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nearest: Vec<String>,
    /// Names that are none, each with near ones.
    #[serde(skip_serializing_if = "Map::is_empty")]
    unknown: Map<String, Value>,
    /// Servers that are starting, whose tools are not known yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    starting: Vec<String>,
    /// Servers that do not run, whose tools are not known, each with why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    down: BTreeMap<String, String>,
    /// Why no question finds anything, if none can.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// Told where there is nothing to be found: to whoever asks, it would look as if nothing fitted.
const NO_TOOLS: &str = "There are no tools here: no tool documents are served and no MCP servers are behind this \
    address. Whoever runs the daemon can add a directory of documents (tool_metadata) or servers (mcp.servers).";

/// One tool.
#[derive(Debug, Serialize)]
struct Described {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(rename = "inputSchema", skip_serializing_if = "Option::is_none")]
    input_schema: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// Half of all calls take less, and nine in ten.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    times_out: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<String>,
    /// Is it known to change nothing?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    read_only: bool,
    /// Whether a server behind it takes calls; said where none does.
    #[serde(skip_serializing_if = "is_true")]
    callable: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_true(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

pub(super) async fn call(reach: &Reach, grant: &Grant, arguments: Node) -> Result<ToolResult, OwnError> {
    let arguments: Arguments = decode(arguments)?;
    let (reach, tenant) = (reach.clone(), Arc::clone(&grant.tenant));
    let is_short = arguments.query.as_deref().is_none_or(|text| reach.door.engine.ranks_shortly(text));
    let found = blocking::run_unless_short(is_short, move || answer(&reach, &tenant, arguments)).await;
    Ok(ToolResult::structured(&found.map_err(|error| OwnError::Refused(error.to_string()))?))
}

fn answer(reach: &Reach, tenant: &Arc<str>, arguments: Arguments) -> FoundAnswer {
    let Reach { door, address } = reach;
    let (engine, shown) = (&door.engine, door.shown());
    let generation = Arc::clone(&engine.generation());
    let describe = Describe { engine, generation: &generation, shown: &shown, address };
    let has_servers = shown.offering.has_servers();
    let is_found = |name: &str| shown.finds(address, name);
    let starting: Vec<String> = shown.offering.starting().map(|server| server.name.clone()).collect();
    let down: BTreeMap<String, String> =
        shown.down(address).into_iter().map(|(server, why)| (server.name.clone(), why)).collect();
    let has_any = || !starting.is_empty() || generation.catalog().iter().any(|entry| is_found(entry.name()));
    let note = |tools: &[Described]| (tools.is_empty() && !has_any()).then_some(NO_TOOLS);
    match (arguments.query, arguments.names) {
        (Some(text), _) => {
            let limit = arguments.limit.unwrap_or(LIMIT[0]);
            let query = ToolQuery { tenant, text: &text, limit, nearest: NEAREST };
            let purges = engine.purges(tenant);
            let found = engine.find(&generation, &query, |entry| is_found(entry.name()));
            let entries: Vec<&Arc<Entry>> = found.tools.iter().map(|FoundTool { entry, .. }| entry).collect();
            let tools = found.tools.iter().enumerate().map(|(place, FoundTool { entry, score })| {
                let detail =
                    arguments.detail.unwrap_or(if place < WITH_SCHEMA { Detail::Schema } else { Detail::Brief });
                let score = Some(round(*score)).filter(|_| detail != Detail::Names);
                Described { score, ..describe.tool(entry, detail, &entries) }
            });
            let tools: Vec<Described> = tools.collect();
            FoundAnswer {
                note: note(&tools),
                search_id: has_servers.then(|| door.searches().add(tenant, &text, purges)),
                tools,
                more: found.more,
                nearest: found.nearest.iter().map(|entry| entry.name().to_string()).collect(),
                unknown: Map::new(),
                starting,
                down,
            }
        }
        (None, names) => {
            let (mut tools, mut unknown) = (Vec::new(), Map::new());
            for name in names.into_iter().flatten() {
                if let Some(entry) = generation.tool(&name).filter(|entry| is_found(entry.name())) {
                    tools.push(describe.tool(entry, arguments.detail.unwrap_or(Detail::Schema), &[]));
                } else {
                    let near = generation.near_names(&name).into_iter().filter(|name| is_found(name)).collect();
                    unknown.insert(name, near);
                }
            }
            let note = note(&tools);
            FoundAnswer { search_id: None, tools, more: 0, nearest: Vec::new(), unknown, starting, down, note }
        }
    }
}

struct Describe<'e> {
    engine: &'e Engine,
    generation: &'e Generation,
    shown: &'e Shown,
    address: &'e Address,
}

impl Describe<'_> {
    fn tool(&self, entry: &Arc<Entry>, detail: Detail, beside: &[&Arc<Entry>]) -> Described {
        let name = entry.name().to_string();
        let callable = self.shown.tool(self.address, &name).is_some();
        let bare = Described {
            name,
            description: None,
            input_schema: None,
            score: None,
            seconds: None,
            times_out: false,
            conflicts: Vec::new(),
            read_only: callable && self.shown.facts(entry.name()).is_read_only,
            callable,
        };
        if detail == Detail::Names {
            return bare;
        }
        let document = entry.document();
        let asked = Asked { tool: bare.name.clone(), ..Asked::default() };
        let estimate = self.engine.estimate(self.generation, &self.engine.learnt(), &asked);
        let [_, half, most, _] = estimate.forecast.quantiles().whole_ms();
        let clash = |other: &&&Arc<Entry>| next::clash(other, entry);
        Described {
            description: Some(shortened(&document.description)),
            input_schema: document.input_schema.filter(|_| detail == Detail::Schema),
            seconds: Some([seconds(half), seconds(most)]),
            times_out: estimate.will_time_out(),
            conflicts: beside.iter().filter(clash).map(|other| other.name().to_string()).collect(),
            ..bare
        }
    }
}

/// The first characters, up to the end of a word.
fn shortened(text: &str) -> String {
    // At most four bytes a character.
    let start = head(text, MAX_DESCRIPTION * 4);
    if start.len() == text.len() && text.chars().count() <= MAX_DESCRIPTION {
        return text.to_owned();
    }
    let kept: String = start.chars().take(MAX_DESCRIPTION - 1).collect();
    let end = kept.rfind(char::is_whitespace).filter(|end| *end > kept.len() / 2).unwrap_or(kept.len());
    format!("{}…", kept[..end].trim_end())
}

/// Milliseconds as seconds of two digits.
fn seconds(ms: u64) -> f64 {
    if ms == 0 {
        return 0.0;
    }
    let digits = 10_f64.powi(1 - (ms as f64).log10().floor() as i32);
    (ms as f64 * digits).round() / digits / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_two_digits() {
        for (ms, expected) in [(0, 0.0), (7, 0.007), (1234, 1.2), (15_000, 15.0), (86_400_000, 86_000.0)] {
            assert!((seconds(ms) - expected).abs() < 1e-9, "{ms}: {}", seconds(ms));
        }
    }

    #[test]
    fn a_long_description_ends_at_a_word() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"word ".repeat(100));
        assert!(long.chars().count() <= MAX_DESCRIPTION && long.ends_with("word…"), "{long}");
        assert_eq!(shortened(&"é".repeat(400)).chars().count(), MAX_DESCRIPTION);
    }
}
