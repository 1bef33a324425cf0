//! What every store does with memories.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::Sites;
use crate::memory::named_date::NamedDates;
use crate::memory::query::{FieldPath, Filter, Found, Hit, Place, Search, SortBy, SortValue, TextQuery, Wanted};
use crate::memory::stored::{Draft, Keys, SearchKeys, StoredMemory, StoredVersion};
use crate::store::memories::{Acknowledged, Added, IdempotencyKey, Imported, Memories, MemoryError, Purge};
use crate::store::notes::{ChoiceNote, KeptTurnNote, TurnNote, digest};
use crate::store::{Note, ReplayLimits};
use crate::text::embedding::{Quantized, Table};

pub(crate) const KIND: u8 = 1;

pub(crate) fn index(words: &str) -> SearchKeys {
    let vector = Quantized::from(&Table::shipped().embed(words));
    SearchKeys { words: words.to_owned(), speaker: String::new(), vector }
}

pub(crate) fn draft(content: &str, metadata: &Value) -> Draft {
    Draft {
        kind: KIND,
        content: content.to_owned(),
        metadata: metadata.to_string(),
        deleted: false,
        keys: Keys { importance: metadata["importance_score"].as_f64(), ..Keys::default() },
        index: index(content),
        links: Vec::new(),
    }
}

pub(crate) fn placed(content: &str, chat: &str, thread: &str, position: u64) -> Draft {
    let keys = Keys { chat: Some(chat.into()), place: Some((thread.into(), position)), ..Keys::default() };
    Draft { keys, ..draft(content, &json!({"thread": {"id": thread, "position": position}})) }
}

pub(crate) fn add(store: &dyn Memories, tenant: &str, draft: Draft) -> Result<StoredMemory, MemoryError> {
    Ok(store.add(tenant, draft, None)?.durable_blocking()?.memory)
}

pub(crate) fn all(kind: u8) -> Search {
    Search {
        filter: Filter { kind: Some(kind), ..Filter::default() },
        text: None,
        sort: SortBy::Created,
        descending: true,
        begun: None,
        place: None,
        total: None,
        offset: 0,
        limit: 1000,
    }
}

pub(crate) fn contents(hits: &[Hit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.memory.content.as_str()).collect()
}

pub(crate) fn a_memory_is_there_after_a_restart(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    let memories: Vec<StoredMemory> =
        (0..20).map(|number| add(store, "t", draft(&format!("m{number}"), &json!({"x": number}))).unwrap()).collect();
    let mut ids: Vec<&String> = memories.iter().map(|memory| &memory.id).collect();
    assert!(memories.windows(2).all(|pair| pair[0].created_us < pair[1].created_us));
    ids.dedup();
    assert!(ids.is_sorted() && ids.len() == 20, "ids sort by the time they were made: {ids:?}");
    assert!(ids.iter().all(|id| id.parse::<uuid::Uuid>().unwrap().get_version_num() == 7));
    drop(kept);
    let kept = site.start();
    let store = kept.memories();
    for memory in &memories {
        assert_eq!(store.get("t", &memory.id).unwrap().as_ref(), Some(memory));
        assert_eq!(store.get("u", &memory.id).unwrap(), None, "another tenant's");
    }
    let found = store.search("t", &all(KIND)).unwrap();
    assert_eq!((found.total, contents(&found.hits)[0]), (20, "m19"));
    let later = Search { begun: Some(found.begun), total: Some(99), ..all(KIND) };
    assert_eq!(store.search("t", &later).unwrap().total, 99, "what was counted is not counted again");
    assert!(add(store, "t", draft("later", &json!({}))).unwrap().created_us > memories[19].created_us);
}

