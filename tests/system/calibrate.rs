//! Calibration: commands and histories, measured and recorded.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::daemon::{Site, almanacd, wait_until};

/// Exit code, standard output and standard error.
fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn calibrate(site: &Site, arguments: &[&str]) -> Command {
    let mut command = almanacd();
    command.arg("calibrate").args(arguments).current_dir(site.path(""));
    command
}

/// The lines of a file of defaults that are no comments.
fn written(site: &Site) -> String {
    let text = fs::read_to_string(site.path("out.yaml")).unwrap();
    almanac::timing::Defaults::parse(&site.path("out.yaml"), text.as_bytes()).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_command_is_measured_and_every_call_recorded() {
    let site = Site::new();
    let daemon = site.start();
    let seen = site.path("seen");
    let script = format!(
        "echo \"$ALMANAC_TOOL $ALMANAC_MODE $ALMANAC_COMPLEXITY $ALMANAC_CONTENT_LENGTH $ALMANAC_NUM_PERSPECTIVES \
         $ALMANAC_NUM_BRANCHES $ALMANAC_THINKING_BUDGET\" >> {}; echo noise; sleep 0.02",
        seen.display()
    );
    let arguments =
        ["--exec", &script, "--runs", "2", "--tool", "reasoning_linear", "--mode", "m", "--out", "out.yaml"];
    let (code, out, error) = run(calibrate(&site, &arguments).arg("--socket").arg(&daemon.admin));
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("\nCalibration complete. 6 samples recorded.\n"), "{out}");
    assert!(!out.contains("noise"), "{out}");
    let calls: Vec<String> = fs::read_to_string(seen).unwrap().lines().map(str::to_owned).collect();
    let call = |rest: &str| [format!("reasoning_linear m {rest}"), format!("reasoning_linear m {rest}")];
    let expected = [call("simple 500 0 0 0"), call("moderate 3000 3 3 4096"), call("complex 12000 4 4 8192")].concat();
    assert_eq!(calls, expected);
    let learnt = daemon.json("/v1/timing/reasoning_linear");
    assert_eq!((&learnt["items"][0]["mode"], &learnt["items"][0]["samples"]), (&json!("m"), &json!(6)));

    let text = written(&site);
    let linear = text.lines().find_map(|line| line.strip_prefix("  reasoning_linear: ")).unwrap();
    assert!((20..2000).contains(&linear.parse::<u64>().unwrap()), "{text}");
    assert!(text.contains("  reasoning_mcts: 90000\n") && text.contains("measure: num_perspectives"), "{text}");
    assert!(text.contains("unknown_tool_ms: 15000\n"), "{text}");
    assert!(out.contains("reasoning_linear: 12000 ms before, "), "{out}");
    let (code, _, error) = run(&mut calibrate(&site, &["--exec", "true", "--tool", "reasoning_liner", "--no-record"]));
    assert!(code == 1 && error.contains("did you mean reasoning_linear?"), "{error}");
}

#[test]
fn a_history_becomes_defaults_once() {
    let site = Site::new();
    let daemon = site.start();
    let rows = "a,,10,success,0\na,,30,success,0\na,x,999,error,0\na,,90,success,4\nb,,0,success,\nc,,7,error,\n";
    fs::write(site.path("h.csv"), format!("tool,mode,duration_ms,outcome,num_perspectives\n{rows}")).unwrap();
    // The defaults beside the configuration are the ones that are kept.
    let present =
        "unknown_tool_ms: 7\nfactors:\n- {measure: num_perspectives, at_least: 3, factor: 2.5}\ntools: {a: 5, z: 6}\n";
    fs::write(site.path("timing-defaults.yaml"), present).unwrap();
    let from = || {
        let mut command =
            calibrate(&site, &["--from", "h.csv", "--out", "out.yaml", "--config", "almanac.yaml", "--socket"]);
        run(command.arg(&daemon.admin))
    };
    let (code, out, error) = from();
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("\nCalibration complete. 6 samples recorded.\n"), "{out}");
    let expected = "\nunknown_tool_ms: 7\n\nfactors:\n  - { measure: num_perspectives, at_least: 3, factor: 2.5 }\n\n\
                    measured:\n  b: 1\n  a: 20\n\ntools:\n  a: 5\n  z: 6\n";
    assert_eq!(written(&site), expected);
    assert_eq!(daemon.json("/v1/timing/a")["total"], 2, "its calls and its failures");
    let other = daemon.get("/v1/timing/a?mode=other");
    assert!(other.status == 404 && other.text().contains("in the mode `other`; it was in "), "{}", other.text());
    let (code, out, _) = from();
    assert!(code == 0 && out.ends_with(" 0 samples recorded.\n"), "known already: {out}");

    let only = ["--from", "h.csv", "--tool", "a", "--no-record", "--json"];
    let (code, out, error) = run(&mut calibrate(&site, &only));
    let figures: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}"));
    // Without a file of its own, the shipped factors apply, by which 4 perspectives are complex as well.
    let simple = json!({"complexity": "simple", "calls": 3, "errors": 1, "timeouts": 0, "median_ms": 20});
    let complex = json!({"complexity": "complex", "calls": 1, "errors": 0, "timeouts": 0, "median_ms": 90});
    let changes = json!([{"tool": "a", "before_ms": 15_000, "after_ms": 20}]);
    let tools = json!([{"tool": "a", "default_ms": 20, "levels": [simple, complex]}]);
    let expected = json!({"recorded": 0, "tools": tools, "changes": changes});
    assert_eq!((code, figures), (0, expected));
}

