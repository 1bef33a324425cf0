//! What every store does with records.

use std::collections::BTreeSet;

use super::Sites;
use crate::store::notes::{KEPT_TURNS, KeptTurnNote, TurnNote, digest};
use crate::store::{ExecutionFilter, Note, ReplayLimits, SessionFilter, Store, StoreError, Stored, TimedCallFilter};
use crate::suggest::transitions::{Prefix, Transition};
use crate::timing::{CallKey, Execution, KeyCount, Measures, Outcome, Predicted};

/// A call of a second in session `s`.
pub(crate) fn execution(tool: &str, mode: Option<&str>, duration_ms: u64, key: Option<&str>) -> Execution {
    Execution {
        tenant: "default".into(),
        tool: tool.into(),
        mode: mode.map(Into::into),
        duration_ms: Some(duration_ms),
        outcome: Outcome::Success,
        measures: Measures { content_length: Some(7), ..Measures::default() },
        session: Some("s".into()),
        at_ms: 1_700_000_000_000,
        idempotency_key: key.map(Into::into),
    }
}

/// Appends a batch and waits until it is durable.
pub(crate) fn append(store: &dyn Store, batch: Vec<Execution>) -> Result<Stored, StoreError> {
    store.append(batch)?.durable_blocking()
}

pub(crate) fn what_was_acknowledged_is_there_after_a_restart(sites: Sites) {
    let site = sites();
    let batch = vec![execution("a", None, 1, Some("k1")), execution("a", Some("m"), 2, None)];
    let store = site.start();
    let samples = |stored: Result<Stored, StoreError>| stored.unwrap().samples;
    assert_eq!(samples(append(&*store, batch.clone())), [Some(1), Some(1)]);
    assert_eq!(samples(append(&*store, batch.clone())), [None, Some(2)], "told again, and not");
    drop(store);
    let store = site.start();
    let history = store.replay(ReplayLimits::default()).unwrap();
    let without_key = |execution: &Execution| Execution { idempotency_key: None, ..execution.clone() };
    let expected = [&batch[0], &batch[1], &batch[1]].map(without_key);
    assert_eq!(history.executions, expected);
    let count =
        |mode: Option<&str>, samples| KeyCount { tool: "a".into(), mode: mode.map(Into::into), failed: false, samples };
    assert_eq!(history.counts, [count(None, 1), count(Some("m"), 2)]);
}

pub(crate) fn a_key_stands_for_what_was_told_under_it(sites: Sites) {
    let site = sites();
    let keyed = |tool: &str, key: &str, digest: &str| {
        let key = CallKey { name: key.into(), digest: digest.into() };
        Execution { idempotency_key: Some(key), ..execution(tool, None, 1, None) }
    };
    let store = site.start();
    let samples = |stored: Result<Stored, StoreError>| stored.map(|stored| stored.samples);
    assert_eq!(samples(append(&*store, vec![keyed("a", "k", "1")])), Ok(vec![Some(1)]));
    let refused = Err(StoreError::KeyReused("k".into()));
    let other = vec![execution("b", None, 1, None), keyed("a", "k", "2")];
    assert_eq!(samples(append(&*store, other.clone())), refused);
    let twice = vec![keyed("c", "l", "1"), keyed("c", "l", "1"), keyed("a", "k", "1")];
    assert_eq!(samples(append(&*store, twice)), Ok(vec![Some(1), None, None]));
    let differing = vec![keyed("c", "m", "1"), keyed("c", "m", "2")];
    assert_eq!(samples(append(&*store, differing)), Err(StoreError::KeyReused("m".into())));
    let theirs = Execution { tenant: "other".into(), ..keyed("a", "k", "2") };
    assert_eq!(samples(append(&*store, vec![theirs])), Ok(vec![Some(2)]));
    drop(store);
    let store = site.start();
    assert_eq!(samples(append(&*store, other)), refused);
    assert_eq!(samples(append(&*store, vec![keyed("a", "k", ""), keyed("a", "k", "1")])), Ok(vec![None, None]));
    let tools: Vec<String> =
        store.replay(ReplayLimits::default()).unwrap().executions.into_iter().map(|row| row.tool).collect();
    assert_eq!(tools, ["a", "c", "a"], "nothing of a batch that was refused");
}

