//! What to call after a reasoning tool.
//!
//! The rules are data: after which tool, when, what and why. A rule that always holds says what is never wrong next; a
//! conditional one reads how many outputs the call gave, whether branches are open, how complex the result was, and
//! whether there is a session to keep it in. They are listed best first, and the score falls with the place, so that a
//! blend keeps their order.

#![forbid(unsafe_code)]

mod rules;

use almanac_plugin::{Error, Request, Rule, Setup, Sink, export_plugin};

/// All rules of this library.
struct Reasoning;

impl Rule for Reasoning {
    fn create(_setup: &Setup<'_>) -> Result<Self, Error> {
        Ok(Self)
    }

    fn suggest(&mut self, request: &Request<'_>, sink: &mut Sink<'_>) {
        for (place, rule) in rules::that_hold(request).enumerate() {
            sink.suggest(rule.next, &rule.reason(request), score(place));
        }
    }
}

/// What a place in the list is worth: the first .9, each further one a tenth less.
fn score(place: usize) -> f64 {
    (0.9 - 0.1 * place as f64).max(0.0)
}

export_plugin!(
    Reasoning,
    id = "dev.almanac.reasoning",
    name = "Reasoning tools",
    vendor = "The Almanac authors",
    url = "https://almanac.dev",
);

#[cfg(test)]
mod tests;
