//! Every forecast that can be corrected, with what the correction is read off, as CSV: what a correction is fitted on.

use std::fmt::Write as _;

use super::rows::field;
use crate::timing::evaluate::Said;
use crate::timing::{Features, ln_ms};

/// Levels whose places are told: equally far apart under the normal distribution, from one call in 4,300 to all but
/// so many.
const LEVELS: [f64; 29] = [
    0.000_233, 0.000_577, 0.001_35, 0.002_98, 0.006_21, 0.012_2, 0.022_8, 0.040_1, 0.066_8, 0.105_6, 0.158_7, 0.226_6,
    0.308_5, 0.401_3, 0.5, 0.598_7, 0.691_5, 0.773_4, 0.841_3, 0.894_4, 0.933_2, 0.959_9, 0.977_2, 0.987_8, 0.993_79,
    0.997_02, 0.998_65, 0.999_423, 0.999_767,
];

/// The names of the columns: `below` is the probability that the forecast gave to a shorter call, `q…` the place in
/// ln(ms) of that level.
pub(super) fn header() -> String {
    let levels = LEVELS.map(|level| format!("q{level}"));
    format!("host,tool,mode,outcome,ln_ms,below,{},{}\n", Features::NAMES.join(","), levels.join(","))
}

/// Adds a line, if the call's forecast can be corrected and its duration is known.
pub(super) fn add(lines: &mut String, said: &Said<'_>) {
    let Said { row, forecast, .. } = said;
    let Some(features) = forecast.features().filter(|_| !row.observation.outcome.is_censored()) else { return };
    let [host, tool, mode] = [&row.host, &row.tool, &row.mode].map(|text| field(text));
    let ln = ln_ms(row.observation.duration_ms);
    let distribution = forecast.distribution();
    let outcome = row.observation.outcome.as_str();
    // Writing to a string does not fail.
    let _ = write!(lines, "{host},{tool},{mode},{outcome},{ln:.4},{:.6}", distribution.below(ln));
    for value in features.values() {
        let _ = write!(lines, ",{value:.5}");
    }
    for level in LEVELS {
        let _ = write!(lines, ",{:.4}", distribution.quantile(level));
    }
    lines.push('\n');
}
