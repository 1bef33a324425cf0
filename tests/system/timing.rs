//! Durations: recorded durably, learnt from, foretold.

use std::fs;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Site, almanacd, ask, document, serve_shipped, serve_shipped_on, wait_until};

fn estimate(daemon: &Daemon, body: &Value) -> Value {
    ask(daemon, "/v1/estimate", body)["timing"].clone()
}

fn record(daemon: &Daemon, tool: &str, durations: &[u64]) {
    let batch: Vec<Value> = durations.iter().map(|ms| json!({"tool_name": tool, "duration_ms": ms})).collect();
    assert_eq!(ask(daemon, "/v1/executions", &Value::from(batch))["recorded"], durations.len());
}

#[test]
fn an_estimate_before_any_call_is_the_default_s() {
    let (_site, daemon) = serve_shipped();
    let divergent = json!({"tool_name": "reasoning_divergent", "complexity": {"num_perspectives": 4}});
    let timing = estimate(&daemon, &divergent);
    assert_eq!((&timing["estimated_duration_ms"], &timing["basis"]), (&json!(67500), &json!("default")));
    assert_eq!((&timing["will_timeout_on_factory"], &timing["factory_timeout_ms"]), (&json!(true), &json!(30000)));
    let mut at_the_limit = divergent.clone();
    at_the_limit["timeout_ms"] = json!(67500);
    assert_eq!(estimate(&daemon, &at_the_limit)["will_timeout_on_factory"], false, "strictly more is a timeout");
    let hinted = estimate(&daemon, &json!({"tool_name": "web_search"}));
    assert_eq!((&hinted["estimated_duration_ms"], &hinted["basis"]), (&json!(2500), &json!("hint")));
    let unknown = estimate(&daemon, &json!({"tool_name": "never_seen"}));
    assert_eq!((&unknown["estimated_duration_ms"], &unknown["confidence"]), (&json!(15000), &json!("low")));
}

#[test]
fn ten_equal_calls_give_high_confidence() {
    let (_site, daemon) = serve_shipped();
    record(&daemon, "reasoning_linear", &[12_000; 10]);
    let timing = estimate(&daemon, &json!({"tool_name": "reasoning_linear"}));
    let estimated = timing["estimated_duration_ms"].as_u64().unwrap();
    assert!((10_000..=15_000).contains(&estimated), "{timing}");
    assert_eq!((&timing["confidence"], &timing["samples"]), (&json!("high"), &json!(10)));
}

#[test]
fn five_recorded_calls_move_the_sixth_and_survive_a_kill() {
    let site = Site::new();
    let mut daemon = serve_shipped_on(&site);
    let call = json!({"tool_name": "file_read"});
    assert_eq!(estimate(&daemon, &call)["basis"], "hint");
    record(&daemon, "file_read", &[4000; 5]);
    let learnt = estimate(&daemon, &call);
    assert_eq!((&learnt["confidence"], &learnt["basis"]), (&json!("high"), &json!("history")));
    daemon.child.kill().unwrap();
    daemon.wait();
    drop(daemon);
    let daemon = serve_shipped_on(&site);
    let again = estimate(&daemon, &call);
    assert_eq!(again, learnt, "a restart changes nothing");
    assert_eq!(daemon.json("/v1/timing/file_read")["items"][0]["samples"], 5);
}

