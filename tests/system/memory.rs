//! Memories over HTTP: kept, found, changed, forgotten, and nobody else's.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Reply, Site, almanacd, document, wait_until};

const JSON: (&str, &str) = ("content-type", "application/json");

pub fn start() -> (Site, Daemon) {
    let site = Site::new();
    let daemon = site.start();
    (site, daemon)
}

pub fn message(content: &str, thread: &str, position: u64) -> Value {
    json!({"content": content, "metadata": {
        "role": "user", "userId": "user:user:john-doe", "agentId": "agent:agent:assistant",
        "chatId": "chat:chat:general", "thread": {"id": thread, "position": position},
    }})
}

/// The same with more metadata.
pub fn with(mut body: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        body["metadata"][key] = value.clone();
    }
    body
}

pub fn add(daemon: &Daemon, kind: &str, body: &Value) -> Value {
    let reply = daemon.post(&format!("/v1/memories/{kind}"), &body.to_string());
    assert_eq!(reply.status, 201, "{body}: {}", reply.text());
    reply.json()
}

pub fn id(memory: &Value) -> &str {
    memory["id"].as_str().unwrap()
}

pub fn search(daemon: &Daemon, kind: &str, body: &Value) -> Value {
    let reply = daemon.post(&format!("/v1/memories/{kind}/search"), &body.to_string());
    assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    reply.json()
}

pub fn contents(answer: &Value) -> Vec<&str> {
    let list = answer.get("memories").unwrap_or(&answer["items"]);
    list.as_array().unwrap().iter().map(|memory| memory["content"].as_str().unwrap()).collect()
}

pub fn patch(daemon: &Daemon, memory: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let headers = [headers, &[JSON]].concat();
    daemon.send("PATCH", &format!("/v1/memories/{memory}"), &headers, body.to_string().as_bytes())
}

