//! A client of the daemon, which prints what it was told as JSON.

use std::error::Error;
use std::io::Write as _;

use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, JsonObject, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use tokio::process::Command;

type Client = RunningService<RoleClient, ClientConfig>;

/// Lists and calls the tools of a server whose names begin with `prefix`, by the URL or command that is the target.
pub(crate) async fn ask(prefix: &str, mode: &str, target: &str, more: &[&str]) -> Result<(), Box<dyn Error>> {
    let (client, lifecycle) = (ClientConfig::default(), lifecycle(mode)?);
    let client = if more.is_empty() {
        client.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(target), lifecycle).await?
    } else {
        let mut command = Command::new(target);
        command.args(more);
        client.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    };
    let [add, fail] = ["add", "fail"].map(|tool| format!("{prefix}_{tool}"));
    let tools = client.list_all_tools().await?;
    let failed = call(&client, &fail, json!({})).await?;
    let told = json!({
        "version": client.peer_info().map(|info| info.protocol_version.to_string()),
        "tools": tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
        "found": text(&call(&client, "find_tools", json!({"names": [add]})).await?),
        "through": text(&call(&client, "call_tool", json!({"name": add, "arguments": {"a": 2, "b": 3}})).await?),
        "direct": text(&call(&client, &add, json!({"a": 20, "b": 30})).await?),
        "failed": [failed.is_error, text(&failed)],
    });
    client.cancel().await?;
    writeln!(std::io::stdout(), "{told}")?;
    Ok(())
}

fn lifecycle(mode: &str) -> Result<ClientLifecycleMode, Box<dyn Error>> {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    Ok(match mode {
        "initialize" => ClientLifecycleMode::Initialize,
        "discover" => ClientLifecycleMode::Discover { preferred_versions },
        "auto" => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        _ => return Err(format!("`{mode}` is no mode").into()),
    })
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Result<CallToolResult, Box<dyn Error>> {
    let arguments: JsonObject = serde_json::from_value(arguments)?;
    Ok(client.call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)).await?)
}

/// The text of a result.
fn text(result: &CallToolResult) -> Option<&str> {
    Some(&result.content.first()?.as_text()?.text)
}
