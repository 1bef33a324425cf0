//! Work that may take longer than a request may.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::http::handler::Connection;

/// Shortest time between two signs that work goes on.
const LEAST: Duration = Duration::from_millis(1);

/// Waits for work, and tells the connection that it goes on, twice within its limit.
pub(super) async fn patiently<T>(connection: &dyn Connection, limit: Duration, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    let mut signs = interval((limit / 2).max(LEAST));
    signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = signs.tick() => connection.goes_on(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::timeout;

    use super::*;

    struct Signs(AtomicU64);

    impl Connection for Signs {
        fn goes_on(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn has_ended(&self) -> bool {
            false
        }

        fn lulls(&self) -> u64 {
            0
        }
    }

    #[test]
    fn the_connection_hears_that_work_goes_on() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let signs = Signs(AtomicU64::new(0));
        let work = async {
            while signs.0.load(Ordering::Relaxed) < 5 {
                tokio::task::yield_now().await;
            }
            "done"
        };
        runtime.block_on(async {
            let done = timeout(Duration::from_secs(60), patiently(&signs, Duration::ZERO, work)).await;
            assert_eq!(done, Ok("done"));
        });
    }
}
