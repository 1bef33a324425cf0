//! Every call of a stream with what was said of it, as CSV.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::timing::evaluate::Said;

/// The names of the columns.
pub(super) const HEADER: &str = "ts_ms,host,tool,mode,duration_ms,outcome,p05_ms,p50_ms,p90_ms,p95_ms,estimated_ms,\
                                 confidence,basis,samples,limit_ms,timeout_probability\n";

/// Adds a line.
pub(super) fn add(rows: &mut String, said: &Said<'_>) {
    let Said { row, forecast, limit_ms } = said;
    let [p05, p50, p90, p95] = forecast.quantiles().whole_ms();
    let at = row.at_ms.map_or_else(String::new, |at| at.to_string());
    let [host, tool, mode] = [&row.host, &row.tool, &row.mode].map(|text| field(text));
    let (duration, outcome) = (row.observation.duration_ms, row.observation.outcome.as_str());
    let (estimated, confidence) = (forecast.estimated_duration_ms(), forecast.confidence().as_str());
    let (basis, samples) = (forecast.basis().as_str(), forecast.samples());
    let probability = forecast.timeout_probability(*limit_ms);
    // Writing to a string does not fail.
    let _ = writeln!(
        rows,
        "{at},{host},{tool},{mode},{duration},{outcome},{p05},{p50},{p90},{p95},{estimated},{confidence},{basis},\
         {samples},{limit_ms},{probability:.4}"
    );
}

/// A field, in quotes where it needs them (RFC 4180).
pub(super) fn field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_need_it() {
        for (text, expected) in [("a b", "a b"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("", "")] {
            assert_eq!(field(text), expected);
        }
    }
}
