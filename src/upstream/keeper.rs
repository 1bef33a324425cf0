//! Keeps one server: starts it, lists what it offers, notices its end, and starts it again.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::call::Caller;
use super::fault::StartFault;
use super::greet::modern_params;
use super::kept::Kept;
use super::list;
use super::listed::{Greeting, Listed};
use super::open::{Opened, Talk};
use super::peer::{Notice, PeerRequest};
use super::pins;
use super::server::{Server, ServerOrder, ServerStanding};
use super::settings::ServerSettings;
use super::shape::{Defined, Mending};
use crate::blocking::{self, NoThread};
use crate::jsonrpc::Era;

/// After a first failure it is started again this soon; twice as late after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// At the latest.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Failures in a row after which calls are refused at once, with one try a minute.
const BREAKER: u32 = 5;

/// Whoever lived for so long did not fail at the start.
const STABLE: Duration = Duration::from_secs(30);

/// A burst of changes of lists is over when nothing more came for this long.
const QUIET: Duration = Duration::from_millis(100);

/// Lists are asked for at most this often.
const RELIST: Duration = Duration::from_secs(1);

/// How long a server that seems to hang may take to say that it lives.
const PROBE: Duration = Duration::from_secs(10);

/// Between two looks at what is idle.
const TICK: Duration = Duration::from_secs(15);

/// Between two looks whether calls are still in flight.
const LOOK: Duration = Duration::from_millis(20);

/// What was begun and has not ended, if anything.
type UnderWay<'a, T> = Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>;

/// Why a conversation ended.
enum End {
    /// By itself.
    Died(String),
    /// To be started again.
    Restart(&'static str),
    /// Nobody used it.
    Idle,
    /// For good, after calls in flight had so long.
    Stop(Duration),
}

/// Who keeps a server.
pub(super) struct Keeper {
    pub(super) server: Arc<Server>,
    pub(super) orders: mpsc::UnboundedReceiver<ServerOrder>,
    /// Told once how the first start came out.
    pub(super) first: Option<oneshot::Sender<Result<(), String>>>,
}

impl Keeper {
    /// Until it is told to stop.
    pub(super) async fn run(mut self) {
        let (mut failures, mut reason) = (0, "start");
        loop {
            let Some(started) = self.start(reason).await else { return };
            match started {
                Ok(opened) => {
                    if let Some(first) = self.first.take() {
                        let _ = first.send(Ok(()));
                    }
                    let since = Instant::now();
                    let end = self.tend(opened).await;
                    // One that dies of some requests and answers others is not broken.
                    let has_answered = self.server.has_answered.swap(false, Ordering::Relaxed);
                    if since.elapsed() >= STABLE || has_answered {
                        failures = 0;
                    }
                    match end {
                        End::Died(why) => {
                            reason = "died";
                            self.failed(&why, &mut failures);
                        }
                        End::Restart(why) => {
                            reason = why;
                            continue;
                        }
                        End::Idle => {
                            reason = "wake";
                            if self.sleep_until_woken().await.is_break() {
                                return;
                            }
                            continue;
                        }
                        End::Stop(_) => return,
                    }
                }
                Err(fault) => {
                    reason = "failed";
                    self.failed(&fault.to_string(), &mut failures);
                }
            }
            if self.pause(failures).await.is_break() {
                return;
            }
        }
    }

    /// Starts the server; nothing if it is to stop meanwhile.
    async fn start(&mut self, reason: &'static str) -> Option<Result<Opened, StartFault>> {
        let server = Arc::clone(&self.server);
        let starting = start(&server, reason);
        tokio::pin!(starting);
        loop {
            tokio::select! {
                started = &mut starting => return Some(started),
                order = self.orders.recv() => match order {
                    Some(ServerOrder::Stop(_)) | None => return None,
                    // It is being started.
                    Some(ServerOrder::Restart(_) | ServerOrder::Wake | ServerOrder::Probe | ServerOrder::Relist) => {}
                }
            }
        }
    }

    fn failed(&mut self, why: &str, failures: &mut u32) {
        *failures += 1;
        let pause = humantime::format_duration(pause(*failures));
        let server = &self.server;
        server.journal.warn(&format!("does not serve: {why}; it is started again in {pause}"));
        let standing = if *failures >= BREAKER {
            ServerStanding::Down(format!(
                "it failed {failures} times in a row, at last: {why}; it is tried again in {pause}"
            ))
        } else {
            ServerStanding::Starting
        };
        server.publish(|state| {
            (state.is_up, state.pid) = (false, None);
            state.problem = Some(why.to_owned());
            state.needs_login = server.opener.way_in.needs_login();
        });
        server.standing.send_replace(standing);
        if let Some(first) = self.first.take() {
            let _ = first.send(Err(why.to_owned()));
        }
    }

