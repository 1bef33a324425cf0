//! A document for each tool of an MCP server.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::documents::Written;
use crate::catalog::document::ToolMetadata;
use crate::cli::output::Output;
use crate::cli::{CliError, Exit};
use crate::mcp::document_of;
use crate::telemetry::Metrics;
use crate::upstream::{Listed, ListedTool, MAX_NAME, ServerSettings, Settings, Upstreams, name_fault, public_name};

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
    if let Some(fault) = name_fault(&server) {
        return Err(CliError::Import(fault));
    }
    let listed = listed(&server, command)?;
    let documents = listed.tools.iter().map(|tool| document(&server, tool)).collect();
    Ok(Written::write(documents, out, is_update)?.tell(&server, output))
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
    let metrics = Metrics::new().map_err(|error| CliError::Import(error.to_string()))?;
    let kept = std::env::temp_dir().join(format!("almanacd-import-{}", std::process::id()));
    // As a shell would run it.
    let cwd = std::env::current_dir().ok();
    let settings = ServerSettings { command: Some(command.to_vec()), cwd, ..ServerSettings::default() };
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
                    return Err(CliError::Import(format!("{server} does not serve: {problem}\n  {said}")));
                }
            }
            if changes.changed().await.is_err() {
                return Err(CliError::Import(format!("{server} was not started")));
            }
        }
    });
    runtime.block_on(servers.stop(GRACE));
    // Lists that nobody asks for any more.
    let _ = fs::remove_dir_all(kept);
    outcome
}

fn document(server: &str, tool: &ListedTool) -> ToolMetadata {
    document_of(&public_name(&server.replace('_', "-"), &tool.name, MAX_NAME), server, &tool.json)
}

/// The document of a tool that a server describes by `value`. Without a server's name it has no backend.
pub(super) fn described(server: &str, tool: &str, value: &Value) -> ToolMetadata {
    crate::mcp::document_of_value(&public_name(&server.replace('_', "-"), tool, MAX_NAME), server, value)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::super::documents::save;
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
        assert!(text.starts_with("# by hand") && text.contains("keywords: [mine]"), "{text}");
        assert!(text.contains("description: new"), "{text}");
    }
}
