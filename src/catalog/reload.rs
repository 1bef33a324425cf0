//! The one place that reloads: file events, the poll, signals and requests all come here.
//!
//! A thread of its own, since it reads files. It owns the [`Scanner`] and the [`Watch`], and hands every outcome to a
//! publisher.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::files::{self, is_document};
use super::load::{LoadOptions, Loaded};
use super::offer::Offer;
use super::scanner::Scanner;
use crate::strict::{Word, diagnostic};
use crate::watch::{self, Debounce, Hint, Watch};

/// Where a catalog comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    pub options: LoadOptions,
    /// How they are followed.
    pub settings: super::Settings,
    /// Further directories whose changes make a reload. What they hold is the publisher's affair.
    pub beside: Vec<PathBuf>,
}

impl Sources {
    /// Watches one directory with default limits.
    pub fn directory(root: impl AsRef<Path>) -> Self {
        let settings = super::Settings::default();
        Self { options: LoadOptions::directory(root.as_ref()), settings, beside: Vec::new() }
    }
}

/// The poll while some place could not be looked at, which may be over any moment.
const BLIND_INTERVAL: Duration = Duration::from_secs(2);

/// Why a reload was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    Start,
    Event,
    Poll,
    Signal,
    Request,
    /// What is offered beside the documents is something else.
    Offer,
}

/// How a reload came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum ReloadOutcome {
    /// Another catalog is served.
    Changed,
    /// The same catalog is served.
    Unchanged,
    /// A faulty document made strict reload keep the old catalog.
    Rejected,
}

#[derive(Debug, Clone)]
pub struct Report {
    pub trigger: Trigger,
    /// How it came out.
    pub outcome: ReloadOutcome,
    /// What is to be served from now on.
    pub loaded: Loaded,
    /// How long it took.
    pub took: Duration,
    /// Was all of the disk looked at, or only one file that was saved?
    pub whole: bool,
    /// Why changes are noticed by the poll only, if so.
    pub polling: Option<String>,
}

/// Asks a reload thread for reloads. The thread ends with the last clone of this.
#[derive(Debug, Clone)]
pub struct Reloader(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sender: Sender<Message>,
    pass: Arc<Pass>,
}

/// When the thread began what it does now.
#[derive(Debug, Default)]
struct Pass(Mutex<Option<Instant>>);

/// A pass that takes longer than this is stuck, as on a disk that does not answer: what is served may be old.
pub const PASS_TIME: Duration = Duration::from_secs(30);

impl Drop for Inner {
    fn drop(&mut self) {
        // If it fails, the thread is gone already.
        let _ = self.sender.send(Message::Stop);
    }
}

/// The reload thread is gone.
#[derive(Debug, thiserror::Error)]
#[error("the catalog's reload thread has ended")]
pub struct ReloadThreadEnded;

enum Message {
    Hint(Hint),
    Reload(Request),
    Stop,
}

struct Request {
    trigger: Trigger,
    sources: Option<Sources>,
    /// All that is offered from now on.
    offers: Option<Vec<Offer>>,
    reply: Reply,
}

type Reply = Box<dyn FnOnce(&Report) + Send>;

impl Reloader {
    /// Loads once on this thread, then keeps up on another one. Every outcome, the first included, goes to `publish`,
    /// which may add to it.
    pub fn start(
        sources: Sources,
        mut publish: impl FnMut(&mut Report) + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (sender, receiver) = channel();
        let pass = Arc::<Pass>::default();
        let mut reload_loop = ReloadLoop {
            scanner: Scanner::new(sources.options.clone()),
            watch: watch(&sources, &sender),
            served: Loaded::default(),
            debounce: Debounce::default(),
            last_scan: Instant::now(),
            sender: sender.clone(),
            pass: Arc::clone(&pass),
            sources,
        };
        publish(&mut reload_loop.scan(Trigger::Start));
        let thread = Builder::new().name("catalog".into()).spawn(move || reload_loop.run(&receiver, &mut publish))?;
        Ok((Self(Arc::new(Inner { sender, pass })), thread))
    }

    /// Does the thread work on something for longer than it should?
    pub fn is_stuck(&self, now: Instant) -> bool {
        self.0.pass.0.lock().is_some_and(|since| now.saturating_duration_since(since) > PASS_TIME)
    }

    /// Asks for a full scan, of other sources if given. `reply` is called with its outcome, on the reload thread.
    pub fn reload(
        &self,
        trigger: Trigger,
        sources: Option<Sources>,
        reply: impl FnOnce(&Report) + Send + 'static,
    ) -> Result<(), ReloadThreadEnded> {
        self.send(Request { trigger, sources, offers: None, reply: Box::new(reply) })
    }

    /// From now on this is offered beside the documents, and nothing else. `reply` is called once it is served.
    pub fn offer(
        &self,
        offers: Vec<Offer>,
        reply: impl FnOnce(&Report) + Send + 'static,
    ) -> Result<(), ReloadThreadEnded> {
        self.send(Request { trigger: Trigger::Offer, sources: None, offers: Some(offers), reply: Box::new(reply) })
    }

    fn send(&self, request: Request) -> Result<(), ReloadThreadEnded> {
        self.0.sender.send(Message::Reload(request)).map_err(|_| ReloadThreadEnded)
    }
}

fn watch(sources: &Sources, sender: &Sender<Message>) -> Watch {
    if !sources.settings.watch {
        return Watch::off("file events are turned off in the configuration");
    }
    let sender = sender.clone();
    Watch::new(is_document, move |hint| {
        // If it fails, nobody is left to reload.
        let _ = sender.send(Message::Hint(hint));
    })
}

