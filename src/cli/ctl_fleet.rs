//! `almanacd ctl fleet`: the daemons that share the database, one a line, and what is wrong with each.

use std::time::Duration;

use super::client::Client;
use super::output::{Output, counted};
use super::{CliError, Exit, block_on};
use crate::store::DaemonState;
use crate::wire::catalog::DatabaseState;
use crate::wire::fleet::{FleetAnswer, FleetDaemonItem};

/// Seconds behind the others from which on it is said.
const LATE_SECONDS: f64 = 10.0;

/// Lists them.
pub(super) fn run(client: &Client, output: &mut Output) -> Result<Exit, CliError> {
    let answer: FleetAnswer = block_on(client.ask("GET", "/v1/fleet", None))?;
    output.show(&answer, |out| {
        for daemon in &answer.items {
            out.line(&line(daemon));
            for fault in faults(daemon) {
                out.line(&format!("         {fault}"));
            }
        }
        if answer.items.is_empty() {
            out.line("this daemon is alone: `store.url` names a database that several share");
        }
        for reason in &answer.degraded {
            out.note(&format!("the other daemons cannot be listed: {reason}"));
        }
        if answer.items.len() < answer.total && answer.degraded.is_empty() {
            out.note(&format!("{} of {} daemons", answer.items.len(), answer.total));
        }
    });
    let is_well = answer.degraded.is_empty() && answer.items.iter().all(|daemon| faults(daemon).is_empty());
    Ok(if is_well { Exit::Success } else { Exit::Failure })
}

fn line(daemon: &FleetDaemonItem) -> String {
    let FleetDaemonItem { id, host, state, .. } = daemon;
    let version = daemon.version.as_ref().map_or_else(String::new, |version| format!(", version {version}"));
    let since = daemon.started_at.as_ref().map_or_else(String::new, |at| format!(", started {at}"));
    let answers = if daemon.is_self { ", answers" } else { "" };
    format!("{state:<8} {id} on {host}{version}{since}{answers}")
}

fn faults(daemon: &FleetDaemonItem) -> Vec<String> {
    let mut found = Vec::new();
    if daemon.state == DaemonState::Silent.as_str() {
        found.push(format!("not heard of for {}, since {}", time(daemon.unseen_seconds), daemon.seen_at));
    }
    if let Some(database) = &daemon.database {
        let is_gone = daemon.state != DaemonState::Alive.as_str();
        found.extend(faults_of(database, is_gone));
    }
    found
}

fn faults_of(database: &DatabaseState, is_gone: bool) -> Vec<String> {
    let mut found: Vec<String> = database.trouble.iter().map(|trouble| format!("database: {trouble}")).collect();
    if database.waiting > 0 {
        let (records, oldest) = (counted(database.waiting as u64, "record"), time(database.oldest_seconds));
        found.push(format!("only on its machine: {records}, the oldest for {oldest}"));
    }
    if database.put_aside > 0 {
        found.push(format!("put aside in its spool.refused: {}", counted(database.put_aside, "record")));
    }
    if !is_gone && database.behind > 0 && database.followed_seconds > LATE_SECONDS {
        found.push(format!("behind the others by {}, for {}", database.behind, time(database.followed_seconds)));
    }
    found
}

fn time(seconds: f64) -> String {
    humantime::format_duration(Duration::from_secs(seconds as u64)).to_string()
}
