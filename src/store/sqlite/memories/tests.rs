use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::memory::query::{Begun, FieldPath, Filter, Search, SortBy, SortValue};
use crate::store::sqlite::{Options, ageing, file_in};
use crate::store::suite::memories::{KIND, add, all, contents, draft, text};

fn start(directory: &TempDir) -> Sqlite {
    Sqlite::start(Options::file(file_in(directory.path())), Box::new(|_, _| ())).unwrap()
}

#[test]
fn a_key_is_remembered_for_seven_days() {
    for (days, is_new) in [(6_i64, false), (8, true)] {
        let directory = TempDir::new().unwrap();
        let add_with_key = |store: &Sqlite| {
            let key = IdempotencyKey { key: "k".into(), digest: [1; 32] };
            store.add("t", draft("a", &json!({})), Some(key)).unwrap().durable_blocking().unwrap().is_new
        };
        assert!(add_with_key(&start(&directory)));
        let file = rusqlite::Connection::open(file_in(directory.path())).unwrap();
        file.execute("UPDATE memory_keys SET at_ms = at_ms - ?1", [days * 24 * 60 * 60 * 1000]).unwrap();
        drop(file);
        ageing::let_pass(&file_in(directory.path()), Duration::from_secs(days.cast_unsigned() * 24 * 60 * 60));
        let store = start(&directory);
        // What is too old goes before the second write at the latest.
        add(&store, "t", draft("b", &json!({}))).unwrap();
        assert_eq!(add_with_key(&store), is_new, "after {days} days");
    }
}

#[test]
fn texts_are_found_in_the_tenant_s_own_and_purged_for_good() {
    let directory = TempDir::new().unwrap();
    let store = start(&directory);
    let first = add(&store, "t", draft("alpha beta", &json!({}))).unwrap();
    let second = add(&store, "t", draft("alpha gamma gamma", &json!({}))).unwrap();
    let find = |tenant: &str, terms: &[&str]| {
        let search = Search { text: Some(text(terms)), sort: SortBy::Score, ..all(KIND) };
        store.search(tenant, &search).unwrap()
    };
    let shown = |found: Found| (found.total, found.hits, found.begun.through);
    let alone = shown(find("t", &["gamma"]));
    for number in 0..50 {
        add(&store, "u", draft(&format!("gamma {number}"), &json!({}))).unwrap();
    }
    assert_eq!(shown(find("t", &["gamma"])), alone, "what others keep changes no score");
    assert_eq!(contents(&find("t", &["alpha", "gamma"]).hits), ["alpha gamma gamma", "alpha beta"]);
    assert_eq!(find("t", &["alpha", "gamma"]).hits[1].score.unwrap().1.matched, 0b01);
    assert_eq!(find("v", &["alpha"]).total, 0);
    let purge = |which| store.purge("t", which, |_| Vec::new()).unwrap().durable_blocking().map(|gone| gone.memories);
    assert_eq!(purge(Purge::Ids(vec![second.id.clone(), "none".into()])), Ok(1));
    assert_eq!(store.get("t", &second.id).unwrap(), None);
    assert_eq!(contents(&find("t", &["alpha", "gamma"]).hits), ["alpha beta"]);
    assert_eq!(find("u", &["gamma"]).total, 50);
    let forgotten = store.purge("t", Purge::Everybody, |_| Vec::new()).unwrap().durable_blocking().unwrap();
    assert_eq!(forgotten.memories, 1);
    assert_eq!(store.get("t", &first.id).unwrap(), None);
    drop(store);
    let file = std::fs::read(file_in(directory.path())).unwrap();
    assert!(!file.windows(10).any(|bytes| bytes == b"alpha beta"), "its text is still in the file");
}

