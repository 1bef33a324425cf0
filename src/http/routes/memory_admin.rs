//! Routes of memories for whoever administers: to keep them elsewhere, and to remove them for good.

use std::sync::Arc;

use hyper::Method;

use super::memory_request::{concerned, observed, tenant};
use crate::http::answer;
use crate::http::handler::{Access, Answering, Context, Handler, Request, Route};
use crate::http::operation::{Operation, Parameter, query, query_number};
use crate::wire::memory_archive::{
    ExportAnswer, ImportAnswer, ImportBody, ImportRequest, MAX_IMPORT, PurgeAnswer, PurgeBody, PurgeRequest,
};

pub(super) fn routes() -> Vec<Route> {
    let route = |method, path, handler, operation| Route {
        method,
        path,
        access: Access::Socket,
        handler: Handler::Async(handler),
        operation,
        is_abandoned: false,
    };
    vec![
        route(Method::GET, "/-/memories/export", export, export_operation),
        route(Method::POST, "/-/memories/import", import, import_operation),
        route(Method::POST, "/-/memories/purge", purge, purge_operation),
    ]
}

const TENANT: Parameter = query("tenant", "string", "Whose memories; `default` by default.");

fn export_operation() -> Operation {
    const PARAMETERS: [Parameter; 3] = [
        query_number("limit", (1, 1000), "At most so many, 1 to 1000; 200 by default."),
        query("cursor", "string", "`nextCursor` of the page before."),
        TENANT,
    ];
    Operation::new("exportMemories", "All memories with their history, by id.")
        .taking(&PARAMETERS)
        .answering::<ExportAnswer>("A page.")
}

fn export(context: Arc<Context>, request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "export", async move {
        let (tenant, query) = (tenant(&request)?, &request.query);
        let limit = query.number("limit", 200, 1, MAX_IMPORT)?;
        let page = engine.export_memories(&tenant, query.get("cursor").unwrap_or_default(), limit).await?;
        let next_cursor = page.last().filter(|_| page.len() == limit).map(|(memory, _)| memory.id.clone());
        Ok(answer::json(&ExportAnswer { items: page.into_iter().map(Into::into).collect(), next_cursor }))
    })
}

fn import_operation() -> Operation {
    const PARAMETERS: [Parameter; 1] = [TENANT];
    Operation::new("importMemories", "Take memories that were kept elsewhere, all or none.")
        .taking(&PARAMETERS)
        .with_body::<ImportRequest>()
        .answering::<ImportAnswer>("They are durable.")
}

fn import(context: Arc<Context>, mut request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "import", async move {
        let tenant = tenant(&request)?;
        let ImportBody { memories } = request.take_body()?;
        Ok(answer::json(&ImportAnswer { imported: engine.import_memories(&tenant, memories).await? }))
    })
}

fn purge_operation() -> Operation {
    const PARAMETERS: [Parameter; 1] = [TENANT];
    Operation::new("purgeMemories", "Remove memories for good, with their history and all that was made from them.")
        .taking(&PARAMETERS)
        .with_body::<PurgeRequest>()
        .answering::<PurgeAnswer>("They are gone.")
}

fn purge(context: Arc<Context>, mut request: Request) -> Answering {
    let engine = Arc::clone(&context.engine);
    observed(context, concerned(&request), "purge", async move {
        let tenant = tenant(&request)?;
        let purged = match request.take_body()? {
            PurgeBody::User(user) => engine.forget_user(&tenant, &user).await?,
            PurgeBody::All => engine.forget_everybody(&tenant).await?,
            PurgeBody::Memories(which) => engine.purge_memories(&tenant, which).await?,
        };
        Ok(answer::json(&PurgeAnswer { purged }))
    })
}