fn pointers(reply: &Reply) -> Vec<String> {
    assert_eq!(reply.status, 422, "{}", reply.text());
    let problem = reply.json();
    problem["errors"].as_array().unwrap().iter().map(|error| error["pointer"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_examples_of_the_contract() {
    let (_site, daemon) = start();
    let greeting = add(
        &daemon,
        "messages",
        &json!({"content": "Hello, how can I help you today?", "metadata": {
            "role": "assistant",
            "userId": {"namespace": "user", "type": "user", "id": "john-doe"},
            "agentId": {"namespace": "agent", "type": "agent", "id": "assistant"},
            "chatId": {"namespace": "chat", "type": "chat", "id": "general"},
            "thread": {"id": "thread_1700000000000", "position": 0},
            "importance": "medium", "messageType": "greeting", "tags": ["initial-contact", "greeting"],
        }}),
    );
    assert_eq!((&greeting["kind"], &greeting["version"]), (&json!("message"), &json!(1)));
    assert_eq!(greeting["metadata"]["importance_score"], 0.5);
    assert_eq!(greeting["metadata"]["schemaVersion"], "1.0.0");
    let thought = add(
        &daemon,
        "cognitive-processes",
        &json!({"content": "The user seems to be asking about machine learning concepts.", "metadata": {
            "processType": "thought", "agentId": "agent:agent:assistant", "contextId": "conversation-123",
            "importance": "medium", "category": "reasoning", "tags": ["machine-learning", "explanation-planning"],
        }}),
    );
    assert_eq!(thought["metadata"]["agentId"], json!({"namespace": "agent", "type": "agent", "id": "assistant"}));
    for position in [2, 0, 11, 1, 10] {
        add(&daemon, "messages", &message(&format!("at {position}"), "thread-123", position));
    }
    add(&daemon, "messages", &message("elsewhere", "thread-124", 0));
    let sorted = json!({"criteria": {"threadId": "thread-123"}, "options": {
        "limit": 10, "sortBy": "thread.position", "sortDirection": "asc",
    }});
    let found = search(&daemon, "messages", &sorted);
    assert_eq!(contents(&found), ["at 0", "at 1", "at 2", "at 10", "at 11"]);
    assert_eq!((&found["total"], found.get("nextCursor")), (&json!(5), None));
}

#[test]
fn what_is_kept_is_what_was_given() {
    let (site, mut daemon) = start();
    let own = json!({"tags": ["a"], "mine": {"deep": [1, 2.5, null, "ü"]}, "z": false, "a": "first?"});
    let kept = add(&daemon, "messages", &with(message("x", "t", 0), &own));
    for (key, value) in own.as_object().unwrap() {
        assert_eq!(&kept["metadata"][key], value);
    }
    let wire = kept.to_string();
    daemon.child.kill().unwrap();
    daemon.wait();
    let daemon = site.start();
    assert_eq!(daemon.json(&format!("/v1/memories/{}", id(&kept))).to_string(), wire, "to the letter, after a kill");
    let linked = json!({"content": "x", "metadata": {
        "processType": "insight", "agentId": "agent:agent:a", "relatedTo": "one", "influences": ["two", "three"],
    }});
    let linked = add(&daemon, "cognitive-processes", &linked);
    assert_eq!(linked["metadata"]["relatedTo"], json!(["one"]), "a list on output");
    let asked =
        |criteria: Value| search(&daemon, "cognitive-processes", &json!({"criteria": criteria}))["total"].clone();
    assert_eq!(asked(json!({"relatedTo": "one", "influences": "three"})), 1, "a scalar matches membership");
    assert_eq!(asked(json!({"influences": "four"})), 0);
}

/// Each kind as it is added and as it comes back.
#[test]
fn each_kind_comes_back_as_pinned() {
    let (_site, daemon) = start();
    let golden: Value = serde_json::from_str(include_str!("memory.golden.json")).unwrap();
    for (kind, pair) in golden.as_object().unwrap() {
        let mut answer = add(&daemon, kind, &pair["request"]);
        for key in ["id", "createdAt", "updatedAt"] {
            assert!(answer[key].is_string(), "{answer}");
            answer[key] = json!("-");
        }
        assert_eq!(answer.to_string(), pair["answer"].to_string(), "{kind}");
    }
}

#[test]
fn every_fault_is_listed_and_nothing_is_kept() {
    let (_site, daemon) = start();
    let check = |kind: &str, body: Value, expected: &[&str]| {
        let reply = daemon.post(&format!("/v1/memories/{kind}"), &body.to_string());
        let mut found = pointers(&reply);
        found.sort();
        assert_eq!(found, expected, "{body}: {}", reply.text());
    };
    check(
        "messages",
        with(
            message("x", "t", 0),
            &json!({
                "role": "robot", "userId": "x", "chatId": 7, "thread": {"id": "", "position": -1}, "tagz": [],
                "importance": "high", "importance_score": 0.1, "is_deleted": true, "deletion_time": "now",
                "schemaVersion": "2.0.0", "priority": "medium", "requiresResponse": "yes", "attachments": [{"url": 1}],
            }),
        ),
        &[
            "/metadata/attachments/0",
            "/metadata/attachments/0/url",
            "/metadata/chatId",
            "/metadata/deletion_time",
            "/metadata/importance_score",
            "/metadata/is_deleted",
            "/metadata/priority",
            "/metadata/requiresResponse",
            "/metadata/role",
            "/metadata/schemaVersion",
            "/metadata/tagz",
            "/metadata/thread/id",
            "/metadata/thread/position",
            "/metadata/userId",
        ],
    );
    check(
        "tasks",
        json!({"content": "x", "metadata": {}, "extra": 1}),
        &["/extra", "/metadata", "/metadata", "/metadata", "/metadata"],
    );
    let task = json!({"title": "t", "status": "in progress", "priority": "critical", "agentId": "agent:agent:a",
        "progress": 1.5, "dueDate": "tomorrow", "estimatedDuration": -1, "attemptCount": 0.5});
    check(
        "tasks",
        json!({"content": "x", "metadata": task}),
        &[
            "/metadata/attemptCount",
            "/metadata/dueDate",
            "/metadata/estimatedDuration",
            "/metadata/priority",
            "/metadata/progress",
            "/metadata/status",
        ],
    );
    check(
        "documents",
        json!({"content": null, "metadata": {"source": "book", "agentId": "agent:agent:a:0"}}),
        &["/content", "/metadata/agentId", "/metadata/source"],
    );
    check("cognitive-processes", json!({"content": "x", "metadata": []}), &["/metadata"]);
    let long = "x".repeat(10_000);
    for bad in ["a\u{0}", long.as_str(), ""] {
        let id = json!({"namespace": "user", "type": "user", "id": bad});
        check("messages", with(message("x", "t", 0), &json!({"userId": id})), &["/metadata/userId"]);
        check("messages", message("x", bad, 0), &["/metadata/thread/id"]);
    }
    let deep = format!(r#"{{"content":"x","metadata":{{"a":{}{}}}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(daemon.post("/v1/memories/messages", &deep).status, 400);
    let wide = format!(r#"{{"content":"x","metadata":{{"a":"{}"}}}}"#, "x".repeat(5 << 20));
    assert_eq!(daemon.post("/v1/memories/messages", &wide).status, 413);
    for kind in ["messages", "tasks", "documents", "cognitive-processes"] {
        let everything = search(&daemon, kind, &json!({"options": {"includeDeleted": true}}));
        assert_eq!(everything["total"], 0, "{kind}");
    }
}

#[test]
fn odd_ids_are_the_same_in_both_forms() {
    let (_site, daemon) = start();
    for (number, odd) in ["a:b", "100%", "%3A", "ü ö", "a'; DROP TABLE memories; --"].into_iter().enumerate() {
        let object = json!({"namespace": "user", "type": "user", "id": odd, "version": 2});
        let text = format!("user:user:{}:2", odd.replace('%', "%25").replace(':', "%3A"));
        let thread = format!("t{number}");
        let from_object = add(&daemon, "messages", &with(message("o", &thread, 0), &json!({"userId": object})));
        let from_text = add(&daemon, "messages", &with(message("t", &thread, 1), &json!({"userId": text})));
        assert_eq!(from_object["metadata"]["userId"], from_text["metadata"]["userId"]);
        for user in [json!(text), object.clone()] {
            assert_eq!(search(&daemon, "messages", &json!({"criteria": {"userId": user}}))["total"], 2, "{user}");
        }
        let first = json!({"namespace": "user", "type": "user", "id": odd});
        assert_eq!(search(&daemon, "messages", &json!({"criteria": {"userId": first}}))["total"], 0);
    }
}

#[test]
fn a_change_is_a_new_version_and_no_update_is_lost() {
    let (_site, daemon) = start();
    let task = json!({"content": "c", "metadata": {"title": "t", "status": "pending", "priority": "low",
        "agentId": "agent:agent:a", "importance": "low", "mine": {"a": 1, "b": 2}}});
    let task = add(&daemon, "tasks", &task);
    let path = format!("/v1/memories/{}", id(&task));
    let tag = daemon.get(&path).header("etag").unwrap().to_owned();
    assert_eq!(daemon.send("GET", &path, &[("if-none-match", &tag)], b"").status, 304);
    let change = json!({"metadata": {"status": "completed", "progress": 1, "importance": "high", "mine": {"a": null}}});
    let reply = patch(&daemon, id(&task), &[("if-match", &tag)], &change);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let second = reply.json();
    assert_eq!(second["metadata"]["importance_score"], 0.75, "the other half follows");
    assert_eq!((&second["metadata"]["mine"], &second["version"]), (&json!({"b": 2}), &json!(2)));
    assert_ne!(second["updatedAt"], task["updatedAt"]);
    let lost = patch(&daemon, id(&task), &[("if-match", &tag)], &change);
    assert_eq!((lost.status, lost.code().as_str()), (412, "version-changed"));
    let faulty = json!({"content": 1, "metadata": {"status": null, "progress": 7, "is_deleted": true}, "x": 1});
    assert_eq!(pointers(&patch(&daemon, id(&task), &[], &faulty)), ["/content", "/metadata", "/x"]);
    let nothing = json!({"content": null, "metadata": null});
    assert_eq!(pointers(&patch(&daemon, id(&task), &[], &nothing)), ["/content", "/metadata"]);
    let faulty = json!({"metadata": {"status": null, "progress": 7}});
    assert_eq!(pointers(&patch(&daemon, id(&task), &[], &faulty)), ["/metadata", "/metadata/progress"]);
    let both = json!({"metadata": {"importance": "low", "importance_score": 0.9}});
    assert_eq!(pointers(&patch(&daemon, id(&task), &[], &both)), ["/metadata/importance_score"]);
    let history = daemon.json(&format!("{path}/history"));
    assert_eq!((&history["total"], &history["items"][0]["metadata"]), (&json!(1), &task["metadata"]));
    assert_eq!(daemon.json(&path), second, "what was refused left no trace");
}

#[test]
fn many_writers_of_one_memory_lose_nothing() {
    let (_site, daemon) = start();
    let memory = add(&daemon, "messages", &message("x", "t", 0));
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (daemon, memory) = (&daemon, &memory);
            scope.spawn(move || {
                let reply = patch(daemon, id(memory), &[], &json!({"metadata": {format!("by{writer}x"): writer}}));
                assert_eq!(reply.status, 200, "{}", reply.text());
            });
        }
    });
    let after = daemon.json(&format!("/v1/memories/{}", id(&memory)));
    assert_eq!(after["version"], 9);
    assert!((0..8).all(|writer| after["metadata"][format!("by{writer}x")] == writer), "{after}");
}

#[test]
fn deleted_is_found_by_nobody_who_does_not_ask() {
    let (_site, daemon) = start();
    let memory = add(&daemon, "messages", &message("zebra crossing", "t", 0));
    let path = format!("/v1/memories/{}", id(&memory));
    let reply = daemon.send("DELETE", &path, &[], b"");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["metadata"]["is_deleted"], true);
    assert!(reply.json()["metadata"]["deletion_time"].is_string());
    for (method, path) in [("GET", path.clone()), ("DELETE", path.clone()), ("GET", format!("{path}/history"))] {
        assert_eq!(daemon.send(method, &path, &[], b"").status, 404, "{method} {path}");
    }
    assert_eq!(daemon.get(&format!("{path}/relations")).status, 404);
    assert_eq!(patch(&daemon, id(&memory), &[], &json!({"content": "y"})).status, 404);
    assert_eq!(daemon.get("/v1/threads/t").status, 404);
    for options in [json!({}), json!({"query": "zebra"})] {
        assert_eq!(search(&daemon, "messages", &json!({"options": options}))["total"], 0);
        let mut options = options;
        options["includeDeleted"] = json!(true);
        assert_eq!(search(&daemon, "messages", &json!({"options": options}))["total"], 1);
    }
    assert_eq!(daemon.json(&format!("{path}?includeDeleted=true"))["version"], 2);
    let stale = daemon.send("POST", &format!("{path}/restore"), &[("if-match", "\"1\"")], b"");
    assert_eq!((stale.status, stale.code().as_str()), (412, "version-changed"));
    // Its place is free.
    let other = add(&daemon, "messages", &message("other", "t", 0));
    let restored = daemon.send("POST", &format!("{path}/restore"), &[], b"");
    assert_eq!((restored.status, restored.code().as_str()), (409, "position-taken"));
    assert_eq!(daemon.send("DELETE", &format!("/v1/memories/{}", id(&other)), &[], b"").status, 200);
    let restored = daemon.send("POST", &format!("{path}/restore"), &[], b"");
    assert_eq!((restored.status, &restored.json()["metadata"]), (200, &memory["metadata"]));
    assert_eq!(contents(&daemon.json("/v1/threads/t")), ["zebra crossing"]);
}

#[test]
fn threads_are_in_order_with_their_gaps() {
    let (_site, daemon) = start();
    for position in [7, 1, 0, 4] {
        add(&daemon, "messages", &message(&position.to_string(), "a/b c", position));
    }
    let twice = daemon.post("/v1/memories/messages", &message("x", "a/b c", 4).to_string());
    assert_eq!((twice.status, twice.code().as_str()), (409, "position-taken"));
    let thread = daemon.json("/v1/threads/a%2Fb%20c?limit=3");
    assert_eq!((contents(&thread), &thread["total"]), (vec!["0", "1", "4"], &json!(4)));
    assert_eq!(thread["gaps"], json!([{"from": 2, "to": 3}, {"from": 5, "to": 6}]));
    assert_eq!(thread["chatId"]["id"], "general");
    let cursor = thread["nextCursor"].as_str().unwrap();
    let rest = daemon.json(&format!("/v1/threads/a%2Fb%20c?cursor={cursor}&limit=1"));
    assert_eq!((contents(&rest), rest.get("nextCursor")), (vec!["7"], None));
    let elsewhere = with(message("other chat", "a/b c", 4), &json!({"chatId": "chat:chat:x"}));
    add(&daemon, "messages", &elsewhere);
    let reply = daemon.get("/v1/threads/a%2Fb%20c");
    assert_eq!((reply.status, reply.code().as_str()), (409, "ambiguous-thread"));
    assert_eq!(reply.json()["near"], json!(["chat:chat:general", "chat:chat:x"]));
    assert_eq!(contents(&daemon.json("/v1/threads/a%2Fb%20c?chatId=chat:chat:x")), ["other chat"]);
    assert_eq!(daemon.get("/v1/threads/a%2Fb%20c?chatId=x").status, 422);
    assert_eq!(daemon.get("/v1/threads/none").status, 404);
}

#[test]
fn relations_are_walked_from_both_ends() {
    let (_site, daemon) = start();
    let thought = |content: &str, more: Value| {
        let metadata = json!({"processType": "thought", "agentId": "agent:agent:a"});
        add(&daemon, "cognitive-processes", &with(json!({"content": content, "metadata": metadata}), &more))
    };
    let root = thought("root", json!({}));
    let child = thought("child", json!({"influencedBy": id(&root), "relatedTo": "nowhere"}));
    let grandchild = thought("grandchild", json!({"influencedBy": [id(&child), id(&root)]}));
    let cause = thought("cause", json!({"influences": [id(&root)]}));
    let ends = |memory: &Value, depth: usize| -> Vec<(String, String, u64)> {
        let relations = daemon.json(&format!("/v1/memories/{}/relations?depth={depth}", id(memory)));
        let of = |item: &Value| {
            let text = |key: &str| item[key].as_str().unwrap().to_owned();
            (text("id"), text("direction"), item["depth"].as_u64().unwrap())
        };
        relations["items"].as_array().unwrap().iter().map(of).collect()
    };
    let end = |memory: &Value, direction: &str, depth| (id(memory).to_owned(), direction.to_owned(), depth);
    assert_eq!(ends(&root, 1), [end(&child, "ledTo", 1), end(&grandchild, "ledTo", 1), end(&cause, "cameFrom", 1)]);
    assert_eq!(ends(&cause, 1), [end(&root, "ledTo", 1)]);
    assert_eq!(ends(&cause, 2), [end(&root, "ledTo", 1), end(&child, "ledTo", 2), end(&grandchild, "ledTo", 2)]);
    let dangling = &daemon.json(&format!("/v1/memories/{}/relations", id(&child)))["dangling"];
    assert_eq!(dangling, &json!([{"from": id(&child), "relation": "relatedTo", "target": "nowhere"}]));
    daemon.send("DELETE", &format!("/v1/memories/{}", id(&root)), &[], b"");
    let dangling = &daemon.json(&format!("/v1/memories/{}/relations", id(&cause)))["dangling"];
    assert_eq!(dangling[0]["target"], root["id"], "what was deleted is not there");
}

#[test]
fn pages_are_whole_and_cursors_their_own() {
    let (_site, daemon) = start();
    for position in 0..25 {
        add(&daemon, "messages", &with(message(&format!("m{position}"), "t", position), &json!({"tags": ["x"]})));
    }
    let body = |cursor: Option<&str>| json!({"criteria": {"tags": "x"}, "options": {"limit": 10, "cursor": cursor}});
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = search(&daemon, "messages", &body(cursor.as_deref()));
        assert_eq!(page["total"], 25);
        all.extend(contents(&page).into_iter().map(str::to_owned));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = Some(next.to_owned());
    }
    let newest_first: Vec<String> = (0..25).rev().map(|position| format!("m{position}")).collect();
    assert_eq!(all, newest_first);
    let last = search(&daemon, "messages", &json!({"options": {"limit": 5, "offset": 20}}));
    assert_eq!((last["memories"].as_array().unwrap().len(), last.get("nextCursor")), (5, None), "a full last page");
    let by_offset = search(&daemon, "messages", &json!({"options": {"offset": 20}}));
    assert_eq!(contents(&by_offset), ["m4", "m3", "m2", "m1", "m0"]);
    let cursor = cursor.unwrap();
    for (kind, body) in [
        ("messages", json!({"options": {"cursor": cursor}})),
        ("tasks", body(Some(&cursor))),
        ("messages", body(Some("00"))),
        ("messages", body(Some("'; DROP TABLE memories; --"))),
    ] {
        let reply = daemon.post(&format!("/v1/memories/{kind}/search"), &body.to_string());
        assert_eq!((reply.status, reply.code().as_str()), (422, "invalid-cursor"), "{body}");
    }
}