    /// Waits until it is time for the next start.
    async fn pause(&mut self, failures: u32) -> ControlFlow<()> {
        let due = Instant::now() + pause(failures);
        loop {
            tokio::select! {
                () = sleep_until(due) => return ControlFlow::Continue(()),
                order = self.orders.recv() => match order {
                    Some(ServerOrder::Restart(_)) => return ControlFlow::Continue(()),
                    Some(ServerOrder::Wake | ServerOrder::Probe | ServerOrder::Relist) => {}
                    Some(ServerOrder::Stop(_)) | None => return ControlFlow::Break(()),
                }
            }
        }
    }

    async fn sleep_until_woken(&mut self) -> ControlFlow<()> {
        let server = &self.server;
        server.journal.note("is stopped until it is asked again");
        server.standing.send_replace(ServerStanding::Starting);
        server.publish(|state| (state.is_up, state.is_idle, state.pid) = (false, true, None));
        let woken = loop {
            match self.orders.recv().await {
                Some(ServerOrder::Wake | ServerOrder::Restart(_)) => break ControlFlow::Continue(()),
                Some(ServerOrder::Probe | ServerOrder::Relist) => {}
                Some(ServerOrder::Stop(_)) | None => break ControlFlow::Break(()),
            }
        };
        if woken.is_continue() {
            server.publish(|state| state.is_idle = false);
        }
        woken
    }

    /// Serves until something ends the conversation, which is closed then.
    async fn tend(&mut self, opened: Opened) -> End {
        let Opened { talk, mut notices, gone } = opened;
        let server = Arc::clone(&self.server);
        let listening = listen(&server, &talk);
        let (mut relist, mut listed) = (None::<Instant>, Instant::now());
        // Both go on whatever is heard meanwhile: one that hangs may talk all the time.
        let mut listing: UnderWay<'_, Result<list::Offered, StartFault>> = None;
        let mut probing: UnderWay<'_, bool> = None;
        let mut tick = tokio::time::interval(TICK);
        let end = loop {
            tokio::select! {
                why = talk.peer.closed() => {
                    let how = timeout(Duration::from_millis(200), gone).await.ok().and_then(Result::ok).flatten();
                    break End::Died(how.unwrap_or(why));
                }
                order = self.orders.recv() => match order {
                    Some(ServerOrder::Restart(why)) => break End::Restart(why),
                    Some(ServerOrder::Stop(grace)) => break End::Stop(grace),
                    None => break End::Stop(Duration::ZERO),
                    Some(ServerOrder::Probe) if probing.is_none() => probing = Some(Box::pin(probe(&talk))),
                    Some(ServerOrder::Relist) => relist = Some(Instant::now()),
                    Some(ServerOrder::Probe | ServerOrder::Wake) => {}
                },
                notice = notices.recv() => match notice {
                    Some(Notice::ListChanged) => relist = Some((Instant::now() + QUIET).max(listed + RELIST)),
                    Some(Notice::ResourceUpdated(params)) => {
                        let _ = server.shared.updates.send((Arc::clone(&server.name), params.into()));
                    }
                    // The end of the conversation is noticed above.
                    None => sleep(QUIET).await,
                },
                () = sleep_until(relist.unwrap_or_else(Instant::now)), if relist.is_some() && listing.is_none() => {
                    (relist, listed) = (None, Instant::now());
                    listing = Some(Box::pin(list_again(&server, &talk)));
                }
                offered = ended(&mut listing) => {
                    let settled = match offered {
                        Ok(offered) => settle_beside(&server, &talk.greeting, offered).await.map_err(Into::into),
                        Err(fault) => Err(fault),
                    };
                    if let Err(fault) = settled {
                        server.journal.warn(&format!("does not tell its lists: {fault}; the last ones hold"));
                    }
                }
                lives = ended(&mut probing) => if !lives {
                    server.journal.warn("does not answer any more; it is restarted");
                    break End::Restart("hung");
                },
                _ = tick.tick() => {
                    server.end_idle_sessions();
                    let idle = server.settings.idle_stop;
                    if idle.is_some_and(|idle| server.idle_since().elapsed() >= idle) && withdraw(&server, &talk) {
                        break End::Idle;
                    }
                }
            }
        };
        drop((listing, probing));
        listening.abort();
        server.standing.send_replace(ServerStanding::Starting);
        if let End::Stop(grace) = &end {
            self.drain(*grace).await;
            server.end_sessions("it is removed");
        }
        talk.peer.close(match &end {
            End::Died(why) => why,
            End::Restart(_) => "it is restarted",
            End::Idle => "it is stopped until it is used",
            End::Stop(_) => "it is removed",
        });
        end
    }

