//! The tools that call others: a client whose list would be too long finds tools, and calls them by these.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Mcp;
use super::address::Address;
use super::error::RpcError;
use super::own::ToolResult;
use super::relay::{CallWay, Fetch, WantedCall, argument_faults, handle_schema};
use super::request::{McpRequest, MessageSink, RpcAnswer, complete};
use crate::jsonrpc::{Members, object};
use crate::strict::Word;
use crate::text::near;

/// One of these tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "snake_case")]
pub(super) enum MetaTool {
    /// Calls a tool.
    CallTool,
    /// Calls a tool that changes nothing.
    CallToolReadOnly,
    /// What became of a call that outlived its caller's patience?
    GetResult,
}

/// A schema is shown to whoever breaks it, up to so many bytes.
const MAX_SCHEMA: usize = 4000;

impl MetaTool {
    /// The tool as it is listed.
    pub(super) fn definition(self) -> Value {
        let call = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "arguments": {"type": "object", "description": "As the tool's inputSchema says."},
                "search_id": {"type": "string", "description": "Of the find_tools that found it."},
                "wait_seconds": {"type": "number", "description": "Wait at most so long; then a handle is given."},
            },
            "required": ["name"],
        });
        let (description, schema, annotations) = match self {
            Self::CallTool => (
                "Call a tool that find_tools found.",
                call,
                json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true}),
            ),
            Self::CallToolReadOnly => (
                "Call a tool that find_tools found with read_only: true.",
                call,
                json!({"readOnlyHint": true, "openWorldHint": true}),
            ),
            Self::GetResult => (
                "Wait for the result of a call that was answered with a handle, or get the rest of a long one. Results \
                 are kept for an hour.",
                handle_schema(),
                json!({"readOnlyHint": true, "openWorldHint": false}),
            ),
        };
        json!({
            "name": self.as_str(), "description": description, "inputSchema": schema, "annotations": annotations,
        })
    }
}

impl Mcp {
    /// Calls one of these tools.
    pub(super) async fn call_meta(
        self: &std::sync::Arc<Self>,
        request: &McpRequest,
        events: &MessageSink,
        tool: MetaTool,
    ) -> RpcAnswer {
        let caller = &request.caller;
        let refused = |text: String| complete(caller, ToolResult::error(text).into_json(caller.version));
        let arguments = request.value("arguments");
        let Some(arguments) = arguments.map(Members::read).transpose().ok().flatten() else {
            return refused(format!("`{}` needs `arguments`, an object", tool.as_str()));
        };
        if let Some(text) = unknown_key(&arguments, &tool.definition()["inputSchema"]["properties"]) {
            return refused(text);
        }
        if tool == MetaTool::GetResult {
            return match fetch_of(&arguments) {
                Ok(fetch) => self.fetch(request, events, fetch).await,
                Err(text) => refused(text),
            };
        }
        let wait = match seconds(&arguments) {
            Ok(wait) => wait,
            Err(text) => return refused(text),
        };
        let Some(name) = arguments.text("name") else {
            return refused("/name is missing: the name of the tool to call, as find_tools gave it".to_owned());
        };
        self.await_starting(request).await;
        let shown = self.shown();
        let Some(found) = shown.tool(&caller.address, &name).or_else(|| {
            // Clients put a prefix of their own before names, and models repeat it.
            shown.tool(&caller.address, without_prefix(&name, |name| shown.tool(&caller.address, name).is_some())?)
        }) else {
            return refused(self.unknown(request, &name));
        };
        if tool == MetaTool::CallToolReadOnly && !shown.facts(&found.name).is_read_only {
            return refused(format!("`{}` is not known to change nothing; call it by call_tool", found.name));
        }
        let given = match given(arguments.get("arguments")) {
            Ok(given) => given,
            Err(text) => return refused(text),
        };
        let value: Value = given
            .as_deref()
            .map_or_else(|| Ok(json!({})), |raw| serde_json::from_str(raw.get()))
            .map_err(|error| RpcError::invalid_params(error.to_string()))?;
        let faults = argument_faults(&found.schema, &value);
        if !faults.is_empty() {
            let schema = crate::text::head::head(&found.schema.to_string(), MAX_SCHEMA).to_owned();
            let lines = faults.join("\n");
            return refused(format!("the arguments do not fit `{}`:\n{lines}\nits schema: {schema}", found.name));
        }
        let way = CallWay::Found { search: arguments.text("search_id").map(String::from), wait };
        let wanted = WantedCall { tool: std::sync::Arc::clone(found), arguments: given, way };
        self.relay(request, events, wanted).await
    }

