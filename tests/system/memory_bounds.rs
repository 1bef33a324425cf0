//! Where memories end: pages, depths, circles, and what is too much.

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::memory::{add, contents, id, message, patch, search, start};

fn thought(id: &str, more: &Value) -> Value {
    let mut metadata = json!({"processType": "thought", "agentId": "agent:agent:a"});
    metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"id": id, "content": id, "metadata": metadata})
}

fn import(daemon: &Daemon, memories: &[Value]) -> (u16, Value) {
    let reply = daemon.admin("POST", "/-/memories/import", json!({"memories": memories}).to_string().as_bytes());
    (reply.status, reply.json())
}

fn relations(daemon: &Daemon, id: &str, depth: usize) -> Vec<String> {
    let answer = daemon.json(&format!("/v1/memories/{id}/relations?depth={depth}"));
    let items = answer["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let text = |key: &str| item[key].as_str().unwrap();
            format!("{} {} {} {} {}", text("id"), text("direction"), text("relation"), text("via"), item["depth"])
        })
        .collect()
}

#[test]
fn relations_go_in_circles_once_and_to_their_depth() {
    let (_site, daemon) = start();
    let circle = [
        thought("a", &json!({"influences": "b"})),
        thought("b", &json!({"influences": ["c", "b"]})),
        thought("c", &json!({"influences": "a", "relatedTo": "d"})),
        thought("d", &json!({})),
    ];
    assert_eq!(import(&daemon, &circle).0, 200);
    let near = ["b ledTo influences a 1", "c cameFrom influences a 1"];
    assert_eq!(relations(&daemon, "a", 1), near);
    let far = [near[0], near[1], "d related relatedTo c 2"];
    assert_eq!(relations(&daemon, "a", 2), far);
    assert_eq!(relations(&daemon, "a", 10), far);
    for (depth, status) in [("0", 422), ("11", 422), ("x", 422), ("1", 200)] {
        assert_eq!(daemon.get(&format!("/v1/memories/a/relations?depth={depth}")).status, status, "{depth}");
    }
    let task = |more: Value| {
        let mut metadata = json!({"title": "t", "status": "pending", "priority": "low", "agentId": "agent:agent:a"});
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        add(&daemon, "tasks", &json!({"content": "x", "metadata": metadata}))
    };
    let whole = task(json!({}));
    let part = task(json!({"parentTaskId": id(&whole)}));
    let said = |of: &Value, direction: &str, via: &Value| format!("{} {direction} parentTaskId {} 1", id(of), id(via));
    assert_eq!(relations(&daemon, id(&part), 1), [said(&whole, "cameFrom", &part)]);
    assert_eq!(relations(&daemon, id(&whole), 1), [said(&part, "ledTo", &whole)]);
}

#[test]
fn more_than_is_answered_is_said() {
    let (_site, daemon) = start();
    let many: Vec<Value> =
        (0..=1000).map(|number| thought(&format!("n{number:04}"), &json!({"relatedTo": "root"}))).collect();
    let (status, problem) = import(&daemon, &many);
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/memories")));
    assert_eq!(import(&daemon, &many[..1000]), (200, json!({"imported": 1000})));
    assert_eq!(import(&daemon, &many[..3]), (200, json!({"imported": 0})), "they are there already");
    assert_eq!(import(&daemon, &[thought("root", &json!({}))]).0, 200);
    let all = daemon.json("/v1/memories/root/relations");
    assert_eq!((&all["total"], &all["truncated"]), (&json!(1000), &json!(false)));
    assert_eq!(import(&daemon, &many[1000..]).0, 200);
    let most = daemon.json("/v1/memories/root/relations");
    assert_eq!((&most["total"], &most["truncated"]), (&json!(1000), &json!(true)));
    let mut changed = many[7].clone();
    changed["content"] = json!("another");
    let (status, problem) = import(&daemon, &[thought("new", &json!({})), changed]);
    assert_eq!((status, &problem["code"]), (409, &json!("memory-exists")));
    assert_eq!(daemon.get("/v1/memories/new").status, 404, "all or none");
    for faulty in [json!({"version": 0}), json!({"kind": "note"}), json!({"createdAt": "yesterday"}), json!({"id": ""})]
    {
        let mut line = thought("faulty", &json!({}));
        line.as_object_mut().unwrap().extend(faulty.as_object().unwrap().clone());
        assert_eq!(import(&daemon, &[line]).0, 422, "{faulty}");
    }
}

