//! How those who wait for a group hear of it: one of them hears of all, and tells the others.
//!
//! To wake a task of the runtime from the writer's thread is a system call, and where processors are busy a change to
//! that task and back. The other tasks are woken from within the runtime, where it is neither.

use tokio::sync::oneshot;

use super::{StoreError, Stored};

type Outcome = Result<Stored, StoreError>;

/// Where one batch's outcome is waited for.
pub(super) type Acknowledger = oneshot::Sender<Acknowledgement>;

/// What became of a batch. Dropped, read or not, it tells the others.
#[derive(Debug)]
pub(super) struct Acknowledgement {
    outcome: Outcome,
    _others: Others,
}

impl Acknowledgement {
    pub(super) fn outcome(self) -> Outcome {
        self.outcome
    }
}

#[derive(Debug, Default)]
struct Others(Vec<(Acknowledger, Outcome)>);

impl Drop for Others {
    fn drop(&mut self) {
        for (acknowledger, outcome) in self.0.drain(..) {
            // Whoever does not wait any more knows that it does not know.
            let _ = acknowledger.send(Acknowledgement { outcome, _others: Self::default() });
        }
    }
}

/// Tells each what became of its batch.
pub(super) fn acknowledge(group: impl IntoIterator<Item = (Acknowledger, Outcome)>) {
    let mut group = group.into_iter();
    if let Some((first, outcome)) = group.next() {
        // If it does not wait any more, the others are told here.
        let _ = first.send(Acknowledgement { outcome, _others: Others(group.collect()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_hear_whoever_of_them_waits() {
        let check = |waits: [bool; 3]| {
            let (acknowledgers, waiting): (Vec<_>, Vec<_>) = (0..3).map(|_| oneshot::channel()).unzip();
            let mut waiting: Vec<_> =
                waiting.into_iter().zip(waits).map(|(each, waits)| waits.then_some(each)).collect();
            let outcome = |number: u64| Ok(Stored { samples: vec![Some(number)], ..Stored::default() });
            acknowledge(acknowledgers.into_iter().zip((0..).map(outcome)));
            // The first has heard, and goes without a look.
            drop(waiting[0].take());
            for (number, waiting) in (0..).zip(waiting) {
                if let Some(waiting) = waiting {
                    let told = waiting.blocking_recv().unwrap().outcome().unwrap();
                    assert_eq!(told.samples, [Some(number)], "{waits:?}");
                }
            }
        };
        check([true, true, true]);
        check([false, true, true]);
        check([true, false, true]);
        check([false, false, true]);
    }
}