pub(crate) fn a_start_reads_back_the_latest_of_each_key(sites: Sites) {
    let site = sites();
    let rows = (0..30).map(|i| execution("a", Some(if i % 2 == 0 { "x" } else { "y" }), i, None));
    append(&*site.start(), rows.collect()).unwrap();
    let store = site.start();
    let durations = |limits| -> Vec<u64> {
        store.replay(limits).unwrap().executions.iter().filter_map(|execution| execution.duration_ms).collect()
    };
    let limits = ReplayLimits::default();
    assert_eq!(durations(ReplayLimits { per_key: 2, ..limits }), [26, 27, 28, 29]);
    assert_eq!(durations(ReplayLimits { per_key: 100, in_all: 6, ..limits }), [24, 25, 26, 27, 28, 29]);
    assert_eq!(durations(ReplayLimits { per_key: 2, keys: 1, ..limits }), [27, 29]);
}

pub(crate) fn every_key_comes_back(sites: Sites) {
    let site = sites();
    let store = site.start();
    // One mode early and often, then many others often.
    let early = (0..251).map(|_| execution("a", Some("early"), 7, None));
    append(&*store, early.collect()).unwrap();
    let others = (0..170 * 9).map(|call| execution("a", Some(&format!("m{}", call % 170)), 8, None));
    append(&*store, others.collect()).unwrap();
    drop(store);
    let history = site.start().replay(ReplayLimits::default()).unwrap();
    let modes: BTreeSet<&str> = history.executions.iter().filter_map(|row| row.mode.as_deref()).collect();
    assert_eq!((modes.len(), history.counts.len()), (171, 171));
    let early: Vec<u64> = history
        .executions
        .iter()
        .filter(|row| row.mode.as_deref() == Some("early"))
        .filter_map(|row| row.duration_ms)
        .collect();
    assert_eq!(early, [7; 50]);
}

pub(crate) fn records_are_listed_the_latest_first_page_by_page(sites: Sites) {
    let site = sites();
    let store = site.start();
    let row = |number: u64| Execution {
        tenant: if number % 5 == 4 { "other" } else { "default" }.into(),
        session: number.is_multiple_of(2).then(|| "s".into()),
        outcome: if number.is_multiple_of(3) { Outcome::Error } else { Outcome::Success },
        at_ms: 1_700_000_000_000 + number as i64,
        ..execution(if number < 6 { "a" } else { "b" }, None, number, None)
    };
    // What was just acknowledged is listed, wherever it is.
    append(&*store, (0..10).map(row).collect()).unwrap();
    let check = |wanted: ExecutionFilter, expected: &[u64]| {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = store.executions(&ExecutionFilter { before, limit: 2, ..wanted.clone() }).unwrap();
            assert!(page.calls.len() <= 2);
            found.extend(page.calls.iter().filter_map(|call| call.execution.duration_ms));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{wanted:?}");
    };
    let own = ExecutionFilter { tenant: "default".into(), ..ExecutionFilter::default() };
    check(own.clone(), &[8, 7, 6, 5, 3, 2, 1, 0]);
    check(ExecutionFilter { tool: Some("a".into()), ..own.clone() }, &[5, 3, 2, 1, 0]);
    check(ExecutionFilter { session: Some("s".into()), ..own.clone() }, &[8, 6, 2, 0]);
    check(ExecutionFilter { outcome: Some(Outcome::Error), ..own.clone() }, &[6, 3, 0]);
    let (since_ms, until_ms) = (Some(1_700_000_000_003), Some(1_700_000_000_007));
    check(ExecutionFilter { since_ms, until_ms, ..own.clone() }, &[6, 5, 3]);
    check(ExecutionFilter { tenant: "nobody".into(), ..own }, &[]);
}

