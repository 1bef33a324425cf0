//! What a store finds by the time that a text names, or asks for.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::json;

use time::Date;

use super::Sites;
use super::memories::{KIND, add, all, contents, draft, ids, index, text, turned};
use crate::memory::named_date::NamedDates;
use crate::memory::query::{Hit, ScoreSignals, Search, SortBy, TextQuery};
use crate::memory::stored::{Draft, SearchKeys};
use crate::store::memories::Imported;

pub(crate) fn what_was_added_on_a_named_day_is_found(sites: Sites) {
    const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    for (tenant, id, created_us) in [
        ("t", "before", DAY_US - 1),
        ("t", "first", DAY_US),
        ("t", "gone", DAY_US + 1),
        ("t", "last", 2 * DAY_US - 1),
        ("t", "after", 2 * DAY_US),
        ("u", "another's", DAY_US),
    ] {
        let added = Imported {
            id: Some(id.into()),
            draft: Draft { deleted: id == "gone", ..draft(id, &json!({})) },
            version: 1,
            created_us: Some(created_us),
            updated_us: Some(created_us),
            history: Vec::new(),
        };
        store.import(tenant, vec![added]).unwrap().durable_blocking().unwrap();
    }
    let dates = NamedDates::of("1970-01-02", &[], Date::MIN);
    let text = TextQuery {
        dates,
        rank: |signals| signals.iter().map(|signals| f64::from(u8::from(signals.is_of_date))).collect(),
        ..text(&["nothing"])
    };
    let found = store.search("t", &Search { text: Some(text), sort: SortBy::Score, ..all(KIND) }).unwrap();
    assert_eq!((ids(&found.hits), found.total), (vec!["first".to_owned(), "last".to_owned()], 2));
    let of_date = |hit: &Hit| hit.score.is_some_and(|(score, signals)| score > 0.5 && signals.is_of_date);
    assert!(found.hits.iter().all(of_date), "{found:?}");
}

/// By the words of what it says, whoever says it, and in any order; not far down, nor in what says this and that.
pub(crate) fn what_names_a_time_is_told_apart_where_one_is_asked_for(sites: Sites) {
    static TIMES: LazyLock<HashSet<String>> = LazyLock::new(|| HashSet::from(["yesterday".to_owned()]));
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    let said = |tenant: &str, words: &str, speaker: &str| {
        let index = SearchKeys { speaker: speaker.into(), ..index(words) };
        add(store, tenant, Draft { index, ..draft(words, &json!({})) }).unwrap();
    };
    said("t", "move", "yesterday");
    said("t", "move yesterday", "anna");
    said("t", "move house", "anna");
    said("t", &format!("move yesterday {}", "this and that ".repeat(40)), "anna");
    said("u", "move yesterday too", "");
    let found = |tenant: &str, time_terms, sort| {
        let rank = |signals: &[_]| {
            signals.iter().map(|of: &ScoreSignals| of.lexical + f64::from(u8::from(of.names_time))).collect()
        };
        let text = TextQuery { time_terms, rank, ..text(&["move"]) };
        let search = Search { text: Some(text), sort, descending: true, limit: 300, ..all(KIND) };
        store.search(tenant, &search).unwrap().hits
    };
    let naming = |hits: &[Hit]| -> Vec<String> {
        let naming = hits.iter().filter(|hit| hit.score.is_some_and(|(score, of)| score > 1.0 && of.names_time));
        naming.map(|hit| hit.memory.content.clone()).collect()
    };
    for sort in [SortBy::Score, SortBy::Created] {
        let hits = found("t", Some(&TIMES), sort.clone());
        assert_eq!((naming(&hits), hits.len()), (vec!["move yesterday".to_owned()], 4));
        assert!(found("t", None, sort).iter().all(|hit| hit.score.is_some_and(|(_, of)| !of.names_time)));
    }
    assert_eq!(contents(&found("t", Some(&TIMES), SortBy::Score)[..1]), ["move yesterday"]);
    let plain = || Imported {
        id: None,
        draft: draft("move", &json!({})),
        version: 1,
        created_us: None,
        updated_us: None,
        history: Vec::new(),
    };
    // A hundred match better than the first.
    store.import("u", (0..100).map(|_| plain()).collect()).unwrap().durable_blocking().unwrap();
    assert_eq!(naming(&found("u", Some(&TIMES), SortBy::Score)), [] as [String; 0]);
    said("u", "move yesterday", "");
    assert_eq!(naming(&found("u", Some(&TIMES), SortBy::Score)), [] as [String; 0]);
    // What comes later moves nothing on the pages of a search.
    said("v", "move yesterday", "");
    store.import("v", (0..99).map(|_| plain()).collect()).unwrap().durable_blocking().unwrap();
    let text = TextQuery { time_terms: Some(&TIMES), ..text(&["move"]) };
    let search = Search { text: Some(text), descending: true, limit: 99, ..all(KIND) };
    let first = store.search("v", &search).unwrap();
    store.import("v", (0..100).map(|_| plain()).collect()).unwrap().durable_blocking().unwrap();
    let second = store.search("v", &turned(&search, &first).unwrap()).unwrap();
    let [hit] = second.hits.as_slice() else { panic!("{second:?}") };
    assert!(hit.score.is_some_and(|(_, of)| of.names_time), "{hit:?}");
}
