//! Which tools fit a message: the selection, its context over turns, what it learns, and what it refuses.

use std::fs;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, almanacd, document, serve_shipped, serve_shipped_on, shipped, wait_until};
use crate::llm::endpoint::{Play, Server, completion, reply};

fn ask(daemon: &Daemon, body: &Value) -> Value {
    let reply = daemon.post("/v1/qualify", &body.to_string());
    assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    reply.json()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// The best tools, where all are asked for.
fn best(daemon: &Daemon, message: &str, count: usize) -> Vec<String> {
    let answer = ask(daemon, &json!({"message": message}));
    names(&answer["availableTools"]).into_iter().take(count).map(str::to_owned).collect()
}

#[test]
fn the_polymarket_example_comes_out() {
    let (_site, daemon) = serve_shipped();
    let first = ask(&daemon, &json!({"message": "What's hot on Polymarket?", "sessionId": "s", "scores": true}));
    assert_eq!(first["categories"], json!(["required", "polymarket"]), "{first:#}");
    assert_eq!(first["networks"], json!([]));
    assert!(first["confidence"].as_f64().unwrap() >= 0.9, "{first:#}");
    let intent = first["activeIntent"].as_str().unwrap().to_lowercase();
    assert!(intent.contains("trending") && intent.contains("market"), "{intent}");
    assert_eq!(first["toolCount"], 27);
    assert!(first["toolsTotal"].as_u64().unwrap() >= 200);
    assert_eq!(first["toolHints"][0], "getPolyMarketEvents");
    assert_eq!(first["scores"].as_array().unwrap().len(), 27);
    let context = &first["intentContext"];
    assert_eq!((&context["turnsSinceUpdate"], &context["lastConfidence"]), (&json!(0), &first["confidence"]));

    let second = ask(&daemon, &json!({"message": "buy that", "sessionId": "s"}));
    assert_eq!(second["stickyFallbackApplied"], true, "{second:#}");
    assert_eq!(second["intentContext"]["turnsSinceUpdate"], 1);
    assert!(names(&second["categories"]).contains(&"polymarket"), "{second:#}");
    let kept = second["confidence"].as_f64().unwrap();
    assert!((kept - (first["confidence"].as_f64().unwrap() - 0.1)).abs() < 2e-3, "{second:#}");

    // Without a session the context that is sent back does the same.
    let echoed = ask(&daemon, &json!({"message": "buy that", "intentContext": context}));
    assert_eq!(echoed["intentContext"], second["intentContext"]);
    let session = daemon.json("/v1/sessions/s");
    assert_eq!(session["intentContext"], second["intentContext"]);
    assert!(daemon.metric("almanac_qualify_duration_seconds_count").unwrap() >= 3.0);
}

#[test]
fn a_network_is_heard_and_replaced() {
    let (_site, daemon) = serve_shipped();
    let first = ask(&daemon, &json!({"message": "swap 2 SOL for USDC", "sessionId": "s"}));
    assert_eq!(first["networks"], json!(["solana"]), "{first:#}");
    assert_eq!(first["categories"], json!(["required", "solana"]));
    assert!(names(&first["toolHints"])[..2].contains(&"solanaSwapTokens"), "{first:#}");
    let second = ask(&daemon, &json!({"message": "and on Base?", "sessionId": "s"}));
    assert_eq!(second["networks"], json!(["base"]), "{second:#}");
    let elsewhere = ask(&daemon, &json!({"message": "swap tokens", "networks": ["polygon"]}));
    assert_eq!(elsewhere["networks"], json!(["polygon"]));
}

#[test]
fn both_streams_tell_the_same() {
    let (_site, daemon) = serve_shipped();
    let body = r#"{"message":"What's hot on Polymarket?"}"#;
    let reply = daemon.post("/v1/qualify?stream=data-v1", body);
    assert_eq!(reply.header("x-vercel-ai-data-stream"), Some("v1"));
    let text = reply.text();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line.strip_prefix("2:").unwrap()).unwrap()[0].clone())
        .collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "intent_context", "dev_tools_info"]);
    assert_eq!(events[0]["thinking"], events[1]["reasoning"]);
    assert_eq!(events[0]["thinking"], events[2]["reasoning"]);
    assert_eq!(events[0]["timestamp"], events[2]["timestamp"]);
    assert_eq!(events[2]["toolCount"], 27);
    let headers = [("content-type", "application/json"), ("accept", "text/event-stream")];
    let reply = daemon.send("POST", "/v1/qualify", &headers, body.as_bytes());
    assert_eq!(reply.header("x-vercel-ai-ui-message-stream"), Some("v1"));
    let text = reply.text();
    for part in ["\"type\":\"data-reasoning\"", "\"type\":\"data-intent-context\"", "\"type\":\"data-dev-tools-info\""]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(daemon.post("/v1/qualify?stream=x", body).status, 422);
}

