//! What was said of the calls of one key, one after the other, beside what happened.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::replay::question;
use super::stream::Stream;
use crate::timing::{Defaults, Key, Model, Observation, Question};

/// The calls of one key on one host.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    /// The daemon that recorded them.
    pub host: String,
    /// `tool`, or `tool/mode`.
    pub key: String,
    /// All calls of the key.
    pub calls: usize,
    /// The last of them.
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Its number among the calls of the key, from 1.
    pub call: usize,
    /// One call in twenty was said to be shorter, in ms.
    pub p05_ms: u64,
    /// Every second call was said to be shorter, in ms.
    pub p50_ms: u64,
    /// One call in twenty was said to be longer, in ms.
    pub p95_ms: u64,
    pub observation: Observation,
}

/// Replays `stream` and returns the last calls of the key that is `wanted`, as `tool` or `tool/mode`, on the host that
/// has most of them; of a tool with several modes, and if none is wanted, the key with most calls. Nothing if no key is
/// of that name.
pub fn track(stream: &Stream, defaults: &Defaults, wanted: Option<&str>, last: usize) -> Option<Track> {
    let mut calls: HashMap<(&str, Key<'_>), usize> = HashMap::new();
    for row in &stream.rows {
        *calls.entry((&row.host, row.key())).or_default() += 1;
    }
    let is_wanted = |key: &Key<'_>| wanted.is_none_or(|wanted| wanted == key.tool || wanted == label(key));
    let candidates = calls.into_iter().filter(|((_, key), _)| is_wanted(key));
    let ((host, key), calls) = candidates.max_by_key(|&(key, calls)| (calls, Reverse(key)))?;

    let mut model = Model::default();
    let mut call = 0;
    let mut points = Vec::with_capacity(calls.min(last));
    for row in stream.rows.iter().filter(|row| *row.host == *host) {
        let question = Question { key: row.key(), ..question(row, defaults) };
        let forecast = model.forecast(&question);
        model.observe(&question, &forecast, row.observation);
        if question.key != key {
            continue;
        }
        call += 1;
        if call + last > calls {
            let [p05_ms, p50_ms, _, p95_ms] = forecast.quantiles().whole_ms();
            points.push(Point { call, p05_ms, p50_ms, p95_ms, observation: row.observation });
        }
    }
    Some(Track { host: host.to_owned(), key: label(&key), calls, points })
}

fn label(key: &Key<'_>) -> String {
    match key.shown_mode().as_str() {
        "" => key.tool.to_owned(),
        mode => format!("{}/{mode}", key.tool),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: Option<&str>, expected: Option<(&str, &str, usize)>) {
        let mut text = "host,tool,mode,duration_ms,outcome\n".to_owned();
        for (host, tool, mode, outcome, calls) in [
            ("a", "x", "", "success", 5),
            ("b", "x", "", "success", 3),
            ("b", "x", "fast", "success", 9),
            ("b", "y", "", "success", 9),
            ("a", "y", "", "error", 4),
        ] {
            text += &format!("{host},{tool},{mode},700,{outcome}\n").repeat(calls);
        }
        let stream = Stream::parse(text.as_bytes()).unwrap();
        let got = track(&stream, &Defaults::default(), wanted, 6);
        let got = got.as_ref().map(|track| (track.host.as_str(), track.key.as_str(), track.calls));
        assert_eq!(got, expected, "{wanted:?}");
    }

    #[test]
    fn the_key_is_the_one_wanted_or_the_busiest() {
        check(None, Some(("b", "x/fast", 9)));
        check(Some("x"), Some(("b", "x/fast", 9)));
        check(Some("x/fast"), Some(("b", "x/fast", 9)));
        check(Some("y/#error"), Some(("a", "y/#error", 4)));
        check(Some("z"), None);
    }

    #[test]
    fn the_last_calls_are_said_as_they_were_foretold() {
        let rows: String = (0..40).map(|call| format!("x,{}\n", 700 + call % 3)).collect();
        let stream = Stream::parse(format!("tool,duration_ms\n{rows}").as_bytes()).unwrap();
        let track = track(&stream, &Defaults::default(), None, 10).unwrap();
        assert_eq!((track.calls, track.points.len()), (40, 10));
        assert_eq!((track.points[0].call, track.points[9].call), (31, 40));
        for point in track.points {
            let Point { p05_ms, p50_ms, p95_ms, .. } = point;
            assert!(p05_ms <= p50_ms && p50_ms <= p95_ms && (600..800).contains(&p50_ms), "{point:?}");
        }
    }
}
