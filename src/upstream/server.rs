//! One server: its state for who asks, and the way to it for who calls.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::time::{Instant, timeout};

use super::call::{CallFault, CallReply, Caller, Outgoing, ServerEvent};
use super::fault::StartFault;
use super::greet::modern_params;
use super::journal::ServerLog;
use super::kept::Kept;
use super::lines::MAX_MESSAGE_BYTES;
use super::listed::Listed;
use super::open::{Opener, Talk};
use super::peer::{Notice, PeerFault, PeerRequest};
use super::settings::{ServerSettings, prefix_of};
use crate::jsonrpc::param_headers::ToolHeaders;
use crate::jsonrpc::{Era, ErrorObject, Members, code};
use crate::telemetry::Metrics;

/// Calls that wait for a slot; further ones are refused.
const MAX_QUEUE: usize = 128;

/// How long a call may take if neither it nor the configuration says: five minutes.
const LIMIT: Duration = Duration::from_secs(300);

/// Processes of a server with one for each session.
const MAX_SESSIONS: usize = 16;

/// Without a call for so long a session's process is ended.
const SESSION_IDLE: Duration = Duration::from_secs(600);

/// Calls in a row without an answer, after which a server is asked whether it lives.
const MAX_TIMEOUTS: usize = 3;

/// How a server is, for whoever lists its tools.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// As it is configured.
    pub name: String,
    /// Begins the names of its tools; empty for none.
    pub prefix: String,
    /// Category of its tools, if configured.
    pub category: Option<String>,
    /// Does it answer?
    pub is_up: bool,
    /// Was it stopped because nobody used it? The next call starts it.
    pub is_idle: bool,
    /// Nothing until it was greeted once.
    pub era: Option<Era>,
    /// What it offers; what it offered last, while it is down. Nothing if it was never listed.
    pub listed: Option<Arc<Listed>>,
    /// Tools that wait for an approval.
    pub waiting: BTreeSet<String>,
    /// Why it does not answer, or does not with its new configuration.
    pub problem: Option<String>,
    /// Does it want a person who logs in?
    pub needs_login: bool,
    /// Its process.
    pub pid: Option<u32>,
    /// Starts since the daemon's, the first one included.
    pub starts: usize,
    /// The rest of what is configured.
    pub settings: Arc<ServerSettings>,
}

#[cfg(test)]
impl ServerState {
    /// One that runs, for tests of other rooms.
    pub(crate) fn sketch(name: &str, settings: ServerSettings, listed: Listed) -> Self {
        Self {
            name: name.to_owned(),
            prefix: settings.prefix.clone().unwrap_or_else(|| name.to_owned()),
            category: settings.category.clone(),
            is_up: true,
            is_idle: false,
            era: Some(Era::Legacy),
            listed: Some(Arc::new(listed)),
            waiting: BTreeSet::new(),
            problem: None,
            needs_login: false,
            pid: None,
            starts: 1,
            settings: Arc::new(settings),
        }
    }
}

