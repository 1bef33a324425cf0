//! From settings to a conversation: the program is started, or the socket connected to, and greeted.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::call::Caller;
use super::fault::StartFault;
use super::greet;
use super::journal::ServerLog;
use super::launcher::{self, ConfinedFiles, Launcher, Program, Started};
use super::listed::Greeting;
use super::peer::{Notice, Peer, PeerFault};
use super::process::ServerProcess;
use super::remote::{self, RemoteEnd, RemoteStream};
use super::secret::Mask;
use super::settings::ServerSettings;
use super::way_in::WayIn;
use crate::jsonrpc::Era;
use crate::jsonrpc::param_headers::ToolHeaders;
use crate::process::trust::Trusted;

/// After a program has ended, what it wrote last may still have to be read.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// A conversation with a server that was greeted.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) talk: Talk,
    pub(super) notices: mpsc::UnboundedReceiver<Notice>,
    /// Answered once its process is gone, with how it ended.
    pub(super) gone: oneshot::Receiver<Option<String>>,
}

/// How a server is spoken to.
#[derive(Clone)]
pub(super) struct Talk {
    pub(super) peer: Arc<Peer>,
    pub(super) greeting: Arc<Greeting>,
    pub(super) pid: Option<u32>,
}

impl std::fmt::Debug for Talk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Talk").field("greeting", &self.greeting).field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// What a server is opened with.
pub(super) struct Opener {
    pub(super) name: String,
    pub(super) settings: Arc<ServerSettings>,
    pub(super) launcher: Launcher,
    /// The program that becomes a server's.
    pub(super) program: PathBuf,
    /// Where lists are kept, and homes are made.
    pub(super) kept: PathBuf,
    pub(super) journal: Arc<ServerLog>,
    /// What headers repeat of calls of its tools.
    pub(super) tool_headers: Arc<ToolHeaders>,
    /// How a server at a URL lets us in.
    pub(super) way_in: WayIn,
    /// Processes that have not ended yet, of all servers.
    pub(super) living: watch::Sender<usize>,
}

impl Opener {
    /// Starts or connects, and greets. A program that ends at a question it does not know is started again and greeted
    /// the old way.
    pub(super) async fn open(
        &self,
        known: Option<Era>,
        caller: &Caller,
        has_client: bool,
    ) -> Result<Opened, StartFault> {
        match self.open_once(known, caller, has_client).await {
            Err(StartFault::EndedAtProbe(why)) => {
                self.journal.note(&format!("ended at server/discover ({why}); it is greeted with initialize"));
                self.open_once(Some(Era::Legacy), caller, has_client).await
            }
            outcome => outcome,
        }
    }

    async fn open_once(&self, known: Option<Era>, caller: &Caller, has_client: bool) -> Result<Opened, StartFault> {
        let (ended, gone) = oneshot::channel();
        let (ungreeted, notices, pid) = match (&self.settings.url, &self.settings.socket) {
            (Some(url), _) => {
                let RemoteStream { reader, writer, mut end } =
                    remote::open(url, &self.headers(caller)?, self.way_in.clone(), Arc::clone(&self.tool_headers))?;
                let (peer, notices) = Peer::begin(reader, writer, Arc::clone(&self.journal), has_client);
                let closing = Arc::clone(&peer);
                tokio::spawn(async move {
                    while let Some(told) = end.recv().await {
                        match told {
                            RemoteEnd::Over(why, undone) => closing.over(&why, undone),
                            RemoteEnd::Undone(number) => closing.undone(number),
                            RemoteEnd::Told => break,
                        }
                    }
                });
                tell_end(&peer, ended);
                (Ungreeted::new(peer), notices, None)
            }
            (None, Some(socket)) => {
                let connect = |source| StartFault::Connect { socket: socket.clone(), source };
                let (reader, writer) = UnixStream::connect(socket).await.map_err(connect)?.into_split();
                let (peer, notices) = Peer::begin(reader, writer, Arc::clone(&self.journal), has_client);
                tell_end(&peer, ended);
                (Ungreeted::new(peer), notices, None)
            }
            (None, None) => self.start(ended, has_client).await?,
        };
        let greeting = match greet::greet(&ungreeted.peer, known, caller, self.settings.start_timeout).await {
            Err(StartFault::EndedAtProbe(why)) => {
                return Err(StartFault::EndedAtProbe(with_status(why, gone).await));
            }
            Err(StartFault::Peer(PeerFault::Closed(why) | PeerFault::Unasked(why))) => {
                return Err(StartFault::Peer(PeerFault::Closed(with_status(why, gone).await)));
            }
            greeting => greeting?,
        };
        let peer = ungreeted.greeted();
        Ok(Opened { talk: Talk { peer, greeting: Arc::new(greeting), pid }, notices, gone })
    }

