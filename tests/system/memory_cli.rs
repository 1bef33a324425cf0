//! Memories on the command line: kept, found, moved, imported and evaluated.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use serde_json::{Value, json};

use crate::daemon::{Site, almanacd};
use crate::memory::{contents, id, message, patch, search, start};

fn run(site: &Site, arguments: &[&str]) -> (i32, String, String) {
    let output = almanacd().args(arguments).current_dir(site.path("")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_line_keeps_finds_and_moves_them() {
    let (site, daemon) = start();
    let set = ["role=user", "userId=user:user:x", "agentId=agent:agent:a", "chatId=chat:chat:c", "thread.id=t"];
    let mut arguments = vec!["remember", "messages", "I like tea"];
    arguments.extend(set.iter().flat_map(|pair| ["--set", pair]));
    arguments.extend(["--set", "thread.position=0"]);
    let (code, said, error) = run(&site, &arguments);
    assert_eq!(code, 0, "{error}");
    assert!(said.ends_with(", durably\n"), "{said}");
    let (code, _, error) = run(&site, &["remember", "messages", "x", "--set", "role=robot"]);
    assert_eq!(code, 1);
    assert!(error.contains("/metadata/role") && error.contains("agentId"), "{error}");
    assert!(error.contains("say --user, --agent, --chat"), "{error}");
    let (_, _, error) = run(&site, &["remember", "tasks", "x", "--agent", "a"]);
    assert!(error.contains("title") && !error.contains("say --"), "{error}");
    let (code, found, _) = run(&site, &["recall", "messages", "tea", "--where", "role=user", "--json"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!((code, contents(&found)), (0, vec!["I like tea"]));
    patch(&daemon, id(&found["memories"][0]), &[], &json!({"content": "I like coffee"}));
    let (code, _, _) = run(&site, &["memory", "export", "all.jsonl"]);
    assert_eq!(code, 0);
    let (code, said, error) = run(&site, &["memory", "backup", "copy.db", "--state-dir", "state"]);
    assert_eq!((code, error.as_str()), (0, ""), "{said}");
    let (_, _, faults) = run(&site, &["memory", "purge", "--user", ""]);
    assert!(faults.contains("userId") && !faults.contains("exactly one"), "{faults}");
    let (code, _, error) = run(&site, &["memory", "purge", "--user", "user:x"]);
    assert!(code == 64 && error.contains("`user:x` is no id, which is like user:user:anna"), "{error}");
    let (code, _, said) = run(&site, &["memory", "purge"]);
    assert!(code == 64 && said.contains("--deleted-before"), "{said}");
    let (_, said, _) = run(&site, &["memory", "purge", "--user", "x"]);
    assert_eq!(said, "1 memories removed for good\n");
    let (_, said, _) = run(&site, &["memory", "import", "all.jsonl"]);
    assert_eq!(said, "1 memories imported, 0 were there already\n");
    run(&site, &["memory", "export", "again.jsonl"]);
    let read = |name: &str| fs::read_to_string(site.path(name)).unwrap();
    assert_eq!(read("all.jsonl"), read("again.jsonl"));
    assert!(read("all.jsonl").contains("I like tea"), "the history is in it");
    // The copy is a whole database: another daemon's worth of it answers without one.
    fs::create_dir(site.path("copied")).unwrap();
    fs::rename(site.path("copy.db"), site.path("copied/almanac.db")).unwrap();
    let (code, found, error) = run(&site, &["recall", "messages", "coffee", "--state-dir", "copied", "--json"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(contents(&serde_json::from_str(&found).unwrap()), ["I like coffee"]);
    let (code, _, error) = run(&site, &["memory", "export", "--state-dir", "state"]);
    assert_eq!(code, 1);
    assert!(error.contains("is in use by another almanacd"), "{error}");
}

#[test]
fn what_is_no_memory_is_not_said_to_be_removed_or_kept() {
    let (site, _daemon) = start();
    let who = ["--user", "x", "--agent", "a", "--chat", "c"];
    let remember = |arguments: &[&str]| run(&site, &[&["remember"], arguments, &who].concat());
    let (code, said, error) = remember(&["messages", "tea"]);
    assert_eq!(code, 0, "{error}");
    let id = said.split(',').next().unwrap();
    let purge = |ids: &[&str], expected: (i32, &str, &str)| {
        let ids: Vec<&str> = ids.iter().flat_map(|id| ["--id", id]).collect();
        let (code, said, error) = run(&site, &[&["memory", "purge"][..], &ids].concat());
        assert_eq!((code, said.trim_end()), (expected.0, expected.1), "{ids:?}: {error}");
        assert!(error.contains(expected.2), "{ids:?}: {error}");
    };
    purge(&["X"], (1, "0 memories removed for good", "`X` is no memory of the tenant"));
    purge(&[id, id, "X"], (1, "1 memories removed for good", "1 of these ids is no memory"));
    purge(&[id], (1, "0 memories removed for good", "removed before"));
    for kind in ["messages", "cognitive-processes"] {
        let (code, _, error) = remember(&[kind, " "]);
        assert!(code == 64 && error.contains("there is no text to keep"), "{kind}: {error}");
    }
    let file = r#"{"attachments":[{"type":"file","url":"https://example.com/a"}]}"#;
    let (code, _, error) = remember(&["messages", "", "--metadata", file]);
    assert_eq!(code, 0, "{error}");
}

#[test]
fn a_database_that_daemons_share_is_used_instead_of_a_directory_only_where_that_is_said() {
    let site = Site::new();
    let named = |arguments: &[&str]| {
        let mut command = almanacd();
        command.args(arguments).args(["--state-dir", "state"]).current_dir(site.path(""));
        let url = "postgres://nobody@127.0.0.1:1/none?sslmode=disable";
        let output = command.env("ALMANAC_DATABASE_URL", url).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = named(&["recall", "all"]);
    assert!(code == 1 && error.contains("is used, which ALMANAC_DATABASE_URL names; not --state-dir"), "{error}");
    let (code, error) = named(&["memory", "purge", "--all"]);
    assert!(code == 64 && error.contains("take ALMANAC_DATABASE_URL away"), "{error}");
}

/// What root does on the directory of a stopped daemon locks nobody out of it.
#[test]
fn who_only_looks_leaves_no_journal_and_what_is_made_is_the_directory_s_owner_s() {
    const OWNER: u32 = 4242;
    let site = Site::new();
    let state = site.path("state");
    fs::create_dir(&state).unwrap();
    let is_root = chown(&state, Some(OWNER), Some(OWNER)).is_ok();
    let remember =
        ["remember", "documents", "x", "--set", "source=agent", "--user", "u", "--agent", "a", "--state-dir", "state"];
    let (code, _, error) = run(&site, &remember);
    assert_eq!(code, 0, "{error}");
    for looked in [&["recall", "all"][..], &["memory", "export", "-"]] {
        let (code, _, error) = run(&site, &[looked, &["--state-dir", "state"]].concat());
        assert_eq!(code, 0, "{looked:?} {error}");
        let files = fs::read_dir(&state).unwrap().map(Result::unwrap);
        let made: Vec<(String, u32)> =
            files.map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().uid())).collect();
        assert!(made.iter().all(|(name, _)| name != "almanac.journal"), "{made:?}");
        assert!(made.iter().any(|(name, _)| name == "almanac.db"), "{made:?}");
        assert!(!is_root || made.iter().all(|(_, owner)| *owner == OWNER), "{made:?}");
    }
}

#[test]
fn a_state_directory_that_was_mistyped_is_not_made() {
    let site = Site::new();
    fs::write(site.path("kept.jsonl"), "an earlier export").unwrap();
    for arguments in
        [["memory", "export", "kept.jsonl"].as_slice(), &["memory", "purge", "--all"], &["recall", "all", "tea"]]
    {
        let (code, _, error) = run(&site, &[arguments, &["--state-dir", "typo"]].concat());
        assert!(code == 1 && error.contains("there is no database at typo/almanac.db"), "{arguments:?}: {error}");
    }
    assert!(!site.path("typo").exists());
    assert_eq!(fs::read_to_string(site.path("kept.jsonl")).unwrap(), "an earlier export");
    let (code, said, _) = run(&site, &["memory", "export", "-", "--state-dir", "typo"]);
    assert_eq!((code, said.as_str(), site.path("-").exists()), (1, "", false));
    let (code, _, error) = run(&site, &["recall", "foo", "tea"]);
    assert!(code == 64 && error.contains("not `foo`"), "{error}");
}

/// The state of a service is not made by whoever keeps a memory; a user's own daemon has it elsewhere.
#[test]
fn without_a_named_directory_no_database_is_made_and_the_user_s_own_is_found() {
    let installed = Path::new("/var/lib/almanac/almanac.db");
    if installed.exists() || Path::new("/run/almanac/admin.sock").exists() {
        return;
    }
    let site = Site::new();
    let home = site.path("home");
    fs::create_dir(&home).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = almanacd();
        command.args(arguments).current_dir(&home).env("HOME", &home).env_remove("XDG_STATE_HOME");
        let output = command.env_remove("XDG_CONFIG_HOME").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let remember = ["remember", "documents", "x", "--agent", "a", "--set", "source=agent"];
    for arguments in [&remember[..], &["recall", "all"]] {
        let (code, _, error) = run(arguments);
        assert!(code == 1 && error.contains("there is no database at /var/lib/almanac/almanac.db"), "{error}");
        assert!(!installed.exists());
    }
    let own = [&remember[..], &["--state-dir", ".local/state/almanac"]].concat();
    for arguments in [&own[..], &remember] {
        let (code, _, error) = run(arguments);
        assert_eq!(code, 0, "{error}");
    }
    let (code, found, error) = run(&["recall", "all", "--json"]);
    let found: Value = serde_json::from_str(&found).unwrap_or_default();
    assert_eq!((code, &found["total"]), (0, &json!(2)), "{error}");
}

#[test]
fn a_state_directory_on_the_command_line_beats_a_daemon_of_the_environment() {
    let (site, daemon) = start();
    let keep = ["remember", "documents", "tea", "--set", "source=web", "--agent", "a"];
    assert_eq!(run(&site, &keep).0, 0);
    let apart = [&keep[..], &["--state-dir", "apart"]].concat();
    let url = format!("http://{}", daemon.address);
    let named = |arguments: &[&str], environment: &[(&str, &str)]| {
        let command = &mut almanacd();
        let output = command.args(arguments).envs(environment.iter().copied()).current_dir(site.path("")).output();
        let output = output.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let admin = daemon.admin.to_str().unwrap();
    for environment in [("ALMANAC_ADMIN_SOCKET", admin), ("ALMANAC_URL", &url)] {
        let (code, _, error) = named(&apart, &[environment]);
        assert_eq!(code, 0, "{error}");
        let (code, said, error) = named(&["memory", "purge", "--all", "--state-dir", "apart"], &[environment]);
        assert_eq!((code, said.as_str()), (0, "1 memories removed for good\n"), "{error}");
    }
    assert_eq!(contents(&search(&daemon, "documents", &json!({}))), ["tea"], "the daemon's is left alone");
    // The daemon that runs on a directory of the environment is asked; a directory of the command line means its files.
    let state = daemon.admin.parent().and_then(Path::to_str).unwrap();
    let (code, said, error) = named(&["recall", "documents"], &[("ALMANAC_STATE_DIR", state)]);
    assert!(code == 0 && said.contains("tea"), "{said}{error}");
    let (code, _, error) = named(&["recall", "documents", "--state-dir", state], &[]);
    assert!(code == 1 && error.contains("in use"), "{error}");
    // A daemon of the command line beats a directory of the environment, and both there are one too many.
    let export = ["memory", "export", "--socket", admin];
    let (code, said, error) = named(&export, &[("ALMANAC_STATE_DIR", "apart"), ("ALMANAC_URL", &url)]);
    assert!(code == 0 && said.contains("tea"), "{said}{error}");
    let (code, _, error) = named(&[&export[..], &["--state-dir", "apart"]].concat(), &[]);
    assert!(code == 64 && error.contains("give one of them"), "{error}");
}

#[test]
fn what_the_environment_says_need_not_be_said() {
    let (site, daemon) = start();
    let run = |arguments: &[&str]| {
        let environment = [("ALMANAC_USER_ID", "x"), ("ALMANAC_AGENT_ID", "a"), ("ALMANAC_CHAT_ID", "c")];
        let output = almanacd().args(arguments).envs(environment).current_dir(site.path("")).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["remember", "messages", "I like tea"]);
    run(&["remember", "messages", "I know", "--set", "role=assistant"]);
    run(&["remember", "messages", "elsewhere", "--chat", "chat:chat:d", "--user", "user:user:y"]);
    run(&["remember", "tasks", "buy tea", "--set", "title=tea", "--set", "status=pending", "--set", "priority=low"]);
    let reply = daemon.get("/v1/threads/c").json();
    let said = reply["items"].as_array().unwrap().iter().map(|item| {
        let metadata = &item["metadata"];
        let id = |key: &str| metadata[key]["id"].as_str().unwrap().to_owned();
        let place = (metadata["role"].as_str().unwrap().to_owned(), metadata["thread"]["position"].as_u64().unwrap());
        (item["content"].as_str().unwrap().to_owned(), place, [id("userId"), id("agentId"), id("chatId")])
    });
    let ids = || ["x", "a", "c"].map(str::to_owned);
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            ("I like tea".to_owned(), ("user".to_owned(), 0), ids()),
            ("I know".to_owned(), ("assistant".to_owned(), 1), ids())
        ]
    );
    let of_other = json!({"criteria": {"userId": "user:user:y", "chatId": "chat:chat:d", "threadId": "d"}});
    assert_eq!(search(&daemon, "messages", &of_other)["total"], 1);
    let found: Value = serde_json::from_str(&run(&["recall", "all", "tea", "--json"])).unwrap();
    let mut found: Vec<_> = contents(&found).into_iter().filter(|content| content.contains("tea")).collect();
    found.sort_unstable();
    assert_eq!(found, ["I like tea", "buy tea"], "of both kinds");
}

#[test]
fn a_search_of_the_command_line_has_every_option() {
    let (site, daemon) = start();
    for (position, text) in ["tea at noon", "coffee at dawn", "tea at dawn"].into_iter().enumerate() {
        let set = format!("thread.position={position}");
        let metadata = r#"{"role": "user", "userId": "user:user:x", "agentId": "agent:agent:a", "chatId": "chat:chat:c",
            "thread": {"id": "t", "parentId": "p"}, "importance": "high"}"#;
        let (code, said, error) =
            run(&site, &["remember", "messages", text, "--metadata", metadata, "--set", &set, "--json"]);
        assert_eq!(code, 0, "{error}");
        let kept: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(kept["metadata"]["thread"], json!({"id": "t", "position": position, "parentId": "p"}));
        if position == 1 {
            daemon.send("DELETE", &format!("/v1/memories/{}", id(&kept)), &[], b"");
        }
    }
    for (more, total, expected) in [
        (vec![], 2, vec!["tea at dawn", "tea at noon"]),
        (vec!["noon"], 2, vec!["tea at noon", "tea at dawn"]),
        (vec!["--where", "thread.position=0"], 1, vec!["tea at noon"]),
        (vec!["--where", "minImportance=0.9"], 0, vec![]),
        (vec!["--limit", "1"], 2, vec!["tea at dawn"]),
        (vec!["--offset", "1"], 2, vec!["tea at noon"]),
        (vec!["--sort-by", "thread.position"], 2, vec!["tea at noon", "tea at dawn"]),
        (vec!["--sort-by", "thread.position", "--descending"], 2, vec!["tea at dawn", "tea at noon"]),
        (vec!["--include-deleted"], 3, vec!["tea at dawn", "coffee at dawn", "tea at noon"]),
    ] {
        let arguments = [&["recall", "messages", "--json"], more.as_slice()].concat();
        let (code, found, error) = run(&site, &arguments);
        assert_eq!(code, 0, "{arguments:?}: {error}");
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!((contents(&found), &found["total"]), (expected, &json!(total)), "{arguments:?}");
    }
    for wrong in [
        vec!["recall", "notes"],
        vec!["recall", "messages", "--where", "role"],
        vec!["remember", "tasks", "x", "--metadata", "[]"],
    ] {
        assert_ne!(run(&site, &wrong).0, 0, "{wrong:?}");
    }
    let (code, _, error) = run(&site, &["recall", "all", ""]);
    assert!(code != 0 && error.contains("leave it out to get the newest"), "{error}");
}

/// A name of digits is a name.
#[test]
fn numbers_are_texts_where_a_text_belongs() {
    let (site, _daemon) = start();
    let remember = ["remember", "messages", "hi", "--user", "u", "--agent", "a", "--chat", "c"];
    let set = ["--set", "thread.id=42", "--set", "thread.position=7", "--set", "year=2024"];
    let (code, _, error) = run(&site, &[&remember[..], &set].concat());
    assert_eq!(code, 0, "{error}");
    let (code, _, error) =
        run(&site, &["remember", "documents", "x", "--agent", "a", "--set", "source=agent", "--set", "title=2024"]);
    assert_eq!(code, 0, "{error}");
    for (kind, wanted, expected) in [
        ("messages", "threadId=42", 1),
        ("messages", "thread.position=7", 1),
        ("messages", "metadata.year=2024", 1),
        ("messages", r#"metadata.year="2024""#, 0),
        ("documents", "title=2024", 1),
    ] {
        let (code, found, error) = run(&site, &["recall", kind, "--where", wanted, "--json"]);
        assert_eq!(code, 0, "{wanted} {error}");
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found["total"], json!(expected), "{wanted}");
    }
}

#[test]
fn whoever_forgets_the_kind_or_the_text_is_told_which() {
    // Said before anything is looked for: there is neither a daemon nor a database.
    let site = Site::new();
    for (given, said) in [
        (vec!["I like tea"], "what kind of memory is 'I like tea'? Say it first"),
        (vec!["it's tea", "--user", "ada"], r"almanacd remember messages 'it'\''s tea'"),
        (vec!["tasks"], "there is no text to keep: almanacd remember tasks TEXT"),
    ] {
        let (code, _, error) = run(&site, &[&["remember"], given.as_slice()].concat());
        assert!(code == 64 && error.contains(said), "{given:?}: {code} {error}");
    }
    let (code, _, error) = run(&site, &["remember"]);
    assert!(code == 64 && error.contains("<KIND>"), "{code} {error}");
    let (_, help, _) = run(&site, &["remember", "--help"]);
    assert!(help.contains("almanacd remember [OPTIONS] <KIND> <CONTENT>"), "{help}");
}

#[test]
fn lines_without_ids_are_imported_once() {
    let (site, daemon) = start();
    let task = json!({
        "content": "call me",
        "metadata": {"title": "t", "status": "pending", "priority": "low", "agentId": "agent:agent:a"},
    });
    fs::write(site.path("tasks.jsonl"), format!("{task}\n{task}\n")).unwrap();
    for expected in ["2 memories imported, 0 were", "0 memories imported, 2 were"] {
        let (code, said, error) = run(&site, &["memory", "import", "tasks.jsonl"]);
        assert!(code == 0 && said.starts_with(expected), "{said}{error}");
    }
    let both = search(&daemon, "tasks", &json!({}));
    patch(&daemon, id(&both["memories"][0]), &[], &json!({"content": "call her"}));
    daemon.send("DELETE", &format!("/v1/memories/{}", id(&both["memories"][1])), &[], b"");
    // However it is written: what became of them since is left alone.
    let again = json!({"metadata": task["metadata"], "content": task["content"]});
    fs::write(site.path("tasks.jsonl"), format!("{again}\n{task}\n")).unwrap();
    let (code, said, error) = run(&site, &["memory", "import", "tasks.jsonl"]);
    assert_eq!((code, said.as_str()), (0, "0 memories imported, 2 were there already\n"), "{error}");
    fs::write(site.path("none.jsonl"), r#"{"content": "x", "metadata": {}}"#).unwrap();
    let (_, _, error) = run(&site, &["memory", "import", "none.jsonl"]);
    assert!(error.contains("line 1: /kind: the metadata does not tell the kind"), "{error}");
    let check = |arguments: &[&str], part: &str| {
        let (code, _, error) = run(&site, arguments);
        assert!(code == 64 && error.contains(part), "{arguments:?}: {error}");
    };
    check(&["recall", "messages", "--where", "role=user", "--where", "role=tool"], "`role` is given twice");
    check(&["remember", "tasks", "x", "--user", "zoe"], "--user is of messages and documents");
    check(&["remember", "tasks", "x", "--set", ".a=5"], "`.a=5` is not KEY=VALUE");
    check(&["remember", "tasks", "x", "--metadata", r#"{"a": 1, "a": 2}"#], "line 1 column");
}

#[test]
fn a_line_that_is_no_json_is_told_with_its_place() {
    let site = Site::new();
    fs::write(site.path("bad.jsonl"), "\nfoo bar\n").unwrap();
    let (code, _, error) = run(&site, &["memory", "import", "bad.jsonl", "--state-dir", "state"]);
    assert!(code != 0 && error.contains("line 2: no JSON: column 2: no value begins so"), "{code} {error}");
}

#[test]
fn an_import_in_parts_says_where_it_ended() {
    let (site, daemon) = start();
    let line = |id: &str, position: u64| {
        let mut line = message("x", "t", position);
        line["id"] = json!(id);
        format!("{line}\n")
    };
    let mut lines: String = (0..450).map(|number| line(&format!("m{number}"), number)).collect();
    lines.push_str(&line("late", 7));
    fs::write(site.path("all.jsonl"), &lines).unwrap();
    let (code, _, error) = run(&site, &["memory", "import", "all.jsonl"]);
    assert_eq!(code, 1);
    assert!(error.contains("line 451 was refused; 450 memories before were imported"), "{error}");
    assert!(error.contains("position 7 of the thread `t` is taken"), "{error}");
    assert_eq!(search(&daemon, "messages", &json!({}))["total"], 450);
    fs::write(site.path("all.jsonl"), lines.replace(&line("late", 7), &line("late", 450))).unwrap();
    let (code, said, error) = run(&site, &["memory", "import", "all.jsonl"]);
    assert_eq!((code, said.as_str()), (0, "1 memories imported, 450 were there already\n"), "{error}");
}

#[test]
fn an_old_file_is_imported_or_its_lines_are_named() {
    let (site, daemon) = start();
    let old = [
        json!({"id": "m1", "type": "message", "content": "hi", "role": "USER", "userId": "u", "agentId": "a",
            "chatId": "c"}),
        json!({"id": "m2", "type": "message", "content": "hello", "metadata": {"role": "bot", "userId": "u",
            "agentId": "a",
            "chatId": "c", "inResponseTo": "m1"}}),
    ];
    let lines = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let mut faulty = old.to_vec();
    faulty[1]["metadata"].as_object_mut().unwrap().remove("chatId");
    fs::write(site.path("faulty.jsonl"), lines(&faulty)).unwrap();
    let (code, _, error) = run(&site, &["memory", "import", "faulty.jsonl", "--legacy"]);
    assert_eq!(code, 1);
    assert!(error.contains("line 2: /metadata: the key `chatId` is missing"), "{error}");
    assert_eq!(search(&daemon, "messages", &json!({}))["total"], 0);
    fs::write(site.path("old.jsonl"), lines(&old)).unwrap();
    let (code, said, error) = run(&site, &["memory", "import", "old.jsonl", "--legacy"]);
    assert_eq!((code, said.as_str()), (0, "2 memories imported, 0 were there already\n"), "{error}");
    let thread = daemon.json("/v1/threads/thread_m1");
    assert_eq!((contents(&thread), &thread["gaps"]), (vec!["hi", "hello"], &json!([])));
    assert_eq!(thread["items"][1]["metadata"]["role"], "assistant");
}

#[test]
fn an_evaluation_prints_its_figures() {
    let site = Site::new();
    let memories: String = (0..30)
        .map(|number| {
            let mut line = message(&format!("fact number{number}"), "t", number);
            line["id"] = json!(format!("D1:{number}"));
            format!("{line}\n")
        })
        .collect();
    fs::write(site.path("memories"), memories).unwrap();
    fs::write(
        site.path("queries"),
        "{\"query\":\"number7\",\"gold\":[\"D1:7\"]}\n{\"query\":\"number8\",\"gold\":[\"no\"]}\n",
    )
    .unwrap();
    let (code, said, error) = run(&site, &["eval", "recall", "queries", "--memories", "memories", "--json"]);
    assert_eq!(code, 0, "{error}");
    let figures: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&figures["queries"], &figures["memories"]), (&json!(2), &json!(30)));
    for depth in ["1", "3", "5", "10"] {
        assert_eq!(figures["recall"][depth], 0.5, "{said}");
    }
    assert_eq!((&figures["mrr"], &figures["ndcg10"]), (&json!(0.5), &json!(0.5)));
    assert_eq!((&figures["bm25"]["recall"]["1"], &figures["bm25"]["mrr"]), (&json!(0.5), &json!(0.5)));
}
