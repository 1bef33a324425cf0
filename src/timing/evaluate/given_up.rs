//! What is left of the forecasts if callers give up: the same stream with every call beyond a limit given up there.

use serde::Serialize;

use super::figures::Brier;
use super::replay::{Replay, question};

/// How much is left of the forecast of timeouts where calls beyond the limit were given up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GivenUpFigures {
    /// Brier skill at the limit, which no call was seen to exceed, relative to the same of the stream as it was.
    pub skill_kept: Option<f64>,
    /// Brier skill at twice the limit, of which nothing was seen.
    pub skill_beyond: Option<f64>,
}

/// Replays a stream with callers that give up after `limit_ms`. `skill` is what was reached without.
pub(super) fn given_up(replay: Replay<'_>, limit_ms: u64, skill: Option<f64>) -> GivenUpFigures {
    let (stream, defaults) = replay.asked();
    let mut replay = replay.giving_up(limit_ms);
    let (mut at_limit, mut beyond) = (Brier::default(), Brier::default());
    for (index, row) in stream.rows.iter().enumerate() {
        if !row.observation.outcome.is_censored() {
            let forecast = replay.before(index).forecast(&question(row, defaults));
            for (brier, limit) in [(&mut at_limit, limit_ms), (&mut beyond, 2 * limit_ms)] {
                brier.judge(forecast.timeout_probability(limit), row.observation.duration_ms > limit);
            }
        }
        replay.begin(index);
    }
    let skill_kept = at_limit.skill().zip(skill).map(|(kept, whole)| kept / whole);
    GivenUpFigures { skill_kept, skill_beyond: beyond.skill() }
}
