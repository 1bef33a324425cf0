//! Every field of every kind over HTTP: it comes back, is found by, sorted by and checked.

use serde_json::{Map, Value, json};

use crate::daemon::Daemon;
use crate::memory::{add, contents, id, message, patch, search, start, with};

/// A field, two values in the order they sort in, and what is refused.
struct Field {
    path: &'static str,
    values: [Value; 2],
    bad: Vec<Value>,
    is_required: bool,
    /// Lists are found by what they hold and not sorted by; attachments are neither.
    is_scalar: bool,
}

fn field(path: &'static str, first: Value, second: Value, bad: &[Value]) -> Field {
    Field { path, values: [first, second], bad: bad.to_vec(), is_required: false, is_scalar: true }
}

fn needed(field: Field) -> Field {
    Field { is_required: true, ..field }
}

fn list(field: Field) -> Field {
    Field { is_scalar: false, ..field }
}

fn text(path: &'static str) -> Field {
    field(path, json!("aa"), json!("bb"), &[json!(7), json!(["aa"]), json!({})])
}

fn id_of(path: &'static str) -> Field {
    let bad = [json!("aa"), json!("a:b"), json!(7), json!({"namespace": "a", "type": "b"})];
    let versioned = json!({"namespace": "system", "type": "x", "id": "a:b", "version": 2});
    field(path, json!({"namespace": "agent", "type": "agent", "id": "z"}), versioned, &bad)
}

fn moment(path: &'static str) -> Field {
    let bad = [json!("tomorrow"), json!("2026-01-01"), json!("2026-01-01T00:00:00"), json!(7)];
    // The first is the earlier one, not the smaller text.
    field(path, json!("2026-01-02T00:30:00+01:00"), json!("2026-01-01T23:45:00Z"), &bad)
}

fn share(path: &'static str) -> Field {
    field(path, json!(0.0), json!(1.0), &[json!(-0.01), json!(1.01), json!("0.5")])
}

fn whole(path: &'static str) -> Field {
    field(path, json!(9), json!(10), &[json!(-1), json!(0.5), json!("9")])
}

fn duration(path: &'static str) -> Field {
    field(path, json!(9.5), json!(10), &[json!(-1), json!("9")])
}

fn names(path: &'static str) -> Field {
    let bad = [json!(7), json!([7]), json!(""), json!(["a\u{0}"]), json!(vec!["x"; 1001])];
    list(field(path, json!(["aa", "cc"]), json!(["bb"]), &bad))
}

/// Each word is taken; others are not.
fn word(path: &'static str, first: &str, second: &str) -> Field {
    field(path, json!(first), json!(second), &[json!("other"), json!(first.to_uppercase()), json!(7)])
}

fn base() -> Vec<Field> {
    vec![
        word("importance", "high", "low"),
        share("importance_score"),
        list(field("tags", json!(["aa", "cc"]), json!(["bb"]), &[json!("aa"), json!([7]), json!(vec!["x"; 257])])),
        field(
            "schemaVersion",
            json!("1.0.0"),
            json!("1.2.0"),
            &[json!("2.0.0"), json!("v1.0"), json!("1.0"), json!(1)],
        ),
    ]
}

