//! A message that was received, held against the errors that documents know.
//!
//! Documents name an error as it shows (`MISSING_API_KEY`, `401 Unauthorized`); what a caller has is a line around it
//! ("HTTP 401 MISSING_API_KEY"), or a part of it.

use super::document::CommonError;

/// Does the document's `known` error stand in `message`, or the other way round, or do both name one code?
pub fn matches(known: &str, message: &str) -> bool {
    let (known, message) = (known.to_lowercase(), message.to_lowercase());
    if known.trim().is_empty() || message.trim().is_empty() {
        return false;
    }
    if known.contains(message.trim()) {
        return true;
    }
    let (known, message) = (words(&known), words(&message));
    let is_within = !known.is_empty() && message.windows(known.len()).any(|part| part == known);
    is_within || known.iter().any(|word| is_code(word) && message.contains(word))
}

/// The errors among `known` that the message is one of.
pub fn matching<'k>(known: &'k [CommonError], message: &str) -> impl Iterator<Item = &'k CommonError> {
    known.iter().filter(move |known| matches(&known.error, message))
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

/// Numbers of statuses, and names such as `missing_api_key`, mean one thing wherever they stand.
fn is_code(word: &str) -> bool {
    let is_number = (3..=5).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number || word.contains('_') && word.len() > 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_received_message_finds_the_error() {
        let check = |known: &str, message: &str, expected: bool| {
            assert_eq!(matches(known, message), expected, "{known:?} in {message:?}");
        };
        check("MISSING_API_KEY", "HTTP 401 MISSING_API_KEY", true);
        check("401 Unauthorized", "HTTP 401 MISSING_API_KEY", true);
        check("status_code 401 or 403", "Error: request failed with status code 403", true);
        check("404 Not Found", "not found", true);
        check("insufficient funds for gas", "Error: insufficient funds for gas * price + value", true);
        check("TIMEOUT", "timeout after 30 s", true);
        check("timeout", "timeouts", false);
        check("404 Not Found", "HTTP 401", false);
        check("Empty list", "the list is long", false);
        check("", "anything", false);
        check("anything", "", false);
    }
}