pub(crate) fn the_same_call_told_again_is_the_same_memory(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    let key = |digest: u8| Some(IdempotencyKey { key: "k".into(), digest: [digest; 32] });
    let add_with_key =
        |tenant: &str, digest| store.add(tenant, draft("a", &json!({})), key(digest)).unwrap().durable_blocking();
    let first = add_with_key("t", 1).unwrap();
    assert_eq!(add_with_key("t", 1).unwrap(), Added { is_new: false, ..first.clone() });
    assert_eq!(add_with_key("t", 2), Err(MemoryError::KeyReused("k".into())));
    assert!(add_with_key("u", 2).unwrap().is_new, "keys are a tenant's own");
    assert_eq!(store.search("t", &all(KIND)).unwrap().total, 1);
}

pub(crate) fn a_position_is_taken_once_and_a_refusal_fails_nobody_else(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    // All of these wait for one commit.
    let pending: Vec<_> = (0..40)
        .map(|number| store.add("t", placed(&number.to_string(), "c", "th", number % 10), None).unwrap())
        .collect();
    let outcomes: Vec<_> = pending.into_iter().map(Acknowledged::durable_blocking).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 10);
    assert!(
        outcomes
            .iter()
            .filter_map(|outcome| outcome.as_ref().err())
            .all(|error| matches!(error, MemoryError::Taken { .. }))
    );
    for (tenant, chat, thread) in [("u", "c", "th"), ("t", "d", "th"), ("t", "c", "other")] {
        add(store, tenant, placed("x", chat, thread, 3)).unwrap();
    }
    let third = store.thread("t", Some("c"), "th", 3, 1).unwrap().memories.remove(0);
    let gone = Draft { deleted: true, ..placed("3", "c", "th", 3) };
    store.revise("t", &third.id, 1, gone).unwrap().durable_blocking().unwrap();
    let thread = store.thread("t", Some("c"), "th", 0, 5).unwrap();
    assert_eq!((thread.total, thread.gaps.as_slice()), (9, &[(3, 3)][..]));
    assert_eq!(
        thread.memories.iter().map(|memory| memory.content.as_str()).collect::<Vec<_>>(),
        ["0", "1", "2", "4", "5"]
    );
    assert_eq!(store.thread("t", None, "th", 0, 5).unwrap().chats, ["c", "d"], "the name alone is not enough");
    add(store, "t", placed("again", "c", "th", 3)).unwrap();
    let back = store.revise("t", &third.id, 2, placed("3", "c", "th", 3)).unwrap().durable_blocking();
    assert!(matches!(back, Err(MemoryError::Taken { position: 3, .. })), "{back:?}");
}