fn fields(kind: &str) -> Vec<Field> {
    let own = match kind {
        "messages" => vec![
            needed(word("role", "assistant", "user")),
            needed(id_of("userId")),
            needed(id_of("agentId")),
            needed(id_of("chatId")),
            needed(field(
                "thread.id",
                json!("aa"),
                json!("bb"),
                &[json!(""), json!(7), json!("a\n"), json!("x".repeat(513))],
            )),
            needed(field(
                "thread.position",
                json!(9),
                json!(9_007_199_254_740_991_u64),
                &[json!(-1), json!(0.5), json!("9"), json!(9_007_199_254_740_992_u64)],
            )),
            field("thread.parentId", json!("aa"), json!("bb"), &[json!(""), json!(7)]),
            text("messageType"),
            list(field(
                "attachments",
                json!([{"type": "image", "url": "u"}]),
                json!([]),
                &[json!({}), json!([{}]), json!([{"type": 1}]), json!([{"type": "x", "uri": "u"}])],
            )),
            text("source"),
            text("category"),
            id_of("senderAgentId"),
            id_of("receiverAgentId"),
            word("communicationType", "broadcast", "request"),
            word("priority", "high", "urgent"),
            field("requiresResponse", json!(false), json!(true), &[json!("true"), json!(1)]),
        ],
        "cognitive-processes" => vec![
            needed(word("processType", "insight", "planning")),
            needed(id_of("agentId")),
            field("contextId", json!("aa"), json!("bb"), &[json!(""), json!(7)]),
            names("relatedTo"),
            names("influences"),
            names("influencedBy"),
            share("relevance"),
            text("source"),
            text("category"),
        ],
        "documents" => vec![
            needed(word("source", "api", "web")),
            needed(id_of("agentId")),
            id_of("userId"),
            text("title"),
            text("url"),
            text("contentType"),
            text("fileName"),
            whole("fileSize"),
            moment("creationDate"),
            moment("lastModified"),
            list(field("authors", json!(["aa", "cc"]), json!(["bb"]), &[json!("aa"), json!([7])])),
        ],
        "tasks" => vec![
            needed(text("title")),
            needed(word("status", "completed", "pending")),
            needed(word("priority", "low", "medium")),
            needed(id_of("agentId")),
            text("description"),
            id_of("assignedTo"),
            moment("dueDate"),
            moment("completedDate"),
            field("parentTaskId", json!("aa"), json!("bb"), &[json!(""), json!(7)]),
            share("progress"),
            duration("estimatedDuration"),
            duration("actualDuration"),
            whole("attemptCount"),
        ],
        _ => unreachable!("there are four kinds"),
    };
    own.into_iter().chain(base()).collect()
}

const KINDS: [&str; 4] = ["messages", "cognitive-processes", "documents", "tasks"];

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

fn set(metadata: &mut Value, path: &str, value: Value) {
    let merged = path.rsplit('.').fold(value, |value, key| json!({key: value}));
    let Some((key, inner)) = merged.as_object().and_then(|map| map.iter().next()) else { unreachable!() };
    match (metadata[key].as_object_mut(), path.contains('.')) {
        (Some(there), true) => there.extend(inner.as_object().unwrap().clone()),
        _ => metadata[key] = inner.clone(),
    }
}

/// Metadata of a kind with the first or second value of each field; of the two halves of an importance, one.
fn filled(kind: &str, which: usize, optional: bool) -> Value {
    let mut metadata = json!({});
    for field in fields(kind) {
        let is_wanted = field.is_required || (optional && !["importance_score"].contains(&field.path));
        if is_wanted {
            set(&mut metadata, field.path, field.values[which].clone());
        }
    }
    metadata
}

fn body(content: &str, metadata: &Value) -> Value {
    json!({"content": content, "metadata": metadata})
}

#[test]
fn every_field_comes_back_is_found_by_and_sorted_by() {
    let (_site, daemon) = start();
    for kind in KINDS {
        let (first, second) = (filled(kind, 0, true), filled(kind, 1, true));
        let mut bare = filled(kind, 0, false);
        if kind == "messages" {
            set(&mut bare, "thread.position", json!(20));
        }
        let kept = [add(&daemon, kind, &body("first", &first)), add(&daemon, kind, &body("second", &second))];
        add(&daemon, kind, &body("bare", &bare));
        for field in fields(kind) {
            let place = pointer(field.path);
            if field.path != "importance_score" {
                for (kept, value) in kept.iter().zip(&field.values) {
                    assert_eq!(kept["metadata"].pointer(&place), Some(value), "{kind} {place}");
                }
            }
            if field.path != "attachments" {
                is_found(&daemon, kind, &field);
            }
            if field.is_scalar {
                is_sorted(&daemon, kind, &field);
            }
        }
    }
}

