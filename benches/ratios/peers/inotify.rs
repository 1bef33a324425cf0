//! The floor under any reload: a thread that waits for the kernel's word of a file, reads it and parses it.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;
use std::{fs, thread};

use anyhow::{Context, Result};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

/// A watched directory.
pub(crate) struct Watched {
    parsed: Receiver<Instant>,
}

impl Watched {
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC)?;
        inotify::add_watch(&inotify, directory, WatchFlags::MOVED_TO)?;
        let (sender, parsed) = channel();
        let directory = directory.to_owned();
        // It waits for ever, and so ends with the process.
        thread::spawn(move || follow(inotify, &directory, &sender));
        Ok(Self { parsed })
    }

    /// When the next file that was moved here had been parsed.
    pub(crate) fn parsed(&self) -> Result<Instant> {
        self.parsed.recv().context("the watching thread has ended")
    }
}

fn follow(inotify: OwnedFd, directory: &Path, parsed: &Sender<Instant>) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = Reader::new(inotify, &mut buffer);
    while let Ok(event) = events.next() {
        let Some(name) = event.file_name() else { continue };
        let file: PathBuf = directory.join(OsStr::from_bytes(name.to_bytes()));
        let content = fs::read(file).unwrap_or_default();
        std::hint::black_box(serde_yaml::from_slice::<serde_yaml::Value>(&content).ok());
        if parsed.send(Instant::now()).is_err() {
            return;
        }
    }
}
