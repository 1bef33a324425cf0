//! Which core does what: servers have one for themselves, whoever asks them has another.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The first two cores this process may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    pub(crate) server: usize,
    pub(crate) client: usize,
}

impl Cores {
    pub(crate) fn find() -> Result<Self> {
        let allowed = sched_getaffinity(None).context("cannot read which cores may be used")?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let pair = cores.next().zip(cores.next());
        let (server, client) = pair.context("two cores are needed, one to serve and one to ask")?;
        Ok(Self { server, client })
    }
}

/// Keeps this thread on `core`.
pub(crate) fn pin(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).with_context(|| format!("cannot keep to core {core}"))
}

/// Does something on `core`. Threads and processes that are started meanwhile stay there.
pub(crate) fn on<T>(core: usize, action: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = sched_getaffinity(None).context("cannot read which cores may be used")?;
    pin(core)?;
    let outcome = action();
    sched_setaffinity(None, &before).context("cannot leave the core")?;
    outcome
}