    /// What is sent to the URL for this caller.
    fn headers(&self, caller: &Caller) -> Result<Vec<(String, String)>, StartFault> {
        let own = caller.token.as_ref().and_then(|token| self.settings.headers_by_token.get(token));
        let mut mask = Mask::default();
        let mut resolve = |(name, value): (&String, &String)| -> Result<(String, String), StartFault> {
            Ok((name.clone(), mask.resolve(value)?))
        };
        own.unwrap_or(&self.settings.headers).iter().map(&mut resolve).collect()
    }

    /// Who gives up waiting gives up the conversation, and with it the program, also one that is only about to start.
    async fn start(
        &self,
        ended: oneshot::Sender<Option<String>>,
        has_client: bool,
    ) -> Result<(Ungreeted, mpsc::UnboundedReceiver<Notice>, Option<u32>), StartFault> {
        let mut mask = Mask::default();
        let program = self.program(&mut mask)?;
        let (launcher, journal, living) = (self.launcher.clone(), Arc::clone(&self.journal), Living::new(&self.living));
        let (reply, begun) = oneshot::channel();
        tokio::spawn(async move {
            let talk = launcher.launch(program).await.and_then(|started| begin(started, &journal, mask, has_client));
            match talk {
                Ok((mut process, peer, notices)) => {
                    let _ = reply.send(Ok((Ungreeted::new(Arc::clone(&peer)), notices, process.id())));
                    let _ = ended.send(over(&mut process, &peer).await);
                    process.end().await;
                }
                Err(error) => drop(reply.send(Err(error))),
            }
            drop(living);
        });
        let gone = || io::Error::other("the daemon ends");
        begun.await.map_err(|_| gone()).and_then(|begun| begun).map_err(StartFault::Spawn)
    }

    fn program(&self, mask: &mut Mask) -> Result<Program, StartFault> {
        let mut command = Vec::new();
        for part in self.settings.command.iter().flatten() {
            command.push(mask.resolve(part)?);
        }
        let mut own = std::collections::BTreeMap::new();
        for (key, value) in &self.settings.env {
            own.insert(key.clone(), mask.resolve(value)?);
        }
        let home = match own.get("HOME") {
            Some(home) => PathBuf::from(home),
            None => home(&self.kept, &self.name)?,
        };
        let environment = launcher::environment(&own, &home);
        let directory = self.settings.cwd.clone().unwrap_or_else(|| home.clone());
        let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
        let first = command.first().cloned().unwrap_or_default();
        let found = find(&first, path, &directory).ok_or_else(|| StartFault::NoProgram(missing(&first, path)))?;
        if let Some(doubt) = doubt(&found) {
            return Err(StartFault::Untrusted(doubt));
        }
        let files = self.settings.files.clone().map(|files| {
            let own = [home.clone(), directory.clone(), std::env::temp_dir()];
            let beside = found.canonicalize().ok().and_then(|program| Some(program.parent()?.to_owned()));
            let there = |path: &PathBuf| path.exists();
            ConfinedFiles {
                writes: files.into_iter().chain(own).filter(there).collect(),
                reads: beside.into_iter().filter(there).collect(),
            }
        });
        Ok(Program { launcher: self.program.clone(), command, environment, directory, files })
    }
}

