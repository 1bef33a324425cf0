//! The limit of open files, raised as far as it goes, and connections fitted below it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are not connections: documents being read, watches, the state, the runtime, and six for each rule library.
const RESERVED: u64 = 128;

/// Raises the limit of open files, and lowers `connections` to what it leaves room for. Without room an accept, or worse the
/// reading of a directory, would fail.
pub(super) fn fit(connections: &mut usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = (*connections as u64).saturating_add(RESERVED);
    let Some(allowed) = current.filter(|&current| current < wanted) else { return };
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => allowed,
    };
    let room = limit.saturating_sub(RESERVED).max(8) as usize;
    if room < *connections {
        tracing::warn!(limit, max_connections = room, "the limit of open files leaves room for fewer connections");
        *connections = room;
    }
}
