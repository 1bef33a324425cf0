use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::memory::stored::{Draft, Keys, StoredVersion};
use crate::store::memories::{Imported, Memories};
use crate::store::notes::{ChoiceNote, KeptTurnNote, Note, TurnNote, digest};
use crate::store::sqlite::{Options, Sqlite, file_in};
use crate::store::suite::memories::draft;
use crate::store::{Settings, Store};

/// Operations of the random history; ten times as many with `ALMANAC_LONG_TESTS`.
const OPERATIONS: usize = 1000;

/// Numbers that seem random, the same in every run (Marsaglia's xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// What a model of the store knows of a memory: whose it is, and its words, in each version.
#[derive(Debug, Clone)]
struct Known {
    versions: Vec<(usize, Vec<String>)>,
    deleted: bool,
}

/// A store under a random history, and the words that must be in none of its files, and in some.
struct World {
    directory: TempDir,
    store: Option<Sqlite>,
    dice: Dice,
    words: usize,
    known: BTreeMap<String, Known>,
}

const USERS: usize = 4;

fn start(directory: &Path) -> Sqlite {
    let settings = Settings { durability: crate::store::Durability::Crash, ..Settings::default() };
    Sqlite::start(Options { settings, ..Options::file(file_in(directory)) }, Box::new(|_, _| ())).unwrap()
}

fn user(number: usize) -> String {
    format!("user:user:u{number}")
}

impl World {
    fn new(seed: u64) -> Self {
        let directory = TempDir::new().unwrap();
        let store = Some(start(directory.path()));
        Self { directory, store, dice: Dice(seed), words: 0, known: BTreeMap::new() }
    }

    fn store(&self) -> &Sqlite {
        self.store.as_ref().unwrap()
    }

    /// Words that no other memory has, mostly few, at times more than a page of them.
    fn text(&mut self) -> Vec<String> {
        let count = if self.dice.below(20) == 0 { 400 + self.dice.below(900) } else { 1 + self.dice.below(30) };
        (0..count)
            .map(|_| {
                self.words += 1;
                // The number stands between letters, so that no word is the beginning of another.
                format!("zq{}w{}", self.words, "x".repeat(self.words % 9))
            })
            .collect()
    }

    fn draft(whose: usize, words: &[String], deleted: bool) -> Draft {
        let said = words.join(" ");
        let id = json!({"namespace": "user", "type": "user", "id": format!("u{whose}")});
        let first = words.first().cloned().unwrap_or_default();
        let metadata = json!({"userId": id, "title": first, "deep": {"x": words.last()}});
        let chat = Some(format!("chat:chat:c{}", whose % 2));
        let keys = Keys { user: Some(user(whose)), chat, ..Keys::default() };
        Draft { keys, deleted, links: vec![("relatedTo", first)], ..draft(&said, &metadata) }
    }

    fn pick(&mut self) -> Option<String> {
        let at = self.dice.below(self.known.len().max(1));
        self.known.keys().nth(at).cloned()
    }

    fn add(&mut self) {
        let (whose, words) = (self.dice.below(USERS), self.text());
        let message = words.join(" ");
        let added = self.store().add("t", Self::draft(whose, &words, false), None).unwrap().durable_blocking().unwrap();
        if self.dice.below(10) == 0 {
            let choice = ChoiceNote {
                tenant: "t".into(),
                tool: "a".into(),
                message: crate::text::head::head(&message, 2048).to_owned(),
                trust: 1.0,
                adaptation: vec![1],
            };
            let turn = TurnNote {
                tenant: "t".into(),
                session: added.memory.id.clone(),
                number: 0,
                state: json!({"message": choice.message}).to_string(),
                kept: None,
            };
            // The session has gone on since: only a turn that is kept says what else it was about.
            let earlier = TurnNote {
                number: 1,
                session: format!("{} on", added.memory.id),
                state: "{}".into(),
                kept: Some(KeptTurnNote { digest: digest(&message), state: choice.message.clone() }),
                ..turn.clone()
            };
            self.store().note(vec![Note::Choice(choice), Note::Turn(turn), Note::Turn(earlier)]).unwrap();
        }
        self.known.insert(added.memory.id, Known { versions: vec![(whose, words)], deleted: false });
    }