fn is_found(daemon: &Daemon, kind: &str, field: &Field) {
    for (number, content) in ["first", "second"].into_iter().enumerate() {
        let value = match (field.path, &field.values[number]) {
            ("importance_score", _) => json!([0.75, 0.25][number]),
            (_, Value::Array(items)) => items.last().unwrap().clone(),
            (_, value) => value.clone(),
        };
        let found = search(daemon, kind, &json!({"criteria": {field.path: value}, "options": {"sortBy": "createdAt"}}));
        // The bare one has the first value of what is required, and the current schema.
        let has_bare =
            number == 0 && (field.is_required && field.path != "thread.position" || field.path == "schemaVersion");
        let expected = if has_bare { vec!["first", "bare"] } else { vec![content] };
        assert_eq!(contents(&found), expected, "{kind} {} is {value}", field.path);
        assert_eq!(found["total"], expected.len());
    }
    // What is refused in a memory is no criterion either, but for a list's items and texts of any form.
    if field.bad.contains(&json!(7)) {
        let asked = json!({"criteria": {field.path: 7}});
        let reply = daemon.post(&format!("/v1/memories/{kind}/search"), &asked.to_string());
        let place = format!("/criteria/{}", field.path);
        assert_eq!((reply.status, &reply.json()["errors"][0]["pointer"]), (422, &json!(place)), "{kind}");
    }
}

fn is_sorted(daemon: &Daemon, kind: &str, field: &Field) {
    for (direction, order) in [("asc", ["first", "second"]), ("desc", ["second", "first"])] {
        let swapped = field.path == "importance_score";
        let order = if swapped { [order[1], order[0]] } else { order };
        let options = json!({"sortBy": field.path, "sortDirection": direction});
        let found = search(daemon, kind, &json!({"options": options}));
        let found = contents(&found);
        let sorted: Vec<&str> = found.iter().copied().filter(|content| *content != "bare").collect();
        assert_eq!(sorted, order, "{kind} by {} {direction}", field.path);
        let is_missing = !field.is_required && field.path != "schemaVersion";
        assert!(!is_missing || found[2] == "bare", "{kind} by {} {direction}: {found:?}", field.path);
    }
}

#[test]
fn every_fault_of_a_field_is_refused_where_it_stands() {
    let (_site, daemon) = start();
    let check = |kind: &str, metadata: &Value, expected: &str, said: &str| {
        let reply = daemon.post(&format!("/v1/memories/{kind}"), &body("x", metadata).to_string());
        assert_eq!(reply.status, 422, "{kind} {metadata}: {}", reply.text());
        let errors = reply.json()["errors"].clone();
        let [error] = errors.as_array().unwrap().as_slice() else { panic!("{metadata}: {errors}") };
        let pointer = error["pointer"].as_str().unwrap();
        assert!(pointer == expected || pointer.starts_with(&format!("{expected}/")), "{kind} {metadata}: {errors}");
        assert!(error["detail"].as_str().unwrap().contains(said), "{kind} {metadata}: {errors}");
    };
    for kind in KINDS {
        let plain = filled(kind, 0, false);
        for field in fields(kind) {
            let place = format!("/metadata{}", pointer(field.path));
            for bad in &field.bad {
                let mut metadata = plain.clone();
                if field.path == "thread.parentId" {
                    set(&mut metadata, field.path, json!("p"));
                }
                set(&mut metadata, field.path, bad.clone());
                check(kind, &metadata, &place, "");
            }
            let (parent, key) = field.path.rsplit_once('.').map_or(("", field.path), |(parent, key)| (parent, key));
            let mut metadata = plain.clone();
            let inside = if parent.is_empty() { &mut metadata } else { &mut metadata[parent] };
            let inside: &mut Map<String, Value> = inside.as_object_mut().unwrap();
            let place = if parent.is_empty() { "/metadata".to_owned() } else { format!("/metadata/{parent}") };
            if field.is_required {
                inside.shift_remove(key);
                check(kind, &metadata, &place, &format!("`{key}`"));
            } else if !field.path.contains('.') {
                // A slip of the finger is not one's own key, and null is not there.
                let slip = format!("{key}z");
                inside.insert(slip.clone(), json!("x"));
                check(kind, &metadata, &format!("/metadata/{slip}"), &format!("did you mean `{key}`"));
                let mut metadata = plain.clone();
                metadata[key] = Value::Null;
                let kept = add(&daemon, kind, &body("null", &metadata));
                let there = kept["metadata"].get(key);
                assert_eq!(there, (key == "schemaVersion").then_some(&json!("1.0.0")), "{kind} {key}");
                let purge = json!({"ids": [id(&kept)]}).to_string();
                assert_eq!(daemon.admin("POST", "/-/memories/purge", purge.as_bytes()).json()["purged"], 1);
            }
        }
        assert_eq!(search(&daemon, kind, &json!({"options": {"includeDeleted": true}}))["total"], 0, "{kind}");
    }
}

