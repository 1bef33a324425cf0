//! Routes of the catalog.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use serde_json::Value;

use crate::catalog::check::{Clash, Missing, SetReview};
use crate::catalog::document::{CommonError, check_name};
use crate::catalog::entry::Facet;
use crate::catalog::errors;
use crate::catalog::findings::{self, FindingsCursor};
use crate::catalog::relations::Related;
use crate::catalog::{Entry, ToolMetadata};
use crate::engine::generation::Cursor;
use crate::engine::{Generation, ListedTools, ToolFilter};
use crate::http::answer::{self, Answer, JSON};
use crate::http::etag;
use crate::http::handler::{Answering, Context, Request, blocking_unless_short};
use crate::http::operation::{Operation, Parameter, path, query, query_number};
use crate::http::problem::Problem;
use crate::wire::catalog::{
    AlternativeRelation, BetterTool, CatalogReport, CheckAnswer, CheckRequest, CheckedConflict, ComplementRelation,
    ConflictRelation, MissingPrerequisite, Preference, RelationEnd, ToolPage, ToolRelations, UnknownTool,
};
use crate::wire::problem::Code;

/// Tools, or diagnostics, on a page, unless `limit` says otherwise.
const PAGE: usize = 100;
/// Most of them on a page.
const LARGEST_PAGE: usize = 1000;

/// The parameters that filter by a facet.
const FACETS: [(&str, Facet); 6] = [
    ("category", Facet::Category),
    ("capability", Facet::Capability),
    ("keyword", Facet::Keyword),
    ("provider", Facet::Provider),
    ("env_var", Facet::EnvVar),
    ("error", Facet::Error),
];

const NAME: Parameter = path("name", "The tool's name, percent-encoded.");

pub(super) fn list_operation() -> Operation {
    const PARAMETERS: [Parameter; 9] = [
        query("category", "string", "Tools of this category."),
        query("capability", "string", "Tools with this capability."),
        query("keyword", "string", "Tools with this keyword."),
        query("provider", "string", "Tools with this provider."),
        query("env_var", "string", "Tools with a prerequisite in this environment variable."),
        query("error", "string", "Tools with a common error that this message, or a part of one, goes with."),
        query("q", "string", "Rank by this message as `POST /v1/qualify` does, and list only what may be meant."),
        query_number("limit", (1, 1000), "At most so many, 1 to 1000; 100 by default."),
        query("cursor", "string", "`next_cursor` of the page before."),
    ];
    Operation::new("listTools", "Which tools exist, and which match.")
        .taking(&PARAMETERS)
        .answering::<ToolPage>("A page of summaries.")
}

pub(super) fn list(context: Arc<Context>, request: Request) -> Answering {
    Box::pin(async move {
        let text = request.query.get("q").unwrap_or_default();
        let is_short = request.query.number("limit", PAGE, 1, LARGEST_PAGE)? <= PAGE
            && FACETS.iter().all(|(name, _)| request.query.get(name).is_none())
            && (text.is_empty() || context.engine.ranks_shortly(text));
        blocking_unless_short(is_short, move || listed(&context, &request)).await
    })
}

fn listed(context: &Context, request: &Request) -> Result<Answer, Problem> {
    let query = &request.query;
    let facets = FACETS.iter().filter_map(|&(name, facet)| Some((facet, query.get(name)?.to_owned()))).collect();
    let text = query.get("q").map(str::to_owned);
    let cursor = query.get("cursor").map(|cursor| parse_cursor(cursor, text.is_some())).transpose()?;
    let limit = query.number("limit", PAGE, 1, LARGEST_PAGE)?;
    let filter = ToolFilter { facets, query: text, limit, cursor };
    let listed = context.engine.tools(&request.generation, &request.grant.tenant, &filter);
    let error = query.get("error");
    Ok(answer::bytes(StatusCode::OK, JSON, render(&listed, error)))
}