    fn import(&mut self) {
        let (whose, before, now) = (self.dice.below(USERS), self.text(), self.text());
        let id = format!("imported-{}", self.words);
        let earlier = Self::draft(whose, &before, false);
        let version = StoredVersion { version: 1, content: earlier.content, metadata: earlier.metadata, updated_us: 1 };
        let imported = Imported {
            id: Some(id.clone()),
            draft: Self::draft(whose, &now, false),
            version: 2,
            created_us: Some(1),
            updated_us: Some(2),
            history: vec![version],
        };
        self.store().import("t", vec![imported]).unwrap().durable_blocking().unwrap();
        self.known.insert(id, Known { versions: vec![(whose, before), (whose, now)], deleted: false });
    }

    /// Changes the words or the person, deletes softly, or restores.
    fn revise(&mut self) {
        let Some(id) = self.pick() else { return };
        let mut known = self.known[&id].clone();
        let (mut whose, mut words) = known.versions.last().unwrap().clone();
        match self.dice.below(4) {
            0 => known.deleted = !known.deleted,
            1 => whose = self.dice.below(USERS),
            _ => words = self.text(),
        }
        let version = self.store().get("t", &id).unwrap().unwrap().version;
        let draft = Self::draft(whose, &words, known.deleted);
        self.store().revise("t", &id, version, draft).unwrap().durable_blocking().unwrap();
        known.versions.push((whose, words));
        self.known.insert(id, known);
    }

    fn purge(&mut self) {
        let which = match self.dice.below(12) {
            0 => Purge::Person(user(self.dice.below(USERS))),
            1 => Purge::DeletedBefore(i64::MAX),
            2 if self.dice.below(8) == 0 => Purge::Everybody,
            _ => Purge::Ids(self.pick().into_iter().collect()),
        };
        let before: BTreeSet<String> = self.all_words();
        match &which {
            Purge::Ids(ids) => self.known.retain(|id, _| !ids.contains(id)),
            Purge::DeletedBefore(_) => self.known.retain(|_, known| !known.deleted),
            Purge::Everybody => self.known.clear(),
            Purge::NotedSince { .. } => unreachable!("it is not thrown"),
            Purge::Person(of) => {
                let is_of = |whose: usize| user(whose) == *of;
                self.known.retain(|_, known| !is_of(known.versions.last().unwrap().0));
                for known in self.known.values_mut() {
                    known.versions.retain(|(whose, _)| !is_of(*whose));
                }
            }
        }
        let what = format!("{which:?}");
        self.store().purge("t", which, |_| Vec::new()).unwrap().durable_blocking().unwrap();
        let left = self.all_words();
        let gone: BTreeSet<&String> = before.iter().filter(|word| !left.contains(*word)).collect();
        self.look(&gone, &what);
    }

    fn all_words(&self) -> BTreeSet<String> {
        let versions = self.known.values().flat_map(|known| &known.versions);
        versions.flat_map(|(_, words)| words.iter().cloned()).collect()
    }

    /// No file has one of these words.
    fn look(&self, gone: &BTreeSet<&String>, after: &str) {
        for file in std::fs::read_dir(self.directory.path()).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let mut left: Vec<String> = words_in(&bytes);
            left.retain(|word| gone.contains(word));
            assert!(left.is_empty(), "{} has {left:?} after {after}", path.display());
        }
    }

    fn restart(&mut self) {
        self.store = None;
        self.store = Some(start(self.directory.path()));
    }

    fn run(&mut self, operations: usize) {
        for _ in 0..operations {
            match self.dice.below(100) {
                0..=54 => self.add(),
                55..=59 => self.import(),
                60..=84 => self.revise(),
                85..=98 => self.purge(),
                _ => self.restart(),
            }
        }
        // What is left is what the model has, and it is found.
        for (id, known) in &self.known {
            let memory = self.store().get("t", id).unwrap().unwrap();
            assert_eq!(memory.content, known.versions.last().unwrap().1.join(" "));
            let (history, _) = self.store().history("t", id, u64::MAX, 1000).unwrap();
            assert_eq!(history.len(), known.versions.len() - 1, "{id}");
        }
        self.store().purge("t", Purge::Everybody, |_| Vec::new()).unwrap().durable_blocking().unwrap();
        let all: Vec<String> =
            (0..=self.words).map(|number| format!("zq{number}w{}", "x".repeat(number % 9))).collect();
        self.look(&all.iter().collect(), "everything");
    }
}

