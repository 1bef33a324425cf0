//! A request's query string, held to the parameters that its route takes.

use percent_encoding::percent_decode_str;

use super::problem::Problem;
use crate::text::near;

/// Decoded parameters, each at most once.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses `text`, in which only the names `known` may occur.
    pub(super) fn parse(text: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_str()) {
                let near = near::nearest(&name, known.iter().copied()).map(str::to_owned).into_iter().collect();
                let detail = match known {
                    [] => format!("unknown parameter `{name}`; this path takes none"),
                    _ => format!("unknown parameter `{name}`; this path takes {}", known.join(", ")),
                };
                return Err(Problem::bad_request("unknown-parameter", detail).with_near(near));
            }
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(Problem::bad_request(
                    "repeated-parameter",
                    format!("the parameter `{name}` stands there twice"),
                ));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// The value of a parameter that is there and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, value)| other == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// A whole number from `low` to `high`.
    pub(super) fn number(&self, name: &str, default: usize, low: usize, high: usize) -> Result<usize, Problem> {
        let Some(text) = self.get(name) else { return Ok(default) };
        text.parse().ok().filter(|number| (low..=high).contains(number)).ok_or_else(|| {
            Problem::invalid(
                "invalid-parameter",
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
        .map_err(|_| Problem::bad_request("malformed-query", "the query is not percent-encoded UTF-8"))
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
}