struct ReloadLoop {
    sources: Sources,
    scanner: Scanner,
    watch: Watch,
    debounce: Debounce,
    last_scan: Instant,
    sender: Sender<Message>,
    pass: Arc<Pass>,
    /// What the publisher was told to serve.
    served: Loaded,
}

impl ReloadLoop {
    fn run(mut self, messages: &Receiver<Message>, publish: &mut impl FnMut(&mut Report)) {
        loop {
            let interval = self.sources.settings.poll_interval;
            let interval = if self.scanner.is_blind() { interval.min(BLIND_INTERVAL) } else { interval };
            let poll = self.last_scan + interval;
            let (due, trigger) = match self.debounce.due() {
                Some(due) if due < poll => (due, Trigger::Event),
                _ => (poll, Trigger::Poll),
            };
            self.pass.0.lock().take();
            let received = messages.recv_timeout(due.saturating_duration_since(Instant::now()));
            self.pass.0.lock().replace(Instant::now());
            match received {
                Ok(Message::Hint(hint)) => self.hint(hint, publish),
                Ok(Message::Reload(request)) => {
                    if self.reload(request, messages, publish).is_break() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => publish(&mut self.scan(trigger)),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn hint(&mut self, hint: Hint, publish: &mut impl FnMut(&mut Report)) {
        if let Some(path) = self.debounce.hint(hint, Instant::now())
            && let Some(mut report) = self.refresh(&path)
        {
            publish(&mut report);
        }
    }

    /// One scan answers all requests that wait.
    fn reload(
        &mut self,
        first: Request,
        messages: &Receiver<Message>,
        publish: &mut impl FnMut(&mut Report),
    ) -> ControlFlow<()> {
        let mut end = ControlFlow::Continue(());
        let mut requests = vec![first];
        while end.is_continue()
            && let Ok(message) = messages.try_recv()
        {
            match message {
                Message::Reload(request) => requests.push(request),
                // The scan sees what the hint is about.
                Message::Hint(_) => {}
                Message::Stop => end = ControlFlow::Break(()),
            }
        }
        let trigger = requests[0].trigger;
        if let Some(sources) = requests.iter_mut().rev().find_map(|request| request.sources.take()) {
            self.adopt(sources);
        }
        if let Some(offers) = requests.iter_mut().rev().find_map(|request| request.offers.take()) {
            self.scanner.set_offers(offers);
        }
        let mut report = self.scan(trigger);
        publish(&mut report);
        for request in requests {
            (request.reply)(&report);
        }
        end
    }

    fn adopt(&mut self, sources: Sources) {
        if sources.settings.watch != self.sources.settings.watch {
            self.watch = watch(&sources, &self.sender);
        }
        self.scanner.set_options(sources.options.clone());
        self.sources = sources;
    }

    /// Publishes one saved file without looking at the others. The scan that ends the burst is the authority.
    fn refresh(&mut self, path: &Path) -> Option<Report> {
        // One file cannot tell whether the others are good.
        if self.sources.settings.strict_reload {
            return None;
        }
        let start = Instant::now();
        let loaded = self.scanner.refresh(path)?.clone();
        let changed = !Arc::ptr_eq(&loaded.catalog, &self.served.catalog);
        self.served = loaded;
        changed.then(|| Report { whole: false, ..self.report(Trigger::Event, ReloadOutcome::Changed, start) })
    }

    fn scan(&mut self, trigger: Trigger) -> Report {
        let start = Instant::now();
        self.debounce.scanned();
        let (watch, beside) = (&mut self.watch, files::list(&self.sources.beside).directories);
        let loaded = self.scanner.scan(|directories| watch.arm(&watch::union(directories, &beside))).clone();
        self.last_scan = Instant::now();
        let is_faulty = diagnostic::errors(&loaded.diagnostics) > 0;
        let outcome = if self.sources.settings.strict_reload && is_faulty && trigger != Trigger::Start {
            (self.served.diagnostics, self.served.holds_back) = (loaded.diagnostics, true);
            ReloadOutcome::Rejected
        } else {
            let unchanged = loaded.catalog.hash() == self.served.catalog.hash() && trigger != Trigger::Start;
            self.served = loaded;
            if unchanged { ReloadOutcome::Unchanged } else { ReloadOutcome::Changed }
        };
        self.report(trigger, outcome, start)
    }

    fn report(&self, trigger: Trigger, outcome: ReloadOutcome, start: Instant) -> Report {
        Report {
            trigger,
            outcome,
            loaded: self.served.clone(),
            took: start.elapsed(),
            whole: true,
            polling: self.watch.status().err().map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_does_not_end_is_stuck() {
        let directory = tempfile::TempDir::new().unwrap();
        let (begin, begun) = channel();
        let (release, gate) = channel::<()>();
        let mut is_first = true;
        let publish = move |_: &mut Report| {
            if !std::mem::take(&mut is_first) {
                let _ = begin.send(());
                let _ = gate.recv();
            }
        };
        let (reloader, _) = Reloader::start(Sources::directory(directory.path()), publish).unwrap();
        let later = || Instant::now() + PASS_TIME + Duration::from_secs(1);
        let (reply, done) = channel();
        reloader.reload(Trigger::Request, None, move |_| reply.send(()).unwrap()).unwrap();
        begun.recv().unwrap();
        assert!(reloader.is_stuck(later()) && !reloader.is_stuck(Instant::now()));
        drop(release);
        done.recv().unwrap();
        while reloader.is_stuck(later()) {
            std::thread::yield_now();
        }
    }
}