#[test]
fn failures_are_recorded_but_are_no_measurement() {
    let site = Site::new();
    let daemon = site.start();
    let arguments = ["--exec", "exit 3", "--runs", "2", "--tool", "a", "--out", "out.yaml"];
    let (code, out, error) = run(calibrate(&site, &arguments).arg("--socket").arg(&daemon.admin));
    assert!(code == 1 && error.contains("nothing could be measured"), "{out}{error}");
    assert!(!out.contains("complete"), "{out}");
    assert!(!site.path("out.yaml").exists());
    let learnt = daemon.json("/v1/timing/a");
    assert_eq!((&learnt["items"][0]["mode"], &learnt["items"][0]["samples"]), (&json!("#error"), &json!(6)));
}

#[test]
fn a_call_beyond_its_limit_is_killed_with_its_children() {
    let site = Site::new();
    let arguments = ["--runs", "1", "--tool", "a", "--timeout-ms", "100", "--no-record", "--json"];
    let started = Instant::now();
    let (code, out, _) = run(&mut calibrate(&site, &[&arguments[..], &["--exec", "sleep 60; true"]].concat()));
    assert!(started.elapsed().as_secs() < 30, "it is not waited for");
    let figures: Value = serde_json::from_str(&out).unwrap();
    let simple = json!({"complexity": "simple", "calls": 1, "errors": 0, "timeouts": 1, "median_ms": null});
    assert_eq!((code, &figures["tools"][0]["levels"][0]), (1, &simple));
}

#[test]
fn an_interrupted_calibration_leaves_nothing_behind() {
    let site = Site::new();
    let (begun, ended) = (site.path("begun"), site.path("ended"));
    let script = format!("echo $$ > {}; sleep 60; touch {}", begun.display(), ended.display());
    let arguments = ["--exec", &script, "--tool", "a", "--no-record", "--out", "out.yaml"];
    let child = calibrate(&site, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the first call", || fs::read_to_string(&begun).is_ok_and(|id| id.ends_with('\n')));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && error.contains("interrupted; 0 samples"), "{error}");
    assert!(!site.path("out.yaml").exists() && !ended.exists());
    let id = fs::read_to_string(&begun).unwrap();
    let process = format!("/proc/{}/cmdline", id.trim());
    wait_until("the call's end", || fs::read(&process).map_or(true, |line| line.is_empty()));
}

#[test]
fn without_a_daemon_nothing_is_measured() {
    let site = Site::new();
    let touch = format!("touch {}", site.path("touched").display());
    let (code, _, error) = run(&mut calibrate(&site, &["--exec", &touch, "--tool", "a", "--socket", "/nowhere.sock"]));
    assert!(code == 1 && error.contains("is it running?"), "{error}");
    assert!(!site.path("touched").exists());
    for arguments in [&["--tool", "a"][..], &["--exec", "true", "--from", "x"], &["--exec", "true", "--tool", "a/b"]] {
        assert_eq!(run(&mut calibrate(&site, arguments)).0, 64, "{arguments:?}");
    }
}

#[test]
fn a_history_is_drawn_and_compared() {
    let site = Site::new();
    let rows: String = (0..40).map(|call| format!("h,a,<m>,{},success\nh,b,,5,success\n", 900 + call)).collect();
    fs::write(site.path("h.csv"), format!("host,tool,mode,duration_ms,outcome\n{rows}h,b,,5,timeout\n")).unwrap();
    let eval = |arguments: &[&str]| {
        let mut command = almanacd();
        run(command.args(["eval", "timing", "h.csv"]).args(arguments).current_dir(site.path("")))
    };
    let (code, out, error) = eval(&["--plot", "p.svg", "--plot-key", "a/<m>"]);
    assert!(code == 0 && out.contains("running median") && error.contains("40 of 40 calls of a/<m>"), "{out}{error}");
    let picture = fs::read_to_string(site.path("p.svg")).unwrap();
    assert!(picture.contains("a/&lt;m&gt;: forecast") && !picture.contains("<m>"), "{picture}");
    assert_eq!(eval(&["--plot", "p.svg"]).0, 0);
    let picture = fs::read_to_string(site.path("p.svg")).unwrap();
    assert!(picture.contains("b: forecast") && picture.contains("calls 1 to 41 of 41 on h"), "{picture}");
    let (code, _, error) = eval(&["--plot", "p.svg", "--plot-key", "c"]);
    assert!(code == 1 && error.contains("no calls of c"), "{error}");

    let header = "p05_ms,p50_ms,p90_ms,p95_ms,estimated_ms,p_over_30s,p_within_20pct,p_within_x2,confidence";
    fs::write(site.path("v.csv"), format!("{header}\n1,15000,3,4,5,0.5,0.5,0.5,medium\n")).unwrap();
    let (code, out, _) = eval(&["--answers", "v.csv", "--json"]);
    let agreement: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &agreement["rows"], &agreement["other_confidence"]), (0, &json!(1), &json!(1)));
    assert!(agreement["p50"]["max"].as_f64().unwrap() < 0.1, "{agreement}");
    let (code, out, _) = eval(&["--answers", "v.csv"]);
    assert!(code == 0 && out.starts_with("1 calls answered by both\n"), "{out}");
}
