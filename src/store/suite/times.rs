//! What a store finds by the time that a text names, or asks for.

use serde_json::json;

use super::Sites;
use super::memories::{KIND, add, all, contents, draft, ids, index, text};
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
    let dates = NamedDates { whole: NamedDates::of("1970-01-02", &[]).whole, ..NamedDates::default() };
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

/// By the words of what it says, whoever says it; also where another order is asked for.
pub(crate) fn what_names_a_time_is_told_apart_where_one_is_asked_for(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    let said = |words: &str, speaker: &str| {
        let index = SearchKeys { speaker: speaker.into(), ..index(words) };
        add(store, "t", Draft { index, ..draft(words, &json!({})) }).unwrap();
    };
    said("move", "yesterday");
    said("move yesterday", "anna");
    said("move house", "anna");
    add(store, "u", draft("move yesterday too", &json!({}))).unwrap();
    let found = |is_time, sort| {
        let rank = |signals: &[_]| signals.iter().map(|of: &ScoreSignals| f64::from(u8::from(of.names_time))).collect();
        let text = TextQuery { is_time, rank, ..text(&["move"]) };
        store.search("t", &Search { text: Some(text), sort, descending: true, ..all(KIND) }).unwrap().hits
    };
    let is_time: fn(&str) -> bool = |term| term == "yesterday";
    for sort in [SortBy::Score, SortBy::Created] {
        let hits = found(Some(is_time), sort.clone());
        let named = hits.iter().filter(|hit| hit.score.is_some_and(|(score, of)| score > 0.5 && of.names_time));
        assert_eq!(contents(&named.cloned().collect::<Vec<_>>()), ["move yesterday"]);
        assert_eq!(hits.len(), 3);
        assert!(found(None, sort).iter().all(|hit| hit.score.is_some_and(|(_, of)| !of.names_time)));
    }
    assert_eq!(contents(&found(Some(is_time), SortBy::Score)[..1]), ["move yesterday"]);
}