/// The events of an answer as a stream of AI SDK 4, and the same of AI SDK 5 with the names it has for them.
fn streamed(daemon: &Daemon, path: &str, body: &Value) -> (Vec<Value>, Vec<(String, Value)>) {
    let reply = daemon.post(&format!("{path}?stream=data-v1"), &body.to_string());
    assert_eq!((reply.status, reply.header("x-vercel-ai-data-stream")), (200, Some("v1")), "{}", reply.text());
    let text = reply.text();
    let parts = text.lines().map(|line| serde_json::from_str::<Value>(line.strip_prefix("2:").unwrap()).unwrap());
    let lines = parts.map(|part| part[0].clone()).collect();
    let headers = [("content-type", "application/json"), ("accept", "text/event-stream")];
    let reply = daemon.send("POST", path, &headers, body.to_string().as_bytes());
    assert_eq!((reply.status, reply.header("x-vercel-ai-ui-message-stream")), (200, Some("v1")));
    let text = reply.text();
    let events = text.strip_suffix("data: [DONE]\n\n").unwrap().split_terminator("\n\n");
    let events = events.map(|event| {
        let event: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
        (event["type"].as_str().unwrap().to_owned(), event["data"].clone())
    });
    (lines, events.collect())
}

#[test]
fn misses_and_usage_are_streamed_as_well() {
    let (_site, daemon) = serve_shipped();
    ask(&daemon, &json!({"message": "What's hot on Polymarket?", "sessionId": "s"}));
    let check = |path: &str, body: Value, kinds: &[&str]| {
        let (lines, events) = streamed(&daemon, path, &body);
        let told: Vec<&str> = lines.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(told, kinds, "{path}");
        let named: Vec<String> = kinds.iter().map(|kind| format!("data-{}", kind.replace('_', "-"))).collect();
        assert_eq!(events.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), named, "{path}");
        assert!(events.iter().zip(kinds).all(|((_, event), kind)| event["type"] == *kind), "{events:?}");
        assert_eq!(daemon.post(&format!("{path}?stream=x"), &body.to_string()).code(), "unknown-protocol");
        lines
    };
    let missed = check(
        "/v1/qualify/miss",
        json!({"toolName": "swellStakeEth", "sessionId": "s"}),
        &["missing_tool", "auto_retry"],
    );
    assert_eq!((&missed[0]["categoryId"], &missed[1]["addedCategory"]), (&json!("swell"), &json!("swell")));
    let usage = check("/v1/usage", json!({"tokensIn": 9, "tokensOut": 3, "costUsd": 0.5}), &["token_usage"]);
    assert_eq!(usage[0]["totalTokens"], 12);
    check("/v1/usage", json!({"type": "path_info", "path": "PATH_2"}), &["path_info"]);
}

