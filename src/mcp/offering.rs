//! All tools of all servers under the names that clients know them by, and as the catalog has them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::names::{NameOwner, NameOwners};
use super::relay::needs_task;
use crate::catalog::{Diagnostic, Offer, ToolMetadata};
use crate::jsonrpc::param_headers::ParamHeaders;
use crate::upstream::{ListedTool, ServerState, public_name};

/// A tool of a server.
#[derive(Debug)]
pub(super) struct ServedTool {
    /// What clients know it by.
    pub(super) name: Arc<str>,
    pub(super) server: Arc<ServerState>,
    /// What its server knows it by.
    pub(super) own_name: Box<str>,
    /// As its server lists it.
    pub(super) definition: Box<RawValue>,
    /// What its arguments must be.
    pub(super) schema: Value,
    /// What headers repeat of its arguments.
    pub(super) headers: ParamHeaders,
    /// Do clients expect a structured result?
    pub(super) has_output_schema: bool,
    /// Does its server say that it changes nothing, and is that believed?
    pub(super) is_read_only: bool,
    /// Must its server be asked for a task, as those of 2025-11-25 may demand?
    pub(super) needs_task: bool,
}

/// All tools of all servers.
#[derive(Debug, Default)]
pub(super) struct Offering {
    /// By the names that clients know them by.
    tools: BTreeMap<Arc<str>, Arc<ServedTool>>,
    /// In the order of their names.
    pub(super) servers: Arc<[Arc<ServerState>]>,
    /// Tools whose names others have: they are listed and called as their servers' alone.
    hidden: Vec<Arc<ServedTool>>,
    /// The names that two tools have, by server.
    clashes: Vec<(String, String)>,
    /// Names of servers of which nothing is listed yet, but was before.
    reserved: NameOwners,
}

/// A tool and the name that it would have.
struct Claim<'a> {
    server: &'a Arc<ServerState>,
    listed: &'a ListedTool,
    name: String,
}

impl Offering {
    /// What was offered when these names were kept: nothing that could be called yet.
    pub(super) fn reserving(reserved: NameOwners) -> Self {
        Self { reserved, ..Self::default() }
    }

    /// What these servers list, by names of at most `max_name` bytes. A name that a tool had `before` stays with it;
    /// one that `is_taken` is nobody's.
    pub(super) fn of(
        servers: &Arc<[Arc<ServerState>]>,
        max_name: usize,
        before: &Self,
        is_taken: impl Fn(&str) -> bool,
    ) -> Self {
        let mut found =
            Self { servers: Arc::clone(servers), reserved: before.still_reserved(servers), ..Self::default() };
        // Whoever had a name comes first; of new ones the lesser server, and of one server's the lesser own name.
        let mut fresh = Vec::new();
        for server in servers.iter() {
            for listed in server.listed.iter().flat_map(|listed| &listed.tools) {
                let claim = Claim { server, listed, name: public_name(&server.prefix, &listed.name, max_name) };
                if before.had(&claim) {
                    found.add(claim, before, &is_taken);
                } else {
                    fresh.push(claim);
                }
            }
        }
        fresh.sort_by(|one, other| (&one.server.name, &one.listed.name).cmp(&(&other.server.name, &other.listed.name)));
        for claim in fresh {
            found.add(claim, before, &is_taken);
        }
        found
    }

    /// Did the tool have the name that it would have?
    fn had(&self, claim: &Claim<'_>) -> bool {
        let is_it = |server: &str, own: &str| *server == claim.server.name && *own == claim.listed.name;
        match self.get(&claim.name) {
            Some(tool) => is_it(&tool.server.name, &tool.own_name),
            None => self.reserved.get(claim.name.as_str()).is_some_and(|owner| is_it(&owner.0, &owner.1)),
        }
    }

    /// Names that wait for servers to list anything.
    fn still_reserved(&self, servers: &[Arc<ServerState>]) -> NameOwners {
        let waits =
            |owner: &NameOwner| servers.iter().any(|server| *server.name == *owner.0 && server.listed.is_none());
        self.reserved
            .iter()
            .filter(|(_, owner)| waits(owner))
            .map(|(name, owner)| (name.clone(), owner.clone()))
            .collect()
    }