#[test]
fn an_earlier_text_is_in_no_file_after_a_purge() {
    let directory = TempDir::new().unwrap();
    let store = start(&directory);
    for neighbour in 0..3 {
        add(&store, "t", draft(&format!("neighbour {neighbour}"), &json!({}))).unwrap();
    }
    let first = add(&store, "t", draft("a secret of some length", &json!({}))).unwrap();
    add(&store, "t", draft("another neighbour", &json!({}))).unwrap();
    // A longer one does not fit where the old one stood.
    store.revise("t", &first.id, 1, draft(&"x".repeat(300), &json!({}))).unwrap().durable_blocking().unwrap();
    // Who reads keeps the log from being emptied by whoever writes last.
    assert!(store.get("t", &first.id).unwrap().is_some());
    let purged = store.purge("t", Purge::Ids(vec![first.id]), |_| Vec::new()).unwrap().durable_blocking().unwrap();
    assert_eq!(purged.memories, 1);
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(8).any(|bytes| bytes == b"a secret"), "{}", path.display());
    }
}

#[test]
fn who_reads_keeps_nobody_from_writing() {
    let directory = TempDir::new().unwrap();
    let store = start(&directory);
    add(&store, "t", draft("one", &json!({}))).unwrap();
    let written = store
        .read(|transaction| {
            let count = || transaction.query_row("SELECT count(*) FROM memories", [], |row| row.get::<_, i64>(0));
            let before = count()?;
            // Acknowledged while the reader is in the middle of reading.
            let written = add(&store, "t", draft("two", &json!({})));
            assert_eq!(count()?, before, "it sees one state throughout");
            Ok(written)
        })
        .unwrap();
    assert!(written.is_ok());
    assert_eq!(store.search("t", &all(KIND)).unwrap().total, 2);
}

#[test]
fn a_full_disk_takes_nothing_and_keeps_nobody_from_reading() {
    let directory = TempDir::new().unwrap();
    let options = Options { max_pages: 120, ..Options::file(file_in(directory.path())) };
    let store = Sqlite::start(options, Box::new(|_, _| ())).unwrap();
    let mut kept = Vec::new();
    let refused = loop {
        match add(&store, "t", draft(&"many words ".repeat(300), &json!({"x": kept.len()}))) {
            Ok(memory) => kept.push(memory),
            Err(error) => break error,
        }
        assert!(kept.len() < 10_000, "the limit is never met");
    };
    assert!(
        matches!(&refused, MemoryError::Store(StoreError::Unavailable(why)) if why.contains("is full")),
        "{refused}"
    );
    let found = store.search("t", &all(KIND)).unwrap();
    assert_eq!(found.total as usize, kept.len(), "nothing of the refused one is there");
    let by_text = Search { text: Some(text(&["words"])), ..all(KIND) };
    assert_eq!(store.search("t", &by_text).unwrap().total as usize, kept.len());
}

#[test]
fn who_sorts_a_text_s_matches_by_a_field_gets_all_of_them() {
    let directory = TempDir::new().unwrap();
    let store = start(&directory);
    let (matches, others) = (1400, 3);
    let batch = (0..matches + others).map(|number| Imported {
        id: Some(format!("m{number:04}")),
        draft: draft(if number < matches { "green tea" } else { "red wine" }, &json!({"x": number * 9 % matches})),
        version: 1,
        created_us: Some(1),
        updated_us: None,
        history: Vec::new(),
    });
    store.import("t", batch.collect()).unwrap().durable_blocking().unwrap();
    let by_x = SortBy::Field(FieldPath::parse("x").unwrap());
    let search = Search { text: Some(text(&["tea"])), sort: by_x, limit: 3, ..all(KIND) };
    let found = store.search("t", &search).unwrap();
    let values: Vec<&SortValue> = found.hits.iter().map(|hit| &hit.value).collect();
    let last = matches - 1;
    assert_eq!(values, [last, last - 1, last - 2].map(SortValue::Integer).iter().collect::<Vec<_>>());
    assert_eq!(found.total, matches as u64);
    assert!(found.hits.iter().all(|hit| hit.score.is_some_and(|(_, signals)| signals.matched == 1)));
}

