//! Routes of rule libraries.

use std::time::SystemTime;

use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::{Operation, Parameter, path};
use crate::http::problem::Problem;
use crate::plugin_host::{CallOutcome, Confined, ListedLibrary, PastFault, State};
use crate::wire::plugin::{PluginCalls, PluginFault, PluginItem, PluginLatency, PluginList, PluginReset};
use crate::wire::problem::Code;

pub(super) fn list_operation() -> Operation {
    Operation::new("listPlugins", "Which rule libraries there are, and how each is.")
        .answering::<PluginList>("All of them, in the order of their precedence.")
}

pub(super) fn list(context: &Context, _: &mut Request) -> Result<Answer, Problem> {
    let listed = context.control.plugins().list();
    let items: Vec<PluginItem> = listed.iter().map(item).collect();
    let sandbox_available = context.metrics.plugins.sandbox.get() == 1;
    Ok(answer::json(&PluginList { total: items.len(), items, sandbox_available }))
}

fn item(listed: &ListedLibrary) -> PluginItem {
    let (status, figures) = (&listed.status, &listed.figures);
    let hello = status.serving.as_ref().map(|(_, hello)| hello);
    let text = |pick: fn(&crate::plugin_host::Hello) -> &String| {
        hello.map(|hello| pick(hello).clone()).filter(|text| !text.is_empty())
    };
    let identity = status.file.as_ref().map(|(_, identity)| identity);
    let calls = |outcome| figures.calls(outcome);
    let sandbox = hello.map_or(Confined::No, |hello| hello.sandbox);
    let failures = if let State::Backoff(failures) = status.state { failures } else { 0 };
    PluginItem {
        id: status.id.clone(),
        state: status.state.as_str().to_owned(),
        failures,
        file: status.path.display().to_string(),
        version: text(|hello| &hello.version).or_else(|| identity.map(|identity| identity.version.clone())),
        name: text(|hello| &hello.name),
        vendor: text(|hello| &hello.vendor),
        url: text(|hello| &hello.url),
        hash: status.serving.as_ref().map(|(hash, _)| hash.to_string()),
        file_hash: status.file.as_ref().map(|(hash, _)| hash.to_string()),
        file_version: identity.map(|identity| identity.version.clone()),
        abi: identity.map(|identity| format!("{}.{}", identity.abi.0, identity.abi.1)),
        pid: status.pid,
        sandboxed: matches!(sandbox, Confined::Partly | Confined::Fully),
        sandbox: sandbox.as_str().to_owned(),
        sandbox_lacks: hello.iter().flat_map(|hello| &hello.lacks).map(|lack| lack.as_str().to_owned()).collect(),
        refusal: status.refusal.clone(),
        update_refused: status.update_refused().map(str::to_owned),
        last_fault: status.last_fault.as_ref().map(fault),
        retry_in_seconds: status.retry_in.map(|time| time.as_secs_f64()),
        restarts: status.restarts,
        calls: PluginCalls {
            answered: calls(CallOutcome::Answered),
            failed: calls(CallOutcome::Failed),
            timeout: calls(CallOutcome::Timeout),
            busy: calls(CallOutcome::Busy),
            fault: calls(CallOutcome::LibraryFault),
            unavailable: calls(CallOutcome::Unavailable),
        },
        latency_us: figures.latency_us(0.5).and_then(|p50| Some(PluginLatency { p50, p99: figures.latency_us(0.99)? })),
    }
}

fn fault(fault: &PastFault) -> PluginFault {
    PluginFault {
        kind: fault.kind.to_owned(),
        message: fault.message.clone(),
        at: timestamp(fault.at),
        hash: fault.hash.to_string(),
        version: fault.version.clone(),
    }
}

fn timestamp(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

pub(super) fn reset_operation() -> Operation {
    const ID: Parameter = path("name", "The library's id.");
    Operation::new("resetPlugin", "Forgive a rule library its faults, and try it again at once.")
        .taking(&[ID])
        .answering::<PluginReset>("It is forgiven.")
}

pub(super) fn reset(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let id = request.parameter()?;
    let plugins = context.control.plugins();
    match plugins.reset(id) {
        Ok(true) => Ok(answer::json(&PluginReset { reset: id.to_owned() })),
        Ok(false) => {
            let near = plugins.list().into_iter().map(|listed| listed.status.id).collect();
            let detail = format!("there is no rule library `{id}`");
            Err(Problem::not_found(Code::UnknownPlugin, detail).with_near(near))
        }
        Err(error) => Err(Problem::unavailable(Code::Stopping, error.to_string())),
    }
}
