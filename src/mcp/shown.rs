//! What each view shows: rendered when something changed, and served as those bytes until it changes again.
//!
//! A list is the same for whoever asks at one address, and no call changes it: a list that changes costs a client all
//! that it has cached of its conversation.

mod feature_tags;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;

use super::address::Address;
use super::meta_tool::MetaTool;
use super::offering::{Offering, ServedTool};
use super::own::OwnTool;
use super::relay::translate;
use super::request::RpcAnswer;
use super::settings::{Pinned, Settings, ViewSettings};
use crate::Engine;
use crate::catalog::Entry;
use crate::catalog::document::Overridden;
use crate::engine::{Asked, Generation};
use crate::jsonrpc::Era;
use crate::sum::Sum;
use crate::text::near;
use crate::upstream::{OnTimeout, ServerState};
pub(super) use feature_tags::FeatureTags;

/// What the default list may weigh without pins, in bytes: 1,500 tokens of four.
pub(super) const BUDGET: usize = 6000;

/// Tools on one page of a list.
pub(super) const PAGE: usize = 500;

/// What documents say of servers' tools.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolFacts {
    /// Of the entry that they are of.
    digest: u128,
    /// Instead of the server's.
    description: Option<String>,
    category: String,
    /// The argument that says in which mode the tool works.
    pub(super) mode_argument: Option<String>,
    /// Does a call change nothing?
    pub(super) is_read_only: bool,
}

/// One view's list.
#[derive(Debug, Default)]
pub(super) struct ViewList {
    /// Of all that is listed, to tell whether it changed.
    tag: String,
    names: Vec<Arc<str>>,
    /// The definitions, for each era.
    legacy: Vec<Arc<str>>,
    modern: Vec<Arc<str>>,
    /// What clients tell their models of us.
    pub(super) instructions: String,
    /// Answers that were asked for: a page is made once, and sent as those bytes while the list stays.
    answers: Mutex<HashMap<PageKey, Arc<RawValue>>>,
}

/// A page as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PageKey {
    pub(super) era: Era,
    /// Does every caller see the same?
    pub(super) is_public: bool,
    /// The place of its first tool.
    start: usize,
}

/// A tool's definition, by what it is of.
#[derive(Debug)]
struct RenderedTool {
    tool: Arc<ServedTool>,
    facts: Arc<ToolFacts>,
    /// By the name that clients know it by: for legacy and for modern ones.
    public: [Arc<str>; 2],
    /// The same by its server's.
    own: [Arc<str>; 2],
}

/// A page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListPage {
    /// The definitions, as a JSON array.
    pub(super) tools: String,
    /// Where the next page begins, if there is one.
    pub(super) next: Option<Arc<str>>,
}

/// All that is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    pub(super) settings: Arc<Settings>,
    pub(super) offering: Arc<Offering>,
    facts: HashMap<Arc<str>, Arc<ToolFacts>>,
    rendered: HashMap<Arc<str>, Arc<RenderedTool>>,
    lists: BTreeMap<Address, Arc<ViewList>>,
    features: BTreeMap<Address, FeatureTags>,
    /// The tools were too many once to be listed themselves; they are not again until the configuration changes.
    is_outgrown: bool,
    unlisted: ViewSettings,
}

impl Shown {
    /// Renders all views. What did not change since `before` stays the same.
    pub(super) fn render(settings: Arc<Settings>, offering: Arc<Offering>, engine: &Engine, before: &Self) -> Self {
        let generation = Arc::clone(&engine.generation());
        let mut shown = Self {
            facts: facts(&offering, &generation, &before.facts),
            is_outgrown: before.is_outgrown && before.settings == settings,
            settings,
            offering,
            ..Self::default()
        };
        let all = shown.offering.iter().chain(shown.offering.hidden());
        shown.rendered = all.map(|tool| (Arc::clone(&tool.name), shown.rendered(tool, before))).collect();
        let mut addresses = vec![Address::Default, Address::View("all".to_owned())];
        addresses.extend(shown.settings.views.keys().filter(|name| *name != "default").cloned().map(Address::View));
        addresses.extend(shown.offering.servers.iter().map(|server| Address::Server(server.name.clone())));
        for address in addresses {
            let list = shown.list_of(&address, engine, &generation);
            let same = before.lists.get(&address).filter(|old| old.tag == list.tag).cloned();
            if address != Address::Default {
                shown.features.insert(address.clone(), FeatureTags::of(&shown.servers_of(&address)));
            }
            shown.lists.insert(address, same.unwrap_or_else(|| Arc::new(list)));
        }
        shown
    }

