//! Which process speaks. A daemon that is a server of its own would offer its tools to itself without end.

use std::sync::LazyLock;

use serde_json::value::RawValue;

use super::meta;

/// The member of a greeting's `_meta` that tells it.
pub(crate) const KEY: &str = "dev.almanac/instance";

static OWN: LazyLock<String> = LazyLock::new(|| {
    let mut random = [0_u8; 16];
    // Without randomness a process is known by its number and its start.
    if getrandom::fill(&mut random).is_err() {
        let start = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        random = (start << 32 | u128::from(std::process::id())).to_ne_bytes();
    }
    format!("{:032x}", u128::from_ne_bytes(random))
});

/// This process, in 32 hexadecimal digits.
pub(crate) fn own() -> &'static str {
    &OWN
}

/// Was the greeting given by this process?
pub(crate) fn is_own(greeting: &RawValue) -> bool {
    meta::text(greeting, KEY).is_some_and(|instance| instance == own())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself() {
        let check = |greeting: &str, expected: bool| {
            let raw: &RawValue = serde_json::from_str(greeting).unwrap();
            assert_eq!(is_own(raw), expected, "{greeting}");
        };
        assert_eq!(own().len(), 32);
        check(&format!(r#"{{"_meta": {{"{KEY}": "{}"}}}}"#, own()), true);
        check(&format!(r#"{{"_meta": {{"{KEY}": "{:032x}"}}}}"#, 7), false);
        check(r#"{"_meta": {"dev.almanac/instance": 7}}"#, false);
        check(r#"{"_meta": 7}"#, false);
        check("{}", false);
    }
}
