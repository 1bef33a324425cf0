//! What a level is said for, and whether anything logs there: to the parser a mistyped part of the program is no fault.

use crate::text::near;

/// The modules of the program, then the crates it is made of that may log, a line each; `build.rs` looks for them.
const TARGETS: &str = include_str!(concat!(env!("OUT_DIR"), "/targets"));

/// The program, as its own lines name it.
const OWN: &str = "almanac";

/// What of the level does not do what its words seem to say; nothing if all of it does.
pub fn doubts(level: &str) -> Vec<String> {
    // What is within a span has commas of its own.
    if level.contains('[') {
        return Vec::new();
    }
    let said = || level.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let parts = || said().filter_map(|directive| Some(directive.split_once('=')?.0));
    let mut doubts: Vec<String> = parts().filter(|part| !is_heard(part)).map(unheard).collect();
    let is_all = said().any(|directive| !directive.contains('='));
    if !is_all && !parts().any(|part| OWN.starts_with(part)) {
        doubts.push(format!("of the rest nothing is logged, not even errors; `info,{level}` logs it as well"));
    }
    doubts
}

/// Does anything log under this? A level holds for all that begins with its words.
fn is_heard(part: &str) -> bool {
    TARGETS.lines().any(|target| {
        let rest = part.strip_prefix(target).filter(|_| !target.starts_with(OWN));
        target.starts_with(part) || rest.is_some_and(|rest| rest.starts_with("::"))
    })
}

fn unheard(part: &str) -> String {
    let within = format!("::{part}");
    let whole = TARGETS.lines().find(|target| target.ends_with(&within));
    match whole.or_else(|| near::nearest(part, TARGETS.lines())) {
        Some(near) => format!("nothing logs under `{part}`; did you mean `{near}`?"),
        None => format!("nothing logs under `{part}`; parts of the program are such as `almanac::http`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_nothing_logs_under_is_named() {
        let check = |level: &str, expected: &[&str]| {
            let doubts = doubts(level);
            assert_eq!(doubts.len(), expected.len(), "{level}: {doubts:?}");
            for (doubt, part) in doubts.iter().zip(expected) {
                assert!(doubt.contains(part), "{level}: {doubt}");
            }
        };
        for level in [
            "info",
            "info,almanac::http=debug",
            "almanac=trace",
            "warn,almanac::store::sqlite::writer=debug",
            "warn,hyper=off",
            "info,tokio_postgres::connection=debug",
            "[span]=debug",
        ] {
            check(level, &[]);
        }
        check("info,almanac::htpp=debug", &["under `almanac::htpp`; did you mean `almanac::http`?"]);
        check("info, alamnac=debug", &["did you mean `almanac`?"]);
        check("info,almanacd=debug", &["did you mean `almanac`?"]);
        check("info,plugin_host=debug", &["did you mean `almanac::plugin_host`?"]);
        check("info,nonsense_of_mine=debug", &["such as `almanac::http`"]);
        check("almanac::http=debug", &["`info,almanac::http=debug` logs it as well"]);
        check("almanac::htpp=debug", &["did you mean", "not even errors"]);
    }
}