    /// The same with other tools to call, whose lists are still to be rendered.
    pub(super) fn with_offering(&self, offering: Offering) -> Self {
        Self { offering: Arc::new(offering), ..self.clone() }
    }

    /// Is there such a view?
    pub(super) fn has(&self, address: &Address) -> bool {
        *address == Address::Default || self.lists.contains_key(address)
    }

    /// That there is no such view, and which may have been meant.
    pub(super) fn no_view(&self, address: &Address) -> String {
        let (what, name) = match address {
            Address::Default => return "there is no such view here".to_owned(),
            Address::View(name) => ("view", name),
            Address::Server(name) => ("server", name),
        };
        let known = self.lists.keys().filter_map(|known| match (address, known) {
            (Address::View(_), Address::View(known)) | (Address::Server(_), Address::Server(known)) => Some(&**known),
            _ => None,
        });
        let near: Vec<String> = near::nearest_few(name, known, 3).iter().map(|near| format!("`{near}`")).collect();
        let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
        let shown: String = name.chars().take(80).collect();
        format!("there is no {what} `{shown}` here{hint}")
    }

    /// The list of a view.
    pub(super) fn list(&self, address: &Address) -> Option<&Arc<ViewList>> {
        self.lists.get(address)
    }

    /// What a view's lists beside tools were made of.
    pub(super) fn features(&self, address: &Address) -> FeatureTags {
        self.features.get(address).copied().unwrap_or_default()
    }

    /// How a view is set up.
    pub(super) fn view(&self, address: &Address) -> &ViewSettings {
        let name = match address {
            Address::Default => "default",
            Address::View(name) => name,
            Address::Server(_) => return &self.unlisted,
        };
        self.settings.views.get(name).unwrap_or(&self.unlisted)
    }

    /// What documents say of a server's tool.
    pub(super) fn facts(&self, tool: &str) -> Arc<ToolFacts> {
        self.facts.get(tool).cloned().unwrap_or_default()
    }

    /// The server's tool that a view has under this name.
    pub(super) fn tool(&self, address: &Address, name: &str) -> Option<&Arc<ServedTool>> {
        match address {
            Address::Server(server) => self.offering.of_server(server, name),
            _ => self.offering.get(name).filter(|tool| self.selects(address, tool)),
        }
    }

    /// Is this own tool in a view?
    pub(super) fn has_own(&self, address: &Address, tool: OwnTool) -> bool {
        match (address, &self.view(address).own) {
            (Address::Server(_), _) => false,
            (_, Some(own)) => {
                own.iter().any(|name| name == tool.as_str()) || tool == OwnTool::FindTools && self.has_meta(address)
            }
            (Address::Default, None) => !self.offering.has_servers() || tool == OwnTool::FindTools,
            (Address::View(name), None) => {
                name == "all" && !self.settings.views.contains_key("all")
                    || tool == OwnTool::FindTools && self.has_meta(address)
            }
        }
    }

    /// Are the tools that find and call others in a view?
    pub(super) fn has_meta(&self, address: &Address) -> bool {
        match address {
            Address::Default => self.offering.has_servers(),
            Address::View(_) => self.view(address).meta,
            Address::Server(_) => false,
        }
    }

    /// Is one of them in a view? That for results also is where calls of a server are answered with handles.
    pub(super) fn has_meta_tool(&self, address: &Address, tool: MetaTool) -> bool {
        self.has_meta(address) || tool == MetaTool::GetResult && self.gives_handles(address)
    }

    fn gives_handles(&self, address: &Address) -> bool {
        let gives = |server: &ServerState| server.settings.on_timeout == OnTimeout::Handle;
        let is_free = self.tool(address, MetaTool::GetResult.as_str()).is_none();
        is_free
            && match address {
                Address::Server(name) => {
                    self.offering.servers.iter().any(|server| server.name == *name && gives(server))
                }
                _ => self.servers_of(address).iter().any(|server| gives(server)),
            }
    }

    /// Is a tool of the catalog found in a view?
    pub(super) fn finds(&self, address: &Address, name: &str) -> bool {
        self.tool(address, name).is_some()
            || (!self.offering.has_servers() || self.view(address).documents) && self.offering.get(name).is_none()
    }

