//! Streams that only tell of changes: `subscriptions/listen` of modern clients, GET of legacy ones.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, interval_at};

use super::Mcp;
use super::address::Address;
use super::error::RpcError;
use super::relay::needs_tasks;
use super::request::{McpRequest, complete, session_name};
use super::shown::{FeatureTags, Shown, ViewList};
use super::streams::{COMMENTS, PIECES, StreamPlace};
use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::{Envelope, Era, Members, meta, sse};

/// Tasks that one stream tells of, at most.
const MAX_TASKS: usize = 256;

/// A list that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListKind {
    Tools,
    Prompts,
    Resources,
}

impl ListKind {
    const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// What its change is told by.
    fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
        }
    }

    /// What a modern client asks for it by.
    fn filter(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Prompts => "promptsListChanged",
            Self::Resources => "resourcesListChanged",
        }
    }

    /// The capability that has it.
    fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
        }
    }
}

/// Makes the event that tells of another list; each stream has its own.
type TellChange = Box<dyn Fn(ListKind) -> Option<Bytes> + Send>;

/// Is a server's changed resource, as its notification says it, told of here?
type WantsUpdate = Box<dyn Fn(&str, &RawValue) -> bool + Send + Sync>;

impl Mcp {
    /// Tells a modern client of what it asks to be told, and that it will be.
    pub(super) fn listen(
        self: &Arc<Self>,
        request: &McpRequest,
        stopped: watch::Receiver<bool>,
    ) -> Result<mpsc::Receiver<Bytes>, RpcError> {
        let mut filter = Filter::read(request.value("notifications"))?;
        if !filter.tasks.is_empty() && !request.caller.takes_tasks() {
            return Err(needs_tasks());
        }
        let can = self.capabilities(&request.caller.address, Era::Modern);
        filter.lists.retain(|kind| can[kind.capability()]["listChanged"] == true);
        filter.tasks.retain(|id| self.has_task(request, id));
        let place = self.streams.place().ok_or_else(|| RpcError::busy("streams"))?;
        let (pieces, body) = mpsc::channel(PIECES);
        let tag = format!("{{\"{}\":{}}}", meta::SUBSCRIPTION_ID, request.id.as_json());
        let acknowledged = notification("notifications/subscriptions/acknowledged", &tag, &filter.agreed());
        let (lists, tagged) = (filter.lists.clone(), tag.clone());
        let tell: TellChange =
            Box::new(move |kind| lists.contains(&kind).then(|| notification(kind.method(), &tagged, &Map::new())));
        let mut end = Map::new();
        end.insert("_meta".to_owned(), serde_json::from_str(&tag).unwrap_or_default());
        let end = complete(&request.caller, end)?;
        let end = sse::message(None, Envelope::write_result(&request.id, &end).as_bytes());
        // Nothing comes before it.
        let _ = pieces.try_send(acknowledged);
        for id in &filter.tasks {
            let (about, tag) = ((request.with_params(None), id.clone()), tag.clone());
            let event = move |state: &RawValue| task_changed(state, &tag);
            tokio::spawn(Arc::clone(self).tell_of_task(about, pieces.clone(), event, stopped.clone()));
        }
        let telling = self.telling(pieces, place, &request.caller.address, stopped);
        tokio::spawn(telling.run(None, tell, Some(end)));
        Ok(body)
    }

    /// Tells a legacy client of changes; nothing if there are too many streams.
    pub(super) fn tell_of_changes(
        self: &Arc<Self>,
        session: u64,
        address: &Address,
        stopped: watch::Receiver<bool>,
    ) -> Option<mpsc::Receiver<Bytes>> {
        let place = self.streams.place()?;
        let (pieces, body) = mpsc::channel(PIECES);
        let tell: TellChange =
            Box::new(|kind| Some(sse::message(None, Envelope::write_notification(kind.method(), None).as_bytes())));
        let mut telling = self.telling(pieces, place, address, stopped);
        let door = Arc::clone(self);
        telling.wants = Box::new(move |server, params| {
            let uri = Members::read(params).ok().and_then(|members| members.text("uri").map(String::from));
            uri.is_some_and(|uri| door.subscriptions.has(session, server, &uri))
        });
        let door = Arc::clone(self);
        telling.lives = Box::new(move || {
            // The process that tells of them must not end for want of calls.
            if door.subscriptions.keep(session, std::time::Instant::now()) {
                door.upstreams.touch_session(&session_name(session));
            }
        });
        (telling.lives)();
        // The comment at the beginning makes the headers leave.
        tokio::spawn(telling.run(Some(sse::COMMENT), tell, None));
        Some(body)
    }

    fn telling(
        &self,
        pieces: mpsc::Sender<Bytes>,
        place: StreamPlace,
        address: &Address,
        stopped: watch::Receiver<bool>,
    ) -> Telling {
        let mut shown = self.shown.subscribe();
        let last = Lists::of(&shown.borrow_and_update(), address);
        let (updates, wants): (_, WantsUpdate) = (self.upstreams.updates(), Box::new(|_, _| false));
        Telling {
            pieces,
            place,
            address: address.clone(),
            shown,
            last,
            updates,
            wants,
            lives: Box::new(|| ()),
            stopped,
        }
    }
}

/// The event that tells of a changed resource.
fn updated(params: &RawValue) -> Bytes {
    sse::message(None, Envelope::write_notification("notifications/resources/updated", Some(params)).as_bytes())
}

/// The lists of a view.
struct Lists {
    tools: Option<Arc<ViewList>>,
    features: FeatureTags,
}

impl Lists {
    fn of(shown: &Shown, address: &Address) -> Self {
        Self { tools: shown.list(address).cloned(), features: shown.features(address) }
    }