#[test]
fn every_word_of_a_vocabulary_is_taken() {
    let (_site, daemon) = start();
    for (kind, key, words) in [
        ("messages", "role", "user assistant system tool"),
        ("messages", "importance", "low medium high critical"),
        ("messages", "communicationType", "request response notification broadcast"),
        ("messages", "priority", "low normal high urgent"),
        ("cognitive-processes", "processType", "thought reflection insight planning evaluation decision"),
        ("documents", "source", "file web api user agent tool system"),
        ("tasks", "status", "pending in_progress completed cancelled failed"),
        ("tasks", "priority", "low medium high urgent"),
    ] {
        for (number, word) in words.split(' ').enumerate() {
            let mut metadata = filled(kind, 0, false);
            if kind == "messages" {
                metadata["thread"] = json!({"id": key, "position": number});
            }
            metadata[key] = json!(word);
            add(&daemon, kind, &body(word, &metadata));
            let asked = json!({"criteria": {key: word}, "options": {"limit": 1}});
            let found = search(&daemon, kind, &asked);
            assert_eq!(found["memories"][0]["metadata"][key], word, "{kind} {key}");
        }
    }
}

#[test]
fn importance_tags_and_times_are_asked_for() {
    let (_site, daemon) = start();
    let mut added = Vec::new();
    for (position, (score, tags)) in
        [(0.1, vec!["a"]), (0.3, vec!["a", "b"]), (0.6, vec!["b"]), (0.9, vec![])].into_iter().enumerate()
    {
        let more = json!({"importance_score": score, "tags": tags});
        added.push(add(&daemon, "messages", &with(message(&score.to_string(), "t", position as u64), &more)));
    }
    add(&daemon, "messages", &message("none", "t", 9));
    let at = |number: usize| added[number]["createdAt"].clone();
    let check = |criteria: Value, expected: &str| {
        let found = search(&daemon, "messages", &json!({"criteria": criteria, "options": {"sortBy": "createdAt"}}));
        assert_eq!(contents(&found).join(" "), expected, "{criteria}");
    };
    check(json!({"minImportance": "low"}), "0.1 0.3 0.6 0.9");
    check(json!({"minImportance": "medium"}), "0.3 0.6 0.9");
    check(json!({"minImportance": "high"}), "0.6 0.9");
    check(json!({"minImportance": "critical"}), "0.9");
    check(json!({"minImportance": 0.31}), "0.6 0.9");
    check(json!({"minImportance": 0}), "0.1 0.3 0.6 0.9");
    check(json!({"tags": "b"}), "0.3 0.6");
    check(json!({"tags": ["a", "b"]}), "0.3");
    check(json!({"tags": []}), "0.1 0.3 0.6 0.9 none");
    check(json!({"from": at(1), "to": at(2)}), "0.3 0.6");
    check(json!({"to": at(0)}), "0.1");
    check(json!({"from": at(3), "minImportance": "low"}), "0.9");
    check(json!({"threadId": "t", "thread.position": 9}), "none");
    for (asked, expected) in [(64, 200), (65, 422)] {
        let asked = json!({"criteria": {"tags": vec!["a"; asked]}});
        assert_eq!(daemon.post("/v1/memories/messages/search", &asked.to_string()).status, expected);
    }
    let two = json!({"criteria": {"threadId": "t", "thread.id": "u"}});
    let reply = daemon.post("/v1/memories/messages/search", &two.to_string());
    assert_eq!((reply.status, &reply.json()["errors"][0]["pointer"]), (422, &json!("/criteria/threadId")));
    assert_eq!(patch(&daemon, id(&added[1]), &[], &json!({"content": "changed"})).status, 200);
    let latest = search(&daemon, "messages", &json!({"options": {"sortBy": "updatedAt", "sortDirection": "desc"}}));
    assert_eq!(contents(&latest)[0], "changed");
    let own = json!({"criteria": {"metadata.tags": "a"}});
    assert_eq!(search(&daemon, "messages", &own)["total"], 2, "a known field may be asked for as one's own");
}

