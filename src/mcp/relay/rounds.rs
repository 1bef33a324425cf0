//! Requests that a modern server answers with questions, and that are asked again with what was answered.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::{Era, ErrorObject, Members, NoObject, code};

/// How often a server may ask anew before it is given up.
pub(in crate::mcp) const MAX_ROUNDS: usize = 8;

/// The members of a request that answer a server's questions.
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// Are these members of a result that asks something?
pub(in crate::mcp) fn asks(members: &Members<'_>) -> bool {
    members.text("resultType").is_some_and(|kind| kind == "input_required")
}

/// One thing that a server wants to know.
#[derive(Debug)]
pub(in crate::mcp) struct InputRequest {
    /// What its answer is called.
    key: String,
    pub(in crate::mcp) method: String,
    pub(in crate::mcp) params: Option<Box<RawValue>>,
}

/// All that a server wants to know before it goes on.
#[derive(Debug)]
pub(in crate::mcp) struct InputRequired {
    pub(in crate::mcp) requests: Vec<InputRequest>,
    state: Option<Box<RawValue>>,
}

impl InputRequired {
    /// What this result asks, if it does.
    pub(in crate::mcp) fn read(result: &RawValue) -> Option<Self> {
        let members = Members::read(result).ok().filter(asks)?;
        let requests = members.get("inputRequests").and_then(|requests| Members::read(requests).ok());
        let read = |(key, request): (&str, &RawValue)| {
            let request = Members::read(request).ok()?;
            let params = request.get("params").map(ToOwned::to_owned);
            Some(InputRequest { key: key.to_owned(), method: request.text("method")?.into_owned(), params })
        };
        Some(Self {
            requests: requests.iter().flat_map(Members::iter).filter_map(read).collect(),
            state: members.get(STATE).map(ToOwned::to_owned),
        })
    }

    /// The same request with the answers, which are in the order of the questions.
    pub(in crate::mcp) fn answered(
        &self,
        params: &RawValue,
        answers: &[Box<RawValue>],
    ) -> Result<Box<RawValue>, NoObject> {
        let mut responses = Map::new();
        for (request, answer) in self.requests.iter().zip(answers) {
            responses.insert(request.key.clone(), serde_json::from_str(answer.get()).map_err(|_| NoObject)?);
        }
        let params = object::set(params, RESPONSES, &Value::Object(responses).to_string())?;
        match &self.state {
            Some(state) => object::set(&params, STATE, state.get()),
            None => object::remove(&params, &[STATE]),
        }
    }
}

/// The state that a result gives to bring back.
pub(in crate::mcp) fn state_of(object: &RawValue) -> Option<String> {
    Some(Members::read(object).ok()?.text(STATE)?.into_owned())
}

/// A result with another state to bring back.
pub(in crate::mcp) fn with_state(result: &RawValue, state: &str) -> Result<Box<RawValue>, NoObject> {
    object::set(result, STATE, &Value::from(state).to_string())
}

/// The answers that a request brings, by the keys of their questions.
pub(in crate::mcp) fn response(params: Option<&RawValue>, key: &str) -> Option<Box<RawValue>> {
    let responses = Members::read(params?).ok()?.get(RESPONSES)?;
    Some(Members::read(responses).ok()?.get(key)?.to_owned())
}

/// Does this request answer questions?
pub(in crate::mcp) fn answers(params: Option<&RawValue>) -> bool {
    let members = params.and_then(|params| Members::read(params).ok());
    members.is_some_and(|members| members.get(RESPONSES).is_some() || members.get(STATE).is_some())
}

/// What a server of this era gets of the answers in a request's `params`, with the state that it gave: a legacy one
/// does not know them.
pub(in crate::mcp) fn passed_on(
    sent: &RawValue,
    params: Option<&RawValue>,
    state: Option<&str>,
    era: Option<Era>,
) -> Result<Box<RawValue>, NoObject> {
    let mut sent = object::remove(sent, &[STATE, RESPONSES])?;
    if era == Some(Era::Legacy) {
        return Ok(sent);
    }
    if let Some(responses) = params.and_then(|params| Members::read(params).ok()?.get(RESPONSES)) {
        sent = object::set(&sent, RESPONSES, responses.get())?;
    }
    match state {
        Some(state) => object::set(&sent, STATE, &Value::from(state).to_string()),
        None => Ok(sent),
    }
}

/// What a client is asked, as a result.
pub(in crate::mcp) fn asking(key: &str, method: &str, params: Option<&RawValue>, state: &str) -> Box<RawValue> {
    let mut request = Map::new();
    request.insert("method".to_owned(), method.into());
    let params = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_else(|| json!({}));
    request.insert("params".to_owned(), params);
    let result = json!({"resultType": "input_required", "inputRequests": {key: request}, STATE: state});
    to_raw_value(&result).unwrap_or_default()
}