    /// Which tool has each name.
    pub(super) fn owners(&self) -> NameOwners {
        let owner = |tool: &ServedTool| NameOwner(tool.server.name.as_str().into(), tool.own_name.clone());
        let mut owners = self.reserved.clone();
        owners.extend(self.tools.iter().map(|(name, tool)| (Box::from(&**name), owner(tool))));
        owners
    }

    fn add(&mut self, claim: Claim<'_>, before: &Self, is_taken: &impl Fn(&str) -> bool) {
        let Claim { server, listed, name } = claim;
        let is_hidden =
            is_taken(&name) || self.tools.contains_key(name.as_str()) || self.reserved.contains_key(name.as_str());
        let name = if is_hidden {
            let own = format!("mcp:{}:{}", server.name, listed.name);
            self.clashes.push((server.name.clone(), name));
            own
        } else {
            name
        };
        let old = if is_hidden { before.of_server(&server.name, &listed.name) } else { before.get(&name) };
        let is_same = |old: &&Arc<ServedTool>| {
            *old.name == *name
                && old.server.name == server.name
                && *old.own_name == *listed.name
                && old.definition.get() == listed.json.get()
                && (old.server.settings == server.settings && old.server.era == server.era)
        };
        let tool = match old.filter(is_same) {
            Some(same) => Arc::clone(same),
            None => Arc::new(ServedTool::new(server, listed, &name)),
        };
        if is_hidden {
            self.hidden.push(tool);
        } else {
            self.tools.insert(Arc::clone(&tool.name), tool);
        }
    }

    /// The tool that clients know by this name.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<ServedTool>> {
        self.tools.get(name)
    }

    /// The tool that this server knows by this name.
    pub(super) fn of_server(&self, server: &str, own_name: &str) -> Option<&Arc<ServedTool>> {
        self.all_of(server).find(|tool| *tool.own_name == *own_name)
    }

    /// All tools of a server, by name; those that others hide at the end.
    pub(super) fn all_of(&self, server: &str) -> impl Iterator<Item = &Arc<ServedTool>> {
        self.tools.values().chain(&self.hidden).filter(move |tool| tool.server.name == server)
    }

    /// The tools whose names others have.
    pub(super) fn hidden(&self) -> impl Iterator<Item = &Arc<ServedTool>> {
        self.hidden.iter()
    }

    /// All tools that clients know by a name, in the order of these.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ServedTool>> {
        self.tools.values()
    }

    /// Is there a server?
    pub(super) fn has_servers(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Is the same offered, by the same names?
    pub(super) fn offers_the_same(&self, other: &Self) -> bool {
        let names = |offering: &Self| offering.servers.iter().map(|server| server.name.clone()).collect::<Vec<_>>();
        self.tools.len() == other.tools.len()
            && self.tools.values().zip(other.tools.values()).all(|(one, other)| Arc::ptr_eq(one, other))
            && self.clashes == other.clashes
            && self.hidden.iter().zip(&other.hidden).all(|(one, other)| Arc::ptr_eq(one, other))
            && names(self) == names(other)
    }

    /// Servers of which nothing was ever listed.
    pub(super) fn starting(&self) -> impl Iterator<Item = &Arc<ServerState>> {
        self.servers.iter().filter(|server| server.listed.is_none() && server.problem.is_none())
    }

    /// What the catalog is to have.
    pub(super) fn offers(&self) -> Vec<Offer> {
        let mut offers: BTreeMap<&str, Offer> = BTreeMap::new();
        let source = |server: &str| format!("mcp:{server}");
        for server in self.servers.iter() {
            offers.insert(&server.name, Offer { source: source(&server.name), ..Offer::default() });
        }
        for tool in self.tools.values() {
            if let Some(offer) = offers.get_mut(tool.server.name.as_str()) {
                offer.tools.push(tool.document());
            }
        }
        for (server, name) in &self.clashes {
            if let Some(offer) = offers.get_mut(server.as_str()) {
                let message = format!("another tool is called `{name}` already, so this one cannot be called");
                let found = Diagnostic::warning(Path::new(&offer.source), "duplicate-tool", message);
                offer.diagnostics.push(found.with_hint("give the server another `prefix`"));
            }
        }
        offers.into_values().collect()
    }
}

