//! Writes beside records, which share a transaction.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;

use super::fault::DatabaseFault;
use super::memories::{MemoryTask, TenantWriter};
use super::notes;
use super::revision::Revision;
use super::session::DatabaseSession;
use super::unfollowed::{PurgesFollowed, Unfollowed};
use crate::store::StoreError;
use crate::store::clock::Clock;
use crate::store::front::Queued;
use crate::store::notes::{ChoiceNote, Note, NotesPending};

/// Notes that wait to be written.
#[derive(Debug)]
pub(super) struct Notings {
    notes: Vec<Note>,
    /// What the daemon had forgotten when they were made.
    followed: PurgesFollowed,
    reply: oneshot::Sender<Result<(), StoreError>>,
}

/// A write that shares the group's transaction with others.
pub(super) enum DatabaseTask {
    Notes(Notings),
    Memory(Box<MemoryTask>),
}

impl DatabaseTask {
    /// The tenants whose choices it has.
    pub(super) fn choosing(&self) -> impl Iterator<Item = &str> {
        let notes = if let Self::Notes(noting) = self { &noting.notes[..] } else { &[] };
        notes.iter().filter(|note| matches!(note, Note::Choice(_))).map(Note::tenant)
    }

    pub(super) fn notes(notes: Vec<Note>, followed: PurgesFollowed) -> (Self, NotesPending) {
        let (reply, noted) = oneshot::channel();
        (Self::Notes(Notings { notes, followed, reply }), NotesPending(vec![noted]))
    }
}

/// Writes all of them, in the transaction of its caller. Rows are taken in one order, so that no two daemons wait for
/// each other. What a task refuses for its own reasons leaves no trace and fails nobody else; an error fails all.
/// Returns the tenants of choices that were not written, because what they say was purged meanwhile.
pub(super) async fn run(
    tasks: &mut [DatabaseTask],
    session: &DatabaseSession,
    revision: &Revision,
    clock: &mut Clock,
) -> Result<BTreeSet<String>, DatabaseFault> {
    let notings =
        tasks.iter().filter_map(|task| if let DatabaseTask::Notes(noting) = task { Some(noting) } else { None });
    let notes = notings.flat_map(|noting| noting.notes.iter().map(|note| (note, &noting.followed)));
    let notes: Vec<_> = notes.map(|noted| (clock.tick(), noted)).collect();
    let unfollowed = Unfollowed::read(session, notes.iter().map(|(_, noted)| *noted)).await?;
    let (gone, mut notes): (Vec<_>, Vec<_>) =
        notes.into_iter().partition(|(_, (note, followed))| unfollowed.has(note, followed));
    notes.sort_by(|(one, (a, _)), (other, (b, _))| notes::place(a).cmp(&notes::place(b)).then(one.cmp(other)));
    for (at_us, (note, followed)) in notes {
        match note {
            Note::Choice(choice) if unfollowed.resets(note, followed) => {
                let choice = ChoiceNote { adaptation: Vec::new(), ..choice.clone() };
                notes::write(session, revision, &Note::Choice(choice), at_us).await?;
            }
            note => notes::write(session, revision, note, at_us).await?,
        }
    }
    let mut choosing = BTreeSet::new();
    for (_, (note, _)) in gone {
        match note {
            Note::Turn(turn) => notes::leave(session, turn).await?,
            Note::Choice(choice) => drop(choosing.insert(choice.tenant.clone())),
        }
    }
    let mut of_tenants: BTreeMap<String, Vec<&mut MemoryTask>> = BTreeMap::new();
    for task in tasks {
        if let DatabaseTask::Memory(task) = task {
            of_tenants.entry(task.tenant.clone()).or_default().push(task);
        }
    }
    for (tenant, tasks) in of_tenants {
        let mut writer = TenantWriter::begin(session, &tenant).await?;
        for task in tasks {
            task.run(&mut writer).await?;
        }
        writer.end().await?;
    }
    Ok(choosing)
}

impl Queued for DatabaseTask {
    fn records(&self) -> usize {
        match self {
            Self::Notes(noting) => noting.notes.len(),
            Self::Memory(task) => task.records(),
        }
    }

    fn acknowledge(self, outcome: Result<(), StoreError>) {
        match self {
            Self::Notes(Notings { notes, reply, .. }) => {
                if let Err(error) = &outcome {
                    tracing::debug!(%error, notes = notes.len(), "notes of sessions and choices were not stored");
                }
                // Nobody waits for most of them.
                let _ = reply.send(outcome);
            }
            Self::Memory(task) => task.acknowledge(outcome),
        }
    }
}
