//! `almanacd tools`: what exists, or what fits a query.

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::client::ClientError;
use super::output::Output;
use super::{CliError, DaemonArgs, Exit, block_on, documents};
use crate::access::DEFAULT_TENANT;
use crate::catalog::document::CommonError;
use crate::catalog::entry::Facet;
use crate::catalog::errors;
use crate::config::{DaemonOverrides, Overrides};
use crate::daemon::Config;
use crate::engine::{Engine, ToolFilter};
use crate::wire::catalog::{ToolPage, ToolSummary};

#[derive(Debug, Args)]
pub(super) struct ToolsArgs {
    /// Rank the tools for this query
    query: Option<String>,
    /// Tools of this category
    #[arg(long)]
    category: Option<String>,
    /// Tools with a common error that this message goes with, and what to do about it
    #[arg(long, value_name = "MESSAGE")]
    error: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    daemon: DaemonArgs,
}

impl ToolsArgs {
    fn error(&self) -> Option<&str> {
        self.error.as_deref().filter(|error| !error.trim().is_empty())
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref().filter(|query| !query.is_empty())
    }

    fn category(&self) -> Option<&str> {
        self.category.as_deref().filter(|category| !category.is_empty())
    }
}

pub(super) fn run(args: &ToolsArgs, output: &mut Output) -> Result<Exit, CliError> {
    if args.overrides.name_documents_before(&args.daemon) {
        let page = read(args, output)?;
        output.show(&page, |out| print(&page, out));
        return Ok(Exit::Success);
    }
    let page = match block_on(ask(args)) {
        Err(CliError::Client(ClientError::Connect { .. })) if !args.daemon.is_explicit() => read(args, output)?,
        asked => asked?,
    };
    output.show(&page, |out| print(&page, out));
    Ok(Exit::Success)
}

async fn ask(args: &ToolsArgs) -> Result<ToolPage, ClientError> {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut path = format!("/v1/tools?limit={}", args.limit);
    for (name, value) in [("q", args.query()), ("category", args.category()), ("error", args.error())] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", encode(value)));
        }
    }
    args.daemon.client()?.ask("GET", &path, None).await
}

/// Without a daemon the files are opened here.
fn read(args: &ToolsArgs, output: &mut Output) -> Result<ToolPage, CliError> {
    let config = Config::load(&args.overrides, &DaemonOverrides::default())?;
    let engine = Engine::new();
    engine.publish(&documents::open(config.documents(), output));
    let facets = [(Facet::Category, args.category()), (Facet::Error, args.error())];
    let facets = facets.into_iter().filter_map(|(facet, value)| Some((facet, value?.to_owned()))).collect();
    let filter = ToolFilter { facets, query: args.query().map(str::to_owned), limit: args.limit.into(), cursor: None };
    let listed = engine.tools(&engine.generation(), DEFAULT_TENANT, &filter);
    let items = listed.items.iter().map(|(entry, score)| {
        let document = entry.document();
        let message = args.error().unwrap_or_default();
        ToolSummary {
            common_errors: errors::matching(&document.common_errors, message).cloned().collect(),
            name: document.name,
            title: document.title,
            description: document.description,
            category: document.category,
            capabilities: document.capabilities,
            keywords: document.keywords,
            score: *score,
        }
    });
    Ok(ToolPage { items: items.collect(), total: listed.total, next_cursor: None })
}

fn print(page: &ToolPage, out: &mut Output) {
    let width =
        |of: fn(&ToolSummary) -> &String| page.items.iter().map(|tool| of(tool).chars().count()).max().unwrap_or(0);
    let (names, categories) = (width(|tool| &tool.name), width(|tool| &tool.category));
    for tool in &page.items {
        let score = tool.score.map(|score| format!("{score:6.2}  ")).unwrap_or_default();
        let name = out.bold(&format!("{:names$}", tool.name));
        out.line(&format!("{score}{name}  {:categories$}  {}", tool.category, tool.title));
        for CommonError { error, cause, solution } in &tool.common_errors {
            let cause = if cause.is_empty() { String::new() } else { format!(" {cause}") };
            out.line(&format!("  {error}:{cause} → {solution}"));
        }
    }
    if page.total == 0 {
        out.note("no tool is like that; `almanacd tools` lists all, with their categories");
    } else if page.items.len() < page.total {
        out.note(&format!("{} of {} tools", page.items.len(), page.total));
    }
}
