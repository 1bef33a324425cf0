//! What a store does with the forms of a word.

use serde_json::json;

use super::Sites;
use super::memories::{KIND, add, all, draft, index, text};
use crate::memory::query::{Filter, Search, SortBy, TextQuery};
use crate::memory::stored::{Draft, Keys, SearchKeys};

const USER: &str = "user:user:a";

/// Whichever form a text has, it counts as the word, and as often as the text has any of them. A speaker's name is in
/// the form that is asked for alone.
pub(crate) fn a_word_is_found_in_all_its_forms(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    for (tenant, said) in [
        ("in forms", ["meet tea", "met tea", "met meet", "tea tea"]),
        ("in one", ["meet tea", "meet tea", "meet meet", "tea tea"]),
    ] {
        for said in said {
            let keys = Keys { user: Some(USER.into()), ..Keys::default() };
            add(store, tenant, Draft { keys, ..draft(said, &json!({})) }).unwrap();
        }
        let index = SearchKeys { speaker: "met".into(), ..index("tea") };
        add(store, tenant, Draft { index, ..draft("tea", &json!({})) }).unwrap();
    }
    let everybody = all(KIND).filter;
    let of_user = Filter { user: Some(USER.into()), ..everybody.clone() };
    let found = |tenant: &str, filter: &Filter| {
        let text = TextQuery { forms: vec![(1, "met")], ..text(&["coffee", "meet"]) };
        let search =
            Search { text: Some(text), sort: SortBy::Score, descending: true, filter: filter.clone(), ..all(KIND) };
        let found = store.search(tenant, &search).unwrap();
        let mut scores: Vec<String> = found
            .hits
            .iter()
            .filter_map(|hit| hit.score)
            .map(|(score, signals)| format!("{score:.9} {:b}", signals.matched))
            .collect();
        scores.sort();
        (found.total, scores)
    };
    for filter in [&everybody, &of_user] {
        let (total, scores) = found("in forms", filter);
        assert_eq!((total, &scores), (3, &found("in one", filter).1));
        assert!(scores[0] == scores[1] && scores[1] < scores[2] && scores[2].ends_with(" 10"), "{scores:?}");
    }
}
