//! How long a client waits for an answer: what it says, what is configured, what it was seen to do.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;

/// How long a client waits of which nothing is known: what the protocol's own libraries do.
pub(super) const DEFAULT: Duration = Duration::from_secs(60);

/// Shortest and longest patience that is believed.
const BOUNDS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(24 * 3600)];

/// Calls that were given up at one age, after which that is taken for the client's limit.
const ALIKE: usize = 3;

/// How much these ages may differ, as a share.
const SPREAD: f64 = 0.05;

/// Clients of which something is remembered; the oldest give way.
const MAX_CLIENTS: usize = 10_000;

/// How long a client waits for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp) struct Patience {
    /// Until it gives up.
    pub(in crate::mcp) limit: Duration,
    /// Does progress start that anew?
    pub(in crate::mcp) progress_resets: bool,
}

impl Patience {
    /// Of a client that waits for `limit`.
    pub(super) fn new(limit: Duration, progress_resets: bool) -> Self {
        Self { limit: limit.clamp(BOUNDS[0], BOUNDS[1]), progress_resets }
    }

    /// When the client is given what it can come back with, after its question.
    pub(super) fn handle_after(self) -> Duration {
        let margin = Duration::from_millis(1500).max(self.limit.mul_f64(0.04));
        self.limit.saturating_sub(margin).max(self.limit / 2)
    }
}

/// Whom a limit is learnt of: a session, or a token and its view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum PatientClient {
    Session(u64),
    Token(String, String),
}

/// What clients were seen to do.
#[derive(Debug, Default)]
pub(super) struct LearntLimits(Mutex<Clients>);

#[derive(Debug, Default)]
struct Clients {
    seen: HashMap<PatientClient, Seen>,
    /// The oldest first.
    order: VecDeque<PatientClient>,
}

#[derive(Debug, Default)]
struct Seen {
    given_up: Vec<Duration>,
    limit: Option<Duration>,
}

impl LearntLimits {
    /// The client's limit, if it is known.
    pub(super) fn get(&self, client: &PatientClient) -> Option<Duration> {
        self.0.lock().seen.get(client)?.limit
    }

    /// The client gave a call up at this age.
    pub(super) fn gave_up(&self, client: PatientClient, age: Duration) {
        let mut clients = self.0.lock();
        let Clients { seen, order } = &mut *clients;
        if !seen.contains_key(&client) {
            if seen.len() >= MAX_CLIENTS
                && let Some(oldest) = order.pop_front()
            {
                seen.remove(&oldest);
            }
            order.push_back(client.clone());
        }
        let seen = seen.entry(client).or_default();
        seen.given_up.push(age);
        let from = seen.given_up.len().saturating_sub(ALIKE);
        seen.given_up.drain(..from);
        let (least, most) = seen
            .given_up
            .iter()
            .fold((Duration::MAX, Duration::ZERO), |(least, most), age| (least.min(*age), most.max(*age)));
        if seen.given_up.len() == ALIKE && most.as_secs_f64() <= least.as_secs_f64() * (1.0 + SPREAD) {
            seen.limit = Some(least);
        }
    }

    /// The client took an answer at this age.
    pub(super) fn took(&self, client: &PatientClient, age: Duration) {
        let mut clients = self.0.lock();
        if let Some(seen) = clients.seen.get_mut(client)
            && let Some(limit) = &mut seen.limit
        {
            *limit = age.max(*limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_handle_comes_before_the_client_gives_up() {
        let check = |limit: u64, after: u64| {
            assert_eq!(Patience::new(ms(limit), false).handle_after(), ms(after), "{limit}");
        };
        check(60_000, 57_600);
        check(2000, 1000);
        check(10_000, 8500);
        check(300_000, 288_000);
        check(1, 25);
    }

    #[test]
    fn a_limit_is_learnt_from_three_that_are_alike() {
        let limits = LearntLimits::default();
        let check = |age: u64, expected: Option<u64>| {
            limits.gave_up(PatientClient::Session(1), ms(age));
            assert_eq!(limits.get(&PatientClient::Session(1)), expected.map(ms), "{age}");
        };
        check(9000, None);
        check(60_000, None);
        check(60_100, None);
        check(60_050, Some(60_000));
        limits.took(&PatientClient::Session(1), ms(70_000));
        assert_eq!(limits.get(&PatientClient::Session(1)), Some(ms(70_000)));
        limits.took(&PatientClient::Session(2), ms(70_000));
        assert_eq!(limits.get(&PatientClient::Session(2)), None);
    }

    #[test]
    fn of_too_many_clients_the_oldest_is_forgotten() {
        let limits = LearntLimits::default();
        let learn = |client: usize| {
            (0..ALIKE).for_each(|_| limits.gave_up(PatientClient::Session(client as u64), ms(60_000)));
        };
        (0..=MAX_CLIENTS).for_each(learn);
        let check = |client: usize, expected: Option<u64>| {
            assert_eq!(limits.get(&PatientClient::Session(client as u64)), expected.map(ms), "{client}");
        };
        check(0, None);
        check(1, Some(60_000));
        check(MAX_CLIENTS, Some(60_000));
        let clients = limits.0.lock();
        assert_eq!((clients.seen.len(), clients.order.len()), (MAX_CLIENTS, MAX_CLIENTS));
    }
}
