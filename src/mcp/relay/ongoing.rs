//! Calls under way, and results that somebody still has to come for.
//!
//! A call lives in a task of its own, so that it outlasts whoever asked for it: it is recorded at its real end, its
//! result is kept under a handle, and the same question asked again is joined to it instead of being executed twice.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::super::offering::ServedTool;
use super::super::request::{ClientPresence, McpCaller};
use super::call_result::CallResult;
use super::server_task::ServerTask;
use super::task_questions::TaskQuestions;
use crate::timing::Forecast;
use crate::upstream::{CallFault, ServerEvent};

/// For how long a result waits under its handle.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(3600);

/// For how long a result that was not delivered is given to the same question, asked again.
const JOINED_FOR: Duration = Duration::from_secs(60);

/// Results of one tenant that wait, and their bytes.
const MAX_KEPT: usize = 256;
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Calls that can be joined, from which on those are looked for that no longer can.
const SWEEP_FROM: usize = 64;

/// What makes two calls the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SameCall {
    pub(super) token: Arc<str>,
    pub(super) tenant: Arc<str>,
    pub(super) session: String,
    pub(super) tool: Arc<str>,
    /// In canonical JSON.
    pub(super) arguments: String,
}

/// Whose call it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallOwner {
    /// The token's name.
    pub(super) token: Arc<str>,
    pub(super) tenant: Arc<str>,
}

