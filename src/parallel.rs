//! The same work for many things, on all processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

/// Things that are worth another thread.
const WORTH_A_THREAD: usize = 8;

/// What `work` makes of each thing, in their order. A panic of its is the caller's.
pub(crate) fn map<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_on(processors().min(things.len() / WORTH_A_THREAD + 1), things, work)
}

/// The same of a few things, each of which is worth a thread: one to a thread.
pub(crate) fn map_each<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_on(things.len().max(1), things, work)
}

/// How many there are, at least one.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

fn map_on<T: Sync, R: Send>(workers: usize, things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if workers == 1 {
        return things.iter().map(work).collect();
    }
    // Things differ in size, so each worker takes the next one when it is free.
    let next = AtomicUsize::new(0);
    let share = || {
        let mut made = Vec::with_capacity(things.len() / workers);
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(index) else { return made };
            made.push((index, work(thing)));
        }
    };
    let mut made = thread::scope(|scope| {
        // Where no thread can be made, the others do its share.
        let start = |_| thread::Builder::new().spawn_scoped(scope, share).ok();
        let others: Vec<_> = (1..workers).filter_map(start).collect();
        let mut made = share();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)));
        }
        made
    });
    made.sort_unstable_by_key(|(index, _)| *index);
    made.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_is_done_once_and_in_order(things in prop::collection::vec(any::<u32>(), 0..200), workers in 1_usize..5) {
            let work = |thing: &u32| u64::from(*thing) + 1;
            let expected: Vec<u64> = things.iter().map(work).collect();
            prop_assert_eq!(map_on(workers, &things, work), expected.clone());
            prop_assert_eq!(map(&things, work), expected.clone());
            let few = things.len().min(5);
            prop_assert_eq!(&map_each(&things[..few], work), &expected[..few]);
        }
    }

    #[test]
    #[should_panic(expected = "the seventh")]
    fn a_panic_is_the_callers() {
        let things: Vec<usize> = (0..20).collect();
        map_on(3, &things, |thing| assert!(*thing != 7, "the seventh"));
    }
}
