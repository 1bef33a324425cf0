//! The slots in line with the files: which there are, what each holds, and whether that may be run.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::Supervisor;
use crate::plugin_host::discover::discover;
use crate::plugin_host::library::{Library, LibraryError};
use crate::plugin_host::settings::Isolation;
use crate::plugin_host::slot::{Slot, Stamp};
use crate::plugin_host::state::CallFigures;
use crate::telemetry::events::PluginGone;
use crate::watch::Hint;

impl Supervisor {
    /// Brings the slots in line with the files.
    pub(super) fn scan(&mut self) {
        self.debounce.scanned();
        let found = discover(&self.settings.paths);
        self.watch.arm(&found.directories);
        for trouble in found.troubles.iter().filter(|trouble| !self.troubles.contains(trouble)) {
            tracing::warn!(trouble, "rule libraries not found");
        }
        self.troubles = found.troubles;
        let mut before = std::mem::take(&mut self.slots);
        for path in found.libraries {
            let known = before.iter().position(|slot| slot.path == path);
            let mut slot = known.map_or_else(|| Slot::new(path), |at| before.remove(at));
            self.read(&mut slot);
            slot.figures.get_or_insert_with(|| Arc::new(CallFigures::new(&self.metrics, &slot.id)));
            self.slots.push(slot);
        }
        for slot in before {
            PluginGone { plugin: &slot.id }.emit(&self.metrics);
            slot.starting.into_iter().chain(slot.serving).for_each(|worker| self.dismiss(worker));
        }
        self.last_scan = Some(Instant::now());
    }

    /// Looks at a slot's file.
    fn read(&mut self, slot: &mut Slot) {
        let stamp = stamp(&slot.path);
        let is_known = stamp.is_some() && stamp == slot.stamp;
        if !is_known || slot.library.is_none() {
            slot.stamp = stamp;
            let before = slot.library.as_ref().map(|library| library.hash);
            match Library::open(&slot.path, &self.settings.allow) {
                // Whoever writes it goes on, and causes another event; in case not, it is looked at again soon.
                Err(LibraryError::Changing) => {
                    let _ = self.debounce.hint(Hint::Moved, Instant::now());
                    slot.stamp = None;
                    return;
                }
                Err(error) => {
                    slot.library = None;
                    slot.refuse(error.to_string(), &self.metrics);
                }
                Ok(library) => {
                    if before != Some(library.hash) {
                        (slot.retry_at, slot.failures) = (None, 0);
                    }
                    slot.library = Some(library);
                    slot.refusal = None;
                }
            }
        }
        self.judge(slot);
    }

    /// Refuses a library that can be read but must not be run here.
    fn judge(&mut self, slot: &mut Slot) {
        let allow = &self.settings.allow;
        let is_allowed = |library: &Library| allow.is_empty() || allow.contains(&library.hash);
        if slot.good.as_ref().is_some_and(|library| !is_allowed(library)) {
            slot.good = None;
        }
        let Some(library) = &slot.library else { return };
        let id = library.identity.id.clone();
        let is_rival = |other: &&Slot| other.id == id || other.library.as_ref().is_some_and(|it| it.identity.id == id);
        let rival = self.slots.iter().find(is_rival);
        let refusal = if !is_allowed(library) {
            Some(LibraryError::NotAllowed(library.hash).to_string())
        } else if let Some(rival) = rival {
            Some(format!(
                "its id {id} is that of {}, which comes first; give one another id, or take one away",
                rival.path.display()
            ))
        } else if self.settings.launch.require_sandbox
            && !self.has_landlock
            && self.settings.isolation == Isolation::Process
        {
            Some("this kernel has no Landlock, which `plugins.require_sandbox` demands".to_owned())
        } else {
            None
        };
        if let Some(refusal) = refusal {
            slot.refuse(refusal, &self.metrics);
            (slot.library, slot.good) = (None, None);
        } else if slot.serving.is_none() {
            // What serves keeps its name until the other takes its place.
            slot.rename(id, &self.metrics);
        }
    }
}

/// Nothing for a file that was touched so lately that its times may not tell the next change.
fn stamp(path: &Path) -> Option<Stamp> {
    const GRAIN: i64 = 2;
    let found = fs::metadata(path).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs().cast_signed());
    let is_settled = found.ctime() + GRAIN < now && found.mtime() + GRAIN < now;
    let (modified, changed) = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    is_settled.then(|| (found.dev(), found.ino(), found.size(), modified, changed))
}