#[test]
fn a_total_is_counted_for_the_first_page_alone() {
    let (_site, daemon) = start();
    let tea = |number: u64| add(&daemon, "messages", &message(&format!("tea {number}"), "t", number));
    let mut kept: Vec<Value> = (0..5).map(tea).collect();
    let orders = [json!({}), json!({"sortBy": "thread.position"}), json!({"query": "tea"})];
    for (mut options, position) in orders.into_iter().zip(5..) {
        options["limit"] = json!(2);
        let page =
            |options: &Value| search(&daemon, "messages", &json!({"criteria": {"role": "user"}, "options": options}));
        let first = page(&options);
        let gone = std::mem::replace(&mut kept[4], tea(position));
        tea(position + 10);
        daemon.send("DELETE", &format!("/v1/memories/{}", id(&gone)), &[], b"");
        options["cursor"] = first["nextCursor"].clone();
        let later = page(&options);
        assert_eq!(later["total"], first["total"], "{options}");
        options["cursor"] = Value::Null;
        assert_eq!(page(&options)["total"], first["total"].as_u64().unwrap() + 1, "{options}");
    }
}

#[test]
fn texts_are_found_by_words_and_meaning_and_what_stands_beside() {
    let (_site, daemon) = start();
    for (position, text) in [
        "I adopted a dog from the shelter last week",
        "Congratulations! When exactly?",
        "Yes, on Tuesday",
        "The weather in Paris was rainy all month",
        "My new job as a nurse starts in May",
    ]
    .into_iter()
    .enumerate()
    {
        add(&daemon, "messages", &message(text, "t", position as u64));
    }
    let find = |query: &str| search(&daemon, "messages", &json!({"options": {"query": query, "explain": true}}));
    let best = |query: &str| contents(&find(query))[0].to_owned();
    assert_eq!(best("adopted dogs"), "I adopted a dog from the shelter last week");
    assert_eq!(best("forecast"), "The weather in Paris was rainy all month", "by meaning alone");
    let found = find("shelter");
    assert!(contents(&found)[..2].contains(&"Congratulations! When exactly?"), "beside what matches: {found}");
    let first = &found["memories"][0];
    assert_eq!(first["matched"], json!(["shelter"]));
    assert!(first["score"].as_f64() >= found["memories"][1]["score"].as_f64());
    assert!(first["explanation"]["words"].as_f64() > Some(0.0));
    assert_eq!(find("shelter"), found, "the same again");
    for harmless in ["\"", "*", "dog\" OR \"paris", "NEAR(dog paris)", "words:dog", "-", "^dog", "a AND (b", "';--"] {
        search(&daemon, "messages", &json!({"options": {"query": harmless}}));
    }
    assert_eq!(find("*** \" ()")["total"], 0);
    let filtered = json!({"criteria": {"role": "tool"}, "options": {"query": "dog"}});
    assert_eq!(search(&daemon, "messages", &filtered)["total"], 0);
    let sorted = json!({"options": {"query": "dog shelter paris weather", "sortBy": "thread.position", "limit": 1}});
    let page = search(&daemon, "messages", &sorted);
    assert_eq!(contents(&page), ["I adopted a dog from the shelter last week"]);
    let mut next = sorted.clone();
    next["options"]["cursor"] = page["nextCursor"].clone();
    assert_eq!(search(&daemon, "messages", &next)["total"], page["total"]);
}