#[test]
fn a_store_that_opens_late_has_its_history_then() {
    let site = Site::new();
    let daemon = serve_shipped_on(&site);
    record(&daemon, "file_read", &[4000; 20]);
    let asked = json!({"tool_name": "file_read"});
    ask(&daemon, "/v1/executions", &json!({"tool_name": "file_read", "duration_ms": 4000, "session_id": "s"}));
    let learnt = estimate(&daemon, &asked);
    let mut daemon = daemon;
    // So that nothing is left in the log of the database.
    daemon.signal("TERM");
    daemon.wait();
    drop(daemon);
    // With its log, from which the whole database may be read.
    let files = ["almanac.db", "almanac.db-wal", "almanac.db-shm"];
    let files = files.map(|file| (site.path(&format!("state/{file}")), site.path(&format!("aside-{file}"))));
    let there: Vec<_> = files.iter().filter(|(file, _)| file.exists()).collect();
    for (file, aside) in &there {
        fs::rename(file, aside).unwrap();
    }
    let (database, _) = &files[0];
    fs::write(database, "this is no database. ".repeat(100)).unwrap();
    let daemon = serve_shipped_on(&site);
    let ready = json!({"ready": true, "missing": ["history"]});
    wait_until("the plugins", || daemon.get("/ready").json() == ready);
    let without = estimate(&daemon, &asked);
    assert_eq!(without["basis"], "hint");
    assert!(without["degraded"].as_str().unwrap().contains("not a database"), "{without}");
    let plan = estimate(&daemon, &json!({"steps": ["file_read"]}));
    assert!(plan["degraded"].is_string(), "{plan}");
    let timed = json!({"tool_name": "file_read", "duration_ms": 1});
    assert_eq!(daemon.post("/v1/executions", &timed.to_string()).status, 503);
    // The database comes last: it is what is looked for.
    for (file, aside) in there.iter().rev() {
        fs::rename(aside, file).unwrap();
    }
    wait_until("the history", || daemon.json("/ready")["missing"] == json!([]));
    assert_eq!(estimate(&daemon, &asked), learnt, "as if it had been there from the start");
    assert_eq!(daemon.json("/v1/sessions/s")["toolHistory"], json!(["file_read"]));
    record(&daemon, "file_read", &[4000]);
    assert_eq!(daemon.json("/v1/timing/file_read")["items"][0]["samples"], 22);
}

#[test]
fn every_mode_of_a_tool_survives_a_restart() {
    let site = Site::new();
    let daemon = serve_shipped_on(&site);
    let call = |mode: String, ms: u64| json!({"tool_name": "shell", "mode_name": mode, "duration_ms": ms});
    let early: Vec<Value> = (0..251).map(|_| call("early".into(), 5000)).collect();
    ask(&daemon, "/v1/executions", &Value::from(early));
    for _ in 0..6 {
        let others: Vec<Value> = (0..170).map(|mode| call(format!("m{mode}"), 50)).collect();
        ask(&daemon, "/v1/executions", &Value::from(others));
    }
    drop(daemon);
    let daemon = serve_shipped_on(&site);
    assert_eq!(daemon.json("/v1/timing/shell")["total"], 171);
    let early = daemon.json("/v1/timing/shell?mode=early");
    assert_eq!((&early["items"][0]["samples"], &early["items"][0]["confidence"]), (&json!(251), &json!("high")));
}

#[test]
fn a_restart_keeps_the_correction_on_or_off() {
    let durations: Vec<u64> = (0..40).map(|call| 1000 + 700 * (call * call % 7)).collect();
    let learnt = |configuration: &str| {
        let site = Site::new();
        site.configure(configuration);
        let call = json!({"tool_name": "crawl"});
        let daemon = site.start();
        record(&daemon, "crawl", &durations);
        let learnt = estimate(&daemon, &call);
        drop(daemon);
        assert_eq!(estimate(&site.start(), &call), learnt, "{configuration}");
        learnt
    };
    let off = learnt("timing: {correction: false}\n");
    let on = learnt("timing: {correction: true}\n");
    assert_ne!(on["interval_ms"], off["interval_ms"]);
    assert_eq!(learnt("{}\n"), on, "on by default");
}