#[test]
fn a_session_knows_what_its_turns_used() {
    let (site, daemon) = serve_shipped();
    let call = |tool: &str| {
        let call = json!({"tool_name": tool, "duration_ms": 5, "session_id": "s"});
        assert_eq!(daemon.post("/v1/executions", &call.to_string()).status, 201);
    };
    let report = |body: Value| {
        let reply = daemon.post("/v1/usage", &body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    ask(&daemon, &json!({"message": "What's hot on Polymarket?", "sessionId": "s"}));
    for tool in ["getPolyMarketEvents", "getPolyMarketTags", "getPolyMarketEvents"] {
        call(tool);
    }
    let usage = json!({"sessionId": "s", "tokensIn": 9, "tokensOut": 3, "cachedTokens": 4, "costUsd": 0.5});
    assert_eq!(report(usage.clone())["toolsExecuted"], 2);
    ask(&daemon, &json!({"message": "and who trades them?", "sessionId": "s"}));
    call("getPolyMarketTrades");
    assert_eq!(report(usage)["toolsExecuted"], 1);
    assert_eq!(
        report(json!({"sessionId": "s", "type": "path_info", "tokensIn": 7, "toolsExecuted": 6}))["toolsExecuted"],
        6
    );
    let session = daemon.json("/v1/sessions/s");
    assert_eq!(session["turnTools"], json!(["getPolyMarketTrades"]));
    let used = json!({"turns": 2, "tokensIn": 18, "tokensOut": 6, "cachedTokens": 8, "costUsd": 1.0});
    assert_eq!(session["usage"], used, "a path_info tells the same tokens once more");
    let output = almanacd()
        .args(["qualify", "thanks", "--session", "s", "--socket"])
        .arg(site.path("state/admin.sock"))
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(text.starts_with("\u{25bc} Used 1 tool\n") && text.ends_with("\nUsed: getPolyMarketTrades\n"), "{text}");
}

#[test]
fn what_is_selected_by_hand_holds() {
    let (_site, daemon) = serve_shipped();
    let message = "What's hot on Polymarket?";
    let chosen = ask(&daemon, &json!({"message": message, "selectedToolCategories": ["swell"]}));
    assert_eq!(chosen["categories"], json!(["required", "swell"]));
    let exact = ask(
        &daemon,
        &json!({"message": message, "exactToolNames": ["web_search", "wallet"], "ignoreOtherTools": true}),
    );
    let mut only = names(&exact["availableTools"]);
    only.sort_unstable();
    assert_eq!(only, ["wallet", "web_search"]);
    let more = ask(&daemon, &json!({"message": message, "exactToolNames": ["web_search"]}));
    assert_eq!(more["toolCount"], 28);
    let fewer = ask(&daemon, &json!({"message": message, "excludedTools": ["getPolyMarketEvents"], "maxTools": 3}));
    // Those that are always offered are never cut.
    assert_eq!((&fewer["toolCount"], &fewer["cutTools"].as_array().map(Vec::len)), (&json!(14), &Some(5)), "{fewer:#}");
    assert!(!names(&fewer["availableTools"]).contains(&"getPolyMarketEvents"));
    let required = daemon.json("/v1/tools?category=required&limit=1000");
    let required: Vec<&str> =
        required["items"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for most in [1_usize, 2, 3, 5, 8, 12, 14, 20, 40] {
        let answer = ask(&daemon, &json!({"message": message, "maxTools": most}));
        let offered = names(&answer["availableTools"]);
        assert!(required.iter().all(|name| offered.contains(name)), "{most}: {answer:#}");
        let others = offered.len() - required.len();
        assert!((1..=most.saturating_sub(required.len()).max(most.min(5))).contains(&others), "{most}: {answer:#}");
    }
    let sure = ask(&daemon, &json!({"message": "What's hot?", "minConfidence": 1.0}));
    assert_eq!(sure["categories"], json!(["required"]), "{sure:#}");
}

#[test]
fn no_tool_is_needed_for_small_talk() {
    let (_site, daemon) = serve_shipped();
    for message in ["hello, how are you?", "thanks a lot!", "tell me a joke", ""] {
        let answer = ask(&daemon, &json!({"message": message}));
        assert_eq!(answer["noToolNeeded"], true, "{message:?}: {answer:#}");
        assert_eq!(answer["categories"], json!(["required"]));
        assert!(answer["confidence"].as_f64().unwrap() < 0.5);
    }
    for message in ["what's the price of SOL?", "read the file notes.txt", "search the web for rust news"] {
        let answer = ask(&daemon, &json!({"message": message}));
        assert_eq!(answer["noToolNeeded"], false, "{message:?}");
        assert!(answer["noToolProbability"].as_f64().unwrap() < 0.3, "{message:?}: {answer:#}");
    }
}

#[test]
fn the_threshold_of_no_tool_is_configured() {
    let site = Site::new();
    site.save("alpha.yaml", &document("alpha", "Alpha"));
    let answer_at = |threshold: &str| {
        site.configure(&format!("qualifier:\n  no_tool_threshold: {threshold}\n"));
        let daemon = site.start();
        ask(&daemon, &json!({"message": "tell me a joke about cats"}))
    };
    let (low, high) = (answer_at("0.0"), answer_at("1.0"));
    assert_eq!((&low["noToolNeeded"], &high["noToolNeeded"]), (&json!(true), &json!(false)), "{low:#} {high:#}");
    assert_eq!(low["noToolProbability"], high["noToolProbability"]);
}

#[test]
fn choices_teach_and_survive_a_restart() {
    let site = Site::new();
    site.save("alpha.yaml", &document("alpha", "Alpha"));
    site.save("beta.yaml", &document("beta", "Beta"));
    let daemon = site.start();
    let message = "quarterly zebra figures";
    let first = best(&daemon, message, 1);
    let other = if first == ["alpha"] { "beta" } else { "alpha" };
    for turn in 0..5 {
        let session = format!("s{turn}");
        ask(&daemon, &json!({"message": format!("{message} of week {turn}"), "sessionId": session}));
        let call = json!({"tool_name": other, "duration_ms": 5, "session_id": session});
        assert_eq!(daemon.post("/v1/executions", &call.to_string()).status, 201);
    }
    wait_until("the choices are learnt", || best(&daemon, message, 1) == [other]);
    let before = ask(&daemon, &json!({"message": message, "scores": true}));
    let turn = daemon.json("/v1/sessions/s4");
    let mut daemon = daemon;
    daemon.signal("TERM");
    daemon.wait();
    drop(daemon);
    let daemon = site.start();
    let after = ask(&daemon, &json!({"message": message, "scores": true}));
    assert_eq!(after["availableTools"], before["availableTools"]);
    assert_eq!(after["scores"], before["scores"], "a restart changes no answer");
    assert_eq!(daemon.json("/v1/sessions/s4")["intentContext"], turn["intentContext"]);
}

#[test]
fn a_miss_adds_its_category() {
    let (_site, daemon) = serve_shipped();
    ask(&daemon, &json!({"message": "What's hot on Polymarket?", "sessionId": "s"}));
    let reply = daemon.post("/v1/qualify/miss", r#"{"toolName":"swellStakeEth","sessionId":"s"}"#);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let missed = reply.json();
    assert_eq!(missed["events"][0]["type"], "missing_tool");
    assert_eq!(missed["events"][0]["categoryId"], "swell");
    assert_eq!(missed["events"][1]["type"], "auto_retry");
    assert_eq!(
        (&missed["events"][1]["retryCount"], &missed["events"][1]["addedCategory"]),
        (&json!(1), &json!("swell"))
    );
    assert_eq!(missed["intentContext"]["categories"], json!(["required", "polymarket", "swell"]));
    assert_eq!(missed.get("degraded"), None);
    let next = ask(&daemon, &json!({"message": "do that", "sessionId": "s"}));
    assert!(names(&next["availableTools"]).contains(&"swellStakeEth"), "{next:#}");
    let unknown = daemon.post("/v1/qualify/miss", r#"{"toolName":"swellStakeETH"}"#);
    assert_eq!((unknown.status, unknown.code().as_str()), (422, "unknown-tool"));
    assert_eq!(daemon.metric("almanac_missed_tools_total"), Some(1.0));
}

#[test]
fn what_was_acknowledged_is_not_forgotten() {
    let site = Site::new();
    site.save("alpha.yaml", &document("alpha", "Alpha"));
    site.save("beta.yaml", &document("beta", "Beta"));
    let mut daemon = site.start();
    let message = "quarterly zebra figures";
    let first = best(&daemon, message, 1);
    let other = if first == ["alpha"] { "beta" } else { "alpha" };
    for week in 0..6 {
        let session = format!("s{week}");
        ask(&daemon, &json!({"message": format!("{message} of week {week}"), "sessionId": session}));
        let (path, body) = match week {
            5 => ("/v1/qualify/miss", json!({"toolName": other, "sessionId": session})),
            _ => ("/v1/executions", json!({"tool_name": other, "duration_ms": 5, "session_id": session})),
        };
        let reply = daemon.post(path, &body.to_string());
        // At once, without any other question that would leave time to write.
        daemon.child.kill().unwrap();
        assert!(reply.status < 300 && reply.json().get("degraded").is_none(), "{path}: {}", reply.text());
        daemon.wait();
        drop(daemon);
        let store = rusqlite::Connection::open(site.path("state/almanac.db")).unwrap();
        let choices: i64 = store.query_row("SELECT count(*) FROM choices", [], |row| row.get(0)).unwrap();
        assert_eq!(choices, week + 1, "{path}");
        daemon = site.start();
    }
    assert_eq!(best(&daemon, message, 1), [other], "all six choices are remembered");
}

#[test]
fn a_miss_that_cannot_be_stored_says_so() {
    let site = Site::new();
    std::fs::create_dir(site.path("state")).unwrap();
    std::fs::write(site.path("state/almanac.db"), "no database ".repeat(1000)).unwrap();
    site.save("alpha.yaml", &document("alpha", "Alpha"));
    let daemon = site.start();
    let reply = daemon.post("/v1/qualify/miss", r#"{"toolName":"alpha","sessionId":"s"}"#);
    let missed = reply.json();
    assert_eq!((reply.status, &missed["events"][1]["type"]), (200, &json!("auto_retry")), "{missed}");
    assert!(missed["degraded"].as_str().unwrap().contains("the store cannot be used"), "{missed}");
}

#[test]
fn a_context_of_another_catalog_is_cut_to_size() {
    let (_site, daemon) = serve_shipped();
    let context = json!({
        "networks": ["mars", "solana"], "categories": ["required", "gone", "solana"], "activeIntent": "Old",
        "turnsSinceUpdate": 1, "lastConfidence": 0.9,
    });
    let answer = ask(&daemon, &json!({"message": "do that", "intentContext": context}));
    assert_eq!(answer["stickyFallbackApplied"], true, "{answer:#}");
    assert_eq!(answer["networks"], json!(["solana"]));
    assert!(!names(&answer["categories"]).contains(&"gone"));
    assert!(answer["reasoning"].as_str().unwrap().contains("gone"), "{answer:#}");
    let old = json!({"networks": [], "categories": ["solana"], "turnsSinceUpdate": i64::MAX, "lastConfidence": 1});
    assert_eq!(ask(&daemon, &json!({"message": "do that", "intentContext": old}))["stickyFallbackApplied"], false);
}

#[test]
fn bad_input_is_refused_or_bounded() {
    let (_site, daemon) = serve_shipped();
    let check = |body: &str, status: u16, code: &str| {
        let reply = daemon.post("/v1/qualify", body);
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{:.200}: {}", body, reply.text());
    };
    check("{}", 422, "invalid-body");
    check(r#"{"mesage":"x"}"#, 422, "invalid-body");
    check(r#"{"message":7}"#, 422, "invalid-body");
    check(r#"{"message":"x","minConfidence":2}"#, 422, "invalid-body");
    check(r#"{"message":"x","maxTools":0}"#, 422, "invalid-body");
    check(r#"{"message":"x","intentContext":{"categories":["a"],"lastConfidence":-1}}"#, 422, "invalid-body");
    check(r#"{"message":"x","intentContext":{"intentContext":{}}}"#, 422, "invalid-body");
    check(r#"{"message":"x","selectedToolCategories":["polymarkt"]}"#, 422, "unknown-category");
    check(r#"{"message":"x","exactToolNames":["walet"]}"#, 422, "unknown-tool");
    check(r#"{"message":"x","excludedTools":["walet"]}"#, 422, "unknown-tool");
    check(r#"{"message":"x","networks":["solanna"]}"#, 422, "unknown-network");
    let huge: Vec<String> = (0..1000).map(|number| format!("c{number}")).collect();
    check(&json!({"message": "x", "intentContext": {"categories": huge}}).to_string(), 422, "invalid-body");
    check(&json!({"message": "x".repeat(300_000)}).to_string(), 422, "invalid-body");
    check("\u{0}\u{1}", 400, "malformed-json");
    assert!(daemon.post("/v1/qualify", &json!({"message": "x".repeat(1 << 20)}).to_string()).status >= 400);
    for message in [
        "ما هو الطقس اليوم؟",
        "🦀🚀🔥",
        "swap \u{202e}NUF\u{202c} für 東京 tokens на Solana",
        &"a ".repeat(100_000),
        "\u{7f}\u{1b}[31m",
    ] {
        let answer = ask(&daemon, &json!({"message": message}));
        assert_eq!(answer["categories"][0], "required", "{message:.40}");
    }
}

#[test]
fn categories_are_reloaded_and_faults_told() {
    let site = Site::new();
    site.save("alpha.yaml", &document("alpha", "Alpha"));
    let (file, temporary) = (site.path("categories.yaml"), site.path(".categories.tmp"));
    let save = |text: &str| {
        fs::write(&temporary, text).unwrap();
        fs::rename(&temporary, &file).unwrap();
    };
    let group = |name: &str| format!("categories:\n- {{name: {name}, description: d, always: true, tools: [alpha]}}\n");
    save(&group("first"));
    let daemon = site.start();
    let categories = || ask(&daemon, &json!({"message": "x"}))["categories"].clone();
    assert_eq!(categories(), json!(["first"]));
    save(&group("second"));
    wait_until("the new name is served", || categories() == json!(["second"]));
    save("categories: [{nam: x}]\n");
    wait_until("the fault is told", || daemon.json("/v1/catalog")["diagnostics"].to_string().contains("unknown-key"));
    assert_eq!(categories(), json!(["second"]), "the last good version serves");
}

#[test]
fn the_command_line_tells_the_account() {
    let ask = |message: &str, json: bool| {
        let mut command = almanacd();
        command.args(["qualify", message]).arg("--tool-metadata").arg(shipped());
        if json {
            command.arg("--json");
        }
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let text = ask("Find me some promising low-cap gems", false);
    for part in ["\u{25bc} Used 0 tools\n", "\nReasoning: ", "\nAvailable: ", " tools of 210\n", "\nBest: "] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let line = text.lines().find_map(|line| line.strip_prefix("Categories: ")).unwrap();
    let mut categories: Vec<&str> = line.split(", ").collect();
    assert_eq!(categories.first(), Some(&"required"));
    categories.sort_unstable();
    assert_eq!(categories, ["advanced-search", "defillama", "lunarcrush", "messari", "required"], "{text}");
    let answer: Value = serde_json::from_str(&ask("What's hot on Polymarket?", true)).unwrap();
    assert_eq!(answer["categories"], json!(["required", "polymarket"]));
}

#[test]
fn the_account_of_a_session_names_what_it_used() {
    let (site, daemon) = serve_shipped();
    for tool in ["getDefillamaCoinsNarratives", "askMessari", "askMessari", "websearch"] {
        let call = json!({"tool_name": tool, "duration_ms": 5, "session_id": "a/b c"});
        assert_eq!(daemon.post("/v1/executions", &call.to_string()).status, 201);
    }
    let socket = site.path("state/admin.sock");
    let output = almanacd()
        .args(["qualify", "and the next one?", "--session", "a/b c", "--socket"])
        .arg(socket)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("\u{25bc} Used 3 tools\n"), "{text}");
    assert!(text.ends_with("\nUsed: getDefillamaCoinsNarratives, askMessari, websearch\n"), "{text}");
}

#[test]
fn evaluation_tells_its_figures() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("cases.jsonl");
    let lines = [
        json!({"query": "What's hot on Polymarket?", "gold": ["getPolyMarketEvents"]}),
        json!({"query": "search the web for rust news", "gold": ["web_search", "websearch"]}),
        json!({"query": "hello", "gold": []}),
        json!({"query": "weigh the options and decide", "gold": ["reasoning_decision"]}),
    ];
    fs::write(&file, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let run = |more: &[&str]| {
        let mut command = almanacd();
        command.args(["eval", "qualify"]).arg(&file).arg("--tool-metadata").arg(shipped()).args(more);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let figures: Value = serde_json::from_str(&run(&["--json"]).1).unwrap();
    let keys: Vec<&String> = figures.as_object().unwrap().keys().collect();
    let expected = ["queries", "recall", "mrr", "ndcg10", "mean_loaded", "loaded_recall", "ece", "us_p50", "us_p99"];
    assert_eq!(keys, expected.into_iter().chain(["no_tool"]).collect::<Vec<_>>(), "{figures:#}");
    assert_eq!((&figures["no_tool"]["alone"], &figures["no_tool"]["auroc"]), (&json!(1), &json!(1.0)), "{figures:#}");
    assert_eq!((&figures["queries"], &figures["recall"]["10"]), (&json!(3), &json!(1.0)), "{figures:#}");
    let learnt: Value = serde_json::from_str(&run(&["--learn", "--json"]).1).unwrap();
    assert_eq!((&learnt["queries"], &learnt["choices"]), (&json!(1), &json!(3)), "{learnt:#}");
    assert_eq!(learnt["without"]["queries"], 1);
    assert!(run(&[]).1.contains("NDCG at 10"));
    fs::write(&file, "{\"query\": \"x\", \"gold\": [\"nowhere\", \"websearch\"]}\n{\"query\": \"y\", \"gold\": []}\n")
        .unwrap();
    let (code, _, said) = run(&[]);
    assert_eq!(code, Some(0));
    assert!(
        said.contains("1 of 2 messages need tools that the catalog lacks, which count as not found: nowhere\n"),
        "{said}"
    );
    fs::write(&file, "{\"query\": \"x\"}\n").unwrap();
    let (code, _, said) = run(&[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("line 1") && said.contains("gold"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_may_order_and_explain_and_no_more() {
    let server = Server::start(|number, _| match number {
        1 => completion(r#"{"ranked": ["getPolyMarketTags"], "reasoning": "Themes first."}"#),
        2 => completion(r#"{"ranked": ["no_such_tool", "getPolyMarketTags"], "reasoning": "Call it."}"#),
        _ => Play::Close(reply("500 Internal Server Error", "", b"")),
    })
    .await;
    let address = server.address;
    let answers = tokio::task::spawn_blocking(move || {
        let site = Site::new();
        site.configure(&format!("qualifier:\n  llm: {{url: 'http://{address}/v1', model: m, timeout: 20s}}\n"));
        let daemon = serve_shipped_on(&site);
        [(); 3].map(|()| ask(&daemon, &json!({"message": "What's hot on Polymarket?"})))
    });
    let [asked, lied, failed] = answers.await.unwrap();
    assert_eq!(asked["toolHints"][0], "getPolyMarketTags", "{asked:#}");
    assert_eq!((&asked["reasoning"], &asked["toolCount"]), (&json!("Themes first."), &json!(27)));
    assert_eq!(lied["toolHints"][0], "getPolyMarketTags", "{lied:#}");
    assert_eq!((&lied["reasoning"], &lied["toolCount"]), (&failed["reasoning"], &json!(27)));
    assert_eq!(failed["toolHints"][0], "getPolyMarketEvents", "the local answer stands: {failed:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_takes_its_question_to_a_model_with_it() {
    let server = Server::start(|_, _| Play::Stall(Vec::new())).await;
    let address = server.address;
    let asked = tokio::task::spawn_blocking(move || {
        let site = Site::new();
        site.configure(&format!("qualifier:\n  llm: {{url: 'http://{address}/v1', model: m, timeout: 29s}}\n"));
        let daemon = serve_shipped_on(&site);
        let mut client = daemon.connect();
        let body = json!({"message": "What's hot on Polymarket?"}).to_string();
        client.request("POST", "/v1/qualify", &[("content-type", "application/json")], body.as_bytes());
        wait_until("the model is asked", || server.connections() > 0);
        drop(client);
        let abandoned = r#"almanac_llm_calls_total{outcome="abandoned"}"#;
        let before = std::time::Instant::now();
        wait_until("it is given up", || daemon.metric(abandoned) == Some(1.0));
        before.elapsed()
    });
    assert!(asked.await.unwrap() < std::time::Duration::from_secs(20), "long before its own limit");
}