#[test]
fn the_same_call_told_again_is_the_same_memory() {
    let (_site, daemon) = start();
    let tell = |key: &str, content: &str| {
        let body = message(content, "t", 0).to_string();
        daemon.send("POST", "/v1/memories/messages", &[JSON, ("idempotency-key", key)], body.as_bytes())
    };
    let first = tell("k", "x");
    let again = tell("k", "x");
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(first.json(), again.json());
    assert_eq!(tell("k", "y").code(), "idempotency-key-reused");
    assert_eq!(tell(&"k".repeat(300), "x").status, 400);
    assert_eq!(search(&daemon, "messages", &json!({}))["total"], 1);
}

fn token(site: &Site, tenant: &str, scopes: &str) -> String {
    let output = almanacd()
        .args(["token", "new", "--name", tenant, "--tenant", tenant, "--scopes", scopes, "--file"])
        .arg(site.path("tokens"))
        .output()
        .unwrap();
    assert!(output.status.success());
    format!("Bearer {}", String::from_utf8(output.stdout).unwrap().trim())
}

#[test]
fn another_tenant_s_memories_do_not_exist() {
    let site = Site::new();
    let (one, two, reader) = (token(&site, "one", "memory"), token(&site, "two", "memory"), token(&site, "r", "read"));
    site.configure(&format!("auth: {{tokens_file: {}}}\n", site.path("tokens").display()));
    let daemon = site.start();
    let send = |token: &str, method: &str, path: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        daemon.send(method, path, &[JSON, ("authorization", token)], body.as_bytes())
    };
    let add = |token: &str, body: &Value| send(token, "POST", "/v1/memories/messages", body).json();
    let mine = add(&one, &message("secret handshake", "t", 0));
    let path = format!("/v1/memories/{}", id(&mine));
    let link = json!({"content": "x", "metadata": {"processType": "thought", "agentId": "agent:agent:a",
        "relatedTo": id(&mine)}});
    let theirs = send(&two, "POST", "/v1/memories/cognitive-processes", &link).json();
    for (method, path, body) in [
        ("GET", path.clone(), json!(null)),
        ("GET", format!("{path}?includeDeleted=true"), json!(null)),
        ("GET", format!("{path}/history"), json!(null)),
        ("GET", format!("{path}/relations"), json!(null)),
        ("DELETE", path.clone(), json!(null)),
        ("PATCH", path.clone(), json!({"content": "x"})),
        ("POST", format!("{path}/restore"), json!(null)),
        ("GET", "/v1/threads/t".to_owned(), json!(null)),
    ] {
        assert_eq!(send(&two, method, &path, &body).status, 404, "{method} {path}");
    }
    for options in [json!({}), json!({"query": "secret handshake", "includeDeleted": true})] {
        let found = send(&two, "POST", "/v1/memories/messages/search", &json!({"options": options})).json();
        assert_eq!(found["total"], 0);
    }
    let relations = send(&two, "GET", &format!("/v1/memories/{}/relations", id(&theirs)), &json!(null)).json();
    assert_eq!((&relations["total"], &relations["dangling"][0]["target"]), (&json!(0), &mine["id"]));
    let relations = send(&one, "GET", &format!("{path}/relations"), &json!(null)).json();
    assert_eq!(relations["total"], 0, "nor does a link from there");
    add(&two, &message("the same place", "t", 0));
    assert_eq!(send(&one, "GET", &path, &json!(null)).status, 200);
    assert_eq!(send(&two, "GET", &format!("{path}?tenant=one"), &json!(null)).status, 403);
    assert_eq!(send(&reader, "GET", &path, &json!(null)).code(), "missing-scope");
    let admin = |tenant: &str| daemon.admin("GET", &format!("{path}?tenant={tenant}"), b"").status;
    assert_eq!((admin("one"), admin("two"), admin("default")), (200, 404, 404));
    let purged = daemon.admin("POST", "/-/memories/purge?tenant=two", br#"{"userId":"user:user:john-doe"}"#).json();
    assert_eq!(purged["purged"], 1);
    assert_eq!(send(&one, "GET", &path, &json!(null)).status, 200);
    assert_eq!(send(&one, "POST", "/-/memories/purge", &json!({"all": true})).status, 404);
}

