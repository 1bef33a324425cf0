//! Routes of memories: what was said, thought, read and planned.

use std::sync::Arc;

use hyper::header::{ETAG, HeaderMap, HeaderValue, IF_MATCH};
use hyper::{Method, StatusCode};

use super::memory_request::{concerned, id, observed, tenant};
use crate::access::Scope;
use crate::engine::memory::Memory;
use crate::engine::memory_relations::MAX_DEPTH;
use crate::http::answer::{self, Answer};
use crate::http::etag;
use crate::http::handler::{Access, Answering, Context, Handler, Request, Route};
use crate::http::operation::{Operation, Parameter, path, query, query_number};
use crate::http::problem::Problem;
use crate::memory::cognitive::CognitiveProcessMetadata;
use crate::memory::document::DocumentMetadata;
use crate::memory::message::MessageMetadata;
use crate::memory::search::Recall;
use crate::memory::task::TaskMetadata;
use crate::memory::{Kind, StructuredId};
use crate::strict::decode::decode_with;
use crate::wire::memory::{
    AddRequest, DanglingAnswer, Gap, HistoryAnswer, MemoryAnswer, PatchRequest, RelationsAnswer, SearchAnswer,
    SearchRequest, ThreadAnswer, read_addition,
};
use crate::wire::problem::Code;

/// Versions, or messages, on a page if nobody says, and at most.
const PAGE: [usize; 2] = [100, 200];

/// Longest idempotency key, in bytes.
const MAX_KEY: usize = 256;

const MESSAGE: u8 = 1;
const COGNITIVE_PROCESS: u8 = 2;
const DOCUMENT: u8 = 3;
const TASK: u8 = 4;

/// The routes of memories.
pub(super) fn routes() -> Vec<Route> {
    let route = |method, path, handler, operation| Route {
        method,
        path,
        access: Access::Scope(Scope::Memory),
        handler: Handler::Async(handler),
        operation,
        is_abandoned: false,
    };
    vec![
        route(Method::POST, "/v1/memories/messages", add::<MESSAGE>, || adding::<MessageMetadata>("addMessage")),
        route(Method::POST, "/v1/memories/cognitive-processes", add::<COGNITIVE_PROCESS>, || {
            adding::<CognitiveProcessMetadata>("addCognitiveProcess")
        }),
        route(Method::POST, "/v1/memories/documents", add::<DOCUMENT>, || adding::<DocumentMetadata>("addDocument")),
        route(Method::POST, "/v1/memories/tasks", add::<TASK>, || adding::<TaskMetadata>("addTask")),
        route(Method::POST, "/v1/memories/messages/search", search::<MESSAGE>, || searching("searchMessages")),
        route(Method::POST, "/v1/memories/cognitive-processes/search", search::<COGNITIVE_PROCESS>, || {
            searching("searchCognitiveProcesses")
        }),
        route(Method::POST, "/v1/memories/documents/search", search::<DOCUMENT>, || searching("searchDocuments")),
        route(Method::POST, "/v1/memories/tasks/search", search::<TASK>, || searching("searchTasks")),
        route(Method::POST, "/v1/memories/search", search_all, || searching("searchMemories")),
        route(Method::GET, "/v1/memories/{id}", get, get_operation),
        route(Method::PATCH, "/v1/memories/{id}", revise, revise_operation),
        route(Method::DELETE, "/v1/memories/{id}", forget, forget_operation),
        route(Method::GET, "/v1/memories/{id}/history", history, history_operation),
        route(Method::POST, "/v1/memories/{id}/restore", restore, restore_operation),
        route(Method::GET, "/v1/memories/{id}/relations", relations, relations_operation),
        route(Method::GET, "/v1/threads/{id}", thread, thread_operation),
    ]
}

const TENANT: Parameter = query("tenant", "string", "Whose memories; for the admin socket only.");
const ID: Parameter = path("id", "The memory's id, percent-encoded.");
const DELETED: Parameter = query("includeDeleted", "boolean", "Also if it was deleted softly.");
const LIMIT: Parameter = query_number("limit", (1, 200), "At most so many, 1 to 200; 100 by default.");
const CURSOR: Parameter = query("cursor", "string", "`nextCursor` of the page before.");

/// The kind of a route.
fn kind<const KIND: u8>() -> Kind {
    Kind::of_number(KIND).expect("the table of routes has numbers of kinds")
}

fn shown(memory: Memory, status: StatusCode) -> Answer {
    let tag = tag(memory.version);
    let mut answer = answer::json(&MemoryAnswer::from(memory));
    *answer.status_mut() = status;
    answer.headers_mut().insert(ETAG, tag);
    answer
}

fn tag(version: u64) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).expect("a number in quotes is visible ASCII")
}

