//! nginx, serving a file as well as it can: one worker, no access log, no file opened twice, connections that stay
//! open.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::family;
use crate::process::{Process, Server, free_address};

/// Serves `body` at `path`.
pub(crate) fn start(path: &str, body: &[u8]) -> Result<Server> {
    let (home, address) = (TempDir::new()?, free_address()?);
    let file = home.path().join("root").join(path.trim_start_matches('/'));
    fs::create_dir_all(file.parent().context("a path below the root has a parent")?)?;
    fs::write(file, body)?;
    let configuration = home.path().join("nginx.conf");
    fs::write(&configuration, configure(home.path(), address))?;
    let mut command = Command::new(family::find("nginx").context("nginx is not installed")?);
    command.arg("-c").arg(configuration).arg("-p").arg(home.path()).arg("-e").arg(home.path().join("error.log"));
    let mut process = Process::start(command.stderr(Stdio::null()))?;
    process.await_answer(address, path)?;
    Ok(Server { process, address, _home: home })
}

fn configure(home: &Path, address: SocketAddr) -> String {
    let home = home.display();
    // Started by root, the worker would otherwise be somebody who may not read a temporary directory.
    let user = if rustix::process::getuid().is_root() { "user root;" } else { "" };
    let mut temporary = String::new();
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(temporary, "  {kind}_temp_path {home}/{kind};");
    }
    format!(
        "daemon off;
{user}
worker_processes 1;
pid {home}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
{temporary}
  access_log off;
  sendfile on;
  keepalive_requests 1000000000;
  open_file_cache max=100;
  open_file_cache_valid 1h;
  default_type application/json;
  server {{ listen {address}; root {home}/root; }}
}}
"
    )
}