    /// Those that are others than before.
    fn others(&self, before: &Self) -> impl Iterator<Item = ListKind> {
        let has_same_tools = match (&self.tools, &before.tools) {
            (Some(list), Some(last)) => list.is(last),
            (list, last) => list.is_none() && last.is_none(),
        };
        let (now, then) = (self.features, before.features);
        let is_other = [!has_same_tools, now.prompts != then.prompts, now.resources != then.resources];
        ListKind::ALL.into_iter().zip(is_other).filter(|(_, is_other)| *is_other).map(|(kind, _)| kind)
    }
}

/// A stream that tells.
struct Telling {
    pieces: mpsc::Sender<Bytes>,
    place: StreamPlace,
    address: Address,
    shown: watch::Receiver<Arc<Shown>>,
    /// The lists that the client knows, or was told of.
    last: Lists,
    /// Resources that changed.
    updates: broadcast::Receiver<(Arc<str>, Arc<RawValue>)>,
    wants: WantsUpdate,
    /// Says from time to time that the stream is there.
    lives: Box<dyn Fn() + Send>,
    stopped: watch::Receiver<bool>,
}

impl Telling {
    /// Until the client leaves or the daemon stops.
    async fn run(self, first: Option<Bytes>, tell: TellChange, end: Option<Bytes>) {
        let Self { pieces, place: _place, address, mut shown, mut last, mut updates, wants, lives, mut stopped } = self;
        let mut comments = interval_at(Instant::now() + COMMENTS, COMMENTS);
        let mut next = first;
        loop {
            if let Some(piece) = next.take()
                && pieces.send(piece).await.is_err()
            {
                return;
            }
            next = tokio::select! {
                changed = shown.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let lists = Lists::of(&shown.borrow_and_update(), &address);
                    // Only whoever sees another list is told.
                    let told: Vec<Bytes> = lists.others(&last).filter_map(&tell).collect();
                    last = lists;
                    (!told.is_empty()).then(|| told.concat().into())
                },
                update = updates.recv() => match update {
                    Ok((server, params)) => wants(&server, &params).then(|| updated(&params)),
                    // What was missed is lost; clients read what they need.
                    Err(broadcast::error::RecvError::Lagged(_)) => None,
                    Err(broadcast::error::RecvError::Closed) => break,
                },
                _ = comments.tick() => {
                    lives();
                    Some(sse::COMMENT)
                }
                () = pieces.closed() => return,
                _ = stopped.wait_for(|stopped| *stopped) => break,
            };
        }
        if let Some(end) = end {
            // Whoever left does not need it.
            let _ = pieces.send(end).await;
        }
    }
}

/// What a client asks to be told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Filter {
    lists: Vec<ListKind>,
    /// Tasks by their ids.
    tasks: Vec<String>,
}

impl Filter {
    fn read(notifications: Option<&RawValue>) -> Result<Self, RpcError> {
        let asked: Option<Map<String, Value>> = notifications.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let asked = asked.ok_or_else(|| RpcError::invalid_params("`notifications` says what to tell of"))?;
        let tasks = asked.get("taskIds").and_then(Value::as_array).into_iter().flatten();
        let tasks = tasks.filter_map(Value::as_str).take(MAX_TASKS).map(str::to_owned).collect();
        let lists = ListKind::ALL.into_iter().filter(|kind| asked.get(kind.filter()) == Some(&Value::Bool(true)));
        Ok(Self { lists: lists.collect(), tasks })
    }

    /// As much of it as will be told.
    fn agreed(&self) -> Map<String, Value> {
        let mut agreed = Map::new();
        agreed.extend(self.lists.iter().map(|kind| (kind.filter().to_owned(), true.into())));
        if !self.tasks.is_empty() {
            agreed.insert("taskIds".to_owned(), self.tasks.clone().into());
        }
        let mut params = Map::new();
        params.insert("notifications".to_owned(), agreed.into());
        params
    }
}

/// The event that tells how a task stands, as whoever looks at it is told.
fn task_changed(state: &RawValue, tag: &str) -> Bytes {
    let change = |name: &str, _: &RawValue| match name {
        "resultType" => Change::Remove,
        meta::MEMBER => Change::Set(tag.to_owned()),
        _ => Change::Keep,
    };
    // A state is an object, so it can be read.
    let params = object::rewrite(state, change, &[]).unwrap_or_default();
    sse::message(None, Envelope::write_notification("notifications/tasks", Some(&params)).as_bytes())
}

/// An event that tells something, tagged by `tag`, an object.
fn notification(method: &str, tag: &str, params: &Map<String, Value>) -> Bytes {
    let mut params = params.clone();
    params.insert("_meta".to_owned(), serde_json::from_str(tag).unwrap_or_default());
    sse::message(None, json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_agreed_is_what_can_be_told() {
        let check = |asked: &str, expected: Option<Value>| {
            let raw: &RawValue = serde_json::from_str(asked).unwrap();
            let agreed = Filter::read(Some(raw)).ok().map(|filter| Value::Object(filter.agreed()));
            assert_eq!(agreed, expected.map(|agreed| json!({"notifications": agreed})), "{asked}");
        };
        let asked = r#"{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": 1}"#;
        check(asked, Some(json!({"toolsListChanged": true, "promptsListChanged": true})));
        let tasks = r#"{"taskIds": ["c_1", 7, "c_2"]}"#;
        check(tasks, Some(json!({"taskIds": ["c_1", "c_2"]})));
        check(r#"{"toolsListChanged": false}"#, Some(json!({})));
        check("{}", Some(json!({})));
        check("[]", None);
        assert!(Filter::read(None).is_err());
    }
}
