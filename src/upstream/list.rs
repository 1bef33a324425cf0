//! Asking a server for all that it offers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::call::Caller;
use super::fault::StartFault;
use super::greet::modern_params;
use super::hygiene;
use super::journal::ServerLog;
use super::listed::ListedItem;
use super::open::Talk;
use super::peer::{Peer, PeerRequest};
use super::shape::{Defined, Mending};
use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::param_headers::ParamHeaders;
use crate::jsonrpc::{Era, ErrorObject, Members, NoObject, code, meta};

/// Tools of one server that are taken.
const MAX_TOOLS: usize = 2000;

/// Prompts, resources and templates of one server that are taken, each.
const MAX_ITEMS: usize = 10_000;

/// Largest schema of a tool, in bytes.
const MAX_SCHEMA: usize = 256 << 10;

/// Pages of a list: one item on each would still be all that is taken.
const MAX_PAGES: usize = 2000;

/// What is offered, before it is held to what was approved.
#[derive(Debug, Default)]
pub(super) struct Offered {
    /// By the names that the server knows them by.
    pub(super) tools: Vec<(String, Box<RawValue>)>,
    pub(super) prompts: Vec<ListedItem>,
    pub(super) resources: Vec<ListedItem>,
    pub(super) templates: Vec<ListedItem>,
}

/// Asks for every list that the server declares.
pub(super) async fn ask(
    talk: &Talk,
    caller: &Caller,
    limit: Duration,
    journal: &ServerLog,
) -> Result<Offered, StartFault> {
    let greeting = &talk.greeting;
    let pages = Pages { peer: &talk.peer, caller, era: greeting.era, limit, journal };
    let mut offered = Offered::default();
    if greeting.has("tools") {
        let tools = pages.all("tools/list", "tools", MAX_TOOLS).await?;
        offered.tools = tools_of(tools, journal);
    }
    if greeting.has("prompts") {
        offered.prompts = items(pages.all("prompts/list", "prompts", MAX_ITEMS).await?, Defined::Prompt, journal);
    }
    if greeting.has("resources") {
        offered.resources =
            items(pages.all("resources/list", "resources", MAX_ITEMS).await?, Defined::Resource, journal);
        let templates = pages.all("resources/templates/list", "resourceTemplates", MAX_ITEMS).await?;
        offered.templates = items(templates, Defined::Template, journal);
    }
    Ok(offered)
}

struct Pages<'a> {
    peer: &'a Arc<Peer>,
    caller: &'a Caller,
    era: Era,
    limit: Duration,
    journal: &'a ServerLog,
}

impl Pages<'_> {
    /// All items of a list, up to `most`.
    async fn all(&self, method: &str, member: &str, most: usize) -> Result<Vec<Box<RawValue>>, StartFault> {
        let (mut found, mut cursors, mut cursor) = (Vec::new(), HashSet::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let params = match &cursor {
                Some(cursor) => json!({"cursor": cursor}),
                None => json!({}),
            };
            let mut params = to_raw_value(&params).map_err(|_| NoObject)?;
            if self.era == Era::Modern {
                params = modern_params(Some(&params), self.caller)?;
            }
            let result = match self.peer.request(PeerRequest::plain(method, Some(&params), self.limit)).await? {
                Ok(result) => result,
                Err(error) => {
                    let error = ErrorObject::read(&error);
                    // Servers declare resources and know no templates.
                    if error.code != code::METHOD_NOT_FOUND {
                        self.journal.warn(&format!("answers {method} with an error: {}", error.message));
                    }
                    return Ok(found);
                }
            };
            let members = Members::read(&result)?;
            let page: Vec<Box<RawValue>> =
                members.get(member).and_then(|page| serde_json::from_str(page.get()).ok()).unwrap_or_default();
            found.extend(page);
            if found.len() > most {
                self.journal.warn(&format!("lists more than {most} {member}; the first {most} are taken"));
                found.truncate(most);
                return Ok(found);
            }
            match members.text("nextCursor") {
                Some(next) if cursors.insert(next.to_string()) => cursor = Some(next.into_owned()),
                Some(_) => {
                    self.journal.warn(&format!("lists its {member} in a circle"));
                    return Ok(found);
                }
                None => return Ok(found),
            }
        }
        Ok(found)
    }
}

fn tools_of(tools: Vec<Box<RawValue>>, journal: &ServerLog) -> Vec<(String, Box<RawValue>)> {
    let (mut names, mut taken, mut hidden) = (HashSet::new(), Vec::new(), 0);
    for json in tools {
        let Some(name) = Members::read(&json).ok().and_then(|tool| tool.text("name").map(String::from)) else {
            journal.warn("lists a tool without a name; it is left out");
            continue;
        };
        let shown = hygiene::clean_text(&name).into_owned();
        if name.is_empty() || !names.insert(name.clone()) {
            journal.warn(&format!("lists the tool `{shown}` twice; the first one is taken"));
            continue;
        }
        let is_large = ["inputSchema", "outputSchema"].iter().any(|schema| {
            Members::read(&json)
                .ok()
                .and_then(|tool| tool.get(schema))
                .is_some_and(|schema| schema.get().len() > MAX_SCHEMA)
        });
        if is_large {
            journal.warn(&format!("the schema of `{shown}` has more than {MAX_SCHEMA} bytes; it is left out"));
            continue;
        }
        if let Err(fault) = ParamHeaders::of_definition(&json) {
            journal.warn(&format!("the schema of `{shown}` {fault}; it is left out"));
            continue;
        }
        match hygiene::clean(&json) {
            Ok((clean, texts)) => {
                hidden += texts;
                taken.push((name, strip(clean)));
            }
            Err(error) => journal.warn(&format!("the definition of `{shown}` {error}; it is left out")),
        }
    }
    if hidden > 0 {
        journal.warn(&format!("hides characters or comments in {hidden} texts; they were removed"));
    }
    taken
}

/// Without what belongs to one hop.
fn strip(json: Box<RawValue>) -> Box<RawValue> {
    meta::strip_core(&json).unwrap_or(json)
}

fn items(items: Vec<Box<RawValue>>, defined: Defined, journal: &ServerLog) -> Vec<ListedItem> {
    let key = defined.key();
    let (mut keys, mut taken, mut mending) = (HashSet::new(), Vec::new(), Mending::default());
    for json in items {
        let name = Members::read(&json).ok().and_then(|item| item.text(key).map(String::from));
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            journal.warn(&format!("lists something without `{key}`; it is left out"));
            continue;
        };
        if !keys.insert(name.clone()) {
            continue;
        }
        let json = match hygiene::clean(&json) {
            Ok((json, _)) => json,
            Err(error) => {
                journal.warn(&format!("the definition of `{}` {error}; it is left out", hygiene::clean_text(&name)));
                continue;
            }
        };
        // What it is asked for by works as it is.
        let own = serde_json::Value::from(name.as_str()).to_string();
        let change = |member: &str, _: &RawValue| if member == key { Change::Set(own.clone()) } else { Change::Keep };
        let json = if key == "name" { object::rewrite(&json, change, &[]).unwrap_or(json) } else { json };
        let json = mending.mend(json, defined, &name);
        taken.push(ListedItem { key: name, json: strip(json) });
    }
    mending.tell(journal);
    taken
}