/// Summaries stand rendered in the entries; parsing them to render them again would cost more than all else.
fn render(listed: &ListedTools, error: Option<&str>) -> Vec<u8> {
    let mut body =
        Vec::with_capacity(64 + listed.items.iter().map(|(entry, _)| entry.summary().len() + 32).sum::<usize>());
    body.extend_from_slice(b"{\"items\":[");
    for (index, (entry, score)) in listed.items.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(entry.summary());
        if let Some(score) = score {
            body.extend_from_slice(b",\"score\":");
            serde_json::to_writer(&mut body, score).expect("a score is a number, and a vector grows");
        }
        if let Some(message) = error {
            let document = entry.document();
            let known: Vec<&CommonError> = errors::matching(&document.common_errors, message).collect();
            let known = serde_json::to_string(&known).expect("errors are strings");
            body.extend_from_slice(format!(",\"common_errors\":{known}").as_bytes());
        }
        body.push(b'}');
    }
    body.extend_from_slice(format!("],\"total\":{}", listed.total).as_bytes());
    if let Some(next) = &listed.next {
        body.extend_from_slice(format!(",\"next_cursor\":{}", Value::from(format_cursor(next))).as_bytes());
    }
    body.push(b'}');
    body
}

fn format_cursor(cursor: &Cursor) -> String {
    match cursor {
        Cursor::Name(name) => format!("n:{name}"),
        Cursor::Rank(rank) => format!("r:{rank}"),
    }
}

fn parse_cursor(text: &str, ranked: bool) -> Result<Cursor, Problem> {
    let parsed = match text.split_once(':') {
        Some(("n", name)) if !ranked && check_name(name).is_ok() => Some(Cursor::Name(name.to_owned())),
        Some(("r", rank)) if ranked => rank.parse().ok().map(Cursor::Rank),
        _ => None,
    };
    parsed.ok_or_else(|| Problem::invalid(Code::InvalidCursor, "the cursor is not one that this list gave"))
}

pub(super) fn tool_operation() -> Operation {
    Operation::new("getTool", "What this tool is.")
        .taking(&[NAME])
        .answering::<ToolMetadata>("The document, with an ETag.")
        .answering_text(304, "Unchanged since the ETag in If-None-Match.", "")
}

pub(super) fn tool(_: &Context, request: &mut Request) -> Result<Answer, Problem> {
    document(&request.generation, request.parameter()?, request.headers())
}

/// The hottest answer of all.
pub(in crate::http) fn document(generation: &Generation, name: &str, headers: &HeaderMap) -> Result<Answer, Problem> {
    let entry = find(generation, name)?;
    let tag = HeaderValue::from_maybe_shared(entry.etag()).expect("an entity tag is quoted hexadecimal digits");
    Ok(etag::conditional(headers, tag, || answer::bytes(StatusCode::OK, JSON, entry.body())))
}

fn find<'g>(generation: &'g Generation, name: &str) -> Result<&'g Entry, Problem> {
    if let Some(entry) = generation.tool(name) {
        return Ok(entry);
    }
    check_name(name).map_err(|fault| Problem::bad_request(Code::InvalidName, fault.to_string()))?;
    let near = generation.near_names(name);
    let detail = match generation.loaded().faults_of(name)[..] {
        [] => format!("there is no tool `{name}` in the catalog"),
        [first, ..] => format!(
            "there is no tool `{name}` in the catalog: its document is faulty, first at {}: {}; /v1/catalog lists all \
             faults",
            first.place(),
            first.message
        ),
    };
    Err(Problem::not_found(Code::UnknownTool, detail).with_near(near))
}

pub(super) fn relations_operation() -> Operation {
    Operation::new("getToolRelations", "What goes with this tool, and what does not.")
        .taking(&[NAME])
        .answering::<ToolRelations>("Relations in both directions.")
}

pub(super) fn relations(_: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let name = request.parameter()?;
    find(&request.generation, name)?;
    let relations = request.generation.relations(name).unwrap_or_default();
    let conflicts = relations.conflicts.into_iter().map(|related| ConflictRelation {
        end: end(&related),
        severity: related.relation.severity().to_string(),
        reason: related.relation.reason,
        when_prefer_this: related.relation.when_prefer_this,
        when_prefer_other: related.relation.when_prefer_other,
    });
    let alternatives = relations.alternatives.into_iter().map(|related| AlternativeRelation {
        end: end(&related),
        when: related.relation.when,
        benefits: related.relation.benefits,
    });
    let complements = relations.complements.into_iter().map(|related| ComplementRelation {
        end: end(&related),
        scenario: related.relation.scenario,
        example: related.relation.example,
    });
    Ok(answer::json(&ToolRelations {
        tool: name.to_owned(),
        conflicts: conflicts.collect(),
        alternatives: alternatives.collect(),
        complements: complements.collect(),
    }))
}

