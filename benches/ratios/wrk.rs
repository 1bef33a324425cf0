//! wrk, the load generator.

use std::io::Write;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::cores::{self, Cores};
use crate::process::Server;

/// Connections that ask at once, where a request does not say another number.
const CONNECTIONS: usize = 64;

/// What a server did under load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// CPU time of the server for one request, in microseconds.
    pub(crate) cpu: f64,
    /// Requests answered in a second.
    pub(crate) rate: f64,
}

/// Asks for one thing as fast as answers come, for `seconds`.
pub(crate) fn load(server: &Server, request: &Request, cores: Cores, seconds: u32) -> Result<Load> {
    let before = server.process.cpu()?;
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", &format!("-c{}", request.connections), &format!("-d{seconds}s")]);
    if let Some(script) = &request.script {
        wrk.arg("-s").arg(script.path());
    }
    if let Some(etag) = &request.etag {
        wrk.args(["-H", &format!("If-None-Match: {etag}")]);
    }
    wrk.arg(format!("http://{}{}", server.address, request.path));
    let output = cores::on(cores.client, || wrk.output().context("cannot run wrk"))?;
    let spent = server.process.cpu()?.saturating_sub(before);
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("wrk failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let requests = count(&text, "requests in").context("wrk did not count")?;
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    let rate = rate.and_then(|rate| rate.trim().parse().ok()).context("wrk did not say the rate")?;
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        bail!("wrk had errors: {text}");
    }
    Ok(Load { cpu: spent.as_secs_f64() * 1e6 / requests, rate })
}

/// What to ask for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// If it is held already.
    pub(crate) etag: Option<String>,
    connections: usize,
    /// What makes a POST of it; wrk takes a body from a file of Lua only.
    script: Option<Arc<NamedTempFile>>,
}

impl Request {
    pub(crate) fn get(path: &str) -> Self {
        Self { path: path.to_owned(), etag: None, connections: CONNECTIONS, script: None }
    }

    pub(crate) fn post(path: &str, body: &Value) -> Result<Self> {
        let mut script = NamedTempFile::new()?;
        writeln!(script, "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"")?;
        writeln!(script, "wrk.body = [==[{body}]==]")?;
        Ok(Self { script: Some(Arc::new(script)), connections: 16, ..Self::get(path) })
    }

    /// For whoever has it already.
    pub(crate) fn unchanged_since(self, etag: String) -> Self {
        Self { etag: Some(etag), ..self }
    }
}

/// The number before `what`.
fn count(text: &str, what: &str) -> Option<f64> {
    text.lines().find_map(|line| line.split_once(what))?.0.trim().parse().ok()
}
