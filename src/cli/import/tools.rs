//! A document for each tool of an MCP server.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::catalog::document::ToolMetadata;
use crate::cli::output::Output;
use crate::cli::{CliError, Exit};
use crate::mcp::document_of;
use crate::strict::load;
use crate::strict::read::Limits;
use crate::telemetry::Metrics;
use crate::upstream::{Listed, ListedTool, MAX_NAME, ServerSettings, Settings, Upstreams, public_name};

/// Largest document, in bytes.
const MAX_DOCUMENT: usize = 1 << 20;

/// How long the server may take to end.
const GRACE: Duration = Duration::from_millis(100);

pub(super) fn import(
    command: &[String],
    name: Option<&str>,
    out: &Path,
    is_update: bool,
    output: &mut Output,
) -> Result<Exit, CliError> {
    let server = name.map_or_else(|| server_name(command), ToOwned::to_owned);
    let listed = listed(&server, command)?;
    fs::create_dir_all(out).map_err(|source| CliError::Write { file: out.display().to_string(), source })?;
    let mut written: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for tool in &listed.tools {
        let fresh = document(&server, tool);
        let file = out.join(format!("{}.yaml", fresh.name));
        let outcome = save(fresh, &file, is_update)?;
        written.entry(outcome).or_default().push(file.display().to_string());
    }
    let counts = |what: &str| written.get(what).map_or(0, Vec::len);
    let report = json!({
        "server": server, "written": counts("written"), "updated": counts("updated"), "unchanged": counts("unchanged"),
        "kept": written.get("kept").cloned().unwrap_or_default(),
    });
    output.show(&report, |out| {
        for file in written.get("kept").into_iter().flatten() {
            out.note(&format!("{file} is there already; --update brings it up to date"));
        }
        let line = ["written", "updated", "unchanged"].map(|what| format!("{} {what}", counts(what)));
        out.line(&format!("{server}: {}", line.join(", ")));
    });
    Ok(if counts("kept") == 0 { Exit::Success } else { Exit::Failure })
}

/// What is left of the program's name as a server's.
fn server_name(command: &[String]) -> String {
    let runners = ["npx", "uvx", "node", "python", "python3", "docker", "run", "-y", "-i", "--rm"];
    let word = command.iter().find(|word| !runners.contains(&word.as_str()) && !word.starts_with('-'));
    let base = word.map_or("server", |word| word.rsplit('/').next().unwrap_or(word));
    super::clients::plain_name(base.split(['.', '@']).find(|part| !part.is_empty()).unwrap_or(base))
}

fn listed(server: &str, command: &[String]) -> Result<Arc<Listed>, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(CliError::Runtime)?;
    let metrics = Metrics::new().map_err(|error| CliError::Arguments(error.to_string()))?;
    let kept = std::env::temp_dir().join(format!("almanacd-import-{}", std::process::id()));
    let settings = ServerSettings { command: Some(command.to_vec()), ..ServerSettings::default() };
    let settings = Settings {
        servers: BTreeMap::from([(server.to_owned(), settings)]),
        directory: PathBuf::new(),
        kept: kept.clone(),
        watch: false,
        ..Settings::default()
    };
    let servers = Upstreams::start(settings, Arc::new(metrics), runtime.handle(), "/proc/self/exe".into());
    let servers = servers.map_err(CliError::Runtime)?;
    let outcome = runtime.block_on(async {
        let mut changes = servers.changes();
        loop {
            if let Some(state) = servers.server(server) {
                if let (true, Some(listed)) = (state.is_up, &state.listed) {
                    return Ok(Arc::clone(listed));
                }
                if let Some(problem) = &state.problem {
                    let said = servers.logs(server).unwrap_or_default().join("\n  ");
                    return Err(CliError::Arguments(format!("{server} does not serve: {problem}\n  {said}")));
                }
            }
            if changes.changed().await.is_err() {
                return Err(CliError::Arguments(format!("{server} was not started")));
            }
        }
    });
    runtime.block_on(servers.stop(GRACE));
    // Lists that nobody asks for any more.
    let _ = fs::remove_dir_all(kept);
    outcome
}

fn document(server: &str, tool: &ListedTool) -> ToolMetadata {
    let name = public_name(&server.replace('_', "-"), &tool.name, MAX_NAME);
    document_of(&name, server, &tool.json)
}

/// Writes a document, or what the server owns of one that is there. Says what was done.
fn save(fresh: ToolMetadata, file: &Path, is_update: bool) -> Result<&'static str, CliError> {
    let (document, outcome) = if file.exists() {
        let known: ToolMetadata = load::load(file, &Limits::of_bytes(MAX_DOCUMENT)).map_err(CliError::Config)?;
        let (description, backend) = (fresh.description.clone(), fresh.backend.clone());
        let updated = ToolMetadata { description, backend, input_schema: fresh.input_schema.clone(), ..known.clone() };
        // Not touched, so that comments stay.
        if updated == known {
            return Ok("unchanged");
        }
        if !is_update {
            return Ok("kept");
        }
        (updated, "updated")
    } else {
        (fresh, "written")
    };
    let write = |source| CliError::Write { file: file.display().to_string(), source };
    let text = serde_yaml::to_string(&document).map_err(|error| write(std::io::Error::other(error)))?;
    fs::write(file, text).map_err(write)?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn servers_are_named_by_their_programs() {
        let check = |command: &str, expected: &str| {
            let command: Vec<String> = command.split(' ').map(ToOwned::to_owned).collect();
            assert_eq!(server_name(&command), expected, "{command:?}");
        };
        check("npx -y @modelcontextprotocol/server-everything", "server-everything");
        check("uvx mcp-server-time@1.2", "mcp-server-time");
        check("/usr/bin/My_Server.py --x", "my_server");
        check("npx -y", "server");
    }

    #[test]
    fn what_people_wrote_stays() {
        let directory = tempfile::tempdir().unwrap();
        let tool = |description: &str| {
            let json = format!(r#"{{"name":"t","description":"{description}","inputSchema":{{"type":"object"}}}}"#);
            let json = RawValue::from_string(json).unwrap();
            document("a_b", &ListedTool { name: "t".to_owned(), json, is_blocked: false })
        };
        let file = directory.path().join("t.yaml");
        assert_eq!(tool("x").name, "a-b_t");
        assert_eq!(save(tool("old"), &file, false).unwrap(), "written");
        let first = fs::read_to_string(&file).unwrap();
        assert!(first.contains("backend: mcp:a_b") && first.contains("use_cases: []"), "{first}");
        fs::write(&file, format!("# by hand\n{}", first.replace("keywords: []", "keywords: [mine]"))).unwrap();
        assert_eq!(save(tool("old"), &file, true).unwrap(), "unchanged");
        assert!(fs::read_to_string(&file).unwrap().starts_with("# by hand"));
        assert_eq!(save(tool("new"), &file, false).unwrap(), "kept");
        assert_eq!(save(tool("new"), &file, true).unwrap(), "updated");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("- mine") && text.contains("description: new"), "{text}");
    }
}
