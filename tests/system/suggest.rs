//! What should be called next: suggestions, presets, and what is learnt from sessions.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Daemon, Site, almanacd, ask, document, serve_shipped, serve_shipped_on, shipped, wait_until};
use crate::fixtures::reasoning;

fn suggestions(daemon: &Daemon, body: &Value) -> Value {
    ask(daemon, "/v1/metadata", body)["suggestions"].clone()
}

fn next_tools(daemon: &Daemon, body: &Value) -> Vec<String> {
    names(&suggestions(daemon, body)["next_tools"], "tool")
}

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

/// Records the calls of a session, one after the other; a tool after `!` fails.
fn record(daemon: &Daemon, session: &str, tools: &str) {
    for tool in tools.split_whitespace() {
        let (tool, outcome) = tool.strip_prefix('!').map_or((tool, "success"), |tool| (tool, "error"));
        let call = json!({"tool_name": tool, "duration_ms": 5, "session_id": session, "outcome": outcome});
        assert_eq!(ask(daemon, "/v1/executions", &call)["recorded"], 1);
    }
}

#[test]
fn a_linear_response_has_metadata() {
    let (_site, daemon) = serve_shipped();
    let request = json!({
        "tool_name": "reasoning_linear", "mode_name": "linear", "complexity": {"content_length": 13},
        "result_context": {"num_outputs": 1, "has_branches": false, "session_id": "test", "complexity": "simple"},
        "thinking_budget": "none",
    });
    let response = json!({"thought_id": "t1", "content": "Test analysis", "confidence": 0.8});
    let enriched = ask(&daemon, "/v1/enrich", &json!({"request": request, "response": response}));
    let metadata = &enriched["metadata"];
    assert!(metadata["timing"]["estimated_duration_ms"].as_u64().unwrap() > 0);
    assert_eq!(metadata["context"]["mode_used"], "linear");
    let next = metadata["suggestions"]["next_tools"].as_array().unwrap();
    assert!((3..=5).contains(&next.len()), "{metadata:#}");
    for suggestion in next {
        let keys: Vec<&String> = suggestion.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["tool", "reason", "estimated_duration_ms"]);
        let estimate = ask(&daemon, "/v1/estimate", &json!({"tool_name": suggestion["tool"]}));
        assert_eq!(suggestion["estimated_duration_ms"], estimate["timing"]["estimated_duration_ms"]);
    }
    assert!(metadata["suggestions"].get("degraded").is_none(), "nothing is missing");
    assert!(daemon.metric(r#"almanac_suggestions_total{source="complement"}"#).unwrap() >= 3.0);
}

#[test]
fn what_sessions_do_is_suggested_first_and_survives_a_kill() {
    let site = Site::new();
    let mut daemon = serve_shipped_on(&site);
    let divergent = json!({"tool_name": "reasoning_divergent"});
    let cold = next_tools(&daemon, &divergent);
    assert_eq!(cold, ["reasoning_decision", "reasoning_checkpoint", "reasoning_reflection", "reasoning_tree"]);
    record(&daemon, "one", "reasoning_divergent reasoning_evidence reasoning_divergent reasoning_evidence");
    let twice = suggestions(&daemon, &divergent);
    let tools = names(&twice["next_tools"], "tool");
    assert_eq!((&tools[..4], &tools[4..]), (&cold[..], &["reasoning_evidence".to_owned()][..]), "twice is no habit");
    let thin = &twice["next_tools"][4];
    assert!(thin["reason"].as_str().unwrap().contains("observed twice next"), "{thin:#}");
    assert!((0.1..0.9).contains(&thin["confidence"].as_f64().unwrap()), "{thin:#}");
    record(&daemon, "two", "reasoning_divergent reasoning_evidence");
    // What always fails is not suggested any more, whoever names it.
    record(&daemon, "three", "reasoning_divergent !reasoning_tree reasoning_divergent !reasoning_tree");
    record(&daemon, "three", "reasoning_divergent !reasoning_tree");
    // Nobody may be sent where the catalog has nothing.
    record(&daemon, "four", "reasoning_divergent gone reasoning_divergent gone reasoning_divergent gone");
    let learnt = suggestions(&daemon, &divergent);
    let expected = ["reasoning_evidence", "reasoning_decision", "reasoning_checkpoint", "reasoning_reflection"];
    assert_eq!(names(&learnt["next_tools"], "tool"), expected);
    let reason = learnt["next_tools"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("observed 3 times next"), "{reason}");
    let in_session = json!({"tool_name": "reasoning_linear", "result_context": {"session_id": "three"}});
    let whole = suggestions(&daemon, &in_session);
    daemon.child.kill().unwrap();
    daemon.wait();
    drop(daemon);
    let daemon = serve_shipped_on(&site);
    assert_eq!(suggestions(&daemon, &divergent), learnt, "a restart changes nothing");
    assert_eq!(suggestions(&daemon, &in_session), whole, "a restart changes nothing");
    record(&daemon, "five", "reasoning_divergent reasoning_evidence");
    let more = suggestions(&daemon, &divergent);
    let reason = more["next_tools"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("observed 4 times next"), "counting goes on: {reason}");
}

#[test]
fn a_tool_in_high_conflict_with_the_session_is_not_suggested() {
    let (_site, daemon) = serve_shipped();
    let trigger = |history: Value| json!({"tool_name": "reasoning_si_trigger", "tool_history": history});
    let free = next_tools(&daemon, &trigger(json!([])));
    assert!(free.contains(&"reasoning_si_reject".to_owned()), "{free:?}");
    let bound = next_tools(&daemon, &trigger(json!(["reasoning_si_approve"])));
    assert!(!bound.contains(&"reasoning_si_reject".to_owned()), "{bound:?}");
    record(&daemon, "s", "reasoning_si_approve");
    let by_session = json!({"tool_name": "reasoning_si_trigger", "result_context": {"session_id": "s"}});
    assert_eq!(next_tools(&daemon, &by_session), bound, "the history is the session's by default");
    assert_eq!(next_tools(&daemon, &json!({"tool_name": "nowhere"})), [] as [&str; 0]);
}

#[test]
fn presets_are_listed_found_and_timed() {
    let (_site, daemon) = serve_shipped();
    let all = daemon.json("/v1/presets");
    assert_eq!((all["total"].as_u64(), all["items"].as_array().unwrap().len()), (Some(11), 11));
    let page = daemon.json("/v1/presets?limit=2&cursor=2");
    assert_eq!((&page["items"][0], &page["next_cursor"]), (&all["items"][2], &json!("4")));
    let preset = daemon.json("/v1/presets/decision_analysis");
    let expected = json!({
        "id": "decision_analysis",
        "name": "Complete Decision Analysis",
        "description": "Multi-perspective analysis → criteria weighting → final recommendation",
        "tools": ["reasoning_divergent", "reasoning_decision", "reasoning_reflection"],
        "estimated_duration_ms": 100_000,
        "use_cases": ["Complex decisions with trade-offs", "Stakeholder alignment"],
        "keywords": ["decision", "choice", "options", "trade-off"],
    });
    assert_eq!(preset, expected);
    let unknown = daemon.get("/v1/presets/decision_analysys");
    assert_eq!((unknown.code().as_str(), &unknown.json()["near"]), ("unknown-preset", &json!(["decision_analysis"])));
    assert_eq!(daemon.get("/v1/presets/match").status, 405);

    let matched =
        ask(&daemon, "/v1/presets/match", &json!({"tool_history": ["reasoning_divergent", "reasoning_decision"]}));
    let first = json!({
        "preset_id": "decision_analysis",
        "description": expected["description"],
        "estimated_duration_ms": 100_000,
        "remaining_steps": ["reasoning_reflection"],
        "remaining_duration_ms": 35_000,
    });
    assert_eq!(matched["items"][0], first);
    assert!(matched["items"].as_array().unwrap().len() <= 3);
    let done = expected["tools"].clone();
    let finished = ask(&daemon, "/v1/presets/match", &json!({"tool_history": done, "goal": "a decision"}));
    assert!(!names(&finished["items"], "preset_id").contains(&"decision_analysis".to_owned()), "{finished:#}");
    let goal = ask(&daemon, "/v1/presets/match", &json!({"goal": "debug the crash after the last release"}));
    assert_eq!(goal["items"][0]["preset_id"], "debug-analysis");
    assert_eq!(ask(&daemon, "/v1/presets/match", &json!({}))["total"], 0);
    record(&daemon, "s", "reasoning_detect");
    let by_session = ask(&daemon, "/v1/presets/match", &json!({"session_id": "s"}));
    assert_eq!(by_session["items"][0]["remaining_steps"], json!(["reasoning_reflection"]));
    let metadata = suggestions(&daemon, &json!({"tool_name": "reasoning_detect"}));
    assert_eq!(metadata["relevant_presets"], by_session["items"]);
    assert_eq!(daemon.post("/v1/presets/match", r#"{"history":[]}"#).status, 422);
    // Once all steps have a history, the time is that of the plan.
    for tool in ["reasoning_counterfactual", "reasoning_evidence"] {
        for ms in [900, 1000, 1100, 1000, 1050] {
            ask(&daemon, "/v1/executions", &json!({"tool_name": tool, "duration_ms": ms}));
        }
    }
    let warm = daemon.json("/v1/presets/causal_analysis");
    let steps: Vec<Value> = warm["tools"].as_array().unwrap().iter().map(|tool| json!({"tool_name": tool})).collect();
    let plan = ask(&daemon, "/v1/estimate", &json!({"steps": steps}));
    assert_eq!(warm["estimated_duration_ms"], plan["timing"]["estimated_duration_ms"]);
    assert!(warm["estimated_duration_ms"].as_u64().unwrap() < 3000, "{warm}");
}

#[test]
fn presets_follow_their_directory_and_the_catalog() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let daemon = site.start();
    assert_eq!(daemon.json("/v1/presets")["total"], 0, "none of the built-in ones can be run here");
    let preset = |tool: &str| format!("id: mine\nname: Mine\ndescription: d\ntools: [a, {tool}]\n");
    let save = |text: &str| {
        fs::create_dir_all(site.path("presets")).unwrap();
        fs::write(site.path("presets/mine.yaml"), text).unwrap();
    };
    let total = |expected: u64| wait_until("the presets", || daemon.json("/v1/presets")["total"] == expected);
    save(&preset("a"));
    total(1);
    let generation = daemon.json("/v1/catalog")["generation"].clone();
    // Told once it is served.
    wait_until("the metric", || daemon.metric("almanac_presets") == Some(1.0));
    save(&preset("b"));
    total(0);
    let report = daemon.json("/v1/catalog");
    assert_ne!(report["generation"], generation, "presets are part of the generation");
    let finding = &report["diagnostics"][0];
    assert_eq!((&finding["code"], &finding["line"]), (&json!("unknown-step"), &json!(4)), "{report:#}");
    site.save("b.yaml", &document("b", "t"));
    total(1);
    assert_eq!(daemon.json("/v1/catalog")["diagnostics"], json!([]));
    save("id: mine\nname: [");
    wait_until("the finding", || daemon.json("/v1/catalog")["diagnostics"] != json!([]));
    assert_eq!(daemon.json("/v1/presets")["total"], 1, "the last good version is offered");
    let reload = daemon.admin("POST", "/-/reload", b"").json();
    assert_eq!((&reload["errors"], &reload["outcome"]), (&json!(1), &json!("unchanged")), "{reload:#}");
    fs::remove_file(site.path("presets/mine.yaml")).unwrap();
    total(0);
}

fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_line_suggests_from_the_daemon_or_from_files() {
    let (site, daemon) = serve_shipped();
    let files = |arguments: &[&str]| {
        let mut command = almanacd();
        command.args(["suggest", "reasoning_detect"]).args(arguments).arg("--tool-metadata").arg(shipped());
        command.env("ALMANAC_PLUGINS", site.path("plugins"));
        run(command.current_dir(site.path("")))
    };
    let (code, out, error) = files(&["--goal", "is there a bias?"]);
    let expected = "\
reasoning_linear             12s  documented for: Rebuild the argument from the premises that survived.
reasoning_reflection         35s  documented for: At least one finding came back and the text has to be corrected.
reasoning_evidence           22s  documented for: A finding says that only favourable data was quoted; weigh the data \
left out.
reasoning_graph           1m 15s  documented for: In evidence-conclusion the checked sources go on into a graph \
for synthesis.
preset bias_detection: reasoning_reflection (35s left)
";
    assert_eq!((code, out.as_str(), error.as_str()), (0, expected, ""));
    let (_, out, _) = files(&["--json", "--history", "reasoning_linear,reasoning_evidence"]);
    let from_files: Value = serde_json::from_str(&out).unwrap();
    let socket = daemon.admin.to_str().unwrap();
    let mut command = almanacd();
    command.args(["suggest", "reasoning_detect", "--json", "--socket", socket]);
    let (code, out, _) = run(command.args(["--history", "reasoning_linear,reasoning_evidence"]));
    assert_eq!((code, serde_json::from_str::<Value>(&out).unwrap()), (0, from_files));
    let context = site.path("context.json");
    fs::write(&context, r#"{"num_outputs": 4, "complexity": "complex"}"#).unwrap();
    assert_eq!(files(&["--context", context.to_str().unwrap()]).0, 0);
    let (code, _, error) = files(&["--context", r#"{"num_output": 4}"#]);
    assert!(code == 64 && error.contains("did you mean `num_outputs`?"), "{error}");
    assert_eq!(files(&["--context", "/nowhere.json"]).0, 64);
    let misspelt = |more: &[&str]| {
        let mut command = almanacd();
        let (code, out, error) = run(command.args(["suggest", "reasoning_detct"]).args(more));
        assert!(code == 1 && out.is_empty() && error.contains("there is no tool `reasoning_detct`"), "{out}{error}");
        assert!(error.contains("did you mean reasoning_detect"), "{error}");
    };
    misspelt(&["--socket", socket]);
    misspelt(&["--tool-metadata", shipped().to_str().unwrap()]);
    fs::copy(reasoning(), site.path("plugins/libalmanac_reasoning.so")).unwrap();
    fs::write(site.path("plugins/libbad.so"), "no library").unwrap();
    let (code, out, error) = files(&["--context", r#"{"num_outputs": 4}"#]);
    assert!(
        code == 0 && out.contains("Rework the argument where biases"),
        "rule libraries are asked without a daemon, too: {out}"
    );
    assert!(error.contains("without libbad: "), "{error}");
}

#[test]
fn check_explains_presets() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    fs::create_dir(site.path("presets")).unwrap();
    fs::write(site.path("presets/p.yaml"), "id: p\nname: n\ndescription: d\ntools: [a, b]\nkeyword: [x]\n").unwrap();
    let check = || {
        let mut command = almanacd();
        command.arg("check").arg("--config").arg(site.path("almanac.yaml")).arg("--tool-metadata").arg(site.tools());
        run(&mut command)
    };
    let (code, out, _) = check();
    assert!(code == 1 && out.contains("did you mean `keywords`?"), "{out}");
    fs::write(site.path("presets/p.yaml"), "id: p\nname: n\ndescription: d\ntools: [a, b]\n").unwrap();
    let (code, out, _) = check();
    assert!(code == 1 && out.contains("error[unknown-step]: `b` is not in the catalog"), "{out}");
}

#[test]
fn eval_measures_predictions() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("sessions.jsonl");
    let line = |tools: [&str; 3]| json!({"session": tools.join("-"), "tools": tools}).to_string();
    let lines = [line(["a", "x", "p"]), line(["b", "x", "q"])].join("\n");
    fs::write(&file, vec![lines; 20].join("\n")).unwrap();
    let eval = |json: bool| {
        let mut command = almanacd();
        command.args(["eval", "next"]).arg(&file).args(json.then_some("--json"));
        run(&mut command)
    };
    let (code, out, _) = eval(true);
    let figures: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &figures["sessions"], &figures["predictions"]), (0, &json!(40), &json!(80)));
    assert!(figures["hit"]["1"].as_f64().unwrap() > 0.9, "{figures}");
    assert!(figures["baseline"]["hit"]["1"].as_f64() < figures["hit"]["1"].as_f64(), "{figures}");
    for rank in ["3", "5"] {
        assert!(figures["hit"][rank].is_f64() && figures["baseline"]["hit"][rank].is_f64());
    }
    let (code, out, _) = eval(false);
    assert!(code == 0 && out.contains("80 calls foretold, of 40 sessions"), "{out}");
    fs::write(&file, "{\"session\":\"s\"}\n").unwrap();
    let (code, _, error) = eval(true);
    assert!(code == 1 && error.contains("line 1: the key `tools` is missing"), "{error}");
}