    /// Waits until no call is in flight any more, but not for ever; whoever stops it once more may leave it less time.
    async fn drain(&mut self, grace: Duration) {
        let mut end = Instant::now() + grace;
        while !self.server.is_idle() && Instant::now() < end {
            match timeout(LOOK, self.orders.recv()).await {
                Ok(Some(ServerOrder::Stop(grace))) => end = end.min(Instant::now() + grace),
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => return,
            }
        }
    }
}

/// Lets nobody in any more, unless somebody is: whoever came before is counted by then, whoever comes after waits for
/// the next start.
fn withdraw(server: &Server, talk: &Talk) -> bool {
    if !server.is_idle() {
        return false;
    }
    server.standing.send_replace(ServerStanding::Starting);
    let is_idle = server.is_idle();
    if !is_idle {
        server.standing.send_replace(ServerStanding::Up(talk.clone()));
    }
    is_idle
}

/// Waits for the end of what is under way, and forgets it; for ever, if nothing is. It goes on if that is given up.
async fn ended<T>(under_way: &mut UnderWay<'_, T>) -> T {
    let Some(future) = under_way else { return std::future::pending().await };
    let outcome = future.await;
    *under_way = None;
    outcome
}

async fn list_again(server: &Server, talk: &Talk) -> Result<list::Offered, StartFault> {
    let settings = &server.settings;
    list::ask(talk, &lister(settings), settings.start_timeout, &server.journal).await
}

/// What a client can be asked.
const ALL_CAPABILITIES: &str = concat!(
    r#"{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"#,
    r#""elicitation":{"form":{},"url":{}}}"#,
);

/// Who asks for the lists. Some servers have tools only for clients that can be asked: where each has a process of its
/// own, what is listed is all there may be, though nobody can be asked for it here.
fn lister(settings: &ServerSettings) -> Caller {
    let all = || RawValue::from_string(ALL_CAPABILITIES.to_owned()).ok();
    Caller { capabilities: settings.per_session.then(all).flatten(), ..Caller::default() }
}

/// Starts the server, greets it and asks for its lists. Dropping the future ends what was started.
async fn start(server: &Arc<Server>, reason: &'static str) -> Result<Opened, StartFault> {
    let begun = Instant::now();
    let metrics = &server.shared.metrics.upstream;
    metrics.starts.with_label_values(&[&*server.name, reason]).inc();
    server.state.rcu(|state| {
        let mut state = super::server::ServerState::clone(state);
        state.starts += 1;
        state
    });
    let limit = server.settings.start_timeout;
    let hash = server.settings.hash().to_string();
    // That it was of the old era saves a question that some servers end at.
    let known = Some(Era::Legacy).filter(|_| {
        let kept = server.kept.lock();
        kept.settings == hash && kept.is_legacy
    });
    server.opener.way_in.begin();
    let starting = async {
        let opened = server.opener.open(known, &lister(&server.settings), false).await?;
        let listing = Listing { talk: Some(opened.talk.clone()) };
        let offered = list::ask(&opened.talk, &lister(&server.settings), limit, &server.journal).await?;
        Ok::<_, StartFault>((opened, listing, offered))
    };
    let (opened, listing, offered) = match timeout(limit, starting).await {
        Ok(started) => started?,
        Err(_) => return Err(StartFault::Slow(limit.as_secs())),
    };
    settle_beside(server, &opened.talk.greeting, offered).await?;
    listing.done();
    let (talk, took) = (&opened.talk, begun.elapsed());
    metrics.start_seconds.with_label_values(&[&*server.name]).observe(took.as_secs_f64());
    server.publish(|state| {
        (state.is_up, state.pid, state.era) = (true, talk.pid, Some(talk.greeting.era));
        state.problem = None;
        state.needs_login = false;
    });
    // Last: whoever is answered finds it up.
    server.standing.send_replace(ServerStanding::Up(talk.clone()));
    server.journal.note(&format!("serves ({}, after {} ms)", talk.greeting.version, took.as_millis()));
    Ok(opened)
}

/// The same as [`settle`], where nobody else waits for the thread.
async fn settle_beside(server: &Arc<Server>, greeting: &Arc<Greeting>, offered: list::Offered) -> Result<(), NoThread> {
    let (server, greeting) = (Arc::clone(server), Arc::clone(greeting));
    blocking::run(move || settle(&server, &greeting, offered)).await
}

/// Holds what is offered to what was approved, keeps and publishes it. Waits for the disk.
fn settle(server: &Server, greeting: &Greeting, offered: list::Offered) {
    let (listed, waiting) = server.change_kept(|kept| take(server, greeting, offered, kept));
    server.learn_headers(&listed);
    server.publish(|state| {
        state.listed = Some(Arc::clone(&listed));
        state.waiting.clone_from(&waiting);
    });
}

/// Holds what is offered to what was approved: what is listed from now on, and the tools that wait.
fn take(
    server: &Server,
    greeting: &Greeting,
    offered: list::Offered,
    kept: &mut Kept,
) -> (Arc<Listed>, BTreeSet<String>) {
    let settings = &server.settings;
    let mut settled = pins::settle(&mut kept.pins, offered.tools, settings.pins, settings.on_change());
    // An approval is of what the server says; clients are shown what they can read.
    let mut mending = Mending::default();
    for tool in &mut settled.tools {
        tool.json = mending.mend(std::mem::take(&mut tool.json), Defined::Tool, &tool.name);
    }
    mending.tell(&server.journal);
    for tool in &settled.changed {
        server.journal.warn(&format!("changed the definition of `{tool}`"));
        server.shared.metrics.upstream.changed.with_label_values(&[&*server.name]).inc();
    }
    let said = settings.instructions.clone().or_else(|| greeting.instructions.clone());
    let listed = Arc::new(Listed {
        tools: settled.tools,
        prompts: offered.prompts,
        resources: offered.resources,
        templates: offered.templates,
        instructions: said.map(|text| super::hygiene::clean_text(&text).into_owned()),
        capabilities: greeting.capabilities.clone(),
        server_info: greeting.server_info.clone(),
        version: greeting.version.clone(),
    });
    kept.settings = settings.hash().to_string();
    kept.is_legacy = greeting.era == Era::Legacy;
    kept.listed = Some(Arc::clone(&listed));
    kept.waiting = settled.waiting;
    (listed, kept.waiting.keys().cloned().collect())
}

/// Closes a conversation that was not listed in time.
struct Listing {
    talk: Option<Talk>,
}

impl Listing {
    fn done(mut self) {
        self.talk = None;
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        if let Some(talk) = &self.talk {
            talk.peer.close("it was not listed");
        }
    }
}

fn pause(failures: u32) -> Duration {
    if failures >= BREAKER {
        return LONGEST_PAUSE;
    }
    (FIRST_PAUSE * 2_u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST_PAUSE)
}

/// Does the server answer at all?
async fn probe(talk: &Talk) -> bool {
    let method = if talk.greeting.era == Era::Modern { "server/discover" } else { "ping" };
    let params = if talk.greeting.era == Era::Modern { modern_params(None, &Caller::default()).ok() } else { None };
    talk.peer.request(PeerRequest::plain(method, params.as_deref(), PROBE)).await.is_ok()
}

/// Has a modern server tell of changes; those of the other era do so by themselves.
fn listen(server: &Arc<Server>, talk: &Talk) -> tokio::task::JoinHandle<()> {
    let (server, talk) = (Arc::clone(server), talk.clone());
    tokio::spawn(async move {
        if talk.greeting.era == Era::Legacy {
            return;
        }
        let wanted = json!({"notifications": {
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true
        }});
        let params =
            to_raw_value(&wanted).ok().and_then(|params| modern_params(Some(&params), &Caller::default()).ok());
        // Nobody waits for its end: it lasts as long as the conversation.
        let ever = Duration::from_secs(10 * 365 * 86400);
        let asked = PeerRequest::plain("subscriptions/listen", params.as_deref(), ever);
        if let Ok(Err(error)) = talk.peer.request(asked).await {
            server
                .journal
                .note(&format!("does not tell of changes: {}", crate::jsonrpc::ErrorObject::read(&error).message));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_server_is_tried_ever_more_seldom() {
        let seconds: Vec<u64> = (1..8).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 60, 60, 60]);
    }
}
