//! What a store does with the forms of a word.

use serde_json::json;

use super::Sites;
use super::memories::{KIND, add, all, draft, text};
use crate::memory::query::{Search, SortBy, TextQuery};

/// Whichever form a text has, it counts as the word, and as often as the text has any of them.
pub(crate) fn a_word_is_found_in_all_its_forms(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    for (tenant, said) in [
        ("in forms", ["meet tea", "met tea", "met meet", "tea tea"]),
        ("in one", ["meet tea", "meet tea", "meet meet", "tea tea"]),
    ] {
        for said in said {
            add(store, tenant, draft(said, &json!({}))).unwrap();
        }
    }
    let found = |tenant: &str| {
        let text = TextQuery { forms: vec![(1, "met")], ..text(&["coffee", "meet"]) };
        let search = Search { text: Some(text), sort: SortBy::Score, descending: true, ..all(KIND) };
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
    let (total, scores) = found("in forms");
    assert_eq!((total, &scores), (3, &found("in one").1));
    assert!(scores[0] == scores[1] && scores[1] < scores[2] && scores[2].ends_with(" 10"), "{scores:?}");
}