pub(crate) fn what_was_predicted_stands_beside_the_call(sites: Sites) {
    let site = sites();
    let store = site.start();
    let predicted = |middle| Predicted::sketch([1, 2, middle, 400, 500]);
    let batch = vec![execution("a", None, 1, Some("k")), execution("b", None, 2, None), execution("a", None, 3, None)];
    let ids: Vec<i64> = append(&*store, batch.clone()).unwrap().ids.into_iter().flatten().collect();
    // Of the second nothing is known; the others come while only the journal has them, and the first again is no call.
    store.keep_predicted(vec![(ids[2], predicted(30)), (ids[0], predicted(10))]);
    assert_eq!(append(&*store, batch[..1].to_vec()).unwrap().ids, [None]);
    let own = ExecutionFilter { tenant: "default".into(), limit: 10, ..ExecutionFilter::default() };
    let listed = |store: &dyn Store| {
        let page = store.executions(&own).unwrap();
        page.calls.into_iter().map(|call| (call.execution.duration_ms, call.predicted)).collect::<Vec<_>>()
    };
    let expected = [(Some(3), Some(predicted(30))), (Some(2), None), (Some(1), Some(predicted(10)))];
    assert_eq!(listed(&*store), expected);
    // The second's comes late, when its row is written already.
    store.keep_predicted(vec![(ids[1], predicted(20))]);
    let expected = [expected[0], (Some(2), Some(predicted(20))), expected[2]];
    assert_eq!(listed(&*store), expected);
    drop(store);
    let store = site.start();
    assert_eq!(listed(&*store), expected);
    let points = |tool: &str, mode: Option<&str>, failed| {
        let wanted = TimedCallFilter {
            tenant: "default".into(),
            tool: tool.into(),
            mode: mode.map(Into::into),
            failed,
            limit: 10,
        };
        let calls = store.timed_calls(&wanted).unwrap().into_iter();
        calls.map(|call| (call.duration_ms, call.predicted)).collect::<Vec<_>>()
    };
    assert_eq!(points("a", None, false), [(3, Some(predicted(30))), (1, Some(predicted(10)))]);
    assert_eq!((points("a", None, true), points("a", Some("m"), false)), (Vec::new(), Vec::new()));
}

pub(crate) fn sessions_are_listed_the_latest_first_page_by_page(sites: Sites) {
    let site = sites();
    let store = site.start();
    let sessions = ["a", "b", "a", "c", "d", "b", "d", "a", "e"];
    let call = |(number, session): (usize, &&str)| Execution {
        session: Some((*session).into()),
        tenant: if *session == "e" { "other" } else { "default" }.into(),
        outcome: if number == 0 { Outcome::Error } else { Outcome::Timeout },
        at_ms: 1_700_000_000_000 + number as i64,
        ..execution("t", None, 1, None)
    };
    append(&*store, sessions.iter().enumerate().map(call).collect()).unwrap();
    for limit in 1..6 {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = store.sessions(&SessionFilter { tenant: "default".into(), before, limit }).unwrap();
            assert!(page.sessions.len() <= limit);
            found.extend(page.sessions);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        let names: Vec<(&str, u64)> = found.iter().map(|row| (row.session.as_str(), row.calls)).collect();
        assert_eq!(names, [("a", 3), ("d", 2), ("b", 2), ("c", 1)], "{limit} a page");
        let first = &found[0];
        assert_eq!((first.errors, first.timeouts, first.last_ms - first.first_ms), (1, 2, 7));
    }
}

pub(crate) fn a_call_of_unknown_duration_is_its_session_s_alone(sites: Sites) {
    let site = sites();
    let store = site.start();
    let untimed = Execution { duration_ms: None, ..execution("a", None, 0, Some("k")) };
    let batch = vec![execution("a", None, 5, None), untimed.clone(), execution("b", None, 6, None)];
    let stored = append(&*store, batch).unwrap();
    assert_eq!(stored.samples, [Some(1), Some(1), Some(1)]);
    assert_eq!(append(&*store, vec![untimed]).unwrap().samples, [None], "told again");
    drop(store);
    let limits = ReplayLimits { per_key: 1, ..ReplayLimits::default() };
    let history = site.start().replay(limits).unwrap();
    let rows: Vec<_> = history.executions.iter().map(|row| (row.tool.as_str(), row.duration_ms)).collect();
    assert_eq!(rows, [("a", Some(5)), ("b", Some(6))]);
    assert!(history.counts.iter().all(|count| count.samples == 1), "{:?}", history.counts);
    assert_eq!(history.calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>(), ["a", "a", "b"]);
    assert!(history.transitions.iter().any(|transition| transition.prefix.before.as_deref() == Some("a")));
}