impl ServedTool {
    fn new(server: &Arc<ServerState>, listed: &ListedTool, name: &str) -> Self {
        let definition: Value = serde_json::from_str(listed.json.get()).unwrap_or_default();
        let says_read_only = definition["annotations"]["readOnlyHint"] == true;
        Self {
            name: name.into(),
            server: Arc::clone(server),
            own_name: listed.name.as_str().into(),
            definition: listed.json.clone(),
            headers: ParamHeaders::of(&definition["inputSchema"]).unwrap_or_default(),
            has_output_schema: definition["outputSchema"].is_object(),
            schema: definition["inputSchema"].clone(),
            is_read_only: says_read_only && server.settings.trust_annotations,
            needs_task: server.listed.as_ref().is_some_and(|listed| needs_task(&definition, &listed.capabilities)),
        }
    }

    /// The tool as the catalog has it.
    fn document(&self) -> ToolMetadata {
        let category = self.server.category.clone().unwrap_or_default();
        let read_only = self.is_read_only.then_some(true);
        ToolMetadata { category, read_only, ..document_of(&self.name, &self.server.name, &self.definition) }
    }
}

/// What a server says of a tool, as a document of this name.
pub(crate) fn document_of(name: &str, server: &str, definition: &RawValue) -> ToolMetadata {
    document_of_value(name, server, &serde_json::from_str(definition.get()).unwrap_or_default())
}

