use serde_json::json;
use tempfile::TempDir;

use crate::memory::query::{FieldPath, Filter, Search, SortBy, TextQuery, Wanted};
use crate::memory::stored::{Draft, SearchKeys};
use crate::store::memories::{Imported, Memories, Purge};
use crate::store::postgres::tests::{is_installed, site};
use crate::store::sqlite::{Options, Sqlite, file_in};
use crate::store::suite::memories::{KIND, all, draft, index, placed, text};

const WORDS: [&str; 24] = [
    "tea", "milk", "sugar", "kettle", "rain", "walk", "castle", "river", "oil", "price", "market", "ship", "error",
    "compile", "borrow", "trait", "lifetime", "tokio", "song", "piano", "violin", "concert", "ticket", "queue",
];

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn words(&mut self, most: usize) -> String {
        let words: Vec<&str> = (0..=self.below(most)).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(" ")
    }
}

fn said(numbers: &mut Numbers, number: u64) -> Draft {
    let words = numbers.words(9);
    let speaker = ["", "ann", "tea"][numbers.below(3)].to_owned();
    let drafted = match numbers.below(3) {
        0 => draft(&words, &json!({"x": numbers.below(4), "tags": ["a"]})),
        place => placed(&words, &format!("c{place}"), "th", number),
    };
    Draft { index: SearchKeys { speaker, ..index(&words) }, ..drafted }
}

fn searches(numbers: &mut Numbers) -> Search {
    let terms: Vec<&str> = (0..=numbers.below(3)).map(|_| WORDS[numbers.below(WORDS.len())]).collect();
    let mut terms = terms;
    terms.sort_unstable();
    terms.dedup();
    let filter = match numbers.below(4) {
        0 => Filter { chat: Some("c1".into()), ..all(KIND).filter },
        1 => Filter {
            fields: vec![(FieldPath::parse("x").unwrap(), Wanted::Whole(numbers.below(4) as i64))],
            ..all(KIND).filter
        },
        2 => Filter { include_deleted: true, ..all(KIND).filter },
        _ => all(KIND).filter,
    };
    let sort = match numbers.below(5) {
        0 => SortBy::Created,
        1 => SortBy::Field(FieldPath::parse("x").unwrap()),
        _ => SortBy::Score,
    };
    let like = if numbers.below(2) == 0 { 0.3 } else { 2.0 };
    let other = WORDS[numbers.below(WORDS.len())];
    let forms = if terms.contains(&other) { Vec::new() } else { vec![(0, other)] };
    let text = TextQuery { like, forms, rank: crate::memory::rank::rank, ..text(&terms) };
    Search { filter, text: Some(text), sort, limit: 10, ..all(KIND) }
}

/// Does the same to both.
fn both<T: PartialEq + std::fmt::Debug>(stores: [&dyn Memories; 2], work: impl Fn(&dyn Memories) -> T) -> T {
    let [one, other] = stores.map(&work);
    assert_eq!(one, other);
    one
}

fn compare(stores: [&dyn Memories; 2], numbers: &mut Numbers, count: usize) {
    for _ in 0..count {
        let search = searches(numbers);
        let [one, other] = stores.map(|store| store.search("t", &search).unwrap());
        let ids = |found: &crate::memory::query::Found| {
            found.hits.iter().map(|hit| hit.memory.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!((ids(&one), one.total), (ids(&other), other.total), "{search:?}");
        for (a, b) in one.hits.iter().zip(&other.hits) {
            let (a, b) = (a.score.unwrap(), b.score.unwrap());
            assert!((a.0 - b.0).abs() < 1e-6 && a.1.matched == b.1.matched, "{a:?} {b:?} {search:?}");
        }
    }
}

#[test]
fn searches_find_what_they_find_on_sqlite() {
    if !is_installed() {
        return;
    }
    let (directory, site) = (TempDir::new().unwrap(), site());
    let sqlite = Sqlite::start(Options::file(file_in(directory.path())), Box::new(|_, _| ())).unwrap();
    let postgres = site.start();
    let stores = [&sqlite as &dyn Memories, postgres.memories()];
    let mut numbers = Numbers(7);
    let batch: Vec<Imported> = (0..150)
        .map(|number| Imported {
            id: Some(format!("id{number:03}")),
            draft: said(&mut numbers, number),
            version: 1,
            created_us: Some(1_700_000_000_000_000 + number as i64),
            updated_us: None,
            history: Vec::new(),
        })
        .collect();
    both(stores, |store| store.import("t", batch.clone()).unwrap().durable_blocking().unwrap());
    both(stores, |store| store.import("u", batch.clone()).unwrap().durable_blocking().unwrap());
    compare(stores, &mut numbers, 150);
    for changed in 0..40 {
        let id = format!("id{:03}", numbers.below(150));
        let next = Draft { deleted: changed % 5 == 0, ..said(&mut numbers, 1000 + changed) };
        both(stores, |store| {
            let version = store.get("t", &id).unwrap().unwrap().version;
            store.revise("t", &id, version, next.clone()).unwrap().durable_blocking().unwrap().version
        });
    }
    let gone: Vec<String> = (0..10).map(|_| format!("id{:03}", numbers.below(150))).collect();
    both(stores, |store| {
        store.purge("t", Purge::Ids(gone.clone()), |_| Vec::new()).unwrap().durable_blocking().unwrap().memories
    });
    compare(stores, &mut numbers, 150);
}