    /// What a tool of the catalog is called in a view, if it is found there.
    pub(super) fn found_as(&self, address: &Address, name: &str) -> Option<Arc<str>> {
        if let Address::Server(server) = address {
            let tool = self.offering.get(name).filter(|tool| tool.server.name == *server)?;
            return Some(Arc::from(&*tool.own_name));
        }
        self.finds(address, name).then(|| name.into())
    }

    /// What is listed in all views, by its name.
    pub(super) fn names(&self, address: &Address) -> Vec<Arc<str>> {
        let own = OwnTool::ALL.into_iter().filter(|tool| self.has_own(address, *tool)).map(|tool| tool.as_str().into());
        let meta = MetaTool::ALL.into_iter().filter(|tool| self.has_meta_tool(address, *tool));
        let meta = meta.map(|tool| tool.as_str().into());
        if let Address::Server(server) = address {
            return meta.chain(self.offering.all_of(server).map(|tool| Arc::from(&*tool.own_name))).collect();
        }
        let served = self.offering.iter().filter(|tool| self.selects(address, tool)).map(|tool| Arc::clone(&tool.name));
        own.chain(meta).chain(served).collect()
    }

    fn selects(&self, address: &Address, tool: &ServedTool) -> bool {
        let category = &self.facts(&tool.name).category;
        self.view(address).selects(&tool.server.name, &tool.name, |wanted| wanted == *category)
    }

    /// Which servers' tools does a view list?
    fn listed(&mut self, address: &Address, own_bytes: usize) -> Vec<Arc<ServedTool>> {
        let all: Vec<Arc<ServedTool>> = match address {
            Address::Server(server) => {
                let mut all: Vec<_> = self.offering.all_of(server).cloned().collect();
                all.sort_by(|one, other| one.own_name.cmp(&other.own_name));
                all
            }
            _ => self.offering.iter().filter(|tool| self.selects(address, tool)).cloned().collect(),
        };
        let pinned = match (address, &self.view(address).pinned) {
            (Address::Server(_), _) | (Address::View(_), None) => return all,
            (Address::Default, None) => Pinned::Auto,
            (_, Some(pinned)) => pinned.clone(),
        };
        match pinned {
            Pinned::Names(names) => {
                all.into_iter().filter(|tool| names.iter().any(|name| **name == *tool.name)).collect()
            }
            Pinned::Auto => {
                let size = |tool: &Arc<ServedTool>| {
                    self.rendered.get(&tool.name).map_or(0, |rendered| rendered.public[1].len())
                };
                let bytes: usize = all.iter().map(|tool| size(tool) + 1).sum();
                self.is_outgrown |= own_bytes + bytes > BUDGET;
                if self.is_outgrown { Vec::new() } else { all }
            }
        }
    }

    fn list_of(&mut self, address: &Address, engine: &Engine, generation: &Generation) -> ViewList {
        let mut list = ViewList { instructions: self.instructions(address), ..ViewList::default() };
        let servers = self.server_names(address);
        if self.has_meta(address) {
            list.add("find_tools", &OwnTool::FindTools.definition_for(&servers));
        }
        for tool in MetaTool::ALL.into_iter().filter(|tool| self.has_meta_tool(address, *tool)) {
            list.add(tool.as_str(), &tool.definition());
        }
        for tool in OwnTool::ALL {
            let is_listed = tool == OwnTool::FindTools && self.has_meta(address);
            if !is_listed && self.has_own(address, tool) {
                // Where nothing calls what is found, it is not said how.
                list.add(tool.as_str(), &tool.definition_for(&[]));
            }
        }
        let own_bytes = list.bytes() + list.instructions.len();
        let has_timing = self.view(address).timing;
        for tool in self.listed(address, own_bytes) {
            let Some(rendered) = self.rendered.get(&tool.name) else { continue };
            if matches!(address, Address::Server(_)) {
                list.push((*tool.own_name).into(), rendered.own.clone());
            } else if has_timing {
                let timing = timing_of(&tool.name, engine, generation);
                let timed = |json: &Arc<str>| translate::with_timing(json, &timing).unwrap_or_else(|| Arc::clone(json));
                list.push(Arc::clone(&tool.name), [timed(&rendered.public[0]), timed(&rendered.public[1])]);
            } else {
                list.push(Arc::clone(&tool.name), rendered.public.clone());
            }
        }
        let whole = [list.legacy.join("\n"), list.modern.join("\n"), list.instructions.clone()].join("\n\n");
        list.tag = Sum::of(whole.as_bytes()).to_string();
        list
    }