impl CallOwner {
    pub(super) fn of(caller: &McpCaller) -> Self {
        Self { token: Arc::clone(&caller.grant.name), tenant: Arc::clone(&caller.grant.tenant) }
    }
}

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// The server's error object.
    Error(Box<RawValue>),
    Fault(CallFault),
    Cancelled,
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct CallEnd {
    pub(super) outcome: Result<CallResult, CallFailure>,
    /// At the server.
    pub(super) duration: Duration,
    /// Before it was sent.
    pub(super) queued: Duration,
    pub(super) at: Instant,
    /// What is told beside the result, but for what only the end knows: an object.
    pub(super) metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A call under way, or one that has ended and was not forgotten.
#[derive(Debug)]
pub(super) struct OngoingCall {
    pub(super) tool: Arc<ServedTool>,
    pub(super) owner: CallOwner,
    pub(super) key: Option<SameCall>,
    /// Whose process it is in, at a server with one for each session.
    pub(super) session: String,
    pub(super) forecast: Arc<Forecast>,
    /// After which its server is not waited for, unless it tells of progress or made a task of it.
    limit: Duration,
    goes_beyond: AtomicBool,
    /// When it was sent to its server, once it was.
    pub(super) sent: Arc<OnceLock<std::time::Instant>>,
    listener: Mutex<Option<mpsc::Sender<ServerEvent>>>,
    ended: watch::Sender<Option<Arc<CallEnd>>>,
    cancelled: watch::Sender<bool>,
    callers: Mutex<Callers>,
    /// How long its server waited for answers of the client.
    paused: Mutex<Duration>,
    /// When it was asked for, by the clock and by the calendar.
    pub(super) began: (Instant, SystemTime),
    /// Set once its client was given it as a task.
    pub(super) terms: OnceLock<TaskTerms>,
    /// What its server asks the client that holds the task.
    pub(super) questions: TaskQuestions,
    /// When what the task shows changed last.
    changed: watch::Sender<Instant>,
    /// The task that its server made of it, if it did.
    at_server: watch::Sender<Option<ServerTask>>,
    look: Notify,
}

/// On which terms a client was given a call as a task.
#[derive(Debug, Clone)]
pub(super) struct TaskTerms {
    /// Who asked.
    pub(super) caller: McpCaller,
    /// Is too long a text given in parts?
    pub(super) takes_parts: bool,
}

/// Who waits for a call.
#[derive(Debug, Default)]
struct Callers {
    waiting: Vec<ClientPresence>,
    /// Set once somebody was told to come back.
    handle: Option<String>,
    was_delivered: bool,
}

impl Callers {
    fn are_absent(&self) -> bool {
        !self.waiting.iter().any(ClientPresence::is_there)
    }
}

impl OngoingCall {
    pub(super) fn new(
        tool: Arc<ServedTool>,
        (owner, session): (CallOwner, String),
        key: Option<SameCall>,
        (forecast, limit): (Arc<Forecast>, Duration),
    ) -> Self {
        Self {
            tool,
            owner,
            key,
            session,
            forecast,
            limit,
            goes_beyond: AtomicBool::new(false),
            sent: Arc::default(),
            listener: Mutex::default(),
            ended: watch::Sender::new(None),
            cancelled: watch::Sender::new(false),
            callers: Mutex::default(),
            paused: Mutex::default(),
            began: (Instant::now(), SystemTime::now()),
            terms: OnceLock::new(),
            questions: TaskQuestions::default(),
            changed: watch::Sender::new(Instant::now()),
            at_server: watch::Sender::new(None),
            look: Notify::new(),
        }
    }

    /// What the task shows is another from now on.
    pub(super) fn change(&self) {
        self.changed.send_replace(Instant::now());
    }

    /// When what the task shows changed last, and then again.
    pub(super) fn changes(&self) -> watch::Receiver<Instant> {
        self.changed.subscribe()
    }

    /// Its server made a task of it, which stands like this.
    pub(super) fn follow(&self, task: ServerTask) {
        self.goes_beyond.store(true, Ordering::Relaxed);
        let is_other = self.at_server.borrow().as_ref().is_none_or(|known| known.state.get() != task.state.get());
        self.at_server.send_replace(Some(task));
        if is_other {
            self.change();
        }
    }

    /// The task that its server made of it.
    pub(super) fn at_server(&self) -> Option<ServerTask> {
        self.at_server.borrow().clone()
    }

    /// Waits until its server has made a task of it.
    pub(super) async fn becoming_task(&self) {
        // It fails only without a sender, which `self` is.
        let _ = self.at_server.subscribe().wait_for(Option::is_some).await;
    }

    /// Waits until somebody wants to know how its server's task stands.
    pub(super) async fn looked_for(&self) {
        self.look.notified().await;
    }

    /// Waits until its server was asked anew how its task stands; nothing changes that once the call has ended.
    pub(super) async fn look(&self) {
        let (mut seen, since) = (self.at_server.subscribe(), Instant::now());
        self.look.notify_one();
        let is_fresh = |task: &Option<ServerTask>| task.as_ref().is_none_or(|task| task.asked >= since);
        tokio::select! {
            _ = seen.wait_for(is_fresh) => {}
            _ = self.ending() => {}
        }
    }

    /// Its server waited for the client.
    pub(super) fn pause(&self, waited: Duration) {
        *self.paused.lock() += waited;
    }

    /// For how long, in all.
    pub(super) fn paused(&self) -> Duration {
        *self.paused.lock()
    }

    /// Hands what the server says to whoever waits; without anybody it is lost, and a question refused.
    pub(super) fn hear(&self, event: ServerEvent) {
        self.goes_beyond.fetch_or(matches!(event, ServerEvent::Progress(_)), Ordering::Relaxed);
        if let Some(listener) = &*self.listener.lock() {
            // What a slow caller does not take is lost as well.
            let _ = listener.try_send(event);
        }
    }

    /// Has it ended?
    pub(super) fn end(&self) -> Option<Arc<CallEnd>> {
        self.ended.borrow().clone()
    }

    /// Its end, told once.
    pub(super) fn finish(&self, end: CallEnd) {
        self.ended.send_replace(Some(Arc::new(end)));
        self.change();
    }

    /// Waits for its end.
    pub(super) async fn ending(&self) -> Option<Arc<CallEnd>> {
        let mut ended = self.ended.subscribe();
        // It fails only without a sender, which `self` is.
        ended.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// Gives it up, also at its server.
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Waits until it is given up.
    pub(super) async fn cancelling(&self) {
        let mut cancelled = self.cancelled.subscribe();
        // As above.
        let _ = cancelled.wait_for(|is_cancelled| *is_cancelled).await;
    }

    /// Was it given up?
    pub(super) fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// The handle, if somebody was told to come back with it.
    pub(super) fn handle(&self) -> Option<String> {
        self.callers.lock().handle.clone()
    }

    /// From when its server had it.
    pub(super) fn running_for(&self) -> Duration {
        self.sent.get().map_or(Duration::ZERO, std::time::Instant::elapsed)
    }

    /// What is left of it in half of all such cases, and at most in nine of ten, in ms. Whatever they are, it ends at
    /// its limit, or, with progress told beyond that, at its server's.
    pub(super) fn left_ms(&self) -> [u64; 2] {
        let elapsed = self.running_for();
        let [_, half, most, _] = self.forecast.remaining(elapsed.as_millis() as u64).quantiles_ms();
        let is_bound = elapsed < self.limit && !self.goes_beyond.load(Ordering::Relaxed);
        let limit = if is_bound { self.limit } else { self.tool.server.settings.max_timeout };
        let longest = limit.saturating_sub(elapsed).as_millis() as u64;
        [half, most].map(|ms| ms.min(longest))
    }

    /// The result was given to whoever is there.
    pub(super) fn delivered(&self) {
        self.callers.lock().was_delivered = true;
    }

    /// Was it ever?
    pub(super) fn was_delivered(&self) -> bool {
        self.callers.lock().was_delivered
    }

    /// Can the same question be answered by it? Not while somebody waits for it.
    fn is_joinable(&self) -> bool {
        let callers = self.callers.lock();
        let is_in_time = self.end().is_none_or(|end| !callers.was_delivered && end.at.elapsed() < JOINED_FOR);
        callers.are_absent() && is_in_time && !self.is_cancelled()
    }

    fn size(&self) -> usize {
        self.end().map_or(0, |end| end.outcome.as_ref().map_or(200, |result| result.json().get().len()))
    }
}

/// Somebody waits for a call. Dropped before [`Waiting::leave`], it was given up.
#[derive(Debug)]
pub(super) struct Waiting {
    call: Arc<OngoingCall>,
    heard: mpsc::Receiver<ServerEvent>,
    presence: ClientPresence,
    has_left: bool,
    /// Is the call only waited for here, so that who leaves does not give it up?
    is_visit: bool,
}

impl Waiting {
    /// Whoever waits now hears what the server says.
    pub(super) fn begin(call: &Arc<OngoingCall>, presence: &ClientPresence, is_visit: bool) -> Self {
        let (listener, heard) = mpsc::channel(32);
        *call.listener.lock() = Some(listener);
        call.callers.lock().waiting.push(presence.clone());
        Self { call: Arc::clone(call), heard, presence: presence.clone(), has_left: false, is_visit }
    }

    /// What the server says next; never, once it says no more.
    pub(super) async fn heard(&mut self) -> ServerEvent {
        match self.heard.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// What the server said last.
    pub(super) fn rest(&mut self) -> Option<ServerEvent> {
        self.heard.try_recv().ok()
    }

    /// Whoever waits is back with another request.
    pub(super) fn resume(&mut self, presence: &ClientPresence) {
        let mut callers = self.call.callers.lock();
        callers.waiting.retain(|presence| !presence.is_same(&self.presence));
        callers.waiting.push(presence.clone());
        self.presence = presence.clone();
    }

    /// The call that is waited for.
    pub(super) fn call(&self) -> &Arc<OngoingCall> {
        &self.call
    }

    /// Goes without giving the call up.
    pub(super) fn leave(mut self) {
        self.has_left = true;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut callers = self.call.callers.lock();
        callers.waiting.retain(|presence| !presence.is_same(&self.presence));
        // The last one who is there gives it up for all; who holds a handle still wants it.
        let gives_up = !self.has_left && !self.is_visit && callers.are_absent() && callers.handle.is_none();
        drop(callers);
        if gives_up && self.call.end().is_none() {
            self.call.cancel();
        }
    }
}

/// All calls that somebody may come back for.
#[derive(Debug, Default)]
pub(super) struct OngoingCalls(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// All of them, in the order in which they began; some may have ended.
    begun: Vec<Weak<OngoingCall>>,
    joinable: HashMap<SameCall, Arc<OngoingCall>>,
    handles: HashMap<String, Arc<OngoingCall>>,
}

/// As many calls as a tenant may have under handles still run.
#[derive(Debug, thiserror::Error)]
#[error("{MAX_KEPT} calls of this tenant are under way already; get their results, or cancel some")]
pub(super) struct TooManyKept;

impl OngoingCalls {
    /// The call that answers the same question, if there is one.
    pub(super) fn join(&self, key: &SameCall) -> Option<Arc<OngoingCall>> {
        self.0.lock().joinable.get(key).filter(|call| call.is_joinable()).cloned()
    }

    /// The call can be joined from now on.
    pub(super) fn add(&self, call: &Arc<OngoingCall>) {
        let mut known = self.0.lock();
        if known.begun.len() >= SWEEP_FROM && known.begun.len() == known.begun.capacity() {
            known.begun.retain(|call| call.upgrade().is_some_and(|call| call.end().is_none()));
        }
        known.begun.push(Arc::downgrade(call));
        let Some(key) = &call.key else { return };
        if known.joinable.len() >= SWEEP_FROM {
            known.joinable.retain(|_, call| {
                !call.is_cancelled()
                    && call.end().is_none_or(|end| end.at.elapsed() < JOINED_FOR && !call.was_delivered())
            });
        }
        known.joinable.insert(key.clone(), Arc::clone(call));
    }

    /// The tenant's calls that have not ended, in the order in which they began.
    pub(super) fn running(&self, tenant: &str) -> Vec<Arc<OngoingCall>> {
        let known = self.0.lock();
        let calls = known.begun.iter().filter_map(Weak::upgrade);
        calls.filter(|call| *call.owner.tenant == *tenant && call.end().is_none()).collect()
    }

    /// The call was answered; it is not joined any more.
    pub(super) fn forget_key(&self, call: &Arc<OngoingCall>) {
        if let Some(key) = &call.key {
            let mut known = self.0.lock();
            if known.joinable.get(key).is_some_and(|held| Arc::ptr_eq(held, call)) {
                known.joinable.remove(key);
            }
        }
    }

    /// Is there room for one more handle of the tenant?
    pub(super) fn check_room(&self, tenant: &str) -> Result<(), TooManyKept> {
        let mut known = self.0.lock();
        known.expire();
        let of_tenant = known.handles.values().filter(|call| *call.owner.tenant == *tenant);
        let running = of_tenant.filter(|call| call.end().is_none()).count();
        if running >= MAX_KEPT { Err(TooManyKept) } else { Ok(()) }
    }

    /// The handle under which the call's result is kept, from now on.
    pub(super) fn keep(&self, call: &Arc<OngoingCall>) -> String {
        if let Some(handle) = call.handle() {
            return handle;
        }
        let mut random = [0_u8; 16];
        // Without randomness nobody could guess it either: the address of the call is in it.
        if getrandom::fill(&mut random).is_err() {
            random[..8].copy_from_slice(&(Arc::as_ptr(call) as usize as u64).to_ne_bytes());
        }
        let handle = format!("c_{}", hex::encode(random));
        call.callers.lock().handle = Some(handle.clone());
        let mut known = self.0.lock();
        known.expire();
        known.make_room(&call.owner.tenant);
        known.handles.insert(handle.clone(), Arc::clone(call));
        handle
    }

    /// The call of this handle, if it is the owner's.
    pub(super) fn get(&self, handle: &str, owner: &CallOwner) -> Option<Arc<OngoingCall>> {
        let mut known = self.0.lock();
        known.expire();
        known.handles.get(handle).filter(|call| call.owner == *owner).cloned()
    }

    /// Questions of servers that the tenant's clients hold as tasks, and that are open.
    pub(super) fn open_questions(&self, tenant: &str) -> usize {
        let known = self.0.lock();
        let of_tenant = known.handles.values().filter(|call| *call.owner.tenant == *tenant);
        of_tenant.map(|call| call.questions.count()).sum()
    }

    /// A call under a handle has ended: others may have to give way to its result.
    pub(super) fn ended(&self, call: &Arc<OngoingCall>) {
        if call.handle().is_some() {
            self.0.lock().shrink(&call.owner.tenant, MAX_KEPT);
        }
    }
}

impl Known {
    fn expire(&mut self) {
        self.handles.retain(|_, call| call.end().is_none_or(|end| end.at.elapsed() < KEPT_FOR));
    }

    fn make_room(&mut self, tenant: &str) {
        self.shrink(tenant, MAX_KEPT - 1);
    }

    /// Forgets results of the tenant until so many are left: the oldest that were delivered first, then the oldest.
    fn shrink(&mut self, tenant: &str, most: usize) {
        let of_tenant = self.handles.iter().filter(|(_, call)| *call.owner.tenant == *tenant);
        let mut ended: Vec<(bool, Instant, String, usize)> = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        for (handle, call) in of_tenant {
            count += 1;
            bytes += call.size();
            if let Some(end) = call.end() {
                ended.push((!call.was_delivered(), end.at, handle.clone(), call.size()));
            }
        }
        ended.sort();
        // The last one stays, however large it is.
        let last = ended.len().saturating_sub(usize::from(most == MAX_KEPT));
        for (_, _, handle, size) in ended.drain(..last) {
            if count <= most && bytes <= MAX_KEPT_BYTES {
                return;
            }
            self.handles.remove(&handle);
            (count, bytes) = (count - 1, bytes - size);
        }
    }
}