#[test]
fn what_is_imported_is_as_its_line_says() {
    let (_site, daemon) = start();
    let mut line = thought("old", &json!({"is_deleted": true, "deletion_time": "2026-03-01T00:00:00.000000Z"}));
    let times = json!({"version": 3, "kind": "cognitive_process", "createdAt": "2026-01-01T00:00:00.000000Z",
        "updatedAt": "2026-03-01T00:00:00.000000Z"});
    line.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
    let past = |version: u64, moment: &str| {
        json!({"version": version, "content": "before", "metadata": thought("",
        &json!({}))["metadata"], "updatedAt": moment})
    };
    line["history"] = json!([past(1, "2026-01-01T00:00:00.000000Z"), past(2, "2026-02-01T00:00:00.000000Z")]);
    assert_eq!(import(&daemon, &[line.clone()]).0, 200);
    assert_eq!(daemon.get("/v1/memories/old").status, 404, "it was deleted");
    let kept = daemon.json("/v1/memories/old?includeDeleted=true");
    for key in ["content", "kind", "version", "createdAt", "updatedAt"] {
        assert_eq!(kept[key], line[key], "{key}");
    }
    assert_eq!(kept["metadata"]["deletion_time"], line["metadata"]["deletion_time"]);
    let history = |more: &str| daemon.json(&format!("/v1/memories/old/history?includeDeleted=true{more}"));
    let first = history("&limit=1");
    assert_eq!((&first["total"], &first["items"][0]["updatedAt"]), (&json!(2), &line["history"][1]["updatedAt"]));
    let second = history(&format!("&limit=1&cursor={}", first["nextCursor"].as_str().unwrap()));
    assert_eq!((&second["items"][0]["version"], second.get("nextCursor")), (&json!(1), None));
    assert_eq!(daemon.get("/v1/memories/old?includeDeleted=maybe").status, 422);
    assert_eq!(daemon.get("/v1/memories/old/history?includeDeleted=true&limit=201").status, 422);
}

#[test]
fn a_place_is_taken_once_by_an_import_as_well() {
    let (_site, daemon) = start();
    let [first, second] = ["a", "b"].map(|name| message(name, "t", 0));
    let (status, problem) = import(&daemon, &[first.clone(), second]);
    assert_eq!((status, &problem["code"]), (409, &json!("position-taken")));
    assert_eq!(search(&daemon, "messages", &json!({}))["total"], 0, "all or none");
    let mut deleted = first.clone();
    deleted["metadata"]["is_deleted"] = json!(true);
    deleted["metadata"]["deletion_time"] = json!("2026-03-01T00:00:00Z");
    assert_eq!(import(&daemon, &[first, deleted]).0, 200, "what is deleted takes no place");
    let spread: Vec<Value> = (1..=1002).map(|number| message("x", "gaps", 2 * number)).collect();
    for batch in spread.chunks(501) {
        assert_eq!(import(&daemon, batch).0, 200);
    }
    let thread = daemon.json("/v1/threads/gaps?limit=1");
    let gaps = thread["gaps"].as_array().unwrap();
    assert_eq!((gaps.len(), &gaps[0], &gaps[1]), (1000, &json!({"from": 0, "to": 1}), &json!({"from": 3, "to": 3})));
    assert_eq!(thread["total"], 1002);
}

#[test]
fn what_names_a_version_holds_for_every_change() {
    let (_site, daemon) = start();
    let kept = add(&daemon, "messages", &message("x", "t", 0));
    let path = format!("/v1/memories/{}", id(&kept));
    let send = |method: &str, path: &str, tag: &str| daemon.send(method, path, &[("if-match", tag)], b"");
    assert_eq!(daemon.get(&path).header("etag"), Some("\"1\""));
    let restored = send("POST", &format!("{path}/restore"), "*");
    assert_eq!((restored.status, &restored.json()["version"]), (200, &json!(1)), "nothing was to be taken back");
    assert_eq!(patch(&daemon, id(&kept), &[("if-match", "\"2\"")], &json!({"content": "y"})).status, 412);
    assert_eq!(send("DELETE", &path, "\"2\"").status, 412);
    assert_eq!(send("DELETE", &path, "W/\"1\"").status, 412, "no version is named so");
    for tag in ["1", "zz", "\"", ""] {
        let reply = send("DELETE", &path, tag);
        assert_eq!((reply.status, reply.code().as_str()), (400, "invalid-if-match"), "{tag}: {}", reply.text());
    }
    let changed = patch(&daemon, id(&kept), &[("if-match", "*")], &json!({"content": "y"}));
    assert_eq!((changed.status, changed.header("etag")), (200, Some("\"2\"")));
    assert_eq!(send("DELETE", &path, "\"2\"").status, 200);
    assert_eq!(send("DELETE", &path, "\"3\"").status, 404);
}