    fn rendered(&self, tool: &Arc<ServedTool>, before: &Self) -> Arc<RenderedTool> {
        let facts = self.facts(&tool.name);
        let is_same = |old: &&Arc<RenderedTool>| Arc::ptr_eq(&old.tool, tool) && Arc::ptr_eq(&old.facts, &facts);
        if let Some(same) = before.rendered.get(&tool.name).filter(is_same) {
            return Arc::clone(same);
        }
        let of = tool.server.era.unwrap_or(Era::Legacy);
        let definition = |name: &str, era: Era| {
            let json = translate::definition(&tool.definition, of, era, name, facts.description.as_deref());
            json.map_or_else(|_| Arc::from("{}"), |json| Arc::from(json.get()))
        };
        let both = |name: &str| [definition(name, Era::Legacy), definition(name, Era::Modern)];
        let (public, own) = (both(&tool.name), both(&tool.own_name));
        Arc::new(RenderedTool { tool: Arc::clone(tool), facts, public, own })
    }

    /// All lists, by view.
    pub(super) fn lists(&self) -> impl Iterator<Item = (&Address, &Arc<ViewList>)> {
        self.lists.iter()
    }

    /// The servers that a view selects, whether it lists their tools or not.
    pub(super) fn servers_of(&self, address: &Address) -> Vec<Arc<ServerState>> {
        let names = self.server_names(address);
        self.offering.servers.iter().filter(|server| names.contains(&server.name)).cloned().collect()
    }

    /// Servers of a view that do not run and of which nothing was ever listed, each with why.
    pub(super) fn down(&self, address: &Address) -> Vec<(Arc<ServerState>, String)> {
        let servers = self.servers_of(address).into_iter().filter(|server| server.listed.is_none());
        let with_problem = |server: Arc<ServerState>| {
            let problem = server.problem.clone()?;
            Some((server, problem))
        };
        servers.filter_map(with_problem).collect()
    }

    fn server_names(&self, address: &Address) -> Vec<String> {
        let in_view = |name: &String| match address {
            Address::Server(own) => own == name,
            _ => self.view(address).servers.as_ref().is_none_or(|servers| servers.contains(name)),
        };
        self.offering.servers.iter().map(|server| server.name.clone()).filter(in_view).collect()
    }

    /// What a client tells its model of us, at most 600 characters.
    fn instructions(&self, address: &Address) -> String {
        if let Address::Server(name) = address {
            let server = self.offering.servers.iter().find(|server| server.name == *name);
            return server.and_then(|server| server.listed.as_ref()?.instructions.clone()).unwrap_or_default();
        }
        if !self.has_meta(address) {
            return super::methods::instructions(|tool| self.has_own(address, tool));
        }
        let named = named(&self.server_names(address), 200);
        format!(
            "Almanac has the tools of {named}. Those that are not listed are found by find_tools, which takes the task \
             in words and shows how they are called; call_tool calls them. A call that takes long is answered with a \
             handle, for which get_result waits."
        )
    }
}

/// Names in a sentence, as many as fit.
pub(super) fn named(names: &[String], most: usize) -> String {
    let mut text = String::new();
    for (place, name) in names.iter().enumerate() {
        if text.len() + name.len() > most {
            return format!("{text} and {} more", names.len() - place);
        }
        if place > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text
}

impl ViewList {
    fn add(&mut self, name: &str, definition: &Value) {
        let json: Arc<str> = definition.to_string().into();
        self.push(name.into(), [Arc::clone(&json), json]);
    }

    fn push(&mut self, name: Arc<str>, [legacy, modern]: [Arc<str>; 2]) {
        self.names.push(name);
        self.legacy.push(legacy);
        self.modern.push(modern);
    }

    /// Its size, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.modern.iter().map(|json| json.len() + 1).sum()
    }

    /// Did the list change?
    pub(super) fn is(&self, other: &Self) -> bool {
        self.tag == other.tag
    }

    /// The page after the tool of this name; the first one without. Nothing if no list ever had that name.
    pub(super) fn page_after(&self, era: Era, is_public: bool, after: Option<&str>) -> Option<PageKey> {
        let start = match after {
            None => 0,
            Some(after) => self.names.iter().position(|name| **name == *after)? + 1,
        };
        Some(PageKey { era, is_public, start })
    }

    /// The answer with a page, as `make` made it when it was first asked for.
    pub(super) fn answer(&self, key: PageKey, make: impl FnOnce(ListPage) -> RpcAnswer) -> RpcAnswer {
        if let Some(answer) = self.answers.lock().get(&key) {
            return Ok(RawValue::to_owned(answer));
        }
        let answer = make(self.page(key))?;
        // Any tool's name is a cursor; only what we hand out ourselves is kept.
        if key.start.is_multiple_of(PAGE) {
            self.answers.lock().insert(key, answer.clone().into());
        }
        Ok(answer)
    }

    fn page(&self, PageKey { era, start, .. }: PageKey) -> ListPage {
        let all = if era == Era::Legacy { &self.legacy } else { &self.modern };
        let end = all.len().min(start + PAGE);
        let next = (end < all.len()).then(|| Arc::clone(&self.names[end - 1]));
        ListPage { tools: format!("[{}]", all[start..end].join(",")), next }
    }
}

