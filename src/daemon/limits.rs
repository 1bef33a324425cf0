//! The limit of open files, raised as far as it goes, and connections and streams fitted below it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are not connections: documents being read, watches, the state, the runtime, and six for each rule
/// library.
const RESERVED: u64 = 128;

/// Raises the limit of open files, and lowers `connections` and `streams` to what it leaves room for. Without room an
/// accept, the reading of a directory, or a sign of life to the service manager would fail.
pub(super) fn fit(connections: &mut usize, streams: &mut usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Connections that only listen to a stream are not counted among the others.
    let wanted = (*connections as u64).saturating_add(*streams as u64).saturating_add(RESERVED);
    let Some(allowed) = current.filter(|&current| current < wanted) else { return };
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => allowed,
    };
    if limit >= wanted {
        return;
    }
    share(limit.saturating_sub(RESERVED) as usize, connections, streams);
    let (max_connections, max_streams) = (*connections, *streams);
    tracing::warn!(limit, max_connections, max_streams, "the limit of open files leaves room for fewer connections");
}

/// Lowers both to what fits into `room`; of a place for each there is always enough.
fn share(room: usize, connections: &mut usize, streams: &mut usize) {
    *streams = (*streams).min(room / 2).max(LEAST);
    *connections = (*connections).min(room.saturating_sub(*streams)).max(LEAST);
}

/// Connections, and streams, that are let in whatever the limit is.
const LEAST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_streams_fit_together() {
        let check = |room: usize, expected: (usize, usize)| {
            let (mut connections, mut streams) = (1024, 768);
            share(room, &mut connections, &mut streams);
            assert_eq!((connections, streams), expected, "{room}");
        };
        check(5000, (1024, 768));
        check(1600, (832, 768));
        check(896, (448, 448));
        check(128, (64, 64));
        check(0, (8, 8));
    }
}