#[test]
fn metadata_of_before_is_brought_up_to_date() {
    let (_site, daemon) = start();
    let old = json!({"content": "x", "metadata": {"schemaVersion": "0.9.0", "role": "ASSISTANT", "userId": "john",
        "agentId": "bot", "chatId": "general", "isPartOfThread": "t", "mood": "good"}});
    let kept = add(&daemon, "messages", &old);
    assert_eq!(kept["metadata"]["userId"], json!({"namespace": "user", "type": "user", "id": "john"}));
    assert_eq!(kept["metadata"]["thread"], json!({"id": "t", "position": 0}));
    assert_eq!((&kept["metadata"]["schemaVersion"], &kept["metadata"]["mood"]), (&json!("1.0.0"), &json!("good")));
}

#[test]
fn a_dead_database_is_said_and_nothing_is_taken() {
    let site = Site::new();
    fs::create_dir(site.path("state")).unwrap();
    fs::write(site.path("state/almanac.db"), "this is no database, but it is long enough to be one.".repeat(100))
        .unwrap();
    site.save("a.yaml", &document("a", "t"));
    let daemon = site.start();
    let body = message("x", "t", 0).to_string();
    for reply in [
        daemon.post("/v1/memories/messages", &body),
        daemon.post("/v1/memories/messages/search", "{}"),
        daemon.get("/v1/memories/x"),
        daemon.get("/v1/threads/t"),
    ] {
        assert_eq!((reply.status, reply.code().as_str()), (503, "store-unavailable"), "{}", reply.text());
        assert!(reply.json()["detail"].as_str().unwrap().contains("not a database"), "{}", reply.text());
    }
    assert_eq!(daemon.get("/v1/tools/a").status, 200, "the rest answers");
    fs::remove_file(site.path("state/almanac.db")).unwrap();
    wait_until("the database is made anew", || daemon.post("/v1/memories/messages", &body).status == 201);
    assert_eq!(search(&daemon, "messages", &json!({}))["total"], 1);
    assert!(daemon.metric(r#"almanac_memory_operations_total{operation="add",outcome="failed"}"#) >= Some(1.0));
}

#[test]
fn a_second_program_on_the_directory_is_refused() {
    let (site, _daemon) = start();
    let output = Command::new(env!("CARGO_BIN_EXE_almanacd"))
        .args(["recall", "messages", "--state-dir"])
        .arg(site.path("state"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is in use by another almanacd") && said.contains("--socket or --url"), "{said}");
}