#[test]
fn keys_of_one_s_own_are_found_by_and_sorted_by() {
    let (_site, daemon) = start();
    for (position, (name, own)) in [
        ("none", json!({})),
        ("text", json!({"mine": "2", "deep": {"est": "x"}})),
        ("list", json!({"mine": [2, "2", true]})),
        ("whole", json!({"mine": 2})),
        ("real", json!({"mine": 1.5})),
        ("false", json!({"mine": false})),
        ("true", json!({"mine": true})),
        ("null", json!({"mine": null})),
    ]
    .into_iter()
    .enumerate()
    {
        let kept = add(&daemon, "messages", &with(message(name, "t", position as u64), &own));
        assert_eq!(kept["metadata"].get("mine"), own.get("mine"), "{name}");
    }
    let check = |criteria: Value, expected: &str| {
        let found = search(&daemon, "messages", &json!({"criteria": criteria, "options": {"sortBy": "createdAt"}}));
        assert_eq!(contents(&found).join(" "), expected, "{criteria}");
    };
    check(json!({"metadata.mine": "2"}), "text list");
    check(json!({"metadata.mine": 2}), "list whole");
    check(json!({"metadata.mine": 1.5}), "real");
    check(json!({"metadata.mine": true}), "list true");
    check(json!({"metadata.mine": false}), "false");
    check(json!({"metadata.deep.est": "x"}), "text");
    check(json!({"metadata.mine": 2, "thread.position": 3}), "whole");
    for (direction, expected) in
        [("asc", "false true real whole text list none null"), ("desc", "text whole real true false list none null")]
    {
        let asked = json!({"options": {"sortBy": "mine", "sortDirection": direction}});
        let found = search(&daemon, "messages", &asked);
        let found = contents(&found);
        let (sorted, rest) = found.split_at(5);
        let mut rest = rest.to_vec();
        rest.sort_unstable();
        assert_eq!([sorted, rest.as_slice()].concat().join(" "), expected, "{direction}");
    }
    let deleted: Vec<String> = ["true", "none"]
        .into_iter()
        .map(|name| {
            let asked = json!({"options": {"limit": 200, "sortBy": "createdAt"}});
            let all = search(&daemon, "messages", &asked);
            let number = contents(&all).iter().position(|content| *content == name).unwrap();
            let path = format!("/v1/memories/{}", id(&all["memories"][number]));
            daemon.send("DELETE", &path, &[], b"").json()["content"].as_str().unwrap().to_owned()
        })
        .collect();
    let asked =
        json!({"options": {"sortBy": "deletion_time", "sortDirection": "desc", "includeDeleted": true, "limit": 2}});
    let latest: Vec<String> =
        contents(&search(&daemon, "messages", &asked)).into_iter().map(str::to_owned).rev().collect();
    assert_eq!(latest, deleted);
}

#[test]
fn what_is_purged_is_exactly_what_was_named() {
    let (_site, daemon) = start();
    let kept: Vec<Value> =
        (0..4).map(|position| add(&daemon, "messages", &message(&position.to_string(), "t", position))).collect();
    let purge = |body: Value| daemon.admin("POST", "/-/memories/purge", body.to_string().as_bytes());
    for body in
        [json!({}), json!({"all": false}), json!({"all": true, "ids": []}), json!({"ids": ["x"], "user": "a:b:c"})]
    {
        assert_eq!(purge(body.clone()).status, 422, "{body}");
    }
    assert_eq!(patch(&daemon, id(&kept[0]), &[], &json!({"content": "again"})).status, 200);
    assert_eq!(purge(json!({"ids": [id(&kept[0]), "none"]})).json()["purged"], 1);
    let path = format!("/v1/memories/{}", id(&kept[0]));
    assert_eq!(daemon.get(&format!("{path}?includeDeleted=true")).status, 404);
    assert_eq!(daemon.get(&format!("{path}/history?includeDeleted=true")).status, 404);
    let deleted = daemon.send("DELETE", &format!("/v1/memories/{}", id(&kept[1])), &[], b"").json();
    let moment = &deleted["metadata"]["deletion_time"];
    let created = &kept[1]["createdAt"];
    assert_eq!(purge(json!({"deletedBefore": created})).json()["purged"], 0, "deleted after that");
    assert!(moment.as_str() > created.as_str());
    assert_eq!(purge(json!({"deletedBefore": "2999-01-01T00:00:00Z"})).json()["purged"], 1, "only what is deleted");
    let left = search(&daemon, "messages", &json!({"options": {"includeDeleted": true, "sortBy": "thread.position"}}));
    assert_eq!(contents(&left), ["2", "3"]);
    let told = message("told", "t", 0).to_string();
    let tell = || {
        let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
        daemon.send("POST", "/v1/memories/messages", &headers, told.as_bytes())
    };
    let first = tell();
    assert_eq!((first.status, tell().status), (201, 200));
    assert_eq!(purge(json!({"ids": [first.json()["id"]]})).json()["purged"], 1);
    assert_eq!(tell().status, 201, "the key went with it");
    assert_eq!(purge(json!({"all": true})).json()["purged"], 3);
    assert_eq!(search(&daemon, "messages", &json!({"options": {"includeDeleted": true}}))["total"], 0);
}

