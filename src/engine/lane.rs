//! Turns to read: few read at once, since more would only wait for each other's processor; and no tenant takes all
//! turns.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Turns of one kind.
#[derive(Debug)]
pub(super) struct Lane {
    /// Turns at once, of all tenants and of one.
    width: usize,
    of_one: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    by_tenant: HashMap<Arc<str>, usize>,
    /// Tenants that wait, whose turn is next first.
    waiting: VecDeque<(Arc<str>, VecDeque<oneshot::Sender<Turn>>)>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    lane: Arc<Lane>,
    tenant: Arc<str>,
}

impl Lane {
    /// So many turns at once, and so many of one tenant; both 1 or more.
    pub(super) fn new(width: usize, of_one: usize) -> Arc<Self> {
        Arc::new(Self { width: width.max(1), of_one: of_one.clamp(1, width.max(1)), state: Mutex::default() })
    }

    /// Waits for a turn. Whoever gives up waiting takes none.
    pub(super) async fn enter(self: &Arc<Self>, tenant: &str) -> Turn {
        let tenant: Arc<str> = tenant.into();
        let waiting = {
            let mut state = self.state.lock();
            if state.taken < self.width && state.of(&tenant) < self.of_one {
                return self.take(&mut state, tenant);
            }
            let (sender, receiver) = oneshot::channel();
            match state.waiting.iter_mut().find(|(other, _)| *other == tenant) {
                Some((_, senders)) => senders.push_back(sender),
                None => state.waiting.push_back((Arc::clone(&tenant), VecDeque::from([sender]))),
            }
            receiver
        };
        match waiting.await {
            Ok(turn) => turn,
            // Nobody drops a sender while its lane is there, which `self` keeps.
            Err(_) => self.take(&mut self.state.lock(), tenant),
        }
    }

    fn take(self: &Arc<Self>, state: &mut State, tenant: Arc<str>) -> Turn {
        state.taken += 1;
        *state.by_tenant.entry(Arc::clone(&tenant)).or_default() += 1;
        Turn { lane: Arc::clone(self), tenant }
    }

    fn leave(self: &Arc<Self>, tenant: &Arc<str>) {
        let mut given = Vec::new();
        let mut state = self.state.lock();
        state.taken -= 1;
        if let Some(taken) = state.by_tenant.get_mut(tenant) {
            *taken -= 1;
            if *taken == 0 {
                state.by_tenant.remove(tenant);
            }
        }
        while state.taken < self.width
            && let Some((tenant, sender)) = state.next(self.of_one)
        {
            given.push((sender, self.take(&mut state, tenant)));
        }
        // Whoever does not wait any more gives its turn back, which needs the lock.
        drop(state);
        for (sender, turn) in given {
            drop(sender.send(turn));
        }
    }
}

impl State {
    fn of(&self, tenant: &Arc<str>) -> usize {
        self.by_tenant.get(tenant).copied().unwrap_or_default()
    }

    /// Who is next: the first of the first tenant that has turns left, which stands behind the others then.
    fn next(&mut self, of_one: usize) -> Option<(Arc<str>, oneshot::Sender<Turn>)> {
        let at = self.waiting.iter().position(|(tenant, _)| self.of(tenant) < of_one)?;
        let (tenant, mut senders) = self.waiting.remove(at)?;
        let sender = senders.pop_front()?;
        if !senders.is_empty() {
            self.waiting.push_back((Arc::clone(&tenant), senders));
        }
        Some((tenant, sender))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.lane.leave(&self.tenant);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn tenants_take_turns() {
        let lane = Lane::new(3, 2);
        let mut greedy: Vec<_> = (0..5).map(|_| Box::pin(lane.enter("a"))).collect();
        let mut turns: Vec<Option<Turn>> = greedy.iter_mut().map(|turn| poll(turn.as_mut())).collect();
        assert_eq!(turns.iter().flatten().count(), 2, "one tenant takes not all");
        let first = poll(pin!(lane.enter("b"))).unwrap();
        let mut other = Box::pin(lane.enter("c"));
        assert!(poll(other.as_mut()).is_none(), "all are taken");
        // `a` waited longer, and is next; then it is `c`'s turn although more of `a` wait.
        turns[0] = None;
        assert!(poll(greedy[2].as_mut()).is_some_and(|turn| {
            turns[0] = Some(turn);
            true
        }));
        turns[1] = None;
        let third = poll(other.as_mut());
        assert!(third.is_some());
        // Whoever gave up takes no turn.
        drop(greedy);
        drop((turns, first, third));
        let state = lane.state.lock();
        assert_eq!((state.taken, state.by_tenant.len()), (0, 0));
    }
}