    /// Says what may have been meant by a name that nothing has.
    pub(super) fn unknown(&self, request: &McpRequest, name: &str) -> String {
        let address = &request.caller.address;
        let names = self.shown().names(address);
        if names.iter().any(|known| **known == *name) {
            return format!("`{name}` is called by its own name, not by another tool");
        }
        // Their names begin with their server's, which is often left out.
        let prefixed: Vec<&str> =
            names.iter().map(|known| &**known).filter(|known| lacks_prefix(name, known)).collect();
        let near = if prefixed.is_empty() {
            near::nearest_few(name, names.iter().map(|name| &**name), 3)
        } else {
            prefixed.into_iter().take(3).collect()
        };
        let quoted: Vec<String> = near.iter().map(|near| format!("`{near}`")).collect();
        let hint = if quoted.is_empty() { String::new() } else { format!("; did you mean {}?", quoted.join(" or ")) };
        let shown: String = name.chars().take(80).collect();
        let down = self.shown().down(address);
        let is_only = matches!(address, Address::Server(_));
        let of = down.iter().find(|(server, _)| {
            let begins = |rest: &str| rest.starts_with('_') && !server.prefix.is_empty();
            is_only || name.strip_prefix(server.prefix.as_str()).is_some_and(begins)
        });
        let down =
            of.map_or_else(String::new, |(server, why)| format!("; the server `{}` does not run: {why}", server.name));
        format!("there is no tool `{shown}` here{hint}{down}")
    }
}

/// Is it the end of a known name, behind a mark?
fn lacks_prefix(name: &str, known: &str) -> bool {
    let begins = known.strip_suffix(name).filter(|_| name.len() > 2);
    begins.is_some_and(|begins| begins.ends_with(|last: char| !last.is_ascii_alphanumeric()))
}