/// What the test has done to a memory.
struct Known {
    id: String,
    kind: u8,
    deleted: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Whatever comes, is deleted, restored and purged, before and after the first page.
    #[test]
    fn a_list_s_total_is_how_many_there_are(
        before in prop::collection::vec((0_u8..5, any::<prop::sample::Index>()), 1..12),
        after in prop::collection::vec((0_u8..5, any::<prop::sample::Index>()), 0..12),
    ) {
        let directory = TempDir::new().unwrap();
        let store = start(&directory);
        let mut known: Vec<Option<Known>> = Vec::new();
        let step = |known: &mut Vec<Option<Known>>, (what, which): (u8, prop::sample::Index)| {
            add(&store, "u", draft("another's", &json!({}))).unwrap();
            if what < 3 || known.is_empty() {
                let kind = KIND + what % 2;
                let added = add(&store, "t", Draft { kind, ..draft("a", &json!({})) }).unwrap();
                return known.push(Some(Known { id: added.id, kind, deleted: false }));
            }
            let chosen = which.get_mut(known);
            let Some(Known { id, kind, deleted }) = chosen else { return };
            if what == 3 {
                *deleted = !*deleted;
                let version = store.get("t", id).unwrap().unwrap().version;
                let turned = Draft { kind: *kind, deleted: *deleted, ..draft("a", &json!({})) };
                store.revise("t", id, version, turned).unwrap().durable_blocking().unwrap();
            } else {
                let which = Purge::Ids(vec![id.clone()]);
                store.purge("t", which, |_| Vec::new()).unwrap().durable_blocking().unwrap();
                *chosen = None;
            }
        };
        for one in before {
            step(&mut known, one);
        }
        let (begun, through) = (store.search("t", &all(KIND)).unwrap().begun, known.len());
        for one in after {
            step(&mut known, one);
        }
        for (kind, include_deleted, begun) in plain_lists(begun) {
            let filter = Filter { kind, include_deleted, ..Filter::default() };
            let search = Search { filter, begun, ..all(KIND) };
            let most = if begun.is_some() { through } else { known.len() };
            let is_meant = |one: &&Known| kind.is_none_or(|kind| kind == one.kind) && (include_deleted || !one.deleted);
            let expected = known[..most].iter().flatten().filter(is_meant).count() as u64;
            prop_assert_eq!(store.search("t", &search).unwrap().total, expected, "{:?}", search);
        }
    }
}

/// All that a plain list may be asked for, on its first page and later.
fn plain_lists(begun: Begun) -> impl Iterator<Item = (Option<u8>, bool, Option<Begun>)> {
    let kinds = [None, Some(KIND), Some(KIND + 1)].into_iter();
    let all = kinds.flat_map(|kind| [false, true].map(|include_deleted| (kind, include_deleted)));
    all.flat_map(move |(kind, include_deleted)| [None, Some(begun)].map(|begun| (kind, include_deleted, begun)))
}

#[test]
fn a_word_s_rarity_is_that_of_what_is_searched() {
    let directory = TempDir::new().unwrap();
    let store = start(&directory);
    let of_chat = |chat: &str, content: &str| {
        let keys = Keys { chat: Some(chat.into()), ..Keys::default() };
        Draft { keys, ..draft(content, &json!({})) }
    };
    // Everybody says `tea`; in one chat it is `milk` that everybody says.
    let large = (0..1200).map(|number| of_chat("large", if number % 40 == 0 { "milk" } else { "tea" }));
    let small = ["milk", "milk", "milk", "milk", "tea", "nothing"].map(|content| of_chat("small", content));
    let batch = large.chain(small).enumerate().map(|(number, draft)| Imported {
        id: Some(format!("m{number:04}")),
        draft,
        version: 1,
        created_us: Some(1),
        updated_us: None,
        history: Vec::new(),
    });
    store.import("t", batch.collect()).unwrap().durable_blocking().unwrap();
    let find = |chat: &str| {
        let filter = Filter { chat: Some(chat.into()), ..all(KIND).filter };
        let search = Search { filter, text: Some(text(&["tea", "milk"])), sort: SortBy::Score, ..all(KIND) };
        store.search("t", &search).unwrap()
    };
    assert_eq!(contents(&find("small").hits), ["tea", "milk", "milk", "milk", "milk"]);
    let large = find("large");
    assert_eq!((large.total, contents(&large.hits)[0]), (1200, "milk"));
}
