//! The thread that starts programs.
//!
//! One, and as long-lived as the daemon, since the kernel kills a program when the thread that started it ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::launch;

/// What a program may use beside the system's own files.
#[derive(Debug)]
pub(super) struct ConfinedFiles {
    /// With all that is in them.
    pub(super) writes: Vec<PathBuf>,
    pub(super) reads: Vec<PathBuf>,
}

/// A program that is to be started.
#[derive(Debug)]
pub(super) struct Program {
    /// The program that becomes the command: `almanacd` itself.
    pub(super) launcher: PathBuf,
    pub(super) command: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) directory: PathBuf,
    /// All that it may use beside the system's own; everything if nothing.
    pub(super) files: Option<ConfinedFiles>,
}

type Order = (Program, oneshot::Sender<io::Result<Started>>);

/// A program that runs.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    /// The end of what it prints on standard error.
    pub(super) errors: io::PipeReader,
}

/// Starts programs, on a thread of its own.
#[derive(Debug, Clone)]
pub(super) struct Launcher(Sender<Order>);

impl Launcher {
    pub(super) fn start(runtime: Handle) -> io::Result<Self> {
        let (sender, orders) = channel();
        let run = move || serve(&runtime, &orders);
        thread::Builder::new().name("mcp-launcher".into()).spawn(run)?;
        Ok(Self(sender))
    }

    pub(super) async fn launch(&self, program: Program) -> io::Result<Started> {
        let (reply, started) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts programs has ended");
        self.0.send((program, reply)).map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}

fn serve(runtime: &Handle, orders: &Receiver<Order>) {
    let _inside = runtime.enter();
    while let Ok((program, reply)) = orders.recv() {
        if let Err(Ok(started)) = reply.send(spawn(&program)) {
            // Nobody wants it any more.
            drop(started);
        }
    }
}

fn spawn(program: &Program) -> io::Result<Started> {
    let (errors, theirs) = io::pipe()?;
    let mut command = Command::new(&program.launcher);
    command.arg(launch::ARGUMENT);
    if let Some(files) = &program.files {
        command.arg(launch::ONLY).args(&files.writes).arg(launch::READS).args(&files.reads);
    }
    command
        .arg(launch::PROGRAM)
        .args(&program.command)
        .env_clear()
        .envs(&program.environment)
        .current_dir(&program.directory)
        // What a terminal sends to a daemon in it, by Ctrl-C, is not for servers; and the group is ended as one.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::from(theirs))
        .kill_on_drop(true);
    Ok(Started { child: command.spawn()?, errors })
}

/// The few variables that every program gets.
pub(super) fn environment(own: &BTreeMap<String, String>, home: &Path) -> BTreeMap<String, String> {
    let given = |name: &str| std::env::var_os(name).and_then(|value| OsString::into_string(value).ok());
    let mut found: BTreeMap<String, String> = ["PATH", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), given(name)?)))
        .collect();
    found.entry("PATH".to_owned()).or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    found.insert("HOME".to_owned(), home.display().to_string());
    found.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
    found
}