/// What a server's keeper is told.
#[derive(Debug)]
pub(super) enum ServerOrder {
    /// End it and start it again.
    Restart(&'static str),
    /// A call came while it is stopped.
    Wake,
    /// It did not answer several times: does it live?
    Probe,
    /// Ask for its lists again.
    Relist,
    /// End it, after at most so long.
    Stop(Duration),
}

/// Whether there is a conversation.
#[derive(Debug, Clone)]
pub(super) enum ServerStanding {
    /// There will be one, as far as is known.
    Starting,
    Up(Talk),
    /// There will be none for a while.
    Down(String),
}

/// What all servers share.
pub(super) struct SharedSetup {
    pub(super) metrics: Arc<Metrics>,
    /// Rises with each change that anybody could see.
    pub(super) revision: watch::Sender<u64>,
    /// Resources that changed, by server.
    pub(super) updates: broadcast::Sender<(Arc<str>, Arc<RawValue>)>,
    /// What is wrong with the files of the directory, a line each.
    pub(super) faults: Arc<ArcSwap<Vec<String>>>,
}

/// One server.
pub(super) struct Server {
    pub(super) name: Arc<str>,
    pub(super) settings: Arc<ServerSettings>,
    pub(super) shared: Arc<SharedSetup>,
    pub(super) opener: Opener,
    pub(super) journal: Arc<ServerLog>,
    pub(super) kept: Mutex<Kept>,
    /// Held while what is kept is changed and written.
    keeping: Mutex<()>,
    pub(super) state: ArcSwap<ServerState>,
    pub(super) standing: watch::Sender<ServerStanding>,
    pub(super) orders: mpsc::UnboundedSender<ServerOrder>,
    slots: Semaphore,
    queued: AtomicUsize,
    in_flight: AtomicUsize,
    timeouts: AtomicUsize,
    /// Has it answered a request since that was looked at last?
    pub(super) has_answered: AtomicBool,
    last_used: Mutex<Instant>,
    sessions: Mutex<HashMap<String, Arc<SessionPlace>>>,
}

/// Where a session's own process is kept.
#[derive(Debug)]
struct SessionPlace {
    talk: tokio::sync::Mutex<Option<Talk>>,
    last_used: Mutex<Instant>,
}

impl Server {
    pub(super) fn new(
        opener: Opener,
        kept: Kept,
        shared: Arc<SharedSetup>,
        orders: mpsc::UnboundedSender<ServerOrder>,
    ) -> Self {
        let (settings, journal) = (Arc::clone(&opener.settings), Arc::clone(&opener.journal));
        let listed = kept.listed.clone();
        learn_headers(&opener.tool_headers, listed.as_deref());
        let state = ServerState {
            name: opener.name.clone(),
            prefix: prefix_of(&opener.name, &settings),
            category: settings.category.clone(),
            is_up: false,
            is_idle: false,
            era: listed.as_ref().map(|_| if kept.is_legacy { Era::Legacy } else { Era::Modern }),
            listed,
            waiting: kept.waiting.keys().cloned().collect(),
            problem: None,
            needs_login: false,
            pid: None,
            starts: 0,
            settings: Arc::clone(&settings),
        };
        Self {
            name: opener.name.as_str().into(),
            slots: Semaphore::new(settings.max_in_flight),
            settings,
            shared,
            opener,
            journal,
            kept: Mutex::new(kept),
            keeping: Mutex::default(),
            state: ArcSwap::from_pointee(state),
            standing: watch::Sender::new(ServerStanding::Starting),
            orders,
            queued: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            timeouts: AtomicUsize::new(0),
            has_answered: AtomicBool::new(false),
            last_used: Mutex::new(Instant::now()),
            sessions: Mutex::default(),
        }
    }

    /// Changes what is kept, and writes it; without that the lists are empty after a restart, which is said. Takes as
    /// long as the disk does, which nobody who only looks at it waits for.
    pub(super) fn change_kept<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> T {
        let _one_at_a_time = self.keeping.lock();
        let (outcome, kept) = {
            let mut kept = self.kept.lock();
            let outcome = change(&mut kept);
            (outcome, kept.clone())
        };
        if let Err(error) = kept.write(&self.opener.kept, &self.name) {
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            self.journal.warn(&format!("has lists that cannot be kept: {error}: {source}"));
        }
        outcome
    }

    /// From now on calls have the headers that these tools want.
    pub(super) fn learn_headers(&self, listed: &Listed) {
        learn_headers(&self.opener.tool_headers, Some(listed));
    }

    /// Changes what is seen of the server, and says so.
    pub(super) fn publish(&self, change: impl Fn(&mut ServerState)) {
        self.state.rcu(|state| {
            let mut state = ServerState::clone(state);
            change(&mut state);
            state
        });
        let state = self.state.load();
        let metrics = &self.shared.metrics.upstream;
        metrics.up.with_label_values(&[&*self.name]).set((state.is_up || state.is_idle).into());
        // So that the first change is a rise.
        metrics.changed.with_label_values(&[&*self.name]);
        metrics.blocked_tools.with_label_values(&[&*self.name]).set(state.waiting.len() as i64);
        self.shared.revision.send_modify(|revision| *revision += 1);
    }

    pub(super) fn is_idle(&self) -> bool {
        // In this order: a call is in flight before it leaves the queue.
        self.queued.load(Ordering::Acquire) == 0 && self.in_flight.load(Ordering::Acquire) == 0
    }

