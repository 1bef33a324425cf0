//! What the other hosts of a fleet saw. They are one more expert, and not more history: another machine has another
//! speed, and to pool hosts makes forecasts worse.

use super::estimator::histogram::Fading;
use super::estimator::survival::Durations;
use super::key::Key;
use super::model::ModelLimits;
use super::outcome::Observation;
use super::table::SharedTable;

/// What other hosts saw of one key.
#[derive(Debug, Clone, Default)]
pub struct FleetCalls {
    durations: Durations,
    samples: u64,
}

impl FleetCalls {
    /// So many calls of each other host count at most, so that a busy one is not taken for all.
    pub const OF_EACH_HOST: usize = 50;

    /// `hosts` are the latest calls of each other host, oldest first; `samples` how many they ever recorded together.
    pub fn of_hosts(hosts: &[Vec<Observation>], samples: u64) -> Self {
        let mut calls = Self { samples, ..Self::default() };
        // The latest of each host at the end, where they count most.
        for age in (0..Self::OF_EACH_HOST).rev() {
            for host in hosts {
                if let Some(observation) = host.len().checked_sub(age + 1).and_then(|place| host.get(place)) {
                    observation.count_in(&mut calls.durations, Fading::TOOL);
                }
            }
        }
        calls
    }

    /// One more call.
    pub(super) fn add(&mut self, observation: Observation) {
        self.samples += 1;
        observation.count_in(&mut self.durations, Fading::TOOL);
    }

    pub(crate) fn durations(&self) -> &Durations {
        &self.durations
    }

    /// Calls that the others ever recorded.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.durations.total() <= 0.0
    }
}

/// What other hosts saw of all keys; cheap to clone. As many are kept as a model keeps, those that were heard of last.
#[derive(Debug, Clone)]
pub struct Fleet {
    keys: SharedTable<FleetCalls>,
    heard: u64,
}

impl Default for Fleet {
    fn default() -> Self {
        Self { keys: SharedTable::new(ModelLimits::default().keys), heard: 0 }
    }
}

impl Fleet {
    /// Replaces what is known of a key.
    pub fn put(&mut self, key: Key<'_>, calls: FleetCalls) {
        self.heard += 1;
        *self.keys.touch(key, self.heard) = calls;
    }

    /// Nothing of a key that no other host has called.
    pub fn get(&self, key: Key<'_>) -> Option<&FleetCalls> {
        self.keys.get(key).filter(|calls| !calls.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    fn calls(count: usize, duration_ms: u64) -> Vec<Observation> {
        vec![Observation { duration_ms, outcome: Outcome::Success }; count]
    }

    #[test]
    fn each_host_counts_fifty_calls_at_most() {
        let check = |hosts: &[Vec<Observation>], counted: f64| {
            let samples = hosts.iter().map(Vec::len).sum::<usize>() as u64;
            let fleet = FleetCalls::of_hosts(hosts, samples);
            let total = fleet.durations().total();
            assert!((0.8 * counted..=counted).contains(&total), "{total} of {counted}");
            assert_eq!(fleet.samples(), samples);
        };
        check(&[], 0.0);
        check(&[calls(0, 0), calls(1, 700)], 1.0);
        check(&[calls(30, 700), calls(50, 900)], 80.0);
        check(&[calls(2000, 700), calls(50, 900)], 100.0);
    }

    #[test]
    fn a_key_has_what_was_put_last() {
        let mut fleet = Fleet::default();
        let key = Key::new("a", "");
        assert!(fleet.get(key).is_none());
        fleet.put(key, FleetCalls::of_hosts(&[calls(3, 700)], 3));
        fleet.put(key, FleetCalls::of_hosts(&[calls(4, 700)], 9));
        assert_eq!(fleet.get(key).map(FleetCalls::samples), Some(9));
        assert!(fleet.get(Key { failed: true, ..key }).is_none());
        fleet.put(key, FleetCalls::default());
        assert!(fleet.get(key).is_none());
    }
}
