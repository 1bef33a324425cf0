//! The one place that reloads: file events, the poll, signals and requests all come here.
//!
//! A thread of its own, since it reads files. It owns the [`Shelf`] and the [`Watch`], and hands every outcome to a publisher.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::files::{self, is_document};
use super::load::{Loaded, Options};
use super::shelf::Shelf;
use crate::config::{self, Config};
use crate::strict::diagnostic;
use crate::watch::{self, Debounce, Hint, Watch};

/// What a reload goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Which documents, and their limits.
    pub options: Options,
    /// Reject a whole generation for one faulty document.
    pub strict: bool,
    /// Longest time between two scans; events make it shorter.
    pub poll_interval: Duration,
    /// Use file events.
    pub watch: bool,
    /// Further directories whose changes make a reload. What they hold is the publisher's affair.
    pub beside: Vec<PathBuf>,
}

impl Settings {
    /// Watches one directory with default limits.
    pub fn directory(root: impl AsRef<Path>) -> Self {
        Self::new(&config::Catalog::default(), Options::directory(root.as_ref()))
    }

    fn new(config: &config::Catalog, options: Options) -> Self {
        let config::Catalog { poll_interval, watch, strict_reload: strict, .. } = *config;
        Self { options, strict, poll_interval, watch, beside: Vec::new() }
    }
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        let beside =
            config.presets.iter().chain(&config.categories).filter_map(|path| std::path::absolute(path).ok()).collect();
        Self { beside, ..Self::new(&config.catalog, Options::from(config)) }
    }
}

/// The poll while some place could not be looked at, which may be over any moment.
const BLIND_INTERVAL: Duration = Duration::from_secs(2);

/// Why a reload was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// The first.
    Start,
    /// A file event.
    Event,
    /// The poll.
    Poll,
    /// SIGHUP.
    Signal,
    /// The administrator's request.
    Request,
}

/// How a reload came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Another catalog is served.
    Changed,
    /// The same catalog is served.
    Unchanged,
    /// A faulty document made strict reload keep the old catalog.
    Rejected,
}

/// One reload.
#[derive(Debug, Clone)]
pub struct Report {
    /// Why.
    pub trigger: Trigger,
    /// How it came out.
    pub outcome: Outcome,
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
}

impl Drop for Inner {
    fn drop(&mut self) {
        // If it fails, the thread is gone already.
        let _ = self.sender.send(Message::Stop);
    }
}

/// The reload thread is gone.
#[derive(Debug, thiserror::Error)]
#[error("the catalog's reload thread has ended")]
pub struct Ended;

enum Message {
    Hint(Hint),
    Reload(Request),
    Stop,
}

struct Request {
    trigger: Trigger,
    settings: Option<Settings>,
    reply: Reply,
}

type Reply = Box<dyn FnOnce(&Report) + Send>;

impl Reloader {
    /// Loads once on this thread, then keeps up on another one. Every outcome, the first included, goes to `publish`, which may
    /// add to it.
    pub fn start(
        settings: Settings,
        mut publish: impl FnMut(&mut Report) + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (sender, receiver) = channel();
        let mut keeper = Keeper {
            shelf: Shelf::new(settings.options.clone()),
            watch: watch(&settings, &sender),
            served: Loaded::default(),
            debounce: Debounce::default(),
            last_scan: Instant::now(),
            sender: sender.clone(),
            settings,
        };
        publish(&mut keeper.scan(Trigger::Start));
        let thread = Builder::new().name("catalog".into()).spawn(move || keeper.run(&receiver, &mut publish))?;
        Ok((Self(Arc::new(Inner { sender })), thread))
    }

    /// Asks for a full scan, under new settings if given. `reply` is called with its outcome, on the reload thread.
    pub fn reload(
        &self,
        trigger: Trigger,
        settings: Option<Settings>,
        reply: impl FnOnce(&Report) + Send + 'static,
    ) -> Result<(), Ended> {
        let request = Request { trigger, settings, reply: Box::new(reply) };
        self.0.sender.send(Message::Reload(request)).map_err(|_| Ended)
    }
}

fn watch(settings: &Settings, sender: &Sender<Message>) -> Watch {
    if !settings.watch {
        return Watch::off("file events are turned off in the configuration");
    }
    let sender = sender.clone();
    Watch::new(is_document, move |hint| {
        // If it fails, nobody is left to reload.
        let _ = sender.send(Message::Hint(hint));
    })
}

struct Keeper {
    settings: Settings,
    shelf: Shelf,
    watch: Watch,
    debounce: Debounce,
    last_scan: Instant,
    sender: Sender<Message>,
    /// What the publisher was told to serve.
    served: Loaded,
}

impl Keeper {
    fn run(mut self, messages: &Receiver<Message>, publish: &mut impl FnMut(&mut Report)) {
        loop {
            let interval = self.settings.poll_interval;
            let interval = if self.shelf.is_blind() { interval.min(BLIND_INTERVAL) } else { interval };
            let poll = self.last_scan + interval;
            let (due, trigger) = match self.debounce.due() {
                Some(due) if due < poll => (due, Trigger::Event),
                _ => (poll, Trigger::Poll),
            };
            match messages.recv_timeout(due.saturating_duration_since(Instant::now())) {
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
        if let Some(settings) = requests.iter_mut().rev().find_map(|request| request.settings.take()) {
            self.adopt(settings);
        }
        let mut report = self.scan(trigger);
        publish(&mut report);
        for request in requests {
            (request.reply)(&report);
        }
        end
    }

    fn adopt(&mut self, settings: Settings) {
        if settings.watch != self.settings.watch {
            self.watch = watch(&settings, &self.sender);
        }
        self.shelf.set_options(settings.options.clone());
        self.settings = settings;
    }

    /// Publishes one saved file without looking at the others. The scan that ends the burst is the authority.
    fn refresh(&mut self, path: &Path) -> Option<Report> {
        // One file cannot tell whether the others are good.
        if self.settings.strict {
            return None;
        }
        let start = Instant::now();
        let loaded = self.shelf.refresh(path)?.clone();
        let changed = !Arc::ptr_eq(&loaded.catalog, &self.served.catalog);
        self.served = loaded;
        changed.then(|| Report { whole: false, ..self.report(Trigger::Event, Outcome::Changed, start) })
    }

    fn scan(&mut self, trigger: Trigger) -> Report {
        let start = Instant::now();
        self.debounce.scanned();
        let (watch, beside) = (&mut self.watch, files::list(&self.settings.beside).directories);
        let loaded = self.shelf.scan(|directories| watch.arm(&watch::union(directories, &beside))).clone();
        self.last_scan = Instant::now();
        let is_faulty = diagnostic::errors(&loaded.diagnostics) > 0;
        let outcome = if self.settings.strict && is_faulty && trigger != Trigger::Start {
            self.served.diagnostics = loaded.diagnostics;
            Outcome::Rejected
        } else {
            let unchanged = loaded.catalog.hash() == self.served.catalog.hash() && trigger != Trigger::Start;
            self.served = loaded;
            if unchanged { Outcome::Unchanged } else { Outcome::Changed }
        };
        self.report(trigger, outcome, start)
    }

    fn report(&self, trigger: Trigger, outcome: Outcome, start: Instant) -> Report {
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

impl Trigger {
    /// The label on metrics and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Event => "event",
            Self::Poll => "poll",
            Self::Signal => "signal",
            Self::Request => "request",
        }
    }
}

impl Outcome {
    /// The label on metrics and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Rejected => "rejected",
        }
    }
}
