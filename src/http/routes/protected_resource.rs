//! What MCP clients need to know to get a token for this server (RFC 9728).

use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::wire::problem::Code;
use crate::wire::protected_resource::ProtectedResource;

pub(super) fn operation() -> Operation {
    Operation::new("getProtectedResource", "Who issues tokens for this server (RFC 9728), for MCP clients.")
        .answering::<ProtectedResource>("What a client has to ask for, and where; 404 without an issuer.")
}

pub(super) fn mcp_operation() -> Operation {
    Operation::new("getProtectedMcpResource", "The same, by the address that belongs to `/mcp`.")
        .answering::<ProtectedResource>("What a client has to ask for, and where; 404 without an issuer.")
}

pub(super) fn metadata(context: &Context, _: &mut Request) -> Result<Answer, Problem> {
    let Some(issuer) = context.control.issuer() else {
        let detail = "no authorization server is configured here; `auth.issuer` names one";
        return Err(Problem::not_found(Code::UnknownPath, detail));
    };
    Ok(answer::json(&ProtectedResource {
        resource: issuer.audience().to_owned(),
        authorization_servers: vec![issuer.name().to_owned()],
        scopes_supported: issuer.scopes(),
        bearer_methods_supported: vec!["header".to_owned()],
    }))
}
