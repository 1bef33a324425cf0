//! A server whose tools the daemon relays.

use std::error::Error;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::schemars::JsonSchema;
use rmcp::transport::stdio;
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::Deserialize;

/// Serves until standard input ends.
pub(crate) async fn serve() -> Result<(), Box<dyn Error>> {
    Tools.serve(stdio()).await?.waiting().await?;
    Ok(())
}

struct Tools;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Summands {
    a: i64,
    b: i64,
}

#[tool_router]
impl Tools {
    #[tool(description = "Adds two numbers.")]
    fn add(Parameters(Summands { a, b }): Parameters<Summands>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Fails.")]
    fn fail() -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text("it failed in Rust")])
    }
}

#[tool_handler]
impl ServerHandler for Tools {}
