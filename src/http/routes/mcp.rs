//! `/mcp`: the door of MCP clients, who have their own way to ask. Here a request is only taken off its connection.

use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;

use crate::http::answer::{self, Answer, Body};
use crate::http::handler::{Access, Answering, Context, Handler, Request, Route, Upload};
use crate::http::operation::{Operation, Parameter, query};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::server::body;
use crate::mcp::{Address, HttpAnswer, HttpRequest, MAX_MESSAGE_BYTES, Waits};
use crate::wire::problem::Code;

/// The routes of the door.
pub(super) fn routes() -> Vec<Route> {
    let mut routes = Vec::new();
    for method in [Method::POST, Method::GET, Method::DELETE] {
        routes.push(route(method.clone(), "/mcp", default));
        routes.push(route(method.clone(), "/mcp/{view}", view));
        routes.push(route(method, "/mcp/server/{name}", server));
    }
    routes
}

type Ask = fn(Arc<Context>, Request, Upload) -> Answering;

fn route(method: Method, path: &'static str, ask: Ask) -> Route {
    // A client that leaves gives its request up, or says how it is to be kept.
    Route { method, path, access: Access::Mcp, handler: Handler::Upload(ask), operation, is_abandoned: true }
}

/// Messages describe themselves by their own protocol, so the OpenAPI document does not have them.
fn operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query("client_timeout", "string", "How long the client waits for an answer, such as 300s."),
        query("progress_resets", "boolean", "Does it wait longer while progress is told? Default: false."),
    ];
    Operation::new("mcp", "A message of the Model Context Protocol.").taking(&PARAMETERS)
}

fn default(context: Arc<Context>, request: Request, upload: Upload) -> Answering {
    ask(context, Ok(Address::Default), request, upload)
}

fn view(context: Arc<Context>, request: Request, upload: Upload) -> Answering {
    let name = request.parameter().map(str::to_owned);
    ask(context, name.map(Address::View), request, upload)
}

fn server(context: Arc<Context>, request: Request, upload: Upload) -> Answering {
    let name = request.parameter().map(str::to_owned);
    ask(context, name.map(Address::Server), request, upload)
}

fn ask(context: Arc<Context>, address: Result<Address, Problem>, request: Request, upload: Upload) -> Answering {
    Box::pin(async move {
        let address = address?;
        let Upload { body, limits, connection, stopped, .. } = upload;
        let headers = request.parts.headers;
        let body = body::bytes(&headers, body, MAX_MESSAGE_BYTES, limits.request_timeout).await?;
        let goes_on = Box::new(move || connection.goes_on());
        let method = request.parts.method;
        let waits = waits(&request.query)?;
        let asked = HttpRequest { method, headers, body, grant: request.grant, address, waits, stopped, goes_on };
        Ok(answer_of(context.mcp.over_http(asked).await))
    })
}

/// How long a client waits, as its address says: `?client_timeout=300s&progress_resets=true`.
fn waits(query: &Query) -> Result<Waits, Problem> {
    let limit = query.get("client_timeout").map(|text| {
        Waits::parse_limit(text).map_err(|error| {
            let detail = format!("`client_timeout` is a time such as 300s, not `{text}`: {error}");
            Problem::invalid(Code::InvalidParameter, detail)
        })
    });
    let progress_resets = query.flag("progress_resets", false)?;
    let limit = limit.transpose()?;
    Ok(Waits { limit, progress_resets })
}

fn answer_of(answer: HttpAnswer) -> Answer {
    match answer {
        HttpAnswer::Whole { status, headers, body } => {
            let mut whole = Answer::new(Body::from(body));
            *whole.status_mut() = status;
            *whole.headers_mut() = headers;
            whole
        }
        HttpAnswer::Stream(pieces) => answer::stream(HeaderValue::from_static("text/event-stream"), pieces),
    }
}
