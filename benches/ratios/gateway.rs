//! M1–M6: what the gateway costs beside a server that is asked directly, what its lists weigh, and whether long calls
//! arrive. Clients speak over `almanacd mcp`, as agents do; lists are asked for over HTTP.

pub(crate) mod server;
mod talker;

use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::daemon::{Daemon, binary};
use crate::family::{Family, Wanted};
use crate::process::Process;
use crate::quiet;
use crate::row::{Bar, Measured, Row};
use crate::sample::{Pairs, Spread};
use server::{LONG, WORD};
use talker::Talker;

pub(crate) const FAMILY: Family = Family { rows: &["M1", "M2", "M3", "M4", "M5", "M6"], needs: &[], run };

const ROUNDS: usize = 7;
const CALLS: usize = 300;

/// Servers that need long, and how long.
const SLOW: (usize, Duration) = (20, Duration::from_secs(10));

/// Calls that are kept alive.
const KEPT: usize = 20;

fn run(wanted: Wanted<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if wanted("M1") {
        rows.extend(echo()?);
    }
    if ["M2", "M3", "M4"].into_iter().any(wanted) {
        rows.extend(lists()?.into_iter().filter(|row| wanted(row.id)));
    }
    if wanted("M5") {
        rows.push(restart()?);
    }
    if wanted("M6") {
        rows.extend(long_calls()?);
    }
    Ok(rows)
}

/// A daemon in front of some servers, and its documents' directory, which is empty.
struct Gateway {
    daemon: Daemon,
    _documents: TempDir,
}

impl Gateway {
    fn of(servers: usize, tools: usize, start: Duration) -> Result<Self> {
        let documents = TempDir::new()?;
        let daemon = Daemon::of(documents.path(), None)?.with(&configuration(servers, tools, start)?);
        Ok(Self { daemon, _documents: documents })
    }

