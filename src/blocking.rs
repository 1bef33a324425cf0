//! Work that computes or waits for a disk, on threads beside those that answer.
//!
//! The first of these threads are made at the start and kept: when the system refuses further ones, because something
//! else has used its tasks up, what is asked waits for those that are there. What waits is bounded in number and time,
//! so that whoever asks is told.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

/// Threads that are made at the start: enough that a slow disk does not hold up what only computes.
const KEPT: usize = 8;

/// Threads at most. More would only take turns.
const MAX_THREADS: usize = 64;

/// Pieces of work that run or wait at once.
const MAX_WAITING: usize = 1024;

/// How long a piece of work waits for its thread. It takes milliseconds on a machine that is merely busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// Nobody could do the work in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too much waits to be computed; try again")]
pub struct NoThread;

/// A runtime with `workers` threads that answer, and all that [`run`] needs.
pub fn runtime(workers: usize) -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .max_blocking_threads(MAX_THREADS)
        // Longer than any daemon runs; a thread that was given back might not be had again.
        .thread_keep_alive(Duration::from_secs(u32::MAX.into()))
        .thread_name("worker")
        .enable_all()
        .build()?;
    make_threads(runtime.handle());
    Ok(runtime)
}

/// Work that cannot end before all of it was begun makes a thread for each piece.
fn make_threads(runtime: &Handle) {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock();
    for _ in 0..KEPT {
        let gate = Arc::clone(&gate);
        runtime.spawn_blocking(move || drop(gate.lock()));
    }
    drop(closed);
}

/// Does `work` where nobody waits for the thread. A panic of it goes on here.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, NoThread> {
    outcome(begin(work)?.await)
}

/// The same, but work that is short is done at once: to hand over some 100 µs of it costs as much as doing it.
pub async fn run_unless_short<T: Send + 'static>(
    is_short: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoThread> {
    if is_short { Ok(work()) } else { run(work).await }
}

/// The same as [`run`], but the work must have begun in time. Needs a runtime with timers.
pub async fn run_soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, NoThread> {
    run_within(PATIENCE, work).await
}

async fn run_within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoThread> {
    let (begun, mut has_begun) = oneshot::channel();
    // Nobody to tell: what asked has given up or gone, and the work is not begun.
    let running = begin(move || begun.send(()).is_ok().then(work))?;
    if timeout(patience, &mut has_begun).await.is_err() {
        has_begun.close();
        // It may have begun between the two.
        has_begun.try_recv().map_err(|_| NoThread)?;
    }
    outcome(running.await)?.ok_or(NoThread)
}

fn begin<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, NoThread> {
    static PLACES: Semaphore = Semaphore::const_new(MAX_WAITING);
    let place = PLACES.try_acquire().map_err(|_| NoThread)?;
    Ok(tokio::task::spawn_blocking(move || {
        let outcome = work();
        // Given back by the work itself, since whoever asked for it may have gone.
        drop(place);
        outcome
    }))
}

fn outcome<T>(ended: Result<T, JoinError>) -> Result<T, NoThread> {
    ended.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => NoThread,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_finds_no_thread_is_told_so() {
        let runtime = Builder::new_current_thread().enable_time().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (release, gate) = channel::<()>();
            let (begun, has_begun) = oneshot::channel();
            let holder = tokio::spawn(run(move || {
                let _ = begun.send(());
                gate.recv().is_err()
            }));
            has_begun.await.unwrap();
            assert_eq!(run_within(Duration::ZERO, || ()).await, Err(NoThread), "the only thread is taken");
            drop(release);
            assert_eq!(holder.await.unwrap(), Ok(true), "what has begun is waited for");
            assert_eq!(run(|| 1).await, Ok(1));
        });
    }

    #[test]
    fn a_panic_goes_on_where_it_was_asked_for() {
        let runtime = runtime(1).unwrap();
        let asked = runtime.block_on(async { tokio::spawn(run(|| panic!("on purpose"))).await });
        assert!(asked.unwrap_err().is_panic());
    }
}