    pub(super) fn idle_since(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Asks the server. Dropping the future cancels the request.
    pub(super) async fn request(
        &self,
        asked: Outgoing,
        events: mpsc::Sender<ServerEvent>,
    ) -> Result<CallReply, CallFault> {
        self.refuse_blocked(&asked)?;
        let start = Instant::now();
        *self.last_used.lock() = start;
        let queued = Count::new(&self.queued);
        let waiting = self.queued.load(Ordering::Relaxed) - 1;
        if waiting >= MAX_QUEUE && self.slots.available_permits() == 0 {
            return Err(CallFault::Busy { server: self.name.to_string(), waiting });
        }
        let _slot = self.slots.acquire().await.map_err(|_| self.down("it was removed"))?;
        let _in_flight = InFlight::new(self);
        drop(queued);
        let (mut sent, mut outcome) = self.ask_once(&asked, events.clone()).await?;
        if matches!(outcome, Err(PeerFault::Unasked(_))) {
            // It may have been started anew, and not know the session.
            (sent, outcome) = self.ask_once(&asked, events).await?;
        }
        *self.last_used.lock() = Instant::now();
        self.has_answered.fetch_or(outcome.is_ok(), Ordering::Relaxed);
        match &outcome {
            Err(PeerFault::Timeout(_)) => {
                if self.timeouts.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_TIMEOUTS {
                    let _ = self.orders.send(ServerOrder::Probe);
                }
            }
            // It wants other arguments in headers than it did when it was listed.
            Ok(Err(error)) if ErrorObject::read(error).code == code::HEADER_MISMATCH => {
                self.timeouts.store(0, Ordering::Relaxed);
                let _ = self.orders.send(ServerOrder::Relist);
            }
            _ => self.timeouts.store(0, Ordering::Relaxed),
        }
        let server = self.name.to_string();
        match outcome {
            Ok(outcome) => Ok(CallReply { outcome, duration: sent.elapsed(), queued: sent - start }),
            Err(PeerFault::Closed(reason)) => Err(CallFault::Died { server, reason }),
            Err(PeerFault::Unasked(reason)) => Err(CallFault::Down { server, reason }),
            Err(PeerFault::Timeout(after)) => {
                Err(CallFault::Timeout { server, after: Duration::from_millis(after.as_millis() as u64) })
            }
            Err(PeerFault::Unreadable(reason)) => Err(CallFault::Unreadable { server, reason }),
            Err(PeerFault::TooLong) => Err(CallFault::TooLong { server, limit: MAX_MESSAGE_BYTES }),
        }
    }

    /// Asks in the conversation that the caller has, or shares; says when.
    async fn ask_once(
        &self,
        asked: &Outgoing,
        events: mpsc::Sender<ServerEvent>,
    ) -> Result<(Instant, Result<super::peer::PeerOutcome, PeerFault>), CallFault> {
        let talk = match &asked.caller.session {
            Some(session) if self.settings.per_session => self.session(session, &asked.caller).await?,
            _ if self.has_own_credential(&asked.caller) => {
                let token = asked.caller.token.as_deref().unwrap_or_default();
                self.session(&format!("token:{token}"), &asked.caller).await?
            }
            _ => self.shared_talk().await?,
        };
        let sent = Instant::now();
        if let Some(mark) = &asked.sent {
            // One that is sent again is under way since the first time.
            let _ = mark.set(sent.into_std());
        }
        Ok((sent, self.ask(&talk, asked, events).await))
    }

    async fn ask(
        &self,
        talk: &Talk,
        asked: &Outgoing,
        events: mpsc::Sender<ServerEvent>,
    ) -> Result<super::peer::PeerOutcome, PeerFault> {
        let modern;
        let params = if talk.greeting.era == Era::Modern {
            modern = modern_params(asked.params.as_deref(), &asked.caller).ok();
            modern.as_deref()
        } else {
            asked.params.as_deref()
        };
        // Asked for in these words by the older eras alone.
        let is_task = talk.greeting.era == Era::Legacy
            && params
                .and_then(|params| Members::read(params).ok())
                .is_some_and(|members| members.get("task").is_some());
        let limit = asked.limit.or(self.settings.timeout).unwrap_or(LIMIT);
        let asked = PeerRequest {
            method: &asked.method,
            params,
            events: Some(events),
            wants_progress: asked.caller.wants_progress,
            is_task,
            limit,
            most: self.settings.max_timeout.max(limit),
        };
        talk.peer.request(asked).await
    }

    fn refuse_blocked(&self, asked: &Outgoing) -> Result<(), CallFault> {
        if asked.method != "tools/call" {
            return Ok(());
        }
        let name =
            asked.params.as_deref().and_then(|params| Some(Members::read(params).ok()?.text("name")?.into_owned()));
        let Some(tool) = name else { return Ok(()) };
        let state = self.state.load();
        let is_blocked =
            state.listed.as_ref().and_then(|listed| listed.tool(&tool)).is_some_and(|tool| tool.is_blocked);
        if is_blocked || state.waiting.contains(&tool) {
            return Err(CallFault::Blocked { server: self.name.to_string(), tool });
        }
        Ok(())
    }

    /// Is the caller known to this server by a credential of its own?
    fn has_own_credential(&self, caller: &Caller) -> bool {
        caller.token.as_ref().is_some_and(|token| self.settings.headers_by_token.contains_key(token))
    }

    /// The conversation that all share, once there is one.
    async fn shared_talk(&self) -> Result<Talk, CallFault> {
        let mut standing = self.standing.subscribe();
        let _ = self.orders.send(ServerOrder::Wake);
        // One that has just ended is about to be said to start.
        let is_decided = |standing: &ServerStanding| match standing {
            ServerStanding::Starting => false,
            ServerStanding::Up(talk) => talk.peer.is_open(),
            ServerStanding::Down(_) => true,
        };
        let decided = timeout(self.settings.start_timeout, standing.wait_for(is_decided)).await;
        match decided.map(|standing| standing.map(|standing| standing.clone())) {
            Ok(Ok(ServerStanding::Up(talk))) => Ok(talk),
            Ok(Ok(ServerStanding::Down(reason))) => Err(self.down(&reason)),
            Ok(_) => Err(self.down("it was removed")),
            Err(_) => Err(self.down("it is still starting")),
        }
    }

    fn down(&self, reason: &str) -> CallFault {
        CallFault::Down { server: self.name.to_string(), reason: reason.to_owned() }
    }

    /// The conversation of a session, which is begun if it is not there or has ended.
    async fn session(&self, session: &str, caller: &Caller) -> Result<Talk, CallFault> {
        let place = {
            let mut sessions = self.sessions.lock();
            if !sessions.contains_key(session) && sessions.len() >= MAX_SESSIONS {
                return Err(CallFault::NoPlace { server: self.name.to_string(), sessions: sessions.len() });
            }
            let fresh = || {
                Arc::new(SessionPlace { talk: tokio::sync::Mutex::default(), last_used: Mutex::new(Instant::now()) })
            };
            let place = sessions.entry(session.to_owned()).or_insert_with(fresh);
            *place.last_used.lock() = Instant::now();
            Arc::clone(place)
        };
        let mut talk = place.talk.lock().await;
        if let Some(open) = talk.as_ref().filter(|talk| talk.peer.is_open()) {
            return Ok(open.clone());
        }
        let known = self.state.load().era;
        let opening = self.opener.open(known, caller, true);
        let opened = match timeout(self.settings.start_timeout, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(StartFault::Slow(self.settings.start_timeout.as_secs())),
        };
        let opened = opened.map_err(|fault| self.down(&fault.to_string()))?;
        self.journal.note(&format!("has a process for a session ({:?})", opened.talk.pid));
        self.follow_session(opened.notices);
        *talk = Some(opened.talk.clone());
        Ok(opened.talk)
    }

    /// Hands on what a session's own process tells of its resources, for as long as it speaks.
    fn follow_session(&self, mut notices: mpsc::UnboundedReceiver<Notice>) {
        let (updates, name) = (self.shared.updates.clone(), Arc::clone(&self.name));
        tokio::spawn(async move {
            while let Some(notice) = notices.recv().await {
                if let Notice::ResourceUpdated(params) = notice {
                    // Nobody may listen.
                    let _ = updates.send((Arc::clone(&name), params.into()));
                }
            }
        });
    }

    /// Somebody still listens to the process of a session, though nothing is called.
    pub(super) fn touch_session(&self, session: &str) {
        if let Some(place) = self.sessions.lock().get(session) {
            *place.last_used.lock() = Instant::now();
        }
    }

    /// Ends the process of a session.
    pub(super) fn end_session(&self, session: &str) {
        let place = self.sessions.lock().remove(session);
        if let Some(place) = place {
            end(&place, "its session ended");
        }
    }

    /// Ends the processes of all sessions.
    pub(super) fn end_sessions(&self, why: &str) {
        let ended = std::mem::take(&mut *self.sessions.lock());
        for place in ended.values() {
            end(place, why);
        }
    }

    /// Ends the processes of sessions that were not used for long.
    pub(super) fn end_idle_sessions(&self) {
        let mut ended = Vec::new();
        self.sessions.lock().retain(|_, place| {
            // One that is being used is held by more than the map.
            let ends = place.last_used.lock().elapsed() >= SESSION_IDLE && Arc::strong_count(place) == 1;
            if ends {
                ended.push(Arc::clone(place));
            }
            !ends
        });
        for place in ended {
            end(&place, "its session was not used");
        }
    }
}

fn learn_headers(headers: &ToolHeaders, listed: Option<&Listed>) {
    let tools = listed.iter().flat_map(|listed| &listed.tools);
    headers.learn(tools.map(|tool| (tool.name.as_str(), &*tool.json)));
}

fn end(place: &SessionPlace, why: &str) {
    // One that is being opened has nobody to end it here, and is dropped by whoever opens it.
    if let Ok(mut talk) = place.talk.try_lock()
        && let Some(talk) = talk.take()
    {
        talk.peer.close(why);
    }
}

/// One more, as long as it lives.
struct Count<'a>(&'a AtomicUsize);

impl<'a> Count<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// A call in a slot.
struct InFlight<'a>(&'a Server, #[expect(dead_code, reason = "counts while it lives")] Count<'a>);

impl<'a> InFlight<'a> {
    fn new(server: &'a Server) -> Self {
        server.shared.metrics.upstream.in_flight.with_label_values(&[&*server.name]).inc();
        Self(server, Count::new(&server.in_flight))
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.shared.metrics.upstream.in_flight.with_label_values(&[&*self.0.name]).dec();
    }
}