#[test]
fn failures_and_timeouts_are_samples() {
    let (_site, daemon) = serve_shipped();
    record(&daemon, "a", &[1000; 20]);
    let before = estimate(&daemon, &json!({"tool_name": "a", "timeout_ms": 5000}));
    let batch: Vec<Value> =
        (0..10).map(|_| json!({"tool_name": "a", "duration_ms": 5000, "outcome": "timeout"})).collect();
    ask(&daemon, "/v1/executions", &Value::from(batch));
    let after = estimate(&daemon, &json!({"tool_name": "a", "timeout_ms": 5000}));
    assert!(after["timeout_probability"].as_f64() > before["timeout_probability"].as_f64(), "{before} {after}");
    ask(&daemon, "/v1/executions", &json!({"tool_name": "a", "duration_ms": 3, "outcome": "error"}));
    let modes = daemon.json("/v1/timing/a");
    let modes: Vec<&str> = modes["items"].as_array().unwrap().iter().map(|key| key["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["", "#error"]);
    assert_eq!(daemon.metric(r#"almanac_tool_calls_total{outcome="timeout",tool="a"}"#), Some(10.0));
}

#[test]
fn a_running_call_and_a_plan_are_foretold() {
    let (_site, daemon) = serve_shipped();
    record(&daemon, "a", &[900, 1000, 1100, 1000, 950, 8000, 1050, 1000, 9000, 1000]);
    let running = estimate(&daemon, &json!({"tool_name": "a", "elapsed_ms": 4000, "timeout_ms": 20000}));
    assert!(running["remaining"]["p50_ms"].as_u64().unwrap() > 1000, "{running}");
    let late = estimate(&daemon, &json!({"tool_name": "a", "elapsed_ms": 4000, "timeout_ms": 3000}));
    assert_eq!((&late["will_timeout_on_factory"], &late["timeout"]), (&json!(true), &json!("likely")));
    let single = estimate(&daemon, &json!({"tool_name": "a"}));
    let plan = estimate(&daemon, &json!({"steps": [{"tool_name": "a"}, {"tool_name": "a"}]}));
    let sum = 2 * single["p95_ms"].as_u64().unwrap();
    assert!(plan["p50_ms"].as_u64().unwrap() > single["p50_ms"].as_u64().unwrap());
    assert!(plan["p95_ms"].as_u64().unwrap() < sum, "quantiles do not add up: {plan} against {sum}");
}

#[test]
fn a_name_that_nobody_knows_is_said() {
    let (_site, daemon) = serve_shipped();
    let ask = |body: Value| estimate(&daemon, &body);
    let known = ask(json!({"tool_name": "web_search"}));
    assert_eq!((&known["known"], known.get("near")), (&json!(true), None), "{known}");
    let misspelt = ask(json!({"tool_name": "web_serach"}));
    assert_eq!((&misspelt["known"], &misspelt["basis"]), (&json!(false), &json!("default")), "{misspelt}");
    assert_eq!(misspelt["near"][0], "web_search", "{misspelt}");
    let plan = ask(json!({"steps": [{"tool_name": "web_search"}, {"tool_name": "web_serach"}]}));
    assert_eq!((&plan["known"], &plan["near"][0]), (&json!(false), &json!("web_search")), "{plan}");
    assert!(daemon.get("/v1/timing/web_serach").text().contains("did you mean web_search"));
    // What was recorded is known, documented or not; clocks give fractions.
    let call = json!({"tool_name": "unheard_of", "duration_ms": 12.7});
    assert_eq!(daemon.post("/v1/executions", &call.to_string()).status, 201);
    assert_eq!(ask(json!({"tool_name": "unheard_of"}))["known"], true);
    for path in ["/v1/estimate", "/v1/metadata"] {
        let call = json!({"tool_name": "unheard_of", "timeout_ms": 30_000.0, "elapsed_ms": 3.7});
        assert_eq!(daemon.post(path, &call.to_string()).status, 200, "{path}");
    }
    assert_eq!(ask(json!({"tool_name": "unheard_af"}))["near"], json!(["unheard_of"]));
}

#[test]
fn one_wrong_step_is_one_fault() {
    let (_site, daemon) = serve_shipped();
    let faults = |body: Value| daemon.post("/v1/estimate", &body.to_string()).json()["errors"].clone();
    let wrong = faults(json!({"steps": [{"tool_name": "a"}, {"tool_name": "a/b"}]}));
    assert_eq!((wrong.as_array().unwrap().len(), &wrong[0]["pointer"]), (1, &json!("/steps/1/tool_name")), "{wrong}");
    let wrong = faults(json!({"tool_name": 7}));
    assert_eq!(wrong.as_array().unwrap().len(), 1, "{wrong}");
    assert_eq!(faults(json!({})).as_array().unwrap().len(), 1);
}

#[test]
fn a_call_told_twice_is_recorded_once() {
    let (_site, daemon) = serve_shipped();
    let call = json!({"tool_name": "a", "duration_ms": 7, "idempotency_key": "k1"});
    let first = daemon.post("/v1/executions", &call.to_string());
    assert_eq!((first.status, &first.json()["recorded"]), (201, &json!(1)));
    let second = daemon.post("/v1/executions", &call.to_string());
    assert_eq!((second.status, &second.json()["recorded"]), (200, &json!(0)));
    assert_eq!(daemon.json("/v1/timing/a")["items"][0]["samples"], 1);
    let other = json!({"tool_name": "a", "duration_ms": 8, "idempotency_key": "k1"});
    let refused = daemon.post("/v1/executions", &other.to_string());
    assert_eq!((refused.status, refused.code()), (422, "idempotency-key-reused".to_owned()));
    let empty = json!({"tool_name": "a", "duration_ms": 8, "idempotency_key": ""});
    assert_eq!(daemon.post("/v1/executions", &empty.to_string()).status, 422, "it would be told twice");
    // A call without a mode is named in a sentence, too.
    let refused = daemon.get("/v1/timing/a?mode=nope");
    assert!(refused.text().contains("in the mode `nope`; it was in no mode"), "{}", refused.text());
}

fn tell(daemon: &Daemon, key: &str, body: &Value) -> (u16, Value) {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    let reply = daemon.send("POST", "/v1/executions", &headers, body.to_string().as_bytes());
    let said = reply.json();
    (reply.status, if reply.status < 400 { said["recorded"].clone() } else { said["code"].clone() })
}

#[test]
fn a_request_told_twice_is_recorded_once() {
    let site = Site::new();
    let daemon = serve_shipped_on(&site);
    let call = |ms: u64| json!({"tool_name": "b", "duration_ms": ms});
    let reused = (422, json!("idempotency-key-reused"));
    assert_eq!(tell(&daemon, "one", &call(5)), (201, json!(1)));
    assert_eq!(tell(&daemon, "one", &call(5)), (200, json!(0)));
    assert_eq!(tell(&daemon, "one", &call(6)), reused);
    // The header and the field are one thing.
    let mut keyed = call(5);
    keyed["idempotency_key"] = json!("one");
    assert_eq!(daemon.post("/v1/executions", &keyed.to_string()).json()["recorded"], 0);
    let batch = |calls: u64| Value::from((0..calls).map(|_| call(5)).collect::<Vec<_>>());
    assert_eq!(tell(&daemon, "many", &batch(3)), (201, json!(3)), "equal calls are calls of their own");
    assert_eq!(tell(&daemon, "many", &batch(3)), (200, json!(0)));
    assert_eq!(tell(&daemon, "many", &batch(4)), reused);
    assert_eq!(tell(&daemon, "many", &batch(2)), reused);
    assert_eq!(tell(&daemon, "", &call(5)), (400, json!("invalid-idempotency-key")));
    drop(daemon);
    let daemon = serve_shipped_on(&site);
    assert_eq!(tell(&daemon, "many", &batch(4)), reused);
    assert_eq!(tell(&daemon, "many", &batch(3)), (200, json!(0)));
    assert_eq!(daemon.json("/v1/timing/b")["items"][0]["samples"], 4);
}

#[test]
fn sessions_keep_order_and_repeats_over_a_restart() {
    let site = Site::new();
    let daemon = serve_shipped_on(&site);
    for tool in ["a", "b", "a"] {
        ask(&daemon, "/v1/executions", &json!({"tool_name": tool, "duration_ms": 1, "session_id": "s 1"}));
    }
    let expected = json!({"sessionId": "s 1", "toolHistory": ["a", "b", "a"]});
    assert_eq!(daemon.json("/v1/sessions/s%201"), expected);
    drop(daemon);
    let daemon = serve_shipped_on(&site);
    assert_eq!(daemon.json("/v1/sessions/s%201"), expected);
    assert_eq!(daemon.get("/v1/sessions/other").code(), "unknown-session");
}

#[test]
fn metadata_has_the_published_shape() {
    let (_site, daemon) = serve_shipped();
    let request = json!({
        "tool_name": "reasoning_linear", "mode_name": "linear",
        "complexity": {"content_length": 13},
        "result_context": {"num_outputs": 1, "has_branches": false, "session_id": "test", "complexity": "simple"},
        "tool_history": [], "goal": null, "thinking_budget": "none", "session_state": null,
    });
    let metadata = ask(&daemon, "/v1/metadata", &request);
    assert!(metadata["timing"]["estimated_duration_ms"].as_u64().unwrap() > 0);
    assert_eq!(metadata["context"], json!({"mode_used": "linear", "thinking_budget": "none", "session_state": null}));
    assert!(metadata["suggestions"]["next_tools"].is_array() && metadata["suggestions"]["relevant_presets"].is_array());
    let minimal = ask(&daemon, "/v1/metadata", &json!({"tool_name": "x"}));
    assert_eq!(minimal["context"], json!({"mode_used": "none", "thinking_budget": null, "session_state": null}));
}

#[test]
fn every_shipped_tool_s_response_is_enriched_and_otherwise_untouched() {
    let (_site, daemon) = serve_shipped();
    let tools = daemon.json("/v1/tools?limit=1000");
    for tool in tools["items"].as_array().unwrap() {
        let response = json!({"z": [1, 2.5, null, {"deep": "ü"}], "a": tool, "big": 9_007_199_254_740_993_u64, "": ""});
        let enriched =
            ask(&daemon, "/v1/enrich", &json!({"request": {"tool_name": tool["name"]}, "response": response}));
        assert!(enriched["metadata"]["timing"]["estimated_duration_ms"].as_u64().unwrap() > 0);
        let mut rest = enriched.clone();
        rest.as_object_mut().unwrap().remove("metadata");
        assert_eq!(rest, response);
    }
    for response in [json!([1]), json!({"metadata": {}})] {
        let reply =
            daemon.post("/v1/enrich", &json!({"request": {"tool_name": "x"}, "response": response}).to_string());
        assert_eq!(reply.status, 422, "{response}");
    }
}

#[test]
fn bad_records_are_refused_and_none_of_their_batch_is_stored() {
    let (_site, daemon) = serve_shipped();
    let check = |record: Value, pointer: &str| {
        let batch = json!([{"tool_name": "good", "duration_ms": 1}, record]);
        let reply = daemon.post("/v1/executions", &batch.to_string());
        assert_eq!(reply.status, 422, "{batch}: {}", reply.text());
        if !pointer.is_empty() {
            assert_eq!(reply.json()["errors"][0]["pointer"], pointer, "{batch}");
        }
    };
    check(json!({"tool_name": "a", "duration_ms": -1}), "/1/duration_ms");
    check(json!({"tool_name": "a", "duration_ms": -1.5}), "/1/duration_ms");
    check(json!({"tool_name": "a", "duration_ms": 86_400_000.6}), "/1/duration_ms");
    check(json!({"tool_name": "a", "duration_ms": 86_400_001_u64}), "/1/duration_ms");
    check(json!({"tool_name": "a", "duration_ms": 1, "outcome": "ok"}), "/1/outcome");
    check(json!({"tool_name": "a/b", "duration_ms": 1}), "/1/tool_name");
    check(json!({"tool_name": "a", "duration_ms": 1, "mode_name": "x#error"}), "/1/mode_name");
    check(json!({"tool_name": "a", "duration_ms": 1, "timestamp": "tomorrow"}), "/1/timestamp");
    check(json!({"tool_name": "a", "duration_ms": 1, "timestamp": "2199-01-01T00:00:00Z"}), "");
    check(json!({"tool_name": "a", "duration_ms": 1, "tool": "a"}), "/1/tool");
    check(json!({"duration_ms": 1}), "/1");
    let batch = vec![json!({"tool_name": "good", "duration_ms": 1}); 1001];
    assert_eq!(daemon.post("/v1/executions", &Value::from(batch).to_string()).status, 422);
    assert_eq!(daemon.get("/v1/timing/good").status, 404, "nothing was stored");
    assert_eq!(daemon.post("/v1/estimate", "{}").status, 422);
    assert_eq!(daemon.post("/v1/estimate", r#"{"tool_name":"a","steps":[{"tool_name":"a"}]}"#).status, 422);
    assert_eq!(daemon.post("/v1/estimate", r#"{"steps":[]}"#).status, 422);
    assert_eq!(daemon.post("/v1/metadata", r#"{"tool_name":"a","thinking_budget":"huge"}"#).status, 422);
}

#[test]
fn made_up_names_make_no_time_series() {
    let (_site, daemon) = serve_shipped();
    for batch in 0..6 {
        let batch: Vec<Value> =
            (0..1000).map(|i| json!({"tool_name": format!("t{batch}-{i}"), "duration_ms": 1})).collect();
        ask(&daemon, "/v1/executions", &Value::from(batch));
    }
    let text = daemon.get("/metrics").text();
    let series = text.lines().filter(|line| line.starts_with("almanac_tool_calls_total")).count();
    assert_eq!(series, 501, "500 names and one for all others");
    assert_eq!(daemon.metric("almanac_tool_labels_folded_total"), Some(5500.0));
    assert_eq!(daemon.json("/v1/timing?limit=3")["items"].as_array().unwrap().len(), 3);
}

#[test]
fn a_damaged_database_degrades_and_is_got_over() {
    let site = Site::new();
    fs::create_dir(site.path("state")).unwrap();
    fs::write(site.path("state/almanac.db"), "no database ".repeat(1000)).unwrap();
    let daemon = serve_shipped_on(&site);
    daemon.log.wait_for("nothing can be stored");
    assert_eq!(estimate(&daemon, &json!({"tool_name": "web_search"}))["estimated_duration_ms"], 2500);
    let refused = daemon.post("/v1/executions", r#"{"tool_name":"a","duration_ms":1}"#);
    assert_eq!((refused.status, refused.code().as_str()), (503, "store-unavailable"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(daemon.metric("almanac_store_usable"), Some(0.0));
    for file in ["almanac.db", "almanac.db-wal", "almanac.db-shm"] {
        let _ = fs::remove_file(site.path("state").join(file));
    }
    wait_until("records to be taken again", || {
        daemon.post("/v1/executions", r#"{"tool_name":"a","duration_ms":1}"#).status == 201
    });
    assert_eq!(daemon.metric("almanac_store_usable"), Some(1.0));
}

#[test]
fn a_read_only_state_directory_degrades() {
    let site = Site::new();
    fs::create_dir(site.path("state")).unwrap();
    // A mount of its own is read-only to root as well; where none can be made there is nothing to test.
    let state = site.path("state").display().to_string();
    let mount = format!("mount --bind {state} {state} && mount -o remount,bind,ro {state} && exec \"$@\"");
    let Some(mut command) = site.command_below(&["--mount"], &mount) else { return };
    command.arg("--admin-socket").arg(site.path("admin.sock"));
    let daemon = Daemon::start(command, site.path("admin.sock"));
    assert_eq!(estimate(&daemon, &json!({"tool_name": "reasoning_linear"}))["estimated_duration_ms"], 12000);
    let refused = daemon.post("/v1/executions", r#"{"tool_name":"a","duration_ms":1}"#);
    assert_eq!((refused.status, refused.code().as_str()), (503, "store-unavailable"));
}

#[test]
fn the_command_line_records_and_estimates() {
    let (_site, daemon) = serve_shipped();
    let run = |arguments: &[&str]| {
        let output = almanacd().args(arguments).arg("--socket").arg(&daemon.admin).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    for _ in 0..5 {
        assert_eq!(run(&["record", "a", "1500", "--mode", "m"]), (0, "recorded, durably\n".to_owned()));
    }
    let (code, out) = run(&["estimate", "a", "--mode", "m", "--timeout-ms", "1000"]);
    assert!(code == 0 && out.contains("high confidence") && out.contains("likely"), "{out}");
    let (code, out) = run(&["estimate", "a", "--mode", "m", "--json"]);
    assert_eq!((code, &serde_json::from_str::<Value>(&out).unwrap()["timing"]["samples"]), (0, &json!(5)));
    assert_eq!(run(&["record", "a", "999999999999"]).0, 1);
}

#[test]
fn eval_measures_a_history() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("stream.csv");
    let header =
        "ts_ms,host,tool,mode,duration_ms,outcome,content_length,num_perspectives,num_branches,thinking_budget";
    let rows: Vec<String> =
        (0..400).map(|i| format!("{},h,t{},,{},success,0,0,0,0", i * 2000, i % 3, 1000 + i % 7 * 10)).collect();
    fs::write(&file, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let run = |json: bool| {
        let mut command = almanacd();
        command.args(["eval", "timing"]).arg(&file);
        let output = if json { command.arg("--json").output() } else { command.output() }.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, out) = run(true);
    let figures: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &figures["rows"]), (0, &json!(400)));
    assert!(figures["within_20pct"].as_f64().unwrap() > 0.9, "{figures}");
    let (code, out) = run(false);
    assert!(code == 0 && out.contains("running median") && !out.contains("order of the file"), "{out}");
    let dump = directory.path().join("rows.csv");
    let output = almanacd().args(["eval", "timing"]).arg(&file).arg("--rows").arg(&dump).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let dumped = fs::read_to_string(&dump).unwrap();
    let first: Vec<&str> = dumped.lines().nth(1).unwrap().split(',').collect();
    assert_eq!((dumped.lines().count(), &first[..6]), (401, &["0", "h", "t0", "", "1000", "success"][..]));
    // The order of the rows is that of the calls, whatever the file has.
    let mut shuffled = rows.clone();
    shuffled.reverse();
    fs::write(&file, format!("{header}\n{}\n", shuffled.join("\n"))).unwrap();
    let (_, again) = run(true);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!((&again["pinball_ratio"], &again["order"]), (&figures["pinball_ratio"], &json!("time")));
    fs::write(&file, format!("{header}\n1,h,t,,x,success,0,0,0,0\n")).unwrap();
    assert_eq!(run(true).0, 1);
}

#[test]
fn documents_of_the_catalog_give_hints_as_they_change() {
    let (site, daemon) = serve_shipped();
    site.save("slow.yaml", &format!("{}timing: {{estimated_duration_ms: 4000}}\n", document("slow", "t")));
    daemon.admin("POST", "/-/reload", b"");
    assert_eq!(estimate(&daemon, &json!({"tool_name": "slow"}))["estimated_duration_ms"], 4000);
}

#[test]
fn a_plan_is_reviewed() {
    let (_site, daemon) = serve_shipped();
    let steps = json!({"steps": ["web_search", "http_request", "web_serach"], "goal": "call a known API endpoint"});
    let plan = ask(&daemon, "/v1/plans/check", &steps);
    let faults: Vec<(&str, u64)> = plan["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| (fault["code"].as_str().unwrap(), fault["step"].as_u64().unwrap()))
        .collect();
    assert_eq!(faults, [("conflict", 0), ("unknown-tool", 2)], "{plan:#}");
    assert_eq!(plan["faults"][1]["near"][0], json!("web_search"));
    let good = ask(&daemon, "/v1/plans/check", &json!({"steps": ["reasoning_mcts"], "timeout_ms": 1000}));
    assert_eq!((&good["ok"], &good["timing"]["will_timeout_on_factory"]), (&json!(true), &json!(true)));
    let question = good["instead"][0]["question"].as_str().unwrap();
    assert!(question.starts_with("did you mean ") && question.ends_with(" instead of reasoning_mcts?"), "{question}");
    let faster = &good["faster"][0];
    assert_eq!(
        faster["estimated_duration_ms"].as_u64().unwrap() + faster["saves_ms"].as_u64().unwrap(),
        good["timing"]["estimated_duration_ms"].as_u64().unwrap(),
    );
    let needy = ask(&daemon, "/v1/plans/check", &json!({"steps": ["getUserMemoriesByCategory", "deleteMemory"]}));
    assert_eq!(needy["ok"], true, "{needy:#}");
    for way in ["faster", "cheaper"] {
        for offered in needy[way].as_array().unwrap() {
            let checked = ask(&daemon, "/v1/plans/check", &json!({"steps": offered["steps"]}));
            assert_eq!(checked["ok"], true, "{way}: {checked:#}");
        }
    }
    assert_eq!(daemon.post("/v1/plans/check", r#"{"steps":[]}"#).status, 422);
}

#[test]
fn a_plan_knows_what_was_called_before_it() {
    let (_site, daemon) = serve_shipped();
    let faults = |body: Value| ask(&daemon, "/v1/plans/check", &body)["faults"].clone();
    let missing = faults(json!({"steps": ["getBridgeStatus"], "session_id": "s"}));
    assert_eq!((&missing[0]["code"], &missing[0]["near"]), (&json!("missing-predecessor"), &json!(["bridgeTokens"])));
    let order = json!({"steps": [{"tool": "bridgeTokens", "mode": "fast", "complexity": {}}, "getBridgeStatus"]});
    assert_eq!(faults(order), json!([]));
    ask(&daemon, "/v1/executions", &json!({"tool_name": "bridgeTokens", "duration_ms": 900, "session_id": "s"}));
    assert_eq!(faults(json!({"steps": ["getBridgeStatus"], "session_id": "s"})), json!([]));
    assert_eq!(faults(json!({"steps": ["getBridgeStatus"], "session_id": "other"})).as_array().unwrap().len(), 1);
}

#[test]
fn a_plan_that_costs_less_is_offered() {
    let site = Site::new();
    let key = "prerequisites: [{name: Key, env_vars: [A_KEY], how_to_get: h}]\ntiming: {estimated_duration_ms: 900}\n";
    let alternatives =
        "alternatives: [{tool: free, when: always}, {tool: dear, when: never}, {tool: quick, when: w}]\n";
    let limited = format!("rate_limit: {{limits: {{p: 100}}}}\n{key}");
    site.save("paid.yaml", &(document("paid", "t") + key + alternatives));
    site.save("free.yaml", &(document("free", "t") + "timing: {estimated_duration_ms: 2000}\n"));
    site.save("dear.yaml", &(document("dear", "t") + &limited.replace("900", "99")));
    site.save("quick.yaml", &(document("quick", "t") + &key.replace("900", "500")));
    let daemon = site.start();
    let plan = ask(&daemon, "/v1/plans/check", &json!({"steps": ["paid"]}));
    let cheaper = json!([{
        "steps": ["free"], "when": "always", "why": "paid needs A_KEY, free no key", "estimated_duration_ms": 2000,
    }]);
    assert_eq!(plan["cheaper"], cheaper);
    let faster: Vec<_> = plan["faster"].as_array().unwrap().iter().map(|plan| &plan["steps"][0]).collect();
    assert_eq!(faster, ["quick", "dear"], "what costs more comes last: {plan:#}");
    assert!(plan["faster"][1]["dearer"].as_str().unwrap().contains("100 requests a month"), "{plan:#}");
}
