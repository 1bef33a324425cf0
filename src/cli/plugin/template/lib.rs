//! What to call next, in the words of this library.

use almanac_plugin::{Error, Request, Rule, Setup, Sink, export_plugin};

/// The rule. What it has to remember between calls are its fields.
struct Rules;

impl Rule for Rules {
    fn create(_setup: &Setup<'_>) -> Result<Self, Error> {
        Ok(Self)
    }

    fn suggest(&mut self, request: &Request<'_>, sink: &mut Sink<'_>) {
        // After a tool with several results, somebody has to decide between them.
        if request.num_outputs() > 1 {
            sink.suggest("reasoning_decision", "There is more than one result to choose from", 0.6);
        }
    }
}

export_plugin!(Rules, id = "org.example.{{name}}", name = "{{name}}");

#[cfg(test)]
mod tests {
    use almanac_plugin::testing::{Call, Driver};

    use super::Rules;

    #[test]
    fn several_results_want_a_decision() {
        let mut driver = Driver::new::<Rules>("{}").unwrap();
        let mut suggested = |outputs| {
            let suggestions = driver.suggest(&Call::after("web_search").outputs(outputs)).unwrap();
            suggestions.into_iter().map(|suggestion| suggestion.tool).collect::<Vec<_>>()
        };
        assert_eq!(suggested(3), ["reasoning_decision"]);
        assert!(suggested(1).is_empty());
    }
}