pub(crate) fn a_change_keeps_the_old_version_and_refuses_a_lost_update(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    let first = add(store, "t", draft("one", &json!({"x": 1}))).unwrap();
    let revise = |version, content: &str| {
        store.revise("t", &first.id, version, draft(content, &json!({"x": 2}))).unwrap().durable_blocking()
    };
    let second = revise(1, "two").unwrap();
    assert_eq!((second.version, second.created_us), (2, first.created_us));
    assert!(second.updated_us > first.updated_us);
    assert_eq!(revise(1, "lost"), Err(MemoryError::Changed { id: first.id.clone(), found: 2 }));
    revise(2, "three").unwrap();
    let (history, total) = store.history("t", &first.id, u64::MAX, 10).unwrap();
    assert_eq!((total, history.iter().map(|past| past.content.as_str()).collect::<Vec<_>>()), (2, vec!["two", "one"]));
    assert_eq!(history[1].metadata, r#"{"x":1}"#);
    assert_eq!(store.history("t", &first.id, 2, 10).unwrap().0.len(), 1);
    assert_eq!(store.history("u", &first.id, 9, 10).unwrap(), (Vec::new(), 0));
    let unknown = store.revise("u", &first.id, 3, draft("x", &json!({}))).unwrap().durable_blocking();
    assert_eq!(unknown, Err(MemoryError::Unknown(first.id.clone())));
    let found = store.search("t", &Search { text: Some(text(&["two"])), ..all(KIND) }).unwrap();
    assert_eq!(found.total, 0, "an old text is not found any more");
}

pub(crate) fn text(terms: &[&str]) -> TextQuery {
    TextQuery {
        terms: terms.iter().map(ToString::to_string).collect(),
        forms: Vec::new(),
        vector: Quantized::from(&Table::shipped().embed(&terms.join(" "))),
        dates: NamedDates::default(),
        time_terms: None,
        // By words alone.
        like: 2.0,
        rank: |signals| signals.iter().map(|signals| signals.lexical).collect(),
    }
}

pub(crate) fn a_person_is_forgotten_in_every_version(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    for user in ["user:user:a", "user:user:a:2", "user:user:ab", "user:user:a%3Ab", "user:user:b"] {
        let keys = Keys { user: Some(user.into()), ..Keys::default() };
        add(store, "t", Draft { keys, ..draft(user, &json!({})) }).unwrap();
    }
    // Whose an earlier version was may be said by a text.
    let version = |version, metadata: Value| StoredVersion {
        version,
        content: format!("version {version}"),
        metadata: metadata.to_string(),
        updated_us: 1,
    };
    let imported = Imported {
        id: Some("moved".into()),
        draft: draft("moved", &json!({})),
        version: 4,
        created_us: Some(1),
        updated_us: Some(2),
        history: vec![
            version(1, json!({"userId": "user:user:a:3"})),
            version(2, json!({"userId": "user:user:b"})),
            version(3, json!({"userId": {"namespace": "user", "type": "user", "id": "a"}})),
        ],
    };
    for tenant in ["t", "u"] {
        let of_both = Imported { id: Some(format!("moved {tenant}")), ..imported.clone() };
        store.import(tenant, vec![of_both]).unwrap().durable_blocking().unwrap();
    }
    let forgotten =
        store.purge("t", Purge::Person("user:user:a".into()), |_| Vec::new()).unwrap().durable_blocking().unwrap();
    assert_eq!((forgotten.memories, forgotten.failure), (2, None));
    let versions = |tenant: &str| -> Vec<u64> {
        let (history, _) = store.history(tenant, &format!("moved {tenant}"), u64::MAX, 10).unwrap();
        history.iter().map(|version| version.version).collect()
    };
    assert_eq!((versions("t"), versions("u")), (vec![2], vec![3, 2, 1]));
    let moved = Purge::Ids(vec!["moved t".into()]);
    assert_eq!(store.purge("t", moved, |_| Vec::new()).unwrap().durable_blocking().unwrap().memories, 1);
    let left = store.search("t", &Search { descending: false, ..all(KIND) }).unwrap();
    assert_eq!(contents(&left.hits), ["user:user:ab", "user:user:a%3Ab", "user:user:b"]);
}

pub(crate) fn turns_that_are_kept_go_with_what_was_said_in_them(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    let said = add(store, "t", draft("find the tea", &json!({}))).unwrap();
    let turn = |tenant: &str, session: &str, message: &str| {
        let summary = KeptTurnNote { digest: digest(message), state: "{}".to_owned() };
        let (tenant, session) = (tenant.to_owned(), session.to_owned());
        Note::Turn(TurnNote { tenant, session, number: 1, state: "{}".to_owned(), kept: Some(summary) })
    };
    let notes = vec![
        turn("t", "said it", "find the tea"),
        turn("t", "said other", "find the coffee"),
        turn("u", "said it", "find the tea"),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(kept.note(notes).unwrap().durable()).unwrap();
    let forgotten = store.purge("t", Purge::Ids(vec![said.id]), |_| Vec::new()).unwrap().durable_blocking().unwrap();
    assert_eq!(forgotten.sessions, ["said it"]);
    let count = |tenant: &str, session: &str| kept.kept_turns(tenant, session).unwrap().len();
    assert_eq!((count("t", "said it"), count("t", "said other"), count("u", "said it")), (0, 1, 1));
}

pub(crate) fn what_is_noted_again_of_what_went_goes_as_well(sites: Sites) {
    let site = sites();
    let kept = site.start();
    kept.replay(ReplayLimits::default()).unwrap();
    let store = kept.memories();
    let said = add(store, "t", draft("find the tea", &json!({}))).unwrap();
    let forgotten = store.purge("t", Purge::Ids(vec![said.id]), |_| Vec::new()).unwrap().durable_blocking().unwrap();
    // Where it is not written at all before it is forgotten, it is forgotten now.
    kept.follow().unwrap();
    kept.has_forgotten();
    assert!(["find the tea", "find the", ""].map(|text| forgotten.texts.has(text)) == [true, false, false]);
    let turn = |session: &str, state: serde_json::Value, kept: Option<&str>| {
        let kept = kept.map(|message| KeptTurnNote { digest: digest(message), state: "{}".to_owned() });
        let (tenant, session) = ("t".to_owned(), session.to_owned());
        Note::Turn(TurnNote { tenant, session, number: 1, state: state.to_string(), kept })
    };
    let choice = |message: &str| {
        let (tenant, tool, message) = ("t".to_owned(), "a".to_owned(), message.to_owned());
        Note::Choice(ChoiceNote { tenant, tool, message, trust: 1.0, adaptation: vec![1] })
    };
    let notes = vec![
        turn("at it", json!({"message": "find the tea"}), None),
        turn("about it", json!({"message": "and milk", "said": ["find the tea", "and milk"]}), None),
        turn("was at it", json!({"message": "and sugar"}), Some("find the tea")),
        turn("at other", json!({"message": "find the coffee"}), Some("find the coffee")),
        turn("named", json!({}), None),
        choice("find the tea"),
        choice("find the coffee"),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(kept.note(notes).unwrap().durable()).unwrap();
    let noted = Purge::NotedSince { texts: forgotten.texts, sessions: vec!["named".to_owned(), "none".to_owned()] };
    let mut since = store.purge("t", noted, |_| Vec::new()).unwrap().durable_blocking().unwrap();
    since.sessions.sort();
    assert_eq!(since.sessions, ["about it", "at it", "named", "was at it"]);
    assert_eq!((since.memories, since.has_choices, since.failure), (0, true, None));
    let left = kept.replay(ReplayLimits::default()).unwrap().notes;
    assert_eq!(left.turns.iter().map(|turn| &*turn.session).collect::<Vec<_>>(), ["at other"]);
    let choices = left.choices.iter().map(|choice| (&*choice.message, choice.adaptation.len()));
    assert_eq!(choices.collect::<Vec<_>>(), [("find the coffee", 0)]);
}

pub(crate) fn an_archive_comes_back_as_it_was(sites: Sites) {
    let (from, to) = (sites(), sites());
    let (kept, copied) = (from.start(), to.start());
    let (source, target) = (kept.memories(), copied.memories());
    let first = add(source, "t", draft("one", &json!({"ü": [1.5, null]}))).unwrap();
    source.revise("t", &first.id, 1, draft("two", &json!({}))).unwrap().durable_blocking().unwrap();
    add(source, "t", Draft { deleted: true, ..draft("gone", &json!({})) }).unwrap();
    let archive = source.export("t", "", 10).unwrap();
    let batch = || -> Vec<Imported> {
        let line = |(memory, history): (StoredMemory, Vec<StoredVersion>)| Imported {
            id: Some(memory.id),
            draft: Draft { deleted: memory.deleted, metadata: memory.metadata, ..draft(&memory.content, &json!({})) },
            version: memory.version,
            created_us: Some(memory.created_us),
            updated_us: Some(memory.updated_us),
            history,
        };
        archive.clone().into_iter().map(line).collect()
    };
    assert_eq!(target.import("t", batch()).unwrap().durable_blocking(), Ok(2));
    assert_eq!(target.export("t", "", 10).unwrap(), archive);
    assert_eq!(target.import("t", batch()).unwrap().durable_blocking(), Ok(0), "they are there already");
    let mut other = batch();
    other[1].draft.content.push('!');
    other[0].id = None;
    assert!(matches!(target.import("t", other).unwrap().durable_blocking(), Err(MemoryError::Exists(_))));
    assert_eq!(target.export("t", "", 10).unwrap(), archive, "all or none");
}

/// The next page of a search, as the engine asks for it.
pub(crate) fn turned(search: &Search, found: &Found) -> Option<Search> {
    let last = found.hits.len().checked_sub(1)?;
    let place = match found.places.get(last) {
        Some(Place::Ranked { shown, last, .. }) => {
            Place::Ranked { rows: found.ranked.clone(), shown: *shown, last: *last }
        }
        _ => Place::After(found.hits[last].value.clone(), found.hits[last].memory.id.clone()),
    };
    Some(Search { begun: Some(found.begun), place: Some(place), ..search.clone() })
}

pub(crate) fn ids(hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| hit.memory.id.clone()).collect()
}

/// Metadata whose fields are in one order by each of them.
fn sortable(number: usize) -> Value {
    let id = json!({"namespace": "a", "type": "b", "id": format!("{number:04}")});
    json!({"x": number, "due": format!("2026-01-01T00:{:02}:{:02}Z", number / 60, number % 60), "owner": id})
}

pub(crate) fn pages_of_a_search_are_of_one_moment_whoever_writes_meanwhile(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    let path = |path: &str| FieldPath::parse(path).unwrap();
    let (by_x, by_due, by_owner) = (path("x"), path("due"), path("owner"));
    for (tenant, sort, descending, is_text) in [
        ("a", SortBy::Score, true, true),
        ("b", SortBy::Score, false, true),
        ("c", SortBy::Created, false, true),
        ("d", SortBy::Updated, false, true),
        ("e", SortBy::Field(by_x.clone()), false, true),
        ("f", SortBy::Created, false, false),
        ("g", SortBy::Updated, false, false),
        ("h", SortBy::Field(by_x.clone()), false, false),
        ("i", SortBy::Field(by_x), true, false),
        ("j", SortBy::Moment(by_due.clone()), false, false),
        ("k", SortBy::Moment(by_due), false, true),
        ("l", SortBy::Id(by_owner), true, false),
    ] {
        let number_of =
            |metadata: &str| serde_json::from_str::<Value>(metadata).unwrap()["x"].as_u64().unwrap() as usize;
        let all_of = |number: usize| draft(&format!("tea {number}"), &sortable(1000 + number));
        let written: Vec<StoredMemory> = (0..30).map(|number| add(store, tenant, all_of(number)).unwrap()).collect();
        let revise = |memory: &StoredMemory, metadata: &Value| {
            let draft = draft(&memory.content, metadata);
            store.revise(tenant, &memory.id, memory.version, draft).unwrap().durable_blocking().unwrap()
        };
        let text = is_text.then(|| text(&["tea"]));
        // Of all that this test has written, only the first are looked for.
        let to_us = written.last().map(|last| last.created_us).filter(|_| sort == SortBy::Created);
        let filter = Filter { to_us, ..all(KIND).filter };
        let mut search = Search { text, filter, sort, descending, limit: 7, ..all(KIND) };
        let before: Vec<String> = ids(&store.search(tenant, &Search { limit: 10_000, ..search.clone() }).unwrap().hits);
        let (mut seen, mut totals) = (Vec::new(), Vec::new());
        loop {
            let found = store.search(tenant, &search).unwrap();
            seen.extend(ids(&found.hits));
            totals.push(found.total);
            assert!(seen.len() <= before.len(), "it ends: {search:?}");
            let last = store.get(tenant, before.last().unwrap()).unwrap().unwrap();
            for number in 0..2 {
                add(store, tenant, draft(&format!("tea tea tea {number}"), &sortable(2000))).unwrap();
            }
            // What was shown is changed, as a loop's body may do, so that its place would be further on.
            for hit in &found.hits {
                let number = number_of(&hit.memory.metadata);
                revise(&hit.memory, &sortable(if descending { number - 500 } else { number + 500 }));
            }
            // What is still to be shown is changed in something else.
            if search.sort != SortBy::Updated && !seen.contains(&last.id) {
                let mut metadata: Value = serde_json::from_str(&last.metadata).unwrap();
                metadata["seen"] = json!(seen.len());
                revise(&last, &metadata);
            }
            let Some(next) = turned(&search, &found) else { break };
            search = next;
        }
        assert_eq!(seen, before, "{:?}", search.sort);
        if search.sort != SortBy::Updated {
            assert!(totals.iter().all(|total| *total == 30), "{:?}: {totals:?}", search.sort);
        }
    }
}

pub(crate) fn ids_sort_by_their_text_and_moments_by_time(sites: Sites) {
    let site = sites();
    let kept = site.start();
    let store = kept.memories();
    let id = |id: &str, version: Value| json!({"namespace": "agent", "type": "agent", "id": id, "version": version});
    for (content, due, to) in [
        ("a", json!("2026-01-01T12:00:00+02:00"), id("x", json!(2))),
        ("b", json!("2026-01-01T11:00:00Z"), id("x", Value::Null)),
        ("c", json!("2026-01-01T11:30:00.5+01:00"), id("b:c", Value::Null)),
        ("d", Value::Null, Value::Null),
    ] {
        add(store, "t", draft(content, &json!({"due": due, "to": to}))).unwrap();
    }
    let order = |sort: SortBy, descending: bool| {
        let found = store.search("t", &Search { sort, descending, ..all(KIND) }).unwrap();
        contents(&found.hits).concat()
    };
    let path = |path: &str| FieldPath::parse(path).unwrap();
    assert_eq!(order(SortBy::Moment(path("due")), false), "acbd");
    assert_eq!(order(SortBy::Moment(path("due")), true), "bcad");
    assert_eq!(order(SortBy::Id(path("to")), false), "cbad");
    assert_eq!(order(SortBy::Created, false), "abcd");
    let asked = |id: &str, version| {
        let wanted = Wanted::Id("agent".into(), "agent".into(), id.into(), version);
        let filter = Filter { fields: vec![(path("to"), wanted)], ..all(KIND).filter };
        contents(&store.search("t", &Search { filter, ..all(KIND) }).unwrap().hits).concat()
    };
    assert_eq!((asked("x", None), asked("x", Some(2)), asked("b:c", None)), ("b".into(), "a".into(), "c".into()));
}

/// A memory of the property test: its metadata, and whether it is deleted.
fn metadata() -> impl Strategy<Value = (Value, bool)> {
    let scalar = prop_oneof![
        (-3_i64..3).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(-0.5)].prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        prop::collection::vec("[ab]", 0..3).prop_map(Value::from),
        Just(json!({"k": "a"})),
    ];
    (
        prop::option::of(scalar.clone()),
        prop::option::of(scalar),
        prop::collection::vec("[ab]", 0..3),
        prop::option::of(prop_oneof![Just(0.1), Just(0.5), Just(0.9)]),
        any::<bool>(),
    )
        .prop_map(|(x, y, tags, score, deleted)| {
            let mut map = serde_json::Map::new();
            map.extend(x.map(|x| ("x".to_owned(), x)));
            map.extend(y.map(|y| ("deep".to_owned(), json!({"y": y}))));
            map.insert("tags".to_owned(), tags.into());
            map.extend(score.map(|score| ("importance_score".to_owned(), score.into())));
            (Value::Object(map), deleted)
        })
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![
        "[ab]{0,2}".prop_map(Wanted::Text),
        prop_oneof![Just(1.0), Just(0.0), Just(0.5)].prop_map(Wanted::Number),
        (-1_i64..3).prop_map(Wanted::Whole),
        any::<bool>().prop_map(Wanted::Bool),
    ]
}

/// The plainest reading of a filter.
fn passes(filter: &Filter, metadata: &Value, deleted: bool) -> bool {
    let at = |path: &FieldPath| path.keys().iter().try_fold(metadata, |value, key| value.get(key));
    let is = |wanted: &Wanted, value: &Value| match wanted {
        Wanted::Text(text) => value == text.as_str(),
        Wanted::Number(number) => value.as_f64() == Some(*number),
        Wanted::Whole(number) => value.as_f64() == Some(*number as f64),
        Wanted::Bool(truth) => value == &Value::Bool(*truth),
        Wanted::Id(..) | Wanted::Huge(_) | Wanted::Moment(_) => unreachable!("these are not tried here"),
    };
    let has = |(path, wanted): &(FieldPath, Wanted)| match at(path) {
        Some(Value::Array(items)) => items.iter().any(|item| is(wanted, item)),
        Some(value) => is(wanted, value),
        None => false,
    };
    (filter.include_deleted || !deleted)
        && filter.fields.iter().all(has)
        && filter.tags.iter().all(|tag| metadata["tags"].as_array().unwrap().contains(&json!(tag)))
        && filter
            .min_importance
            .is_none_or(|least| metadata["importance_score"].as_f64().is_some_and(|score| score >= least))
}

fn naive_value(path: &str, metadata: &Value) -> SortValue {
    match path.split('.').try_fold(metadata, |value, key| value.get(key)) {
        Some(Value::Number(number)) => {
            number.as_i64().map_or_else(|| SortValue::Real(number.as_f64().unwrap()), SortValue::Integer)
        }
        Some(Value::String(text)) => SortValue::Text(text.clone()),
        Some(Value::Bool(truth)) => SortValue::Integer((*truth).into()),
        _ => SortValue::Nothing,
    }
}

pub(crate) fn searches_answer_as_a_plain_filter_does(sites: Sites) {
    let cases = (
        prop::collection::vec(metadata(), 0..25),
        prop::collection::vec((prop_oneof![Just("x"), Just("deep.y"), Just("tags")], wanted()), 0..2),
        prop::collection::vec("[ab]", 0..2),
        prop::option::of(Just(0.5)),
        any::<bool>(),
        prop_oneof![Just("x"), Just("deep.y"), Just("importance_score"), Just("none")],
        any::<bool>(),
        1_usize..6,
    );
    let mut runner = TestRunner::new(ProptestConfig { cases: 40, ..ProptestConfig::default() });
    runner
        .run(&cases, |(memories, fields, tags, least, include_deleted, sort, descending, limit)| {
            let site = sites();
            let started = site.start();
            let store = started.memories();
            let mut kept = Vec::new();
            for (metadata, deleted) in &memories {
                let memory = add(store, "t", Draft { deleted: *deleted, ..draft("c", metadata) }).unwrap();
                add(store, "u", draft("c", metadata)).unwrap();
                kept.push((memory.id, metadata, *deleted));
            }
            let filter = Filter {
                kind: Some(KIND),
                fields: fields.into_iter().map(|(path, wanted)| (FieldPath::parse(path).unwrap(), wanted)).collect(),
                tags,
                min_importance: least,
                include_deleted,
                ..Filter::default()
            };
            let mut expected: Vec<(SortValue, &String)> = kept
                .iter()
                .filter(|(_, metadata, deleted)| passes(&filter, metadata, *deleted))
                .map(|(id, metadata, _)| (naive_value(sort, metadata), id))
                .collect();
            expected.sort_by(|a, b| a.0.compare(&b.0, descending).then_with(|| a.1.cmp(b.1)));
            let expected: Vec<&String> = expected.into_iter().map(|(_, id)| id).collect();
            let sort = SortBy::Field(FieldPath::parse(sort).unwrap());
            let mut search = Search { filter, sort, descending, limit, ..all(KIND) };
            let (mut by_cursor, mut by_offset) = (Vec::new(), Vec::new());
            loop {
                let found = store.search("t", &search).unwrap();
                prop_assert_eq!(found.total as usize, expected.len());
                let Some(last) = found.hits.last() else { break };
                search.place = Some(Place::After(last.value.clone(), last.memory.id.clone()));
                by_cursor.extend(found.hits.iter().map(|hit| hit.memory.id.clone()));
            }
            search.place = None;
            while search.offset <= expected.len() {
                by_offset.extend(store.search("t", &search).unwrap().hits.into_iter().map(|hit| hit.memory.id));
                search.offset += limit;
            }
            prop_assert_eq!(by_cursor.iter().collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(by_offset.iter().collect::<Vec<_>>(), expected);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}