pub(crate) fn what_sessions_call_next_is_counted_and_read_back(sites: Sites) {
    let site = sites();
    let store = site.start();
    let call = |session: Option<&str>, tool: &str, outcome| Execution {
        session: session.map(Into::into),
        outcome,
        ..execution(tool, None, 1, None)
    };
    let (good, bad) = (Outcome::Success, Outcome::Error);
    append(&*store, vec![call(Some("s"), "a", good), call(Some("t"), "x", good), call(None, "y", good)]).unwrap();
    let stored = append(&*store, vec![call(Some("s"), "b", bad), call(Some("s"), "a", good)]).unwrap();
    let prefix = |before: Option<&str>, last: &str| Prefix { before: before.map(Into::into), last: last.into() };
    let changed: Vec<&Prefix> = stored.transitions.iter().map(|transition| &transition.prefix).collect();
    assert_eq!(changed, [&prefix(None, "a"), &prefix(Some("a"), "b"), &prefix(None, "b")]);
    let b = stored.transitions[0].followers.get("b").unwrap();
    assert_eq!((b.samples, b.successes), (1, 0));
    let other = Execution { tenant: "u".into(), ..call(Some("s"), "c", good) };
    assert!(append(&*store, vec![other]).unwrap().transitions.is_empty(), "another tenant's session");
    let again = append(&*store, vec![call(Some("s"), "b", good)]).unwrap();
    assert_eq!(again.transitions.last().unwrap().followers.get("b").unwrap().samples, 2);
    drop(store);
    let history = site.start().replay(ReplayLimits { of_sessions: 4, ..ReplayLimits::default() }).unwrap();
    let latest: Vec<Transition> = history.transitions.iter().rev().take(2).rev().cloned().collect();
    assert_eq!(latest, *again.transitions, "what is read back is what was handed out");
    assert_eq!(history.transitions.len(), 4);
    let calls: Vec<&str> = history.calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(calls, ["b", "a", "c", "b"]);
}

pub(crate) fn the_last_turns_of_a_session_are_kept_without_their_messages(sites: Sites) {
    let site = sites();
    let turn = |tenant: &str, session: &str, number: i64, state: &str| {
        let kept = KeptTurnNote { digest: digest(&format!("message {number}")), state: state.to_owned() };
        let (tenant, session) = (tenant.to_owned(), session.to_owned());
        Note::Turn(TurnNote { tenant, session, number, state: "{}".to_owned(), kept: Some(kept) })
    };
    let store = site.start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let note = |store: &dyn Store, notes: Vec<Note>| {
        runtime.block_on(store.note(notes).unwrap().durable()).unwrap();
    };
    let last = KEPT_TURNS + 3;
    note(&*store, (1..=last).map(|number| turn("default", "s", number, &number.to_string())).collect());
    note(&*store, vec![turn("default", "s", last, "taken"), turn("default", "other", 1, "o"), turn("u", "s", 1, "u")]);
    let unchanged =
        TurnNote { tenant: "default".into(), session: "s".into(), number: last, state: "{}".into(), kept: None };
    note(&*store, vec![Note::Turn(unchanged)]);
    drop(store);
    let store = site.start();
    let kept = |tenant: &str, session: &str| -> Vec<(i64, String)> {
        let turns = store.kept_turns(tenant, session).unwrap();
        turns.into_iter().map(|turn| (turn.number, turn.state)).collect()
    };
    let mut expected: Vec<(i64, String)> = (4..=last).rev().map(|number| (number, number.to_string())).collect();
    expected[0].1 = "taken".to_owned();
    assert_eq!(kept("default", "s"), expected);
    assert_eq!((kept("u", "s"), kept("u", "other")), (vec![(1, "u".to_owned())], Vec::new()));
}
