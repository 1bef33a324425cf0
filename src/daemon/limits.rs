//! The limit of open files, raised as far as it goes, and connections fitted below it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are not connections: documents being read, watches, the state, the runtime, and six for each rule
/// library.
const RESERVED: u64 = 128;

/// Raises the limit of open files, and lowers `connections` to what it leaves room for. Without room an accept, or
/// worse the reading of a directory, would fail.
pub(super) fn fit(connections: &mut usize, streams: usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Connections that only listen to a stream are not counted among the others.
    let reserved = RESERVED + streams as u64;
    let wanted = (*connections as u64).saturating_add(reserved);
    let Some(allowed) = current.filter(|&current| current < wanted) else { return };
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => allowed,
    };
    // Streams yield first: not all of them are there at once.
    let room = limit.saturating_sub(reserved).max(limit.saturating_sub(RESERVED) / 2).max(8) as usize;
    if room < *connections {
        tracing::warn!(limit, max_connections = room, "the limit of open files leaves room for fewer connections");
        *connections = room;
    }
}