fn end<R>(related: &Related<R>) -> RelationEnd {
    RelationEnd {
        tool: related.other.to_string(),
        direction: if related.incoming { "incoming" } else { "outgoing" },
        resolved: related.tools.iter().map(ToString::to_string).collect(),
        dangling: related.tools.is_empty(),
    }
}

pub(super) fn check_operation() -> Operation {
    Operation::new("checkTools", "Whether a set of tools is a good one to load together.")
        .with_body::<CheckRequest>()
        .answering::<CheckAnswer>("What speaks against it.")
}

pub(super) fn check(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let body: CheckRequest = request.take_body()?;
    let SetReview { unknown, conflicts, missing, alternatives, unknown_provider } =
        context.engine.generation().check(&body.tools, &body.env_vars, body.provider.as_deref());
    if let Some((provider, near)) = unknown_provider {
        let detail = format!("none of these tools has the provider, or mode, `{provider}`");
        return Err(Problem::invalid(Code::InvalidBody, detail).with_near(near));
    }
    Ok(answer::json(&CheckAnswer {
        ok: unknown.is_empty() && conflicts.is_empty() && missing.iter().all(|missing| missing.is_optional),
        unknown: unknown.into_iter().map(|(tool, near)| UnknownTool { tool, near }).collect(),
        conflicts: conflicts.into_iter().map(checked_conflict).collect(),
        missing_prerequisites: missing.into_iter().map(missing_prerequisite).collect(),
        alternatives: alternatives
            .into_iter()
            .map(|(tool, better)| BetterTool {
                tool: tool.to_string(),
                alternative: better.tool,
                when: better.when,
                benefits: better.benefits,
            })
            .collect(),
    }))
}

fn checked_conflict(Clash { tool, other, conflict }: Clash) -> CheckedConflict {
    CheckedConflict {
        tools: [tool.to_string(), other.to_string()],
        severity: conflict.severity().to_string(),
        reason: conflict.reason,
        prefer: [
            Preference { tool: tool.to_string(), when: conflict.when_prefer_this },
            Preference { tool: other.to_string(), when: conflict.when_prefer_other },
        ],
    }
}

fn missing_prerequisite(Missing { tool, env_vars, prerequisite, is_optional }: Missing) -> MissingPrerequisite {
    MissingPrerequisite {
        tool: tool.to_string(),
        name: prerequisite.name,
        env_vars,
        required_for: prerequisite.required_for,
        how_to_get: prerequisite.how_to_get,
        fallback: prerequisite.fallback,
        optional: is_optional,
    }
}

pub(super) fn report_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query_number("limit", (1, 1000), "At most so many diagnostics, 1 to 1000; 100 by default."),
        query(
            "cursor",
            "string",
            "`next_cursor` of the page before. After a reload between the two, findings of unchanged files are still \
             listed once each.",
        ),
    ];
    Operation::new("getCatalog", "How the catalog came out, with a page of what is wrong.")
        .taking(&PARAMETERS)
        .answering::<CatalogReport>("The last reload.")
}

pub(super) fn report(_: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let query = &request.query;
    let limit = query.number("limit", PAGE, 1, LARGEST_PAGE)?;
    let wrong = || Problem::invalid(Code::InvalidCursor, "the cursor is not one that this list gave");
    let after = query.get("cursor").map(|text| FindingsCursor::parse(text).ok_or_else(wrong)).transpose()?;
    let loaded = request.generation.loaded();
    let (page, next) = findings::page(&loaded.diagnostics, after.as_ref(), limit);
    Ok(answer::json(&CatalogReport {
        generation: request.generation.number(),
        hash: loaded.catalog.hash(),
        loaded: loaded.catalog.len(),
        stale: loaded.stale.iter().map(ToString::to_string).collect(),
        held_back: loaded.holds_back,
        diagnostics: page.to_vec(),
        total: loaded.diagnostics.len(),
        next_cursor: next.map(|next| next.to_string()),
    }))
}