#[test]
fn titles_descriptions_and_speakers_are_searched() {
    let (_site, daemon) = start();
    let agent = json!("agent:agent:zebulon");
    let document = json!({"content": "x", "metadata": {"source": "web", "agentId": agent, "title": "ostrich"}});
    add(&daemon, "documents", &document);
    add(&daemon, "documents", &json!({"content": "ostrich", "metadata": {"source": "web", "agentId": agent}}));
    let task = json!({"content": "x", "metadata": {"title": "walrus", "status": "pending", "priority": "low",
        "agentId": agent,
        "description": "mongoose"}});
    add(&daemon, "tasks", &task);
    for (position, role) in ["user", "assistant", "system", "tool"].into_iter().enumerate() {
        let mut said = message(role, role, position as u64);
        said["metadata"]["role"] = json!(role);
        said["metadata"]["userId"] = json!("user:user:yolanda");
        said["metadata"]["agentId"] = agent.clone();
        add(&daemon, "messages", &said);
    }
    let mut between = message("between", "between", 0);
    between["metadata"]["senderAgentId"] = json!("agent:agent:quentin");
    add(&daemon, "messages", &between);
    let check = |kind: &str, query: &str, expected: &[&str]| {
        let answer = search(&daemon, kind, &json!({"options": {"query": query}}));
        let memories = answer["memories"].as_array().unwrap().iter();
        let matched = memories.filter(|memory| memory["matched"] != json!([]));
        let mut found: Vec<&str> = matched.map(|memory| memory["content"].as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
    };
    check("documents", "ostrich", &["ostrich", "x"]);
    check("tasks", "walrus", &["x"]);
    check("tasks", "mongoose", &["x"]);
    check("messages", "yolanda", &["user"]);
    check("messages", "zebulon", &["assistant"]);
    check("messages", "quentin", &["between"]);
    check("messages", "john", &[]);
    let both = search(&daemon, "messages", &json!({"options": {"query": "quentin", "limit": 1}}));
    assert_eq!(contents(&both), ["between"]);
}

#[test]
fn what_stands_beside_lends_a_share_and_no_more() {
    let (_site, daemon) = start();
    for (position, (content, role)) in
        [("the shelter has dogs", "tool"), ("", "tool"), ("", "system"), ("", "tool"), ("dogs", "tool")]
            .into_iter()
            .enumerate()
    {
        let mut said = message(content, "t", position as u64);
        said["metadata"]["role"] = json!(role);
        add(&daemon, "messages", &said);
    }
    let find = |criteria: Value| {
        let asked = json!({"criteria": criteria, "options": {"query": "shelter", "explain": true}});
        search(&daemon, "messages", &asked)
    };
    let positions = |answer: &Value| -> Vec<u64> {
        let memories = answer["memories"].as_array().unwrap().iter();
        memories.map(|memory| memory["metadata"]["thread"]["position"].as_u64().unwrap()).collect()
    };
    let found = find(json!({}));
    assert_eq!(positions(&found)[..2], [0, 1], "an empty one beside what matches");
    assert!(!positions(&found).contains(&2) && !positions(&found).contains(&3), "and no further: {found}");
    let [itself, beside] = [0, 1].map(|number| found["memories"][number]["explanation"].clone());
    assert_eq!((&beside["words"], &beside["meaning"]), (&json!(0.0), &json!(0.0)));
    assert_eq!(beside["nearMeaning"], itself["meaning"]);
    let words = |of: &Value, key: &str| of[key].as_f64().unwrap();
    assert!(0.0 < words(&beside, "nearWords") && words(&beside, "nearWords") < words(&itself, "words"), "{found}");
    assert_eq!((&itself["nearWords"], &itself["nearMeaning"]), (&json!(0.0), &json!(0.0)));
    assert_eq!(find(json!({"role": "system"}))["total"], 0, "none beside it passes");
    assert_eq!(positions(&find(json!({"thread.position": 0}))), [0], "what stands beside it does not pass");
    assert_eq!(positions(&find(json!({"role": "tool"})))[..2], [0, 1]);
    let named = message("whatever", "u", 0);
    let path = format!("/v1/memories/{}", id(&add(&daemon, "messages", &named)));
    daemon.send("DELETE", &path, &[], b"");
    add(&daemon, "messages", &message("zebra", "u", 1));
    let asked = json!({"options": {"query": "zebra"}});
    assert_eq!(contents(&search(&daemon, "messages", &asked)), ["zebra"], "what is deleted stands beside nothing");
}

#[test]
fn what_was_added_on_a_named_day_is_found() {
    let (_site, daemon) = start();
    let memories: Vec<Value> = [
        ("lunch", "the soup was cold", "2025-05-08T12:00:00Z"),
        ("call", "the boat sails at noon", "2025-05-08T23:59:59Z"),
        ("next", "we agreed on nothing", "2025-05-09T00:00:00Z"),
        ("year", "another boat was sold", "2024-05-08T12:00:00Z"),
    ]
    .into_iter()
    .map(|(id, content, at)| {
        let mut said = message(content, id, 0);
        said.as_object_mut().unwrap().extend([("id".to_owned(), json!(id)), ("createdAt".to_owned(), json!(at))]);
        said
    })
    .collect();
    assert_eq!(import(&daemon, &memories).0, 200);
    let find = |query: &str, sort: &str| {
        let options = json!({"query": query, "explain": true, "sortBy": sort});
        search(&daemon, "messages", &json!({"options": options}))
    };
    let ids = |answer: &Value| -> Vec<String> {
        answer["memories"].as_array().unwrap().iter().map(|memory| id(memory).to_owned()).collect()
    };
    for day in ["8 May 2025", "2025-05-08", "08.05.2025", "May 8th, 2025"] {
        let found = find(&format!("what happened on {day}?"), "score");
        let mut first = ids(&found)[..2].to_vec();
        first.sort();
        assert_eq!(first, ["call", "lunch"], "{day}: {found}");
        let of_date = |number: usize| found["memories"][number]["explanation"]["ofNamedDate"] == true;
        assert!(of_date(0) && of_date(1) && !of_date(2), "{found}");
        assert_eq!(found["total"], ids(&found).len(), "{found}");
    }
    assert_eq!(ids(&find("the boat of 8 May 2025", "score"))[0], "call");
    let any_year = find("boat 8 May", "score");
    assert_eq!(ids(&any_year), ["call", "year", "lunch"], "of any year");
    let month = find("the boat in May 2025", "score");
    assert_eq!((&ids(&month)[0], ids(&month).len()), (&"call".to_owned(), 4), "{month}");
    let pages = |query: &str| {
        let first = json!({"options": {"query": query, "limit": 2}});
        let first = search(&daemon, "messages", &first);
        let options = json!({"query": query, "limit": 2, "cursor": first["nextCursor"]});
        [ids(&first), ids(&search(&daemon, "messages", &json!({"options": options})))].concat()
    };
    assert_eq!(pages("boat 8 May"), ids(&any_year), "on pages, too");
    let elsewhere = json!({"criteria": {"role": "system"}, "options": {"query": "8 May 2025"}});
    assert_eq!(search(&daemon, "messages", &elsewhere)["total"], 0, "what the criteria leave out stays out");
    let path = "/v1/memories/lunch";
    assert_eq!(daemon.send("DELETE", path, &[], b"").status, 200);
    assert!(!ids(&find("8 May 2025", "score")).contains(&"lunch".to_owned()));
    assert_eq!(ids(&find("boat 2025-05-08", "createdAt")), ["year", "call"], "sorted otherwise, a match has a word");
    let today = id(&add(&daemon, "messages", &message("we agreed on nothing", "today", 0))).to_owned();
    let recent = find("what was agreed on in the last 2 days?", "score");
    assert_eq!(ids(&recent)[..2], [today, "next".to_owned()], "{recent}");
    let of_date = |number: usize| recent["memories"][number]["explanation"]["ofNamedDate"] == true;
    assert!(of_date(0) && !of_date(1), "{recent}");
}
