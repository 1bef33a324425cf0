//! An MCP server of the older era that does what is measured and nothing else: this program, started again.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{io, thread};

use anyhow::Result;
use serde_json::{Value, json};

/// The word that makes this program a server; the number of its tools and milliseconds until it speaks follow.
pub(crate) const WORD: &str = "mcp-server";

/// Bytes of the long text.
pub(crate) const LONG: usize = 1 << 20;

/// Bytes of each further tool's description, so that a thousand of them weigh a megabyte.
const DESCRIPTION: usize = 880;

/// Answers until its input ends.
pub(crate) fn serve(tools: usize, start: Duration) -> Result<()> {
    thread::sleep(start);
    let (long, waited) = ("x".repeat(LONG), Arc::new(AtomicUsize::new(0)));
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let (id, params) = (message["id"].clone(), &message["params"]);
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "measured", "version": "1"},
            }),
            "tools/list" => json!({"tools": listed(tools)}),
            "tools/call" => match params["name"].as_str().unwrap_or_default() {
                "echo" => text(params["arguments"]["text"].as_str().unwrap_or_default()),
                "long" => text(&long),
                "waited" => text(&waited.load(Ordering::Relaxed).to_string()),
                "wait" => {
                    waited.fetch_add(1, Ordering::Relaxed);
                    let pause = Duration::from_millis(params["arguments"]["ms"].as_u64().unwrap_or_default());
                    thread::spawn(move || {
                        thread::sleep(pause);
                        say(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}))
                    });
                    continue;
                }
                _ => text("done"),
            },
            _ if id.is_null() => continue,
            _ => {
                say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}}))?;
                continue;
            }
        };
        say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
    }
    Ok(())
}

fn listed(tools: usize) -> Vec<Value> {
    let schema = json!({"type": "object"});
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "inputSchema": schema});
    let own = [("echo", "Echoes."), ("long", "Says much."), ("wait", "Waits."), ("waited", "Counts.")];
    let mut all: Vec<Value> = own.map(|(name, description)| tool(name, description)).into();
    let description = |number: usize| {
        let mut text = format!("Tool {number} moves parcels of the kind {number} from a depot to a harbour. ");
        while text.len() < DESCRIPTION {
            text.push_str("It weighs, labels and books them first. ");
        }
        text
    };
    all.extend((0..tools).map(|number| tool(&format!("t{number}"), &description(number))));
    all
}

fn say(message: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{message}").and_then(|()| out.flush())
}
