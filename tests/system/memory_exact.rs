//! Memories are found and forgotten exactly: by value, in every language, and with an error that says what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::daemon::{Site, almanacd, unconfigured, wait_until};
use crate::memory::{add, contents, id, message, patch, search, start, with};

fn run(site: &Site, arguments: &[&str]) -> (i32, String, String) {
    let output = almanacd().args(arguments).current_dir(site.path("")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The command's code, and what a terminal shows of it.
fn run_in_a_terminal(site: &Site, arguments: &[&str]) -> (i32, String) {
    let program = almanacd();
    let program = program.get_program().to_str().unwrap();
    let command = [&[program], arguments].concat().join(" ");
    let mut script = unconfigured("script");
    let output = script.args(["-qec", &command, "/dev/null"]).current_dir(site.path("")).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn nothing_is_nothing_to_look_for() {
    let (_site, daemon) = start();
    add(&daemon, "messages", &message("somebody's", "t", 0));
    for key in ["userId", "role", "tags", "from", "minImportance", "threadId", "metadata.x"] {
        let body = json!({"criteria": {key: null}});
        let reply = daemon.post("/v1/memories/messages/search", &body.to_string());
        assert_eq!(reply.status, 422, "{key}: {}", reply.text());
        assert_eq!(reply.json()["errors"][0]["pointer"], format!("/criteria/{key}"));
    }
    for path in ["/v1/memories/messages/search", "/v1/memories/search"] {
        let reply = daemon.post(path, r#"{"criteria": null}"#);
        assert_eq!((reply.status, &reply.json()["errors"][0]["pointer"]), (422, &json!("/criteria")), "{path}");
    }
}

#[test]
fn numbers_and_moments_are_found_by_their_value() {
    let (_site, daemon) = start();
    // Beyond 2^53 neighbours are one and the same fraction; beyond 2^63 SQLite has no whole numbers.
    let numbers = [9_007_199_254_740_992_u64, 9_007_199_254_740_993, u64::MAX - 1, u64::MAX];
    for (position, number) in (0..).zip(numbers) {
        let body = with(message(&number.to_string(), "t", position), &json!({"big": number, "bigs": [1, number]}));
        add(&daemon, "messages", &body);
    }
    for number in numbers {
        for key in ["metadata.big", "metadata.bigs"] {
            let found = search(&daemon, "messages", &json!({"criteria": {key: number}}));
            assert_eq!(contents(&found), [number.to_string()], "{key}");
        }
    }
    let due = ["2026-01-01t12:00:00.0004z", "2026-01-01T13:00:00.0002+01:00", "2026-01-01T11:00:00Z"];
    for moment in due {
        let metadata = json!({"title": "t", "status": "pending", "priority": "low", "agentId": "agent:agent:a",
            "dueDate": moment});
        add(&daemon, "tasks", &json!({"content": moment, "metadata": metadata}));
    }
    let sorted = search(&daemon, "tasks", &json!({"options": {"sortBy": "dueDate"}}));
    assert_eq!(contents(&sorted), [due[2], due[1], due[0]]);
    for (asked, found) in [("2026-01-01T12:00:00.0004+00:00", due[0]), ("2026-01-01t12:00:00.000200z", due[1])] {
        let answer = search(&daemon, "tasks", &json!({"criteria": {"dueDate": asked}}));
        assert_eq!(contents(&answer), [found], "{asked}");
    }
}

#[test]
fn a_key_of_one_s_own_is_sorted_by_under_both_names() {
    let (_site, daemon) = start();
    for (position, x) in (0..).zip([2, 3, 1]) {
        add(&daemon, "messages", &with(message(&x.to_string(), "t", position), &json!({"deep": {"x": x}})));
    }
    for sort_by in ["deep.x", "metadata.deep.x"] {
        let found = search(&daemon, "messages", &json!({"options": {"sortBy": sort_by}}));
        assert_eq!(contents(&found), ["1", "2", "3"], "{sort_by}");
    }
    for (sort_by, said) in [("score2", "`metadata.score2`"), ("content", "`metadata.content`")] {
        let body = json!({"options": {"sortBy": sort_by}}).to_string();
        let refused = daemon.post("/v1/memories/messages/search", &body);
        assert_eq!(refused.status, 422, "{sort_by}");
        assert!(refused.text().contains(said), "{}", refused.text());
    }
}

#[test]
fn what_stands_beside_a_likeness_is_found() {
    let (_site, daemon) = start();
    let said = ["We fly to Porto on the 3rd of June with TAP.", "Have a good trip!", "The paint still smells."];
    for (position, text) in (0..).zip(said) {
        add(&daemon, "messages", &message(text, "t", position));
    }
    let question = json!({"options": {"query": "Is the journey booked?", "explain": true}});
    let found = search(&daemon, "messages", &question);
    let answer = found["memories"].as_array().unwrap().iter().find(|memory| memory["content"] == said[0]);
    let answer = answer.unwrap_or_else(|| panic!("{found:#}"));
    // Neither its words nor its own meaning are why.
    assert_eq!(answer["matched"], json!([]), "{answer:#}");
    assert!(answer["explanation"]["meaning"].as_f64().unwrap() < 0.25, "{answer:#}");
}

#[test]
fn words_are_found_as_people_of_their_language_expect() {
    let (_site, daemon) = start();
    let said = ["我喜欢喝绿茶", "今日は東京へ行きます", "나는 학교에 갔다", "J'habite à Genève", "ผมชอบดื่มชาเขียว"];
    for (position, text) in (0..).zip(said) {
        add(&daemon, "messages", &message(text, "t", position));
    }
    for (query, first) in
        [("绿茶", 0), ("茶", 0), ("東京", 1), ("학교", 2), ("geneve", 3), ("GENÈVE", 3), ("ชาเขียว", 4)]
    {
        let found = search(&daemon, "messages", &json!({"options": {"query": query}}));
        assert_eq!(contents(&found).first(), Some(&said[first]), "{query}");
        assert_ne!(found["memories"][0]["matched"], json!([]), "{query}");
    }
}

#[test]
fn a_question_for_a_time_is_answered_by_what_names_one() {
    let (_site, daemon) = start();
    let said = ["Anna will move house some day", "Anna got the keys of the house last week", "the soup was cold"];
    for (position, content) in (0..).zip(said) {
        add(&daemon, "messages", &message(content, "u", position));
    }
    let find = |query: &str| search(&daemon, "messages", &json!({"options": {"query": query, "explain": true}}));
    let names = |found: &Value| -> Vec<bool> {
        let memories = found["memories"].as_array().unwrap().iter();
        memories.map(|memory| memory["explanation"]["namesTime"] == true).collect()
    };
    let when = find("When did Anna move house?");
    assert_eq!(contents(&when)[..2], [said[1], said[0]], "{when}");
    assert_eq!(names(&when)[..2], [true, false], "{when}");
    let other = find("Did Anna move house?");
    assert_eq!(contents(&other)[0], said[0], "{other}");
    assert!(!names(&other).contains(&true), "{other}");
}

#[test]
fn a_match_has_a_word_or_a_meaning_near_it_in_every_order() {
    let (_site, daemon) = start();
    for (position, text) in (0..).zip(["how is the espresso machine", "xyzzy", "qwfp zxcv"]) {
        add(&daemon, "messages", &message(text, "t", position));
    }
    for sort_by in ["score", "createdAt"] {
        let body = json!({"options": {"query": "espresso", "sortBy": sort_by, "explain": true}});
        let found = search(&daemon, "messages", &body);
        for memory in found["memories"].as_array().unwrap() {
            let is_near = memory["explanation"]["meaning"].as_f64().unwrap() >= 0.25;
            // Whoever sorts by score also gets what stands next to the best.
            let is_next = sort_by == "score" && memory["explanation"]["nearWords"].as_f64().unwrap() > 0.0;
            assert!(is_near || is_next || memory["matched"] != json!([]), "{memory}");
        }
        assert_eq!(found["total"], found["memories"].as_array().unwrap().len(), "{sort_by}");
    }
}

#[test]
fn files_are_for_their_owner_alone() {
    let (site, daemon) = start();
    add(&daemon, "messages", &message("mine", "t", 0));
    fs::write(site.path("before.jsonl"), "").unwrap();
    fs::set_permissions(site.path("before.jsonl"), fs::Permissions::from_mode(0o644)).unwrap();
    for file in ["all.jsonl", "before.jsonl"] {
        assert_eq!(run(&site, &["memory", "export", file]).0, 0);
    }
    let (code, _, error) = run(&site, &["memory", "backup", "copy.db", "--state-dir", "state"]);
    assert_eq!(code, 0, "{error}");
    let kept = ["state/almanac.db", "state/almanac.db-wal", "state/almanac.journal"];
    let check = |files: &[&str]| {
        for file in files {
            let mode = fs::metadata(site.path(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    };
    check(&kept);
    check(&["all.jsonl", "before.jsonl", "copy.db"]);
    // As an older version left them.
    drop(daemon);
    for file in kept {
        fs::set_permissions(site.path(file), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let daemon = site.start();
    add(&daemon, "messages", &message("mine", "t", 1));
    check(&kept);
}

#[test]
fn a_damaged_memory_is_named_and_harms_no_other() {
    let (site, daemon) = start();
    let [good, bad] = [0, 1].map(|position| id(&add(&daemon, "messages", &message("x", "t", position))).to_owned());
    let database = rusqlite::Connection::open(site.path("state/almanac.db")).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let damage = "UPDATE memories SET metadata = '{\"role\"', content = CAST(x'ff' AS TEXT) WHERE id = ?1";
    // Other columns are made from the metadata by the database, which refuses what is no JSON.
    let damage = if database.execute(damage, [&bad]).is_ok() {
        damage
    } else {
        "UPDATE memories SET content = CAST(x'ff' AS TEXT) WHERE id = ?1"
    };
    database.execute(damage, [&bad]).unwrap();
    let reply = daemon.get(&format!("/v1/memories/{bad}"));
    assert_eq!((reply.status, &reply.json()["code"]), (500, &json!("damaged-memory")), "{}", reply.text());
    assert!(reply.json()["detail"].as_str().unwrap().contains(&bad));
    assert_eq!(daemon.get(&format!("/v1/memories/{good}")).status, 200);
    let reply = daemon.post("/v1/memories/messages/search", "{}");
    assert_eq!((reply.status, &reply.json()["code"]), (500, &json!("damaged-memory")));
    assert_eq!(patch(&daemon, &good, &[], &json!({"content": "y"})).status, 200);
    database.execute("UPDATE memory_history SET content = CAST(x'ff' AS TEXT)", []).unwrap();
    let reply = daemon.get(&format!("/v1/memories/{good}/history"));
    assert_eq!((reply.status, &reply.json()["code"]), (500, &json!("damaged-memory")), "{}", reply.text());
    assert!(reply.json()["detail"].as_str().unwrap().contains(&good));
    let (code, _, error) = run(&site, &["memory", "purge", "--id", &bad]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(search(&daemon, "messages", &json!({}))["total"], 1);
}

#[test]
fn a_purge_is_waited_for_however_long_it_takes() {
    let site = Site::new();
    let daemon = site.configure("http: {request_timeout: 500ms}\n").start();
    let gone = id(&add(&daemon, "messages", &message("x", "t", 0))).to_owned();
    let reader = rusqlite::Connection::open(site.path("state/almanac.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM memories;").unwrap();
    thread::scope(|scope| {
        let purge = scope.spawn(|| run_in_a_terminal(&site, &["memory", "purge", "--id", &gone]));
        let begun = Instant::now();
        // A request is given 2 s more than it may take.
        wait_until("no request takes so long", || begun.elapsed() > Duration::from_secs(4));
        assert!(!purge.is_finished());
        reader.execute_batch("COMMIT").unwrap();
        let (code, said) = purge.join().unwrap();
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("removing; 0 memories are left"), "{said}");
        assert!(said.ends_with("1 memories removed for good\r\n"), "{said}");
    });
}

#[test]
fn an_old_file_s_moments_and_answers_are_kept() {
    let (site, daemon) = start();
    let line = |id: &str, more: Value| {
        let mut line = json!({"id": id, "type": "message", "content": id, "role": "user", "userId": "u", "agentId": "a",
            "chatId": "c"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let lines = [
        line("answer", json!({"inResponseTo": "question", "createdAt": "2024-02-29T12:00:00Z"})),
        line(
            "question",
            json!({"metadata": {"createdAt": 1_709_200_000_000_i64, "updatedAt": "2024-03-01T00:00:00Z"}}),
        ),
    ];
    fs::write(site.path("old.jsonl"), lines.concat()).unwrap();
    let (code, said, error) = run(&site, &["memory", "import", "old.jsonl", "--legacy"]);
    assert_eq!((code, said.as_str()), (0, "2 memories imported, 0 were there already\n"), "{error}");
    let thread = daemon.json("/v1/threads/thread_question");
    assert_eq!(contents(&thread), ["question", "answer"]);
    assert_eq!(thread["items"][0]["createdAt"], "2024-02-29T09:46:40.000000Z");
    assert_eq!(thread["items"][0]["updatedAt"], "2024-03-01T00:00:00.000000Z");
    assert_eq!(thread["items"][1]["createdAt"], "2024-02-29T12:00:00.000000Z");
    assert_eq!(thread["items"][0]["metadata"].get("createdAt"), None);
}

#[test]
fn what_only_the_administrator_may_says_so_before_it_reads() {
    let (site, _daemon) = start();
    for arguments in [
        ["memory", "import", "missing.jsonl", "--url", "http://127.0.0.1:1"].as_slice(),
        &["memory", "export", "--url", "http://127.0.0.1:1"],
        &["memory", "purge", "--all", "--url", "http://127.0.0.1:1"],
    ] {
        let (code, _, error) = run(&site, arguments);
        assert_ne!(code, 0);
        assert!(error.contains("needs the admin socket"), "{error}");
    }
    let (_, _, error) = run(&site, &["remember", "tasks", "x", "--metadata", "{\"title\": }"]);
    assert!(error.contains("--metadata") && error.contains("line 1 column 11"), "{error}");
}