/// The version that `If-Match` names, if it does not take any. A tag that is no version of a memory is the version that
/// none has.
fn expected(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(tag) = headers.get(IF_MATCH) else { return Ok(None) };
    let tag = String::from_utf8_lossy(tag.as_bytes());
    let tag = tag.trim();
    if tag == "*" {
        return Ok(None);
    }
    let is_weak = tag.starts_with("W/");
    let quoted = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    let Some(version) = quoted else {
        let detail = format!("If-Match is a memory's version in quotes as its ETag is, such as \"6\", or *; not {tag}");
        return Err(Problem::bad_request(Code::InvalidIfMatch, detail));
    };
    Ok(Some(version.parse().ok().filter(|_| !is_weak).unwrap_or(0)))
}

fn adding<M: schemars::JsonSchema>(id: &'static str) -> Operation {
    const PARAMETERS: [Parameter; 1] = [TENANT];
    Operation::new(id, "Keep a memory. With an `Idempotency-Key`, telling it again changes nothing.")
        .taking(&PARAMETERS)
        .with_body::<AddRequest<M>>()
        .answering_with::<MemoryAnswer>(201, "It is durable.")
        .answering_with::<MemoryAnswer>(200, "It was told before.")
}

fn add<const KIND: u8>(context: Arc<Context>, request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "add", async move {
        let tenant = tenant(&request)?;
        let key = idempotency_key(request.headers())?;
        let added = read_addition(kind::<KIND>(), request.body.read()?);
        let (content, metadata) = added.map_err(|faults| Problem::faulty(&faults))?;
        let (memory, is_new) = engine.remember(&tenant, content, &metadata, key).await?;
        Ok(shown(memory, if is_new { StatusCode::CREATED } else { StatusCode::OK }))
    })
}

/// The key of the request, if it has one.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    match key.to_str() {
        Ok(key) if (1..=MAX_KEY).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => {
            let detail = format!("an idempotency key is 1 to {MAX_KEY} printable ASCII characters");
            Err(Problem::bad_request(Code::InvalidIdempotencyKey, detail))
        }
    }
}

fn searching(id: &'static str) -> Operation {
    const PARAMETERS: [Parameter; 1] = [TENANT];
    Operation::new(id, "Find memories.")
        .taking(&PARAMETERS)
        .with_body::<SearchRequest>()
        .answering::<SearchAnswer>("A page.")
}

fn search<const KIND: u8>(context: Arc<Context>, request: Request) -> Answering {
    search_kind(context, request, Some(kind::<KIND>()))
}

fn search_all(context: Arc<Context>, request: Request) -> Answering {
    search_kind(context, request, None)
}

fn search_kind(context: Arc<Context>, request: Request, kind: Option<Kind>) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "search", async move {
        let tenant = tenant(&request)?;
        let recall = decode_with(request.body.read()?, |node, at| Recall::read(kind, node, at));
        let recall = recall.map_err(|faults| Problem::faulty(&faults))?;
        let page = engine.recall(&tenant, &recall).await?;
        Ok(answer::json(&SearchAnswer {
            memories: page.memories.into_iter().map(|found| MemoryAnswer::found(found, recall.explain)).collect(),
            total: page.total,
            next_cursor: page.next_cursor,
        }))
    })
}

fn get_operation() -> Operation {
    const PARAMETERS: [Parameter; 3] = [ID, DELETED, TENANT];
    Operation::new("getMemory", "One memory.")
        .taking(&PARAMETERS)
        .answering::<MemoryAnswer>("It, with its version as `ETag`.")
        .answering_text(304, "It is at the version of `If-None-Match`.", "")
}

fn get(context: Arc<Context>, request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "get", async move {
        let (tenant, query) = (tenant(&request)?, &request.query);
        let memory = engine.memory(&tenant, &id(&request)?, query.flag("includeDeleted", false)?).await?;
        let tag = tag(memory.version);
        Ok(etag::conditional(request.headers(), tag, || shown(memory, StatusCode::OK)))
    })
}

fn revise_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [ID, TENANT];
    Operation::new("updateMemory", "Change a memory by a JSON Merge Patch; with `If-Match` only if nobody else did.")
        .taking(&PARAMETERS)
        .with_body::<PatchRequest>()
        .answering::<MemoryAnswer>("The new version; the old one is in the history.")
}

fn revise(context: Arc<Context>, mut request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "update", async move {
        let tenant = tenant(&request)?;
        let (id, expected) = (id(&request)?, expected(request.headers())?);
        let patch = request.take_body()?;
        Ok(shown(engine.revise_memory(&tenant, &id, expected, patch).await?, StatusCode::OK))
    })
}

fn forget_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [ID, TENANT];
    Operation::new(
        "deleteMemory",
        "Delete a memory softly: nothing finds it any more that does not ask for deleted ones.",
    )
    .taking(&PARAMETERS)
    .answering::<MemoryAnswer>("It, as it is kept until it is restored or purged.")
}

fn forget(context: Arc<Context>, request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "delete", async move {
        let tenant = tenant(&request)?;
        let memory = engine.forget_memory(&tenant, &id(&request)?, expected(request.headers())?).await?;
        Ok(shown(memory, StatusCode::OK))
    })
}