/// The conversation with a program that was started.
fn begin(
    mut started: Started,
    journal: &Arc<ServerLog>,
    mask: Mask,
    has_client: bool,
) -> io::Result<(ServerProcess, Arc<Peer>, mpsc::UnboundedReceiver<Notice>)> {
    let (Some(input), Some(output)) = (started.child.stdin.take(), started.child.stdout.take()) else {
        return Err(io::Error::other("it has no input and output"));
    };
    let (peer, notices) = Peer::begin(output, input, Arc::clone(journal), has_client);
    Ok((ServerProcess::new(started, Arc::clone(journal), mask), peer, notices))
}

/// Waits until the conversation or the process is over; says how the process ended, if it did.
async fn over(process: &mut ServerProcess, peer: &Arc<Peer>) -> Option<String> {
    tokio::select! {
        _ = peer.closed() => timeout(LAST_WORDS, process.ended()).await.ok(),
        status = process.ended() => {
            // What it left behind may hold its output open.
            let _ = timeout(LAST_WORDS, peer.closed()).await;
            peer.close(&format!("its process ended: {status}"));
            Some(status)
        }
    }
}

/// Why a conversation ended, and how its process did.
async fn with_status(why: String, gone: oneshot::Receiver<Option<String>>) -> String {
    match timeout(LAST_WORDS, gone).await {
        Ok(Ok(Some(status))) if !why.contains(&status) => format!("{why} ({status})"),
        _ => why,
    }
}

/// Tells that the conversation is over; there is no process whose end could be told.
fn tell_end(peer: &Arc<Peer>, ended: oneshot::Sender<Option<String>>) {
    let watched = Arc::clone(peer);
    tokio::spawn(async move {
        watched.closed().await;
        let _ = ended.send(None);
    });
}

fn missing(program: &str, path: &str) -> String {
    if program.contains('/') {
        format!("{program} is not there")
    } else {
        format!("`{program}` is not in PATH ({path})")
    }
}

/// The file that a command's first word means.
pub(super) fn find(program: &str, path: &str, directory: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        let found = directory.join(program);
        return found.is_file().then_some(found);
    }
    std::env::split_paths(path).map(|place| place.join(program)).find(|found| found.is_file())
}

/// Why others could make this program another, if so.
pub(super) fn doubt(program: &Path) -> Option<String> {
    match Trusted::by_this_process().doubt_path(program) {
        Ok(doubt) => doubt,
        Err(error) => Some(format!("{} cannot be looked at: {error}", program.display())),
    }
}

/// The daemon's own home where it is writable, else a directory of the server's own.
fn home(kept: &Path, server: &str) -> Result<PathBuf, StartFault> {
    let own = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home.is_dir());
    let is_writable = |home: &PathBuf| rustix::fs::access(home, rustix::fs::Access::WRITE_OK).is_ok();
    if let Some(home) = own.filter(is_writable) {
        return Ok(home);
    }
    let directory = kept.join("home").join(server);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.map_err(|source| StartFault::Home { directory: directory.clone(), source })?;
    Ok(directory)
}

/// One more process, as long as it lives.
struct Living(watch::Sender<usize>);

impl Living {
    fn new(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|living| *living += 1);
        Self(count.clone())
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.send_modify(|living| *living -= 1);
    }
}

/// A conversation that is closed, which takes the program with it, if it comes to nothing.
struct Ungreeted {
    peer: Arc<Peer>,
    is_greeted: bool,
}

impl Ungreeted {
    const fn new(peer: Arc<Peer>) -> Self {
        Self { peer, is_greeted: false }
    }

    fn greeted(mut self) -> Arc<Peer> {
        self.is_greeted = true;
        Arc::clone(&self.peer)
    }
}

impl Drop for Ungreeted {
    fn drop(&mut self) {
        if !self.is_greeted {
            self.peer.close("it was not greeted");
        }
    }
}
