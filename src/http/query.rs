//! A request's query string, held to the parameters that its route takes.

use percent_encoding::percent_decode_str;

use super::problem::Problem;
use crate::strict::spelling;
use crate::text::near;
use crate::wire::problem::Code;

/// Decoded parameters, each at most once, by the names that the route gives them.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(&'static str, String)>);

/// Names of bodies that mean the same where a parameter is asked for.
const ALIASES: [(&str, &str); 2] = [("tool", "tool_name"), ("session", "session_id")];

/// The parameter that is meant by a name.
fn meant(known: &[&'static str], name: &str) -> Option<&'static str> {
    let find = |name: &str| known.iter().copied().find(|known| spelling::is_same(known, name));
    let alias = || ALIASES.into_iter().find(|(_, alias)| spelling::is_same(alias, name));
    find(name).or_else(|| find(alias()?.0))
}

impl Query {
    /// Parses `text`, in which only the names `known` may occur, in either spelling.
    pub(super) fn parse(text: Option<&str>, known: &[&'static str]) -> Result<Self, Problem> {
        let mut parameters: Vec<(&'static str, String)> = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            let Some(name) = meant(known, &name) else {
                let near = near::nearest(&name, known.iter().copied()).map(str::to_owned).into_iter().collect();
                let detail = match known {
                    [] => format!("unknown parameter `{name}`; this path takes none"),
                    _ => format!("unknown parameter `{name}`; this path takes {}", known.join(", ")),
                };
                return Err(Problem::bad_request(Code::UnknownParameter, detail).with_near(near));
            };
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(Problem::bad_request(
                    Code::RepeatedParameter,
                    format!("the parameter `{name}` stands there twice"),
                ));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// The value of a parameter that is there and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// The same, also if it is empty: what has no empty value says so.
    fn given(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    }

    /// true or false.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Problem> {
        match self.given(name) {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => {
                let detail = format!("`{name}` is true or false, not `{other}`");
                Err(Problem::invalid(Code::InvalidParameter, detail))
            }
        }
    }

    /// Where a page begins, by the parameter `cursor`: how many were on those before.
    pub(super) fn page_start(&self) -> Result<usize, Problem> {
        let parsed = self.get("cursor").map_or(Ok(0), str::parse);
        parsed.map_err(|_| Problem::invalid(Code::InvalidCursor, "the cursor is not one that this list gave"))
    }

    /// A whole number from `low` to `high`.
    pub(super) fn number(&self, name: &str, default: usize, low: usize, high: usize) -> Result<usize, Problem> {
        let Some(text) = self.given(name) else { return Ok(default) };
        text.parse().ok().filter(|number| (low..=high).contains(number)).ok_or_else(|| {
            Problem::invalid(
                Code::InvalidParameter,
                format!("`{name}` is a whole number from {low} to {high}, not `{text}`"),
            )
        })
    }
}

fn decode(text: &str) -> Result<String, Problem> {
    // In a query `+` stands for a space.
    percent_decode_str(&text.replace('+', " "))
        .decode_utf8()
        .map(Into::into)
        .map_err(|_| Problem::bad_request(Code::MalformedQuery, "the query is not percent-encoded UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_held_to_their_names() {
        let query = Query::parse(Some("q=web%20search+now&limit=5&category="), &["q", "limit", "category"]).unwrap();
        assert_eq!(query.get("q"), Some("web search now"));
        assert_eq!(query.get("category"), None);
        assert_eq!(query.number("limit", 1, 1, 10).unwrap(), 5);
        assert!(query.number("limit", 1, 1, 4).is_err());
        for bad in ["x=1", "q=1&q=2", "q=%ff"] {
            assert!(Query::parse(Some(bad), &["q"]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_parameter_has_two_spellings() {
        for text in ["session_id=s", "sessionId=s"] {
            assert_eq!(Query::parse(Some(text), &["session_id"]).unwrap().get("session_id"), Some("s"));
            assert_eq!(Query::parse(Some(text), &["sessionId"]).unwrap().get("sessionId"), Some("s"));
        }
        // As bodies have them.
        let query = Query::parse(Some("tool_name=t&sessionId=s"), &["tool", "session"]).unwrap();
        assert_eq!((query.get("tool"), query.get("session")), (Some("t"), Some("s")));
        let twice = Query::parse(Some("session_id=s&sessionId=s"), &["session_id"]).unwrap_err();
        assert_eq!(twice.code(), Code::RepeatedParameter);
    }
}
