//! E1 to E10: what each call costs the daemon, beside a tool's document from the same daemon in the same round.

use std::fs;
use std::path::{Path, PathBuf};

use almanac::Engine;
use almanac::engine::memory::Archived;
use almanac::memory::message::MessageDetails;
use almanac::memory::vocabulary::MessageRole;
use almanac::memory::{
    Metadata, create_agent_id, create_chat_id, create_message_metadata, create_thread_info, create_user_id,
};
use almanac::store::{Sqlite, sqlite};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::cores::{self, Cores};
use crate::daemon::Daemon;
use crate::family::{Family, Wanted};
use crate::process::Server;
use crate::row::{Bar, Measured, Row};
use crate::rules::library;
use crate::sample::Pairs;
use crate::wrk::{Request, load};
use crate::{corpus, quiet};

pub(crate) const FAMILY: Family =
    Family { rows: &["E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E10"], needs: &["wrk"], run };

const ROUNDS: usize = 5;
/// Seconds under load in one round.
const SECONDS: u32 = 1;
/// Tools of the catalog that stands for a large one.
const MANY_TOOLS: usize = 3000;
/// Tools that were called before `/metrics` is read.
const CALLED: usize = 120;
const MEMORIES: usize = 100_000;
/// Memories of the one agent that is asked about.
const MEMORIES_OF_ONE: usize = 1000;
const MESSAGE: &str = "What is the weather in Paris tomorrow, and do I need a coat?";
const DOCUMENT: &str = "/v1/tools/web_search";

/// One call, and the bar it is held to.
struct Call {
    id: &'static str,
    what: &'static str,
    request: Request,
    bar: f64,
}

fn run(wanted: Wanted<'_>) -> Result<Vec<Row>> {
    let cores = Cores::find()?;
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("tool_metadata");
    let calls: Vec<Call> = calls()?.into_iter().filter(|call| wanted(call.id)).collect();
    let mut rows = Vec::new();
    if !calls.is_empty() {
        let rules = TempDir::new()?;
        fs::copy(library(), rules.path().join("rules.so")).context("the shipped rule library is not built")?;
        let configured = format!("plugins: {{paths: [{}]}}\n", rules.path().display());
        let server = cores::on(cores.server, || Daemon::of(&shipped, Some(1))?.with(&configured).serve())?;
        let listed: Value = serde_json::from_slice(Client::connect(server.address)?.get("/v1/plugins", "")?.body())?;
        ensure!(listed["items"][0]["state"] == "ready", "the rule library is not ready: {listed}");
        remember_calls(&server)?;
        rows.extend(calls.iter().map(|call| measure(&server, cores, DOCUMENT, call)).collect::<Result<Vec<_>>>()?);
    }
    if wanted("E3") {
        rows.push(among_many(cores)?);
    }
    if wanted("E10") {
        rows.push(among_memories(cores, &shipped)?);
    }
    rows.sort_by_key(|row| FAMILY.rows.iter().position(|id| *id == row.id));
    Ok(rows)
}

fn calls() -> Result<[Call; 8]> {
    let post = |path: &str, body: &Value| Request::post(path, body);
    let response = json!({"results": vec!["0123456789abcdef".repeat(16); 40]});
    Ok([
        Call {
            id: "E1",
            what: "estimate",
            request: post("/v1/estimate", &json!({"toolName": "web_search"}))?,
            bar: 2.0,
        },
        Call {
            id: "E2",
            what: "qualify, 210 tools",
            request: post("/v1/qualify", &json!({"message": MESSAGE}))?,
            bar: 8.0,
        },
        Call { id: "E4", what: "metadata, one rule library", request: post("/v1/metadata", &metadata())?, bar: 6.0 },
        Call {
            id: "E5",
            what: "enrich of a 10 kB response",
            request: post("/v1/enrich", &json!({"request": metadata(), "response": response}))?,
            bar: 6.0,
        },
        Call {
            id: "E6",
            what: "search of 210 by words",
            request: Request::get("/v1/tools?q=search%20the%20web"),
            bar: 4.0,
        },
        Call { id: "E7", what: "list of 50", request: Request::get("/v1/tools?limit=50"), bar: 2.5 },
        Call {
            id: "E8",
            what: "one durable record, 16 writers",
            request: post(
                "/v1/executions",
                &json!({"tool_name": "web_search", "duration_ms": 1225, "session_id": "s"}),
            )?,
            bar: 4.0,
        },
        Call { id: "E9", what: "/metrics after 120 tools were called", request: Request::get("/metrics"), bar: 40.0 },
    ])
}

