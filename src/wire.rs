//! What stands on the wire: requests and answers, shared by every door.

pub mod audit;
pub mod catalog;
pub mod enrich;
pub mod fleet;
pub mod memory;
pub mod memory_archive;
pub mod metadata;
pub mod overview;
pub mod plan;
pub mod plugin;
pub mod presets;
pub mod problem;
pub mod protected_resource;
pub mod qualify;
pub mod relations;
pub mod stream;
pub mod timing;
pub mod upstream;
pub mod usage;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::catalog::document::{MAX_NAME, check_name};
    use crate::memory::StructuredId;
    use crate::memory::id::MAX_PART;
    use crate::strict::pattern::{ID, LABEL, MODE, NAME, PART};
    use crate::strict::values::{MAX_LABEL, check_label};
    use crate::timing::key::check_mode;

    fn fits(text: &str, pattern: &str, least: usize, most: usize) -> bool {
        let schema = json!({"pattern": pattern, "minLength": least, "maxLength": most});
        jsonschema::validator_for(&schema).unwrap().is_valid(&text.into())
    }

    /// Texts of what readers look at, and of anything else.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a:%/#3A25\n\u{7f}\u{85}é]{0,12}",
            "([a-c%]|%3A|%25){1,3}(:([a-c]|%3A|%25){1,3}){1,3}(:[0-2]{1,2})?",
            any::<String>()
        ]
    }

    proptest! {
        #[test]
        fn patterns_take_what_readers_take(text in text()) {
            prop_assert_eq!(fits(&text, NAME, 1, MAX_NAME), check_name(&text).is_ok());
            prop_assert_eq!(fits(&text, LABEL, 0, MAX_LABEL), check_label(&text).is_ok());
            prop_assert_eq!(fits(&text, MODE, 0, MAX_LABEL), check_label(&text).is_ok() && check_mode(&text).is_ok());
            let is_part = crate::memory::field::Reference::new(&text).is_some();
            prop_assert_eq!(fits(&text, PART, 1, MAX_PART), is_part);
            prop_assert_eq!(fits(&text, ID, 1, 4 * MAX_PART), text.parse::<StructuredId>().is_ok());
        }
    }
}
