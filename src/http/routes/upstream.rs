//! Routes of the MCP servers behind the daemon: for administration, and for whoever looks at them.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::{Operation, Parameter, path, query};
use crate::http::problem::Problem;
use crate::text::near;
use crate::upstream::ServerState;
use crate::wire::problem::Code;
use crate::wire::upstream::{
    CallInFlight, McpServerApproved, McpServerDiff, McpServerItem, McpServerList, McpServerLogs, McpServerRestarted,
    McpToolDifference, ServersAnswer,
};

const NAME: Parameter = path("name", "The server's name.");

pub(super) fn list_operation() -> Operation {
    Operation::new("listMcpServers", "Which MCP servers there are, and how each is.")
        .answering::<McpServerList>("All of them, by name.")
}

pub(super) fn list(context: &Context, _: &mut Request) -> Result<Answer, Problem> {
    let items: Vec<McpServerItem> = context.control.upstreams().servers().iter().map(|server| item(server)).collect();
    Ok(answer::json(&McpServerList { total: items.len(), items }))
}

pub(super) fn servers_operation() -> Operation {
    Operation::new(
        "listServers",
        "Which MCP servers there are, how each is, and the tenant's calls that are under way.",
    )
    .answering::<ServersAnswer>("All of them, by name.")
}

pub(super) fn servers(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let items = context.control.upstreams().servers().iter().map(|server| item(server)).collect();
    let calls = context.mcp.calls_under_way(&request.grant.tenant).into_iter().map(|call| CallInFlight {
        server: call.server,
        tool: call.tool,
        running_ms: call.running.map(|running| running.as_millis() as u64),
        p50_left_ms: call.p50_left_ms,
        p90_left_ms: call.p90_left_ms,
        longer_probability: call.longer_probability,
    });
    Ok(answer::json(&ServersAnswer { items, calls: calls.collect() }))
}

fn item(server: &ServerState) -> McpServerItem {
    let state = match (&server.is_up, &server.problem) {
        (true, _) => "up",
        (false, _) if server.is_idle => "idle",
        (false, None) => "starting",
        (false, Some(_)) if server.needs_login => "needs-login",
        (false, Some(_)) => "down",
    };
    McpServerItem {
        name: server.name.clone(),
        prefix: server.prefix.clone(),
        state: state.to_owned(),
        era: server.era.map(|era| era.as_str().to_owned()),
        version: server.listed.as_ref().map(|listed| listed.version.clone()),
        pid: server.pid,
        tools: server.listed.as_ref().map(|listed| listed.tools.len()),
        prompts: server.listed.as_ref().map(|listed| listed.prompts.len()),
        resources: server.listed.as_ref().map(|listed| listed.resources.len() + listed.templates.len()),
        waiting: server.waiting.len(),
        starts: server.starts,
        problem: server.problem.clone(),
    }
}

pub(super) fn logs_operation() -> Operation {
    Operation::new("showMcpServerLogs", "What an MCP server wrote of late, and what became of it.")
        .taking(&[NAME])
        .answering::<McpServerLogs>("Its last lines.")
}

pub(super) fn logs(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let name = request.parameter()?;
    let lines = context.control.upstreams().logs(name).ok_or_else(|| unknown(context, name))?;
    Ok(answer::json(&McpServerLogs { lines }))
}

pub(super) fn restart_operation() -> Operation {
    Operation::new("restartMcpServer", "End an MCP server and start it again.")
        .taking(&[NAME])
        .answering::<McpServerRestarted>("It is being restarted.")
}

pub(super) fn restart(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let name = request.parameter()?;
    if !context.control.upstreams().restart(name) {
        return Err(unknown(context, name));
    }
    Ok(answer::json(&McpServerRestarted { restarted: name.to_owned() }))
}

pub(super) fn changes_operation() -> Operation {
    Operation::new("listServerChanges", "Which definitions of an MCP server changed and wait for an approval.")
        .taking(&[NAME])
        .answering::<McpServerDiff>("What was approved, and what is offered now.")
}

pub(super) fn diff_operation() -> Operation {
    Operation::new("diffMcpServer", "Which definitions of an MCP server wait for an approval.")
        .taking(&[NAME])
        .answering::<McpServerDiff>("What was approved, and what is offered now.")
}

pub(super) fn diff(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let name = request.parameter()?;
    let differences = context.control.upstreams().differences(name).ok_or_else(|| unknown(context, name))?;
    let value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
    let items = differences.into_iter().map(|difference| McpToolDifference {
        approved: difference.approved.as_deref().map(value),
        offered: value(&difference.offered),
        tool: difference.tool,
    });
    Ok(answer::json(&McpServerDiff { items: items.collect() }))
}

const APPROVED: [Parameter; 2] = [NAME, query("tool", "string", "One tool. Default: all that wait.")];

pub(super) fn approve_changes_operation() -> Operation {
    Operation::new("approveServerChanges", "Approve the changed definitions of an MCP server.")
        .taking(&APPROVED)
        .answering::<McpServerApproved>("They are approved.")
}

pub(super) fn approve_operation() -> Operation {
    Operation::new("approveMcpServer", "Approve the definitions of an MCP server that wait for it.")
        .taking(&APPROVED)
        .answering::<McpServerApproved>("They are approved.")
}

pub(super) fn approve(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let query = &request.query;
    let (name, tool) = (request.parameter()?, query.get("tool"));
    let approved = context.control.upstreams().approve(name, tool).ok_or_else(|| unknown(context, name))?;
    if let (Some(tool), true) = (tool, approved.is_empty()) {
        let detail = format!(
            "no definition of `{tool}` waits for an approval; tools have their own names here, as `almanacd ctl mcp \
             diff {name}` shows them"
        );
        let waiting = context.control.upstreams().differences(name).unwrap_or_default();
        let near = waiting.into_iter().map(|difference| difference.tool).collect();
        return Err(Problem::not_found(Code::UnknownTool, detail).with_near(near));
    }
    Ok(answer::json(&McpServerApproved { approved }))
}

fn unknown(context: &Context, name: &str) -> Problem {
    let servers = context.control.upstreams().servers();
    let near = near::nearest_few(name, servers.iter().map(|server| server.name.as_str()), 3);
    let near = near.into_iter().map(ToOwned::to_owned).collect();
    Problem::not_found(Code::UnknownServer, format!("there is no MCP server `{name}`")).with_near(near)
}