fn metadata() -> Value {
    json!({"tool_name": "reasoning_divergent", "mode_name": "standard", "result_context": {"session_id": "s"}})
}

/// Five calls of each of [`CALLED`] tools, since what is learnt costs too.
fn remember_calls(server: &Server) -> Result<()> {
    let mut client = Client::connect(server.address)?;
    let names = names(&mut client)?;
    for name in names.iter().take(CALLED) {
        let calls: Vec<Value> =
            (0..5).map(|call| json!({"tool_name": name, "duration_ms": 400 + call * 50, "session_id": "s"})).collect();
        client.post("/v1/executions", &json!(calls).to_string())?;
    }
    Ok(())
}

/// The first tools of the catalog.
fn names(client: &mut Client) -> Result<Vec<String>> {
    let page: Value = serde_json::from_slice(client.get("/v1/tools?limit=200", "")?.body())?;
    let tools = page["items"].as_array().context("a page has items")?;
    Ok(tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect())
}

fn measure(server: &Server, cores: Cores, document: &str, call: &Call) -> Result<Row> {
    let document = Request::get(document);
    let mut pairs = Pairs::default();
    // What is made when first used is no cost of a call.
    load(server, &call.request, cores, SECONDS)?;
    for _ in quiet::rounds(ROUNDS) {
        let floor = load(server, &document, cores, SECONDS)?;
        pairs.push(load(server, &call.request, cores, SECONDS)?.cpu, floor.cpu);
    }
    let measured = Measured {
        ours: format!("{:.1} µs", pairs.ours()),
        theirs: format!("a document {:.1} µs", pairs.theirs()),
        figure: pairs.ratio(),
        bar: Bar::at_most(call.bar),
    };
    Ok(Row::new(call.id, format!("{}, CPU a request", call.what), measured))
}

fn among_many(cores: Cores) -> Result<Row> {
    let tools = TempDir::new()?;
    corpus::write(tools.path(), MANY_TOOLS)?;
    let server = cores::on(cores.server, || Daemon::of(tools.path(), Some(1))?.serve())?;
    let body = json!({"message": "archive the customer's invoice and send a summary to the channel"});
    let call =
        Call { id: "E3", what: "qualify, 3,000 tools", request: Request::post("/v1/qualify", &body)?, bar: 30.0 };
    measure(&server, cores, &format!("/v1/tools/{}", corpus::name(0)), &call)
}

fn among_memories(cores: Cores, tools: &Path) -> Result<Row> {
    let daemon = Daemon::of(tools, Some(1))?;
    fill(daemon.database()?)?;
    let server = cores::on(cores.server, || daemon.serve())?;
    let body = json!({
        "criteria": {"agentId": "agent:agent:a0"},
        "options": {"query": "customer invoice archive", "limit": 10},
    });
    let request = Request::post("/v1/memories/messages/search", &body)?;
    let what = "memory search of one agent's 1,000 of 100,000";
    measure(&server, cores, DOCUMENT, &Call { id: "E10", what, request, bar: 25.0 })
}

fn fill(database: PathBuf) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let store = Sqlite::start(sqlite::Options::file(database), Box::new(|_, _| ()))?;
    let engine = Engine::on(std::sync::Arc::new(store));
    for first in (0..MEMORIES).step_by(2000) {
        let batch = (first..first + 2000).map(memory).collect::<Result<Vec<_>>>()?;
        runtime.block_on(engine.import_memories("default", batch))?;
    }
    Ok(())
}

fn memory(number: usize) -> Result<Archived> {
    let (thread, position) = (number / 20, (number % 20) as u64);
    let metadata = create_message_metadata(
        [MessageRole::User, MessageRole::Assistant][number % 2],
        create_user_id(&format!("u{thread}"))?,
        create_agent_id(&format!("a{}", number / MEMORIES_OF_ONE))?,
        create_chat_id(&format!("c{}", thread / 5))?,
        create_thread_info(&format!("t{thread}"), position, None)?,
        MessageDetails::default(),
    )?;
    Ok(Archived {
        id: None,
        content: corpus::sentence(number as u64),
        metadata: Metadata::Message(metadata),
        deletion_time: None,
        version: 1,
        created_us: None,
        updated_us: None,
        history: Vec::new(),
    })
}