/// What documents say of the tools; parsed again only where they changed.
fn facts(
    offering: &Offering,
    generation: &Generation,
    before: &HashMap<Arc<str>, Arc<ToolFacts>>,
) -> HashMap<Arc<str>, Arc<ToolFacts>> {
    let of = |tool: &Arc<ServedTool>| {
        let entry = generation.tool(&tool.name);
        let digest = entry.map_or(0, |entry| entry.digest());
        let same = before.get(&tool.name).filter(|facts| facts.digest == digest).cloned();
        let facts = same.unwrap_or_else(|| Arc::new(read_facts(tool, entry, digest)));
        (Arc::clone(&tool.name), facts)
    };
    offering.iter().chain(offering.hidden()).map(of).collect()
}

fn read_facts(tool: &ServedTool, entry: Option<&Arc<Entry>>, digest: u128) -> ToolFacts {
    let Some(document) = entry.map(|entry| entry.document()) else {
        let category = tool.server.category.clone().unwrap_or_default();
        return ToolFacts { digest, category, is_read_only: tool.is_read_only, ..ToolFacts::default() };
    };
    let is_overridden = document.overrides.contains(&Overridden::Description);
    ToolFacts {
        digest,
        description: is_overridden.then_some(document.description),
        category: document.category,
        mode_argument: document.mode_argument,
        is_read_only: document.read_only.unwrap_or(tool.is_read_only),
    }
}

/// How long calls take, with two digits, so that a list does not change with each call.
fn timing_of(tool: &str, engine: &Engine, generation: &Generation) -> String {
    let estimate = engine.estimate(generation, &engine.learnt(), &Asked { tool: tool.to_owned(), ..Asked::default() });
    let [_, half, most, _] = estimate.forecast.quantiles().whole_ms();
    let two = |value: f64| {
        let scale = if value > 0.0 { 10_f64.powi(1 - value.log10().floor() as i32) } else { 1.0 };
        (value * scale).round() / scale
    };
    serde_json::json!({
        "p50_ms": two(half as f64), "p90_ms": two(most as f64), "limit_ms": estimate.limit_ms,
        "timeout_probability": two(estimate.timeout_probability()), "samples": two(estimate.forecast.samples() as f64),
        "basis": estimate.forecast.basis().as_str(),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_made_once_while_the_list_stays() {
        let mut list = ViewList::default();
        for number in 0..=PAGE {
            list.add(&format!("t{number}"), &serde_json::json!(number));
        }
        let check = |after: Option<&str>, is_public: bool, expected: (usize, bool)| {
            let key = list.page_after(Era::Modern, is_public, after).unwrap();
            let mut made = 0;
            for _ in 0..2 {
                let answer = list.answer(key, |ListPage { tools, next }| {
                    made += 1;
                    let answer = format!(r#"{{"tools":{tools},"has_next":{}}}"#, next.is_some());
                    Ok(RawValue::from_string(answer).unwrap())
                });
                let answer: Value = serde_json::from_str(answer.unwrap().get()).unwrap();
                let tools = answer["tools"].as_array().unwrap().len();
                assert_eq!((tools, answer["has_next"].as_bool().unwrap()), expected, "{after:?}");
            }
            made
        };
        assert_eq!(check(None, true, (PAGE, true)), 1);
        assert_eq!(check(None, true, (PAGE, true)), 0);
        assert_eq!(check(None, false, (PAGE, true)), 1, "it says another scope");
        assert_eq!(check(Some(&format!("t{}", PAGE - 1)), true, (1, false)), 1);
        assert_eq!(check(Some("t7"), true, (PAGE - 7, false)), 2, "of other places none is kept");
        assert_eq!(list.page_after(Era::Modern, true, Some("no tool")), None);
    }
}