/// A key that the tool does not know: what it holds would be left out.
fn unknown_key(arguments: &Members<'_>, properties: &Value) -> Option<String> {
    let properties = properties.as_object()?;
    let (unknown, _) = arguments.iter().find(|(key, _)| !properties.contains_key(*key))?;
    let known = near::nearest(unknown, properties.keys().map(String::as_str));
    let hint = known.map_or_else(
        || format!("it takes {}", properties.keys().cloned().collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    let shown: String = unknown.chars().take(80).collect();
    Some(format!("unknown key `{shown}`; {hint}"))
}

/// What is left of a name whose beginning a client has added.
fn without_prefix(name: &str, is_known: impl Fn(&str) -> bool) -> Option<&str> {
    let begins = |at: usize| name[..at].ends_with(|last: char| !last.is_ascii_alphanumeric());
    name.char_indices()
        .skip(1)
        .map(|(at, _)| at)
        .filter(|at| begins(*at))
        .map(|at| &name[at..])
        .find(|rest| is_known(rest))
}

/// Arguments are an object, or a text that is one.
fn given(arguments: Option<&RawValue>) -> Result<Option<Box<RawValue>>, String> {
    let Some(raw) = arguments.filter(|raw| raw.get() != "null") else { return Ok(None) };
    let raw = match object::text(raw) {
        Some(text) => RawValue::from_string(text.trim().to_owned())
            .map_err(|error| format!("/arguments must be an object, and this text is none: {error}"))?,
        None => raw.to_owned(),
    };
    if Members::read(&raw).is_err() {
        return Err("/arguments must be an object".to_owned());
    }
    Ok(Some(raw))
}

/// How long to wait at most, if it is said.
fn seconds(arguments: &Members<'_>) -> Result<Option<Duration>, String> {
    let Some(raw) = arguments.get("wait_seconds").filter(|raw| raw.get() != "null") else { return Ok(None) };
    let seconds = raw.get().parse::<f64>().ok().filter(|seconds| *seconds >= 0.0);
    let seconds = seconds.ok_or("/wait_seconds must be a number of 0 or more")?;
    Ok(Some(Duration::from_secs_f64(seconds.min(86_400.0))))
}

fn fetch_of(arguments: &Members<'_>) -> Result<Fetch, String> {
    let handle = arguments.text("handle").ok_or("/handle is missing: the one that a call was answered with")?;
    let offset = arguments.get("offset").map_or(Ok(0), |raw| raw.get().parse());
    let cancels = match arguments.get("cancel").map(RawValue::get) {
        None | Some("null" | "false") => false,
        Some("true") => true,
        Some(_) => return Err("/cancel must be true or false".to_owned()),
    };
    Ok(Fetch {
        handle: handle.into_owned(),
        wait: seconds(arguments)?,
        offset: offset.map_err(|_| "/offset must be a number of bytes".to_owned())?,
        cancels,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_prefix_is_taken_off() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(without_prefix(name, |name| ["files_read", "read"].contains(&name)), expected, "{name}");
        };
        check("mcp__almanac__files_read", Some("files_read"));
        check("almanac:files_read", Some("files_read"));
        check("almanac.read", Some("read"));
        check("spread", None);
        check("files_read", Some("read"));
        check("", None);
    }

    #[test]
    fn a_prefix_that_was_left_out_is_found() {
        let check = |name: &str, known: &str, expected: bool| assert_eq!(lacks_prefix(name, known), expected, "{name}");
        check("list_orders", "shop_list_orders", true);
        check("orders", "shop_list_orders", true);
        check("ist_orders", "shop_list_orders", false);
        check("shop_list_orders", "shop_list_orders", false);
        check("s", "shop_s", false);
    }

    #[test]
    fn keys_that_are_not_known_are_told() {
        let check = |tool: MetaTool, json: &str, expected: Option<&str>| {
            let raw: Box<RawValue> = RawValue::from_string(json.to_owned()).unwrap();
            let told = unknown_key(&Members::read(&raw).unwrap(), &tool.definition()["inputSchema"]["properties"]);
            assert_eq!(told.as_deref(), expected, "{json}");
        };
        check(MetaTool::CallTool, r#"{"name": "a", "arguments": {"b": 1}, "search_id": "s", "wait_seconds": 1}"#, None);
        let meant = "unknown key `argument`; did you mean `arguments`?";
        check(MetaTool::CallTool, r#"{"name": "a", "argument": {"b": 1}}"#, Some(meant));
        let takes = "unknown key `params`; it takes name, arguments, search_id, wait_seconds";
        check(MetaTool::CallToolReadOnly, r#"{"params": {}}"#, Some(takes));
        check(
            MetaTool::GetResult,
            r#"{"handle": "c_x", "wait_secs": 1}"#,
            Some("unknown key `wait_secs`; did you mean `wait_seconds`?"),
        );
    }

    #[test]
    fn what_is_asked_of_a_handle_is_read_strictly() {
        let check = |rest: &str, expected: Result<(Option<u64>, bool), &str>| {
            let raw: Box<RawValue> = RawValue::from_string(format!(r#"{{"handle": "c_x"{rest}}}"#)).unwrap();
            let read = fetch_of(&Members::read(&raw).unwrap());
            let read = read.map(|fetch| (fetch.wait.map(|wait| wait.as_secs()), fetch.cancels));
            assert_eq!(read, expected.map_err(ToOwned::to_owned), "{rest}");
        };
        check("", Ok((None, false)));
        check(r#", "cancel": true, "wait_seconds": 2"#, Ok((Some(2), true)));
        check(r#", "cancel": null, "wait_seconds": null"#, Ok((None, false)));
        check(r#", "wait_seconds": 1e99"#, Ok((Some(86_400), false)));
        for wrong in [r#""true""#, "1", "[]"] {
            check(&format!(r#", "cancel": {wrong}"#), Err("/cancel must be true or false"));
        }
        for wrong in [r#""abc""#, r#""2""#, "true", "[1]", "-1"] {
            check(&format!(r#", "wait_seconds": {wrong}"#), Err("/wait_seconds must be a number of 0 or more"));
        }
    }

    #[test]
    fn arguments_may_be_written_as_a_text() {
        let check = |json: &str, expected: Result<Option<&str>, &str>| {
            let raw: Box<RawValue> = RawValue::from_string(json.to_owned()).unwrap();
            match (given(Some(&raw)), expected) {
                (Ok(given), Ok(expected)) => assert_eq!(given.as_deref().map(RawValue::get), expected, "{json}"),
                (Err(text), Err(part)) => assert!(text.contains(part), "{text}"),
                (other, _) => panic!("{json}: {other:?}"),
            }
        };
        check(r#"{"a": 1.0}"#, Ok(Some(r#"{"a": 1.0}"#)));
        check(r#""{\"a\": 1.0}""#, Ok(Some(r#"{"a": 1.0}"#)));
        check("null", Ok(None));
        check("[]", Err("/arguments must be an object"));
        check(r#""x""#, Err("this text is none"));
    }
}
