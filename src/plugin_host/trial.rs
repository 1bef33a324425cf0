//! A library in a worker of its own, without a host.

use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use super::ask::{Ask, Proposal, Snapshot};
use super::fault::LibraryFault;
use super::library::Library;
use super::process::{Ends, Process, explain};
use super::settings::Launch;
use super::socket_line::SocketLine;
use super::supervisor::greet_in_time;
use super::wire::{Experiment, Flaw, Hello, Order, Reply, Setup, clamp, encode};
use crate::process::output::{Said, capture};

/// One worker. It is killed if the thread that started it ends, and when this is dropped.
pub struct Trial {
    process: Process,
    line: SocketLine,
    hello: Hello,
    numbers: u64,
    /// Ends when the worker has, and all that it printed is told.
    listening: tokio::task::JoinHandle<()>,
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Trial").field("hello", &self.hello).finish_non_exhaustive()
    }
}

/// How long one experiment may take.
pub(super) const EXPERIMENT_TIME: Duration = Duration::from_secs(30);

/// How long a worker may take to end.
const PARTING_TIME: Duration = Duration::from_secs(1);

/// Why a call was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// The worker is at fault, and gone.
    #[error(transparent)]
    LibraryFault(#[from] LibraryFault),
    /// The library's own error.
    #[error("it answers with an error: {0}")]
    Refusal(String),
}

impl Trial {
    /// Starts a library. What it prints goes to `tell`, line by line. Needs a runtime.
    pub async fn start(
        library: &Library,
        launch: &Launch,
        settings: String,
        snapshot: &Snapshot,
        mut print: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self, LibraryFault> {
        let spawned = Process::start(&launch.program, library.image());
        let (mut process, Ends { socket, output }) = spawned.map_err(|error| LibraryFault::Spawn(error.to_string()))?;
        let listening = tokio::spawn(async move {
            let heard = capture(output, move |said| {
                if let Said::Line(_, line) = said {
                    print(&line);
                }
            });
            // What cannot be read was not said.
            let _ = heard.await;
        });
        let setup = Setup {
            max_memory_bytes: launch.max_memory_bytes,
            require_sandbox: launch.require_sandbox,
            settings,
            noted: (library.identity.id.clone(), library.identity.version.clone()),
        };
        let mut order = Vec::new();
        encode(&Order::<String>::Snapshot(snapshot.clone()), &mut order);
        match greet_in_time(socket, process.id(), setup, &order).await {
            Ok((line, hello)) => Ok(Self { process, line, hello, numbers: 0, listening }),
            Err(fault) => {
                let fault = explain(fault, process.kill());
                let _ = tokio::time::timeout(PARTING_TIME, listening).await;
                Err(fault)
            }
        }
    }

    /// What the library says about itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Asks it, and waits for at most `limit`.
    pub async fn ask(&mut self, ask: &Ask, limit: Duration) -> Result<Vec<Proposal>, TrialError> {
        self.numbers += 1;
        let number = self.numbers;
        self.line.order(&Order::Ask { number, patience: limit, ask: Arc::new(ask.clone()) });
        match self.converse(limit).await? {
            Reply::Answer { number: of, outcome: Ok(mut proposals) } if of == number => {
                clamp(&mut proposals);
                Ok(proposals)
            }
            Reply::Answer { number: of, outcome: Err(refusal) } if of == number => {
                Err(TrialError::Refusal(refusal.message))
            }
            _ => Err(LibraryFault::Protocol("an answer to something else".to_owned()).into()),
        }
    }

    /// Ends it; what it printed is told before this returns, unless it takes more than a second to end.
    pub async fn end(mut self) {
        self.line.hang_up();
        let _ = tokio::time::timeout(PARTING_TIME, &mut self.listening).await;
    }

    pub(super) async fn send_snapshot(&mut self, snapshot: Snapshot, limit: Duration) -> Result<(), TrialError> {
        self.line.order(&Order::Snapshot(snapshot));
        match self.converse(limit).await? {
            Reply::Snapshotted(taken) => taken.map_err(|refusal| TrialError::Refusal(refusal.message)),
            _ => Err(LibraryFault::Protocol("an answer to something else".to_owned()).into()),
        }
    }

    pub(super) async fn experiment(&mut self, experiment: Experiment) -> Result<String, Flaw> {
        self.line.order(&Order::Try(experiment));
        match self.converse(EXPERIMENT_TIME).await {
            Ok(Reply::Tried(outcome)) => outcome,
            Ok(_) => Err("it broke the protocol".into()),
            Err(fault) => Err(fault.to_string().into()),
        }
    }

    async fn converse(&mut self, limit: Duration) -> Result<Reply, LibraryFault> {
        let reply = tokio::time::timeout(limit, self.line.converse()).await;
        let outcome = reply.unwrap_or(Err(LibraryFault::Timeout(limit.as_millis())));
        outcome.map_err(|fault| explain(fault, self.process.kill()))
    }

    /// Resident memory, in bytes; threads; open files.
    pub(super) fn usage(&self) -> io::Result<ResourceUsage> {
        let directory = format!("/proc/{}", self.process.id());
        let pages = fs::read_to_string(format!("{directory}/statm"))?;
        let pages: u64 = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
        let count = |what: &str| fs::read_dir(format!("{directory}/{what}")).map(Iterator::count);
        Ok(ResourceUsage {
            memory: pages * rustix::param::page_size() as u64,
            threads: count("task")?,
            files: count("fd")?,
        })
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.process.kill();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResourceUsage {
    pub(super) memory: u64,
    pub(super) threads: usize,
    pub(super) files: usize,
}

impl Trial {
    /// Closes the socket, and waits for the end.
    pub(super) async fn hang_up(mut self, limit: Duration) -> Option<std::process::ExitStatus> {
        self.line.hang_up();
        tokio::time::timeout(limit, self.process.exit().ok()?).await.ok()?;
        self.process.ended()
    }
}