/// The words of the test in some bytes, whole or cut at their end.
fn words_in(bytes: &[u8]) -> Vec<String> {
    let starts = bytes.windows(2).enumerate().filter(|(_, pair)| pair == b"zq").map(|(at, _)| at);
    let word = |at: usize| {
        let digits = bytes[at + 2..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = &bytes[at + 2 + digits..];
        (digits > 0 && rest.first() == Some(&b'w')).then(|| {
            let number = std::str::from_utf8(&bytes[at + 2..at + 2 + digits]).unwrap().parse::<usize>().unwrap_or(0);
            format!("zq{number}w{}", "x".repeat(number % 9))
        })
    };
    starts.filter_map(word).collect()
}

#[test]
fn no_file_has_a_byte_of_what_was_purged() {
    let long = std::env::var_os("ALMANAC_LONG_TESTS").is_some();
    for seed in [88_172_645_463_325_252, 1, 20_261_122] {
        World::new(seed).run(if long { 10 * OPERATIONS } else { OPERATIONS / 3 });
    }
}

#[test]
fn who_reads_an_older_state_is_waited_for() {
    let directory = TempDir::new().unwrap();
    let store = start(directory.path());
    let add = |text: &str| store.add("t", draft(text, &Value::Null), None).unwrap().durable_blocking().unwrap().memory;
    let secret = add("a secret of some length");
    let reader = rusqlite::Connection::open(file_in(directory.path())).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM memories;").unwrap();
    let pending = store.purge("t", Purge::Ids(vec![secret.id.clone()]), |_| Vec::new()).unwrap();
    // Others write meanwhile, and what was purged is found no more.
    while store.get("t", &secret.id).unwrap().is_some() {
        add("another");
    }
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(pending.durable_blocking().unwrap().memories, 1);
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(8).any(|bytes| bytes == b"a secret"));
    }
}

#[test]
fn each_way_to_purge_looks_in_an_index() {
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    crate::store::sqlite::planned_once(&connection).unwrap();
    crate::store::sqlite::migrations::migrate(&mut connection).unwrap();
    for (sql, index) in [
        (OF_ID, "memories_by_id (tenant=? AND id=?)"),
        (DELETED, "memories_by_change (tenant=? AND kind=? AND deleted=? AND updated_us<?)"),
        (OF_TENANT, "memories_by_id (tenant=?)"),
        (OF_PERSON, "memories_by_user (tenant=? AND user_id=?)"),
        (OF_PERSON, "memories_by_user (tenant=? AND user_id>? AND user_id<?)"),
        (ONCE_OF_PERSON, "memory_history_by_user (tenant=? AND user_id=?)"),
        (ONCE_OF_PERSON, "memory_history_by_user (tenant=? AND user_id>? AND user_id<?)"),
    ] {
        let mut select = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let plan = select.query_map(params![1, 1, 1], |row| row.get::<_, String>(3)).unwrap();
        let plan = plan.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("\n");
        assert!(plan.contains(index) && !plan.contains("SCAN mem"), "{sql}: {plan}");
    }
}

#[test]
fn what_went_is_told_although_the_rest_failed() {
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    crate::store::sqlite::migrations::migrate(&mut connection).unwrap();
    let rows = "INSERT INTO memory_tenants (number, name) VALUES (1, 't');
         INSERT INTO memories (seq, tenant, id, kind, deleted, created_us, updated_us, version, metadata, content)
             VALUES (1, 1, 'a', 0, 0, 1, 1, 1, '{}', 'tea');
         INSERT INTO choices (tenant, tool, message, trust, at_us) VALUES ('t', 'a', 'tea', 1.0, 1);";
    connection.execute_batch(rows).unwrap();
    let (mut erasure, pending) = Erasure::new("t".into(), Purge::Everybody, |_| Vec::new());
    let transaction = connection.transaction().unwrap();
    while !erasure.step(&transaction, &mut Clock::default()).unwrap() {}
    transaction.commit().unwrap();
    let held = StoreError::Unavailable("held".into());
    erasure.acknowledge(Err(held.clone()));
    let mut texts = ForgottenTexts::default();
    texts.insert("tea");
    let told =
        Forgotten { memories: 1, texts: texts.into(), has_choices: true, failure: Some(held), ..Forgotten::default() };
    assert_eq!(pending.blocking_recv().unwrap(), Ok(told));
    assert_eq!(notes::choices(&connection, Some("t")).unwrap(), []);
}