/// The same of a definition that was read. Without a server's name it has no backend.
pub(crate) fn document_of_value(name: &str, server: &str, value: &Value) -> ToolMetadata {
    let text = |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(ToOwned::to_owned);
    let schema: Option<Map<String, Value>> = value["inputSchema"].as_object().cloned();
    ToolMetadata {
        name: name.to_owned(),
        title: text(&value["title"])
            .or_else(|| text(&value["annotations"]["title"]))
            .or_else(|| text(&value["name"]))
            .unwrap_or_else(|| name.to_owned()),
        description: text(&value["description"]).unwrap_or_default(),
        backend: if server.is_empty() { String::new() } else { format!("mcp:{server}") },
        input_schema: schema,
        ..ToolMetadata::default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::upstream::{Listed, ServerSettings};

    /// A server that lists these tools.
    pub(in crate::mcp) fn server(name: &str, prefix: &str, tools: &[&str]) -> Arc<ServerState> {
        let listed = |tool: &&str| {
            let json =
                format!(r#"{{"name":"{tool}","description":"{tool} of {name}","inputSchema":{{"type":"object"}}}}"#);
            ListedTool { name: (*tool).to_owned(), json: RawValue::from_string(json).unwrap(), is_blocked: false }
        };
        let tools = tools.iter().map(listed).collect();
        let settings = ServerSettings { prefix: Some(prefix.to_owned()), ..ServerSettings::default() };
        Arc::new(ServerState::sketch(name, settings, Listed { tools, ..Listed::default() }))
    }

    fn names(offering: &Offering) -> Vec<String> {
        offering.iter().map(|tool| format!("{}={}/{}", tool.name, tool.server.name, tool.own_name)).collect()
    }

    #[test]
    fn a_name_stays_with_whoever_had_it() {
        let of = |servers: &[Arc<ServerState>], before: &Offering| {
            Offering::of(&servers.into(), 50, before, |name| name == "find_tools")
        };
        let (a, b) = (server("a", "", &["x", "find_tools"]), server("b", "", &["x", "y"]));
        let only = of(&[Arc::clone(&b)], &Offering::default());
        assert_eq!(names(&only), ["x=b/x", "y=b/y"]);
        let both = of(&[Arc::clone(&a), Arc::clone(&b)], &only);
        assert_eq!(names(&both), ["x=b/x", "y=b/y"]);
        assert_eq!(both.offers()[0].diagnostics.len(), 2, "{:?}", both.offers()[0]);
        assert!(Arc::ptr_eq(both.get("y").unwrap(), only.get("y").unwrap()));
        // Both new: the lesser name.
        assert_eq!(names(&of(&[a, b], &Offering::default())), ["x=a/x", "y=b/y"]);
    }

    /// A server that lists these tools, or nothing yet.
    fn perhaps(name: usize, tools: Option<&Vec<String>>) -> Arc<ServerState> {
        let tools: Option<Vec<&str>> = tools.map(|tools| tools.iter().map(String::as_str).collect());
        let server = server(&format!("s{name}"), "", tools.as_deref().unwrap_or_default());
        let listed = server.listed.clone().filter(|_| tools.is_some());
        Arc::new(ServerState { listed, ..ServerState::clone(&server) })
    }

    /// What a server of a made-up history does.
    #[derive(Debug, Clone)]
    enum Step {
        /// It lists these.
        Lists(usize, Vec<String>),
        /// The daemon is started again; these servers' lists are lost, and servers come in another order.
        Restart(Vec<bool>, bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Two tools of one server can make one name, too.
        let tools = prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d ", "d__27ab88cd"]), 0..4);
        let tools = tools.prop_map(|tools| {
            let unique: std::collections::BTreeSet<_> = tools.into_iter().map(str::to_owned).collect();
            unique.into_iter().collect()
        });
        prop_oneof![
            3 => (0_usize..3, tools).prop_map(|(server, tools)| Step::Lists(server, tools)),
            1 => (prop::collection::vec(any::<bool>(), 3), any::<bool>())
                .prop_map(|(lost, turned)| Step::Restart(lost, turned)),
        ]
    }

    proptest! {
        #[test]
        fn a_name_never_goes_to_another_while_its_tool_is_there(steps in prop::collection::vec(step(), 1..16)) {
            let mut lists: [Option<Vec<String>>; 3] = Default::default();
            let (mut offering, mut is_turned) = (Offering::default(), false);
            for step in steps {
                let before = offering.owners();
                match step {
                    Step::Lists(server, tools) => lists[server] = Some(tools),
                    Step::Restart(lost, turned) => {
                        for (list, _) in lists.iter_mut().zip(lost).filter(|(_, lost)| *lost) {
                            *list = None;
                        }
                        is_turned = turned;
                        let kept = serde_json::to_vec(&before).unwrap();
                        offering = Offering::reserving(serde_json::from_slice(&kept).unwrap());
                    }
                }
                let all = lists.iter().enumerate();
                let mut servers: Vec<_> = all.map(|(at, list)| perhaps(at, list.as_ref())).collect();
                if is_turned {
                    servers.reverse();
                }
                offering = Offering::of(&servers.clone().into(), 50, &offering, |_| false);
                let after = offering.owners();
                for (name, owner) in before {
                    let server = servers.iter().find(|server| *server.name == *owner.0).unwrap();
                    let is_there = server.listed.as_ref().is_none_or(|listed| listed.tool(&owner.1).is_some());
                    prop_assert!(!is_there || after[&name] == owner, "{name}: {owner:?}, then {:?}", after[&name]);
                }
                // Everything that is listed can be called, by its name or as its server's alone.
                let listed: usize = lists.iter().flatten().map(Vec::len).sum();
                prop_assert_eq!(offering.iter().count() + offering.hidden().count(), listed);
            }
        }

        #[test]
        fn new_names_do_not_depend_on_the_order(tools in prop::collection::vec("[ab]{1,2}", 1..6)) {
            let one = |(at, tool): (usize, &String)| server(&format!("s{at}"), "", &[tool]);
            let mut servers: Vec<_> = tools.iter().enumerate().map(one).collect();
            let none = Offering::default();
            let of = |servers: &[Arc<ServerState>]| names(&Offering::of(&servers.into(), 50, &none, |_| false));
            let found = of(&servers);
            servers.reverse();
            prop_assert_eq!(found, of(&servers));
        }

        #[test]
        fn names_are_unique_and_whole(
            tools in prop::collection::vec(("[ab]", "[a-c]{0,2}", "[a-c_]{1,9}"), 0..12),
            most in 24_usize..64,
        ) {
            let one = |(at, (_, prefix, tool)): (usize, &(String, String, String))| {
                server(&format!("s{at:02}"), prefix, &[tool])
            };
            let servers: Vec<_> = tools.iter().enumerate().map(one).collect();
            let found = Offering::of(&servers.into(), most, &Offering::default(), |_| false);
            let again = Offering::of(&found.servers, most, &found, |_| false);
            prop_assert_eq!(names(&found), names(&again));
            prop_assert!(found.iter().all(|tool| tool.name.len() <= most));
            prop_assert_eq!(found.iter().count() + found.clashes.len(), tools.len());
        }
    }
}
