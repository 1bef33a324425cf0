//! Rules through the real table: what they see, and what becomes of their faults.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::sync::atomic::{AtomicUsize, Ordering};

use almanac_plugin::testing::{Call, Driver, Failure, MOST_SUGGESTIONS, Tool};
use almanac_plugin::{Complexity, Error, Level, Request, Rule, Setup, Sink, Snapshot, abi};

/// Says what it sees, and does as the tool's name says.
struct Echo {
    seen: Vec<String>,
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

impl Drop for Echo {
    fn drop(&mut self) {
        if self.seen.iter().any(|seen| seen == "counted") {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        assert!(!self.seen.iter().any(|seen| seen == "fragile"), "in the drop");
    }
}

impl Rule for Echo {
    fn create(setup: &Setup<'_>) -> Result<Self, Error> {
        setup.host().log(Level::Info, format_args!("config {}", setup.config()));
        match setup.config() {
            "panic" => panic!("in create"),
            "number" => Err(Box::new("x".parse::<u8>().unwrap_err())),
            "word" => Err("threshold: above 1".into()),
            _ => Ok(Self { seen: Vec::new() }),
        }
    }

    fn on_snapshot(&mut self, snapshot: &Snapshot<'_>) {
        assert!(snapshot.generation() != 13, "unlucky");
        self.seen = snapshot
            .tools()
            .map(|tool| format!("{} {} {:?} {:?}", tool.name, tool.category, tool.capabilities, tool.keywords))
            .collect();
        assert_eq!(self.seen.len(), snapshot.len());
    }

    fn suggest(&mut self, request: &Request<'_>, sink: &mut Sink<'_>) {
        match request.tool() {
            "see" => sink.suggest("seen", &format!("{:?}", self.seen), 1.0),
            "panic" => panic!("on {}", request.tool()),
            "counted" | "fragile" => {
                self.seen.push(request.tool().to_owned());
                panic!("on purpose");
            }
            "many" => {
                while !sink.is_full() {
                    sink.suggest("tool", "again", 0.5);
                }
                sink.suggest("tool", "too late", 0.5);
            }
            "odd" => {
                for (tool, reason, score) in [
                    ("", "r", 0.0),
                    ("t", "", 0.0),
                    ("t", "r", f64::NAN),
                    ("low", "r", -3.0),
                    ("high", "r", f64::INFINITY),
                ] {
                    sink.suggest(tool, reason, score);
                }
            }
            "wait" => {
                let before = request.host().now();
                while request.host().now() == before {}
                let cancelled = request.host().is_cancelled();
                sink.suggest("waited", if cancelled { "cancelled" } else { "wanted" }, 0.0);
            }
            _ => sink.suggest("seen", &format!("{request:?}"), 1.0),
        }
    }
}

fn driver() -> Driver {
    Driver::new::<Echo>("{}").unwrap()
}

#[track_caller]
fn check(call: &Call, expected: &[(&str, &str, f64)]) {
    let suggested = driver().suggest(call).unwrap();
    let suggested: Vec<_> = suggested.iter().map(|one| (one.tool.as_str(), one.reason.as_str(), one.score)).collect();
    assert_eq!(suggested, expected);
}

#[test]
fn sees_all_of_a_request() {
    let call = Call::after("web_search")
        .mode("deep")
        .complexity(Complexity::Moderate)
        .outputs(4)
        .branches(true)
        .session("")
        .goal("größer")
        .history(&["a", "b", "a"])
        .fact("z", "2")
        .fact("k", "1");
    let seen = "Request { host: Host { abi_minor: 0, .. }, complexity: 2, generation: 1, tool: \"web_search\", \
        mode: Some(\"deep\"), session_id: Some(\"\"), goal: Some(\"größer\"), num_outputs: 4, has_branches: true, \
        history: [\"a\", \"b\", \"a\"], context: {\"k\": \"1\", \"z\": \"2\"}, deadline_ns: 0 }";
    check(&call, &[("seen", seen, 1.0)]);
    let seen = "Request { host: Host { abi_minor: 0, .. }, complexity: 0, generation: 1, tool: \"bare\", mode: None, \
        session_id: None, goal: None, num_outputs: 0, has_branches: false, history: [], context: {}, deadline_ns: 0 }";
    check(&Call::after("bare"), &[("seen", seen, 1.0)]);
}

#[test]
fn sees_the_catalog_ordered_by_name() {
    let mut driver = driver();
    let tool = Tool { capabilities: vec!["get".into(), "put".into()], ..Tool::new("b", "web") };
    driver.snapshot(7, &[tool, Tool::new("a", "")]).unwrap();
    let seen = driver.suggest(&Call::after("see")).unwrap().remove(0).reason;
    assert_eq!(seen, r#"["a  [] []", "b web [\"get\", \"put\"] []"]"#);
}

#[test]
fn the_sink_refuses_clamps_and_stops() {
    check(&Call::after("odd"), &[("low", "r", 0.0), ("high", "r", 1.0)]);
    check(&Call::after("many"), &[("tool", "again", 0.5); MOST_SUGGESTIONS]);
}

#[test]
fn the_clock_runs_and_a_call_can_be_cancelled() {
    check(&Call::after("wait"), &[("waited", "wanted", 0.0)]);
    let mut driver = driver();
    driver.cancel(true);
    assert_eq!(driver.suggest(&Call::after("wait")).unwrap()[0].reason, "cancelled");
}

#[test]
fn an_instance_that_cannot_be_made_says_why() {
    for (config, code, reason) in [
        ("number", abi::code::CONFIG, "invalid digit found in string"),
        ("word", abi::code::CONFIG, "threshold: above 1"),
        ("panic", abi::code::PANICKED, "create panicked: in create"),
    ] {
        assert_eq!(Driver::new::<Echo>(config).unwrap_err(), Failure { code, reason: Some(reason.into()) });
    }
    assert_eq!(driver().messages(), [(abi::level::INFO, "config {}".to_owned())]);
}

#[test]
fn a_panic_ends_the_instance_and_nothing_else() {
    let failure = |reason: &str| Failure { code: abi::code::PANICKED, reason: Some(reason.into()) };
    let mut driver = driver();
    assert_eq!(driver.snapshot(13, &[]).unwrap_err(), failure("on_snapshot panicked: unlucky"));
    assert_eq!(driver.suggest(&Call::after("see")).unwrap_err(), failure("on_snapshot panicked: unlucky"));

    let mut driver = Driver::new::<Echo>("{}").unwrap();
    assert_eq!(driver.suggest(&Call::after("panic")).unwrap_err(), failure("suggest panicked: on panic"));

    let mut driver = Driver::new::<Echo>("{}").unwrap();
    assert_eq!(driver.suggest(&Call::after("counted")).unwrap_err(), failure("suggest panicked: on purpose"));
    assert_eq!(DROPPED.load(Ordering::Relaxed), 1, "dropped with the panic");
    drop(driver);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 1, "and not again");

    let mut driver = Driver::new::<Echo>("{}").unwrap();
    let twice = failure("the drop after the panic panicked: in the drop");
    assert_eq!(driver.suggest(&Call::after("fragile")).unwrap_err(), twice);
}
