//! Follows what other daemons write, while this one runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::control::{Control, Need};
use crate::engine::Engine;

/// Between two looks at what others wrote.
const LOOK: Duration = Duration::from_millis(500);

/// Follows them until the task is ended, from when the history is known on. A daemon alone has nobody to follow.
pub(super) async fn follow(control: Arc<Control>) {
    if control.engine().store().standings().is_none() {
        return;
    }
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            () = control.engine().purged() => {}
        }
        if !control.readiness().missing().contains(&Need::History) {
            follow_now(control.engine()).await;
        }
    }
}

async fn follow_now(engine: &Arc<Engine>) {
    loop {
        match engine.follow().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                // The lag is among the figures, and what is wrong with the database is said by who writes to it.
                tracing::debug!(%error, "what other daemons wrote was not read");
                return;
            }
        }
    }
}