    /// Starts it, and waits until it has all tools of its servers.
    fn ready(&self, tools: usize) -> Result<Process> {
        let process = self.daemon.ready()?;
        let start = Instant::now();
        while self.list("/mcp/all")?.1 < tools {
            ensure!(start.elapsed() < Duration::from_secs(60), "the servers do not start");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(process)
    }

    /// A client by `almanacd mcp`.
    fn talker(&self) -> Result<Talker> {
        let mut command = Command::new(binary());
        Talker::start(command.arg("mcp").arg("--socket").arg(self.daemon.state()?.join("mcp.sock")))
    }

    /// Bytes of the first page of a list, and how many tools are on all.
    fn list(&self, path: &str) -> Result<(usize, usize)> {
        let mut client = Client::connect(self.daemon.address)?;
        let (mut cursor, mut bytes, mut count) = (Value::Null, None, 0);
        loop {
            let body = post(&mut client, path, "tools/list", json!({"cursor": cursor}))?;
            bytes = bytes.or(Some(body.len()));
            let page: Value = serde_json::from_slice(&body)?;
            count += page["result"]["tools"].as_array().context("no list")?.len();
            cursor = page["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return Ok((bytes.unwrap_or_default(), count));
            }
        }
    }
}

fn configuration(servers: usize, tools: usize, start: Duration) -> Result<String> {
    let program = env::current_exe()?;
    let command = format!("[{}, {WORD}, '{tools}', '{}']", program.display(), start.as_millis());
    let servers: String = (0..servers).map(|number| format!("    s{number}: {{command: {command}}}\n")).collect();
    Ok(format!("mcp:\n  anonymous_calls: true\n  directory: /nonexistent\n  servers:\n{servers}"))
}

/// The body of the answer to a modern request.
fn post(client: &mut Client, path: &str, method: &str, mut params: Value) -> Result<Vec<u8>> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    let headers =
        format!("Accept: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let answer = client.post_with(path, &headers, &body)?;
    ensure!(answer.status() == 200, "{method} was answered {}", answer.status());
    Ok(answer.body().to_vec())
}

fn micros(figure: f64) -> String {
    format!("{figure:.0} µs")
}

/// M1: a call through `almanacd mcp` and the daemon, beside the same one on a server of one's own.
fn echo() -> Result<Vec<Row>> {
    let gateway = Gateway::of(1, 0, Duration::ZERO)?;
    let _process = gateway.ready(4)?;
    let mut through = gateway.talker()?;
    let mut direct = Talker::start(Command::new(env::current_exe()?).args([WORD, "0", "0"]))?;
    let text = json!({"text": "there and back"});
    let [mut short, mut long] = <[Pairs; 2]>::default();
    for _ in quiet::rounds(ROUNDS) {
        short.push(through.median(CALLS, "s0_echo", &text)?, direct.median(CALLS, "echo", &text)?);
        long.push(through.median(CALLS / 10, "s0_long", &json!({}))?, direct.median(CALLS / 10, "long", &json!({}))?);
    }
    let measured = |pairs: &Pairs, figure, bar| Measured {
        ours: micros(pairs.ours()),
        theirs: format!("directly {}", micros(pairs.theirs())),
        figure,
        bar,
    };
    // Clients with an SDK spend ten times the floor's time themselves, so the share is shown and the time is held.
    let more = Bar::at_most(120.0).of(" µs");
    Ok(vec![
        Row::new("M1", "echo over stdio, p50", measured(&short, short.difference(), more)),
        Row::new("M1", "echo over stdio, p50, share", measured(&short, short.ratio(), Bar::OPEN)),
        Row::new(
            "M1",
            format!("text of {} MiB over stdio", LONG >> 20),
            measured(&long, long.ratio(), Bar::at_most(1.2)),
        ),
    ])
}

/// M2–M4: lists and searches over a thousand tools.
fn lists() -> Result<Vec<Row>> {
    let gateway = Gateway::of(1, 1000, Duration::ZERO)?;
    let _process = gateway.ready(1004)?;
    let (size, _) = gateway.list("/mcp/server/s0")?;
    // A document of that size, on a daemon that has nothing else.
    let documents = TempDir::new()?;
    let description = "parcel ".repeat(size / 7);
    let document = json!({
        "name": "large", "title": "Large", "description": description, "category": "x",
        "capabilities": [], "keywords": [], "use_cases": [],
    });
    std::fs::write(documents.path().join("large.json"), document.to_string())?;
    let plain = Daemon::of(documents.path(), None)?.with("catalog:\n  max_document_bytes: 16777216\n");
    let _plain_process = plain.ready()?;
    let found = json!({"name": "find_tools", "arguments": {"query": "move parcels of the kind 77 to the harbour"}});
    let [mut list, mut find] = <[Pairs; 2]>::default();
    for _ in quiet::rounds(ROUNDS) {
        // Anew each time: while the machine is not quiet, an idle connection is closed.
        let (mut client, mut peer) = (Client::connect(gateway.daemon.address)?, Client::connect(plain.address)?);
        let ours = median(CALLS / 10, || Ok(post(&mut client, "/mcp/server/s0", "tools/list", json!({}))?.len()))?;
        let theirs = median(CALLS / 10, || {
            let answer = peer.get("/v1/tools/large", "")?;
            ensure!(answer.status() == 200, "the document of {size} bytes is not served");
            Ok(answer.body().len())
        })?;
        list.push(ours, theirs);
        let ours = median(CALLS, || Ok(post(&mut client, "/mcp", "tools/call", found.clone())?.len()))?;
        find.push(ours, median(CALLS, || Ok(post(&mut client, "/mcp", "server/discover", json!({}))?.len()))?);
    }
    let (default, _) = gateway.list("/mcp")?;
    let figure = default as f64 / 4.0;
    Ok(vec![
        Row::new(
            "M2",
            format!("tools/list, a page of {} kB", size / 1000),
            Measured {
                ours: micros(list.ours()),
                theirs: format!("a document of that size {}", micros(list.theirs())),
                figure: list.ratio(),
                bar: Bar::at_most(1.1),
            },
        ),
        Row::new(
            "M3",
            "find_tools over 1,000 tools",
            Measured {
                ours: micros(find.ours()),
                theirs: format!("server/discover {}", micros(find.theirs())),
                figure: find.difference(),
                bar: Bar::at_most(300.0).of(" µs"),
            },
        ),
        Row::new(
            "M4",
            "the default list over 1,000 tools",
            Measured {
                ours: format!("{default} bytes"),
                theirs: String::new(),
                figure: Spread { median: figure, low: figure, high: figure },
                bar: Bar::at_most(1500.0).of(" tokens"),
            },
        ),
    ])
}

/// The median of some calls, in microseconds.
fn median(calls: usize, mut call: impl FnMut() -> Result<usize>) -> Result<f64> {
    let mut took = Vec::with_capacity(calls);
    for _ in 0..calls {
        let start = Instant::now();
        ensure!(call()? > 0, "an empty answer");
        took.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Spread::of(took).median)
}

/// M5: the first list after a restart, before any server has spoken.
fn restart() -> Result<Row> {
    let (servers, pause) = SLOW;
    let gateway = Gateway::of(servers, 0, Duration::ZERO)?;
    drop(gateway.ready(servers * 4)?);
    let slow = Gateway { daemon: gateway.daemon.with(&configuration(servers, 0, pause)?), ..gateway };
    let mut took = Vec::new();
    for _ in quiet::rounds(3) {
        let process = slow.daemon.ready()?;
        let start = Instant::now();
        let (_, count) = slow.list("/mcp/all")?;
        took.push(start.elapsed().as_secs_f64() * 1e3);
        ensure!(count >= servers * 4, "only {count} tools are listed");
        drop(process);
    }
    Ok(Row::new(
        "M5",
        format!("first list after a restart, {servers} servers of {} s", pause.as_secs()),
        Measured {
            ours: format!("{:.1} ms", Spread::of(took.iter().copied()).median),
            theirs: String::new(),
            figure: Spread::of(took),
            bar: Bar::at_most(50.0).of(" ms"),
        },
    ))
}

/// M6: calls that outlast their clients.
fn long_calls() -> Result<Vec<Row>> {
    let gateway = Gateway::of(1, 0, Duration::ZERO)?;
    let _process = gateway.ready(4)?;
    let limit = Duration::from_millis(700);
    let kept = thread::scope(|scope| {
        let one = || -> Result<bool> {
            let params = json!({
                "name": "s0_wait", "arguments": {"ms": 2000},
                "_meta": {"progressToken": "p", "dev.almanac/timeoutMs": limit.as_millis() as u64},
            });
            let told = gateway.talker()?.ask("tools/call", &params)?;
            Ok(told.longest_silence <= limit && told.line.contains("\"result\""))
        };
        let calls: Vec<_> = (0..KEPT).map(|_| scope.spawn(one)).collect();
        calls
            .into_iter()
            .map(|call| call.join().is_ok_and(|arrived| arrived.unwrap_or(false)))
            .filter(|kept| *kept)
            .count()
    });
    let executed = |talker: &mut Talker| -> Result<f64> {
        let told: Value = serde_json::from_str(&talker.call("s0_waited", &json!({}))?.line)?;
        Ok(told["result"]["content"][0]["text"].as_str().context("no count")?.parse()?)
    };
    let mut talker = gateway.talker()?;
    let before = executed(&mut talker)?;
    let five = || -> Result<Vec<f64>> {
        thread::scope(|scope| {
            let calls: Vec<_> = (0..5).map(|_| scope.spawn(|| questions(&gateway))).collect();
            calls.into_iter().map(|call| call.join().unwrap_or(Ok(f64::NAN))).collect()
        })
    };
    // How long it takes is learnt by the first ones.
    let learnt = five()?;
    let questions = five()?;
    let again = executed(&mut talker)? - before - (learnt.len() + questions.len()) as f64;
    let exactly = |figure: f64| Spread { median: figure, low: figure, high: figure };
    let row = |what: &str, ours: String, figure: Spread, bar: Bar| {
        Row::new("M6", what, Measured { ours, theirs: String::new(), figure, bar })
    };
    let asked = Spread::of(questions);
    let all = Bar::at_least(KEPT as f64).of(" calls");
    Ok(vec![
        row("2 s, limit .7 s, kept alive", format!("{kept} of {KEPT}"), exactly(kept as f64), all),
        row("8 s, limit 2 s: questions", format!("{:.0}", asked.median), asked, Bar::at_most(2.0).of(" questions")),
        row("8 s, limit 2 s: executed again", format!("{again:.0}"), exactly(again), Bar::at_most(0.0).of(" times")),
    ])
}

/// How often a client of a limit of 2 s asks until it has the result of a call of 8 s, if it asks when it is told to.
fn questions(gateway: &Gateway) -> Result<f64> {
    let mut talker = gateway.talker()?;
    let meta = json!({"dev.almanac/timeoutMs": 2000});
    let wait = json!({"name": "s0_wait", "arguments": {"ms": 8000}});
    let mut params = json!({"name": "call_tool", "arguments": wait, "_meta": meta});
    for asked in 1..=20 {
        let told = talker.ask("tools/call", &params)?;
        let answer: Value = serde_json::from_str(&told.line)?;
        let Some(handle) = answer["result"]["structuredContent"]["handle"].as_str() else {
            return Ok(f64::from(asked));
        };
        let pause = answer["result"]["structuredContent"]["ask_in_seconds"].as_f64().unwrap_or_default();
        thread::sleep(Duration::from_secs_f64(pause));
        params = json!({"name": "get_result", "arguments": {"handle": handle}, "_meta": meta});
    }
    Ok(f64::NAN)
}
