//! wrk, the load generator.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cores::{self, Cores};
use crate::process::Server;

/// Connections that ask at once.
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
    wrk.args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{seconds}s")]);
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
}

/// The number before `what`.
fn count(text: &str, what: &str) -> Option<f64> {
    text.lines().find_map(|line| line.split_once(what))?.0.trim().parse().ok()
}