fn restore_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [ID, TENANT];
    Operation::new("restoreMemory", "Take a soft delete back.")
        .taking(&PARAMETERS)
        .answering::<MemoryAnswer>("It is found again.")
}

fn restore(context: Arc<Context>, request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "restore", async move {
        let tenant = tenant(&request)?;
        let memory = engine.restore_memory(&tenant, &id(&request)?, expected(request.headers())?).await?;
        Ok(shown(memory, StatusCode::OK))
    })
}

fn history_operation() -> Operation {
    const PARAMETERS: [Parameter; 5] = [ID, LIMIT, CURSOR, DELETED, TENANT];
    Operation::new("getMemoryHistory", "Earlier versions of a memory.")
        .taking(&PARAMETERS)
        .answering::<HistoryAnswer>("A page.")
}

fn history(context: Arc<Context>, request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "history", async move {
        let (tenant, query) = (tenant(&request)?, &request.query);
        let (id, deleted) = (id(&request)?, query.flag("includeDeleted", false)?);
        let limit = query.number("limit", PAGE[0], 1, PAGE[1])?;
        let before = query.number("cursor", usize::MAX, 0, usize::MAX)?;
        let (versions, total) = engine.memory_history(&tenant, &id, deleted, before as u64, limit).await?;
        let last = versions.last().filter(|last| versions.len() == limit && last.version > 1);
        let next_cursor = last.map(|last| last.version.to_string());
        Ok(answer::json(&HistoryAnswer { items: versions.into_iter().map(Into::into).collect(), total, next_cursor }))
    })
}

fn relations_operation() -> Operation {
    const DEPTH: Parameter = query_number("depth", (1, 10), "So many references far, 1 to 10; 1 by default.");
    const PARAMETERS: [Parameter; 3] = [ID, DEPTH, TENANT];
    Operation::new("getMemoryRelations", "What a memory led to and came from, by what either side says.")
        .taking(&PARAMETERS)
        .answering::<RelationsAnswer>("At most 1,000 memories.")
}

fn relations(context: Arc<Context>, request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "relations", async move {
        let (tenant, query) = (tenant(&request)?, &request.query);
        let depth = query.number("depth", 1, 1, MAX_DEPTH)?;
        let relations = engine.memory_relations(&tenant, &id(&request)?, depth).await?;
        let dangling = relations.dangling.into_iter().map(|dangling| DanglingAnswer {
            from: dangling.from,
            relation: dangling.relation.as_str(),
            target: dangling.target,
        });
        Ok(answer::json(&RelationsAnswer {
            total: relations.related.len(),
            items: relations.related.into_iter().map(Into::into).collect(),
            dangling: dangling.collect(),
            truncated: relations.truncated,
        }))
    })
}

fn thread_operation() -> Operation {
    const PARAMETERS: [Parameter; 5] = [
        path("id", "The thread's id, percent-encoded."),
        query("chatId", "string", "The chat it is in, as namespace:type:id; needed if several have one of that name."),
        LIMIT,
        CURSOR,
        TENANT,
    ];
    Operation::new("getThread", "A thread's messages in order, and the positions that are missing.")
        .taking(&PARAMETERS)
        .answering::<ThreadAnswer>("A page.")
}

fn thread(context: Arc<Context>, request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "thread", async move {
        let (tenant, query) = (tenant(&request)?, &request.query);
        let id = id(&request)?;
        let limit = query.number("limit", PAGE[0], 1, PAGE[1])?;
        let position = query.number("cursor", 0, 0, usize::MAX >> 1)?;
        let chat: Option<StructuredId> = match query.get("chatId").map(str::parse).transpose() {
            Ok(chat) => chat,
            Err(error) => return Err(Problem::invalid(Code::InvalidParameter, format!("`chatId`: {error}")).into()),
        };
        let (found, mut memories) =
            engine.memory_thread(&tenant, chat.as_ref(), &id, position as u64, limit + 1).await?;
        let chat_id = match found.chats.as_slice() {
            [] => return Err(Problem::not_found(Code::UnknownThread, format!("there is no thread `{id}`")).into()),
            [chat] => chat.parse::<StructuredId>(),
            chats => {
                let detail = format!("several chats have a thread `{id}`; name one by `chatId`");
                let problem = Problem::new(StatusCode::CONFLICT, Code::AmbiguousThread, detail);
                return Err(problem.with_near(chats.to_vec()).into());
            }
        };
        let chat_id = chat_id.map_err(|error| Problem::unavailable(Code::StoreUnavailable, error.to_string()))?;
        // One more than was asked for tells that there is a next page, and where it starts.
        let next = memories.get(limit).and_then(|next| next.metadata.get("thread")?.get("position")?.as_u64());
        memories.truncate(limit);
        Ok(answer::json(&ThreadAnswer {
            id,
            chat_id,
            items: memories.into_iter().map(Into::into).collect(),
            total: found.total,
            gaps: found.gaps.into_iter().map(|(from, to)| Gap { from, to }).collect(),
            next_cursor: next.map(|next| next.to_string()),
        }))
    })
}
