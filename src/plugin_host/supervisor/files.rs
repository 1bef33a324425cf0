//! The slots in line with the files: which there are, what each holds, and whether that may be run.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::Supervisor;
use crate::plugin_host::discover::discover;
use crate::plugin_host::library::{Library, LibraryError};
use crate::plugin_host::settings::{Isolation, Settings};
use crate::plugin_host::slot::{Slot, Stamp, name_of};
use crate::plugin_host::state::{CallFigures, State};
use crate::telemetry::Metrics;
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
            self.slots.push(slot);
        }
        self.follow(&mut before);
        for slot in &mut self.slots {
            permit(slot, &self.settings, self.has_landlock, &self.metrics);
        }
        for at in 0..self.slots.len() {
            self.settle_id(at);
            let slot = &mut self.slots[at];
            slot.figures.get_or_insert_with(|| Arc::new(CallFigures::new(&self.metrics, &slot.id)));
        }
        for mut slot in before {
            self.took_leave(&mut slot.announced, &slot.id);
            slot.starting.into_iter().chain(slot.serving).for_each(|worker| self.dismiss(worker));
        }
        self.tell_of_unclaimed();
        self.last_scan = Some(Instant::now());
    }

    /// Says once which settings no library takes.
    fn tell_of_unclaimed(&mut self) {
        let id_of = |slot: &Slot| {
            let serving = slot.serving.as_ref().map(|worker| &worker.library);
            let known = slot.library.as_ref().or(slot.good.as_ref()).or(serving)?;
            Some(known.identity.id.clone())
        };
        // A library that cannot be read may be the one that they are for.
        let Some(ids) = self.slots.iter().map(id_of).collect::<Option<Vec<String>>>() else { return };
        let unclaimed = self.settings.unclaimed(&ids);
        for trouble in unclaimed.iter().filter(|trouble| !self.unclaimed.contains(trouble)) {
            tracing::warn!("{trouble}");
        }
        self.unclaimed = unclaimed;
    }

    /// Looks at a slot's file.
    fn read(&mut self, slot: &mut Slot) {
        let stamp = stamp(&slot.path);
        let is_known = stamp.is_some() && stamp == slot.stamp && slot.library.is_some();
        slot.stamp = stamp;
        let before = slot.library.as_ref().map(|library| library.hash);
        // Who may write to it is asked each time: directories above it change without it.
        let read = Library::open_unless(is_known, &slot.path, &self.settings.allow);
        match read {
            Ok(None) => {}
            // Whoever writes it goes on, and causes another event; in case not, it is looked at again soon.
            Err(LibraryError::Changing) => {
                let _ = self.debounce.hint(Hint::Moved, Instant::now());
                slot.stamp = None;
            }
            Err(error) => {
                slot.library = None;
                slot.refuse(error.to_string(), &self.metrics);
            }
            Ok(Some(library)) => {
                if before != Some(library.hash) {
                    (slot.retry_at, slot.failures) = (None, 0);
                }
                slot.library = Some(library);
            }
        }
    }

    /// Of files that swapped their names, or have another one, each goes to what it runs as already. `gone` are the
    /// slots whose files are not there any more.
    fn follow(&mut self, gone: &mut [Slot]) {
        for at in 0..self.slots.len() {
            let Some(library) = self.slots[at].library.as_ref().filter(|it| !self.slots[at].serves(&it.identity.id))
            else {
                continue;
            };
            let (id, hash) = (&library.identity.id, library.hash);
            let is_same = |slot: &Slot| slot.serving.as_ref().is_some_and(|worker| worker.library.hash == hash);
            let has_another = |slot: &Slot| match &slot.library {
                Some(library) => library.identity.id != *id,
                None => is_same(slot),
            };
            let is_left = |slot: &Slot| slot.serves(id) && has_another(slot);
            if let Some(other) = self.slots.iter().position(is_left) {
                self.slots.swap(at, other);
                let [slot, other] = self.slots.get_disjoint_mut([at, other]).expect("what claims an id serves another");
                slot.exchange_files(other);
            } else if let Some(other) = gone.iter_mut().find(|slot| is_same(slot)) {
                std::mem::swap(&mut self.slots[at], other);
                self.slots[at].exchange_files(other);
            }
        }
    }

    /// Refuses a library whose id is another's, and gives it its name if nothing serves under another one.
    fn settle_id(&mut self, at: usize) {
        let slot = &self.slots[at];
        let rival_of = |library: &Option<Library>| {
            let id = &library.as_ref()?.identity.id;
            let (rival, why) = self.rival(at, id)?;
            let path = rival.path.display();
            Some(format!("its id {id} is that of {path}, which {why}; give one another id, or take one away"))
        };
        let (refusal, has_bad_stand_in) = (rival_of(&slot.library), rival_of(&slot.good).is_some());
        let claimed = slot.library.as_ref().map(|library| library.identity.id.clone());
        let slot = &mut self.slots[at];
        if has_bad_stand_in {
            slot.good = None;
        }
        if let Some(refusal) = refusal {
            slot.refuse(refusal, &self.metrics);
            slot.library = None;
        } else if let Some(id) = claimed {
            // Of what runs in the daemon, a restart tells.
            if slot.serving.as_ref().is_none_or(|worker| worker.process.is_some()) {
                slot.refusal = None;
            }
            // What serves keeps its name until the other takes its place.
            if slot.serving.is_none() {
                self.rename(at, id);
            }
            return;
        }
        // Nor is it shown under the id of another.
        let slot = &self.slots[at];
        if slot.serving.is_none() && self.rival(at, &slot.id).is_some() {
            let name = name_of(&slot.path);
            self.rename(at, name);
        }
    }

    /// Who has this id rather than the slot `at`: whoever serves as it, or else comes first.
    fn rival(&self, at: usize, id: &str) -> Option<(&Slot, &'static str)> {
        let now = Instant::now();
        let holds = |slot: &&Slot| slot.holds(id, &self.records, now);
        if holds(&&self.slots[at]) {
            return None;
        }
        let serving = self.slots.iter().find(holds).map(|slot| (slot, "serves"));
        serving.or_else(|| Some((self.slots[..at].iter().find(|slot| slot.claims(id))?, "comes first")))
    }

    /// Gives a slot another id, under which it is counted anew.
    pub(super) fn rename(&mut self, at: usize, id: String) {
        if self.slots[at].id == id {
            return;
        }
        let figures = Arc::new(CallFigures::new(&self.metrics, &id));
        let slot = &mut self.slots[at];
        slot.figures = Some(figures);
        let (before, mut announced) = (std::mem::replace(&mut slot.id, id), slot.announced.take());
        self.took_leave(&mut announced, &before);
    }

    /// Says that an id is gone that was shown, unless another slot has it by now.
    fn took_leave(&self, announced: &mut Option<State>, id: &str) {
        if announced.take().is_some() && !self.slots.iter().any(|slot| slot.id == id) {
            PluginGone { plugin: id }.emit(&self.metrics);
        }
    }
}

/// Refuses a library that can be read but must not be run here, whatever else there is.
fn permit(slot: &mut Slot, settings: &Settings, has_landlock: bool, metrics: &Metrics) {
    let allow = &settings.allow;
    let is_allowed = |library: &Library| allow.is_empty() || allow.contains(&library.hash);
    slot.good = slot.good.take().filter(is_allowed);
    let Some(library) = &slot.library else { return };
    if !is_allowed(library) {
        let refusal = LibraryError::NotAllowed(library.hash).to_string();
        slot.refuse(refusal, metrics);
        slot.library = None;
    } else if settings.launch.require_sandbox && !has_landlock && settings.isolation == Isolation::Process {
        let refusal = "this kernel has no Landlock, which `plugins.require_sandbox` demands";
        slot.refuse(refusal.to_owned(), metrics);
        (slot.library, slot.good) = (None, None);
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