#[test]
fn all_kinds_are_asked_for_by_what_each_of_them_means() {
    let (_site, daemon) = start();
    let due = |content: &str, due: &str| {
        let metadata = json!({
            "title": "t", "status": "pending", "priority": "low", "agentId": "agent:agent:a", "dueDate": due,
        });
        add(&daemon, "tasks", &body(content, &metadata));
    };
    due("late", "2030-11-27T06:00:00Z");
    due("early", "2030-11-27T10:00:00+05:00");
    add(&daemon, "messages", &message("said", "t", 0));
    let found = |asked: Value| {
        let reply = daemon.post("/v1/memories/search", &asked.to_string());
        assert_eq!(reply.status, 200, "{asked}: {}", reply.text());
        contents(&reply.json()).join(" ")
    };
    assert_eq!(found(json!({"options": {"sortBy": "dueDate"}})), "early late said");
    for key in ["dueDate", "due_date", "metadata.dueDate"] {
        assert_eq!(found(json!({"criteria": {key: "2030-11-27T05:00:00Z"}})), "early", "{key}");
    }
    let of_tasks = json!({"criteria": {"metadata.due_date": "2030-11-27T05:00:00Z"}});
    assert_eq!(contents(&search(&daemon, "tasks", &of_tasks)), ["early"]);
    let twice = json!({"criteria": {"metadata.due_date": "2030-11-27T05:00:00Z", "metadata.dueDate": "x"}});
    assert_eq!(daemon.post("/v1/memories/tasks/search", &twice.to_string()).status, 422);
    assert_eq!(found(json!({"criteria": {"metadata.chatId": "chat:chat:general"}})), "said");
    let chat = json!({"namespace": "chat", "type": "chat", "id": "general"});
    assert_eq!(found(json!({"criteria": {"metadata.chatId": chat}})), "said");
    let person = json!({"namespace": "user", "type": "user", "id": "john-doe"});
    assert_eq!(found(json!({"criteria": {"metadata.userId": person}})), "said");
    let nobody = json!({"criteria": {"metadata.userId": "john"}}).to_string();
    assert_eq!(daemon.post("/v1/memories/search", &nobody).status, 422);
    // Keys of one's own that are called like a field of another kind.
    let own = json!({"last_modified": "a day", "assignedTo": "bob"});
    add(&daemon, "messages", &with(message("own", "t", 1), &own));
    assert_eq!(found(json!({"criteria": {"metadata.last_modified": "a day"}})), "own");
    assert_eq!(found(json!({"criteria": {"metadata.assignedTo": "bob"}})), "own");
    assert_eq!(found(json!({"options": {"sortBy": "metadata.last_modified", "limit": 1}})), "own");
    let hint = |key: &str, part: &str| {
        let reply = daemon.post("/v1/memories/search", &json!({"criteria": {key: "x"}}).to_string());
        let said = reply.json()["errors"][0].to_string();
        assert!(reply.status == 422 && said.contains(part), "{said}");
    };
    hint("role", "a field of the kind `message`");
    hint("createdAt", "`from` and `to`");
    hint("isDeleted", "`options.includeDeleted`");
    hint("project", "`metadata.project`");
}