/// What a legacy server's error that sends the user to a page is for a modern client: questions by these pages.
pub(in crate::mcp) fn of_pages(error: &RawValue) -> Option<Box<RawValue>> {
    let ErrorObject { code: code::URL_ELICITATION_REQUIRED, data: Some(data), .. } = ErrorObject::read(error) else {
        return None;
    };
    let pages = data["elicitations"].as_array().filter(|pages| !pages.is_empty())?;
    let mut requests = Map::new();
    for (place, page) in pages.iter().enumerate() {
        let params = json!({"mode": "url", "message": page["message"], "url": page["url"]});
        requests.insert(format!("page{}", place + 1), json!({"method": "elicitation/create", "params": params}));
    }
    to_raw_value(&json!({"resultType": "input_required", "inputRequests": requests})).ok()
}

/// A failed call that says what was asked, to a model.
pub(in crate::mcp) fn unanswered(server: &str, asked: &InputRequired) -> Box<RawValue> {
    let first = asked.requests.first();
    let said =
        first.and_then(|request| Members::read(request.params.as_deref()?).ok()?.text("message").map(String::from));
    let what = match (first.map(|request| request.method.as_str()), said) {
        (_, Some(message)) => format!("asks: {message}"),
        (Some("sampling/createMessage"), None) => "asks the client's model".to_owned(),
        (Some("roots/list"), None) => "asks for the client's directories".to_owned(),
        _ => "asks for more".to_owned(),
    };
    let text = format!("{server} {what}; nobody was there to answer, so call the tool again with a person present");
    failed(&text)
}

/// A failed call that a model can read.
pub(in crate::mcp) fn failed(text: &str) -> Box<RawValue> {
    to_raw_value(&json!({"content": [{"type": "text", "text": text}], "isError": true})).unwrap_or_default()
}

/// A result with the state that it gives sealed by `seal`; as it is if it gives none.
pub(in crate::mcp) fn sealed(result: &RawValue, seal: impl FnOnce(&str) -> String) -> Result<Box<RawValue>, NoObject> {
    match state_of(result) {
        Some(state) => with_state(result, &seal(&state)),
        None => object::rewrite(result, |_, _| Change::Keep, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    const ASKING: &str = r#"{"resultType":"input_required","requestState":"s","inputRequests":{
        "a":{"method":"elicitation/create","params":{"message":"Who?"}},"b":{"method":"roots/list"}}}"#;

    #[test]
    fn a_request_is_asked_again_with_its_answers() {
        let asked = InputRequired::read(raw(ASKING)).unwrap();
        let methods: Vec<&str> = asked.requests.iter().map(|request| request.method.as_str()).collect();
        assert_eq!(methods, ["elicitation/create", "roots/list"]);
        let answers = [r#"{"action":"accept"}"#, r#"{"roots":[]}"#].map(|answer| raw(answer).to_owned());
        let again = asked.answered(raw(r#"{"name":"t", "n":1.0,"requestState":"old"}"#), &answers).unwrap();
        let responses = r#"{"a":{"action":"accept"},"b":{"roots":[]}}"#;
        let expected = format!(r#"{{"name":"t", "n":1.0,"requestState":"s","inputResponses":{responses}}}"#);
        assert_eq!(again.get(), expected);
        assert!(InputRequired::read(raw(r#"{"content":[]}"#)).is_none());
        assert!(unanswered("files", &asked).get().contains("files asks: Who?"));
    }

    #[test]
    fn answers_reach_servers_that_know_them() {
        let check = |era: Era, state: Option<&str>, expected: &str| {
            let params = raw(r#"{"name":"call_tool","inputResponses":{"a": 1},"requestState":"sealed"}"#);
            let sent =
                passed_on(raw(r#"{"name":"t","requestState":"sealed"}"#), Some(params), state, Some(era)).unwrap();
            assert_eq!(sent.get(), expected);
        };
        check(Era::Modern, Some("s"), r#"{"name":"t","inputResponses":{"a": 1},"requestState":"s"}"#);
        check(Era::Modern, None, r#"{"name":"t","inputResponses":{"a": 1}}"#);
        check(Era::Legacy, Some("s"), r#"{"name":"t"}"#);
    }

    #[test]
    fn pages_of_a_legacy_server_are_questions() {
        let error = r#"{"code":-32042,"message":"log in","data":{"elicitations":[
            {"mode":"url","elicitationId":"e","url":"https://a.example/","message":"Log in"}]}}"#;
        let asked = InputRequired::read(&of_pages(raw(error)).unwrap()).unwrap();
        let params = asked.requests[0].params.as_ref().unwrap();
        assert_eq!(params.get(), r#"{"mode":"url","message":"Log in","url":"https://a.example/"}"#);
        assert!(of_pages(raw(r#"{"code":-32602,"message":"no"}"#)).is_none());
    }
}
