//! An MCP client of the older era on a program's pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

pub(crate) struct Talker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

/// An answer, and the longest silence before it.
pub(crate) struct Told {
    pub(crate) line: String,
    pub(crate) longest_silence: Duration,
}

impl Talker {
    /// Starts the program, and introduces itself.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("no output")?);
        let mut talker = Self { child, input, output, next: 0 };
        let client = json!({"name": "bench", "version": "1"});
        let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        talker.ask("initialize", &greeting)?;
        talker.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(talker)
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().context("the input is closed")?;
        Ok(writeln!(input, "{message}").and_then(|()| input.flush())?)
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Told> {
        self.next += 1;
        let id = format!("\"id\":{}", self.next);
        self.write(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}))?;
        let (mut line, mut longest, mut heard) = (String::new(), Duration::ZERO, Instant::now());
        loop {
            line.clear();
            ensure!(self.output.read_line(&mut line)? > 0, "the program ended");
            longest = longest.max(heard.elapsed());
            heard = Instant::now();
            // What is told meanwhile has no id of ours, which stands at one of the ends.
            let end = line.trim_end().len();
            let ends = [line.get(..end.min(60)), line.get(end.saturating_sub(60)..end)];
            if ends.iter().flatten().any(|part| part.contains(&id)) {
                return Ok(Told { line, longest_silence: longest });
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Told> {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The median of some calls, in microseconds.
    pub(crate) fn median(&mut self, calls: usize, tool: &str, arguments: &Value) -> Result<f64> {
        let mut took = Vec::with_capacity(calls);
        for _ in 0..calls {
            let start = Instant::now();
            let told = self.call(tool, arguments)?;
            took.push(start.elapsed().as_secs_f64() * 1e6);
            ensure!(told.line.contains("\"content\""), "not a result: {}", told.line);
        }
        Ok(crate::sample::Spread::of(took).median)
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        self.input.take();
        // What failed here has ended already.
        let _ = self.child.wait();
    }
}
