//! What is wrong with the documents, in pages.

use super::Diagnostic;
use crate::strict::Severity;

/// Where a page ends: behind so many of a file's findings, and behind all of the files before it.
///
/// A reload may come between two pages. The next one goes on behind the same place, so that the findings of files that
/// did not change are all listed, and once; those of files before the place that changed meanwhile are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingsCursor {
    of_file: usize,
    file: String,
}

impl FindingsCursor {
    /// Reads what [`std::fmt::Display`] wrote; nothing if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (of_file, file) = text.split_once(':')?;
        let of_file = of_file.parse().ok().filter(|&of_file| of_file > 0)?;
        Some(Self { of_file, file: file.to_owned() })
    }
}

impl std::fmt::Display for FindingsCursor {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}:{}", self.of_file, self.file)
    }
}

/// Brings findings into the order that they are listed in: by file, the worst of a file first.
pub(super) fn sort(findings: &mut [Diagnostic]) {
    findings.sort_by(|a, b| (&a.file, a.severity, a.line, a.column).cmp(&(&b.file, b.severity, b.line, b.column)));
}

/// At most `limit` (1 or more) of `findings`, which are in order of their files, and the cursor of the next page if
/// there is one.
pub fn page<'f>(
    findings: &'f [Diagnostic],
    after: Option<&FindingsCursor>,
    limit: usize,
) -> (&'f [Diagnostic], Option<FindingsCursor>) {
    let start = after.map_or(0, |after| {
        let of_file = findings_of(findings, &after.file);
        of_file.start.saturating_add(after.of_file).min(of_file.end)
    });
    let end = start.saturating_add(limit).min(findings.len());
    let page = &findings[start..end];
    let last = page.last().filter(|_| end < findings.len());
    let next = last
        .map(|last| FindingsCursor { of_file: end - findings_of(findings, &last.file).start, file: last.file.clone() });
    (page, next)
}

/// At most `limit` of `findings`: errors before warnings before hints, each in the order that they are listed in.
pub fn worst(findings: &[Diagnostic], limit: usize) -> Vec<Diagnostic> {
    let of = |severity| findings.iter().filter(move |finding| finding.severity == severity);
    [Severity::Error, Severity::Warning, Severity::Hint].into_iter().flat_map(of).take(limit).cloned().collect()
}

fn findings_of(findings: &[Diagnostic], file: &str) -> std::ops::Range<usize> {
    let start = findings.partition_point(|finding| finding.file.as_str() < file);
    let end = findings.partition_point(|finding| finding.file.as_str() <= file);
    start..end
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    /// So many findings of each file, in order.
    fn findings(counts: &[(u8, usize)]) -> Vec<Diagnostic> {
        let of = |&(file, count): &(u8, usize)| {
            (0..count).map(move |line| {
                let finding = Diagnostic::error(Path::new(&format!("f:{file:03}")), "c", "m");
                Diagnostic { line, ..finding }
            })
        };
        let mut findings: Vec<Diagnostic> = counts.iter().flat_map(of).collect();
        sort(&mut findings);
        findings
    }

    fn some_findings() -> impl Strategy<Value = Vec<Diagnostic>> {
        btree_map(0_u8..30, 1_usize..8, 0..12).prop_map(|counts| findings(&counts.into_iter().collect::<Vec<_>>()))
    }

    /// All pages of what is there at each of them: the first of `states`, then the next, and the last from then on.
    fn joined(states: &[Vec<Diagnostic>], limit: usize) -> Vec<Diagnostic> {
        let (mut all, mut after) = (Vec::new(), None);
        for state in states.iter().chain(std::iter::repeat(&states[states.len() - 1])) {
            let (items, next) = page(state, after.as_ref(), limit);
            assert!(items.len() == limit || next.is_none());
            all.extend_from_slice(items);
            let Some(next) = next else { break };
            after = FindingsCursor::parse(&next.to_string());
            assert_eq!(after, Some(next));
        }
        all
    }

    #[test]
    fn the_worst_are_errors_then_warnings_then_hints() {
        let place = Path::new("f.yaml");
        let mut all = vec![Diagnostic::warning(place, "w", "m"), Diagnostic::error(place, "e", "m")];
        all.push(Diagnostic { severity: Severity::Hint, ..all[0].clone() });
        all.push(Diagnostic::error(Path::new("g.yaml"), "e", "m"));
        let severities = |limit| worst(&all, limit).iter().map(|finding| finding.severity).collect::<Vec<_>>();
        let ordered = [Severity::Error, Severity::Error, Severity::Warning, Severity::Hint];
        for limit in 0..=5 {
            assert_eq!(severities(limit), ordered[..limit.min(4)], "{limit}");
        }
        assert_eq!(worst(&all, 2)[1].file, "g.yaml");
    }

    proptest! {
        #[test]
        fn pages_joined_are_the_whole(all in some_findings(), limit in 1_usize..50) {
            prop_assert_eq!(joined(std::slice::from_ref(&all), limit), all);
        }

        #[test]
        fn what_no_reload_changed_is_listed_once(
            still in some_findings(),
            moving in vec(btree_map(100_u8..130, 1_usize..8, 0..6), 1..5),
            limit in 1_usize..9,
            before in any::<bool>(),
        ) {
            let states: Vec<Vec<Diagnostic>> = moving.into_iter().map(|moving| {
                let mut state = findings(&moving.into_iter().collect::<Vec<_>>());
                if before {
                    for finding in &mut state {
                        finding.file.insert(0, 'a');
                    }
                }
                state.extend(still.clone());
                sort(&mut state);
                state
            }).collect();
            let mut listed = joined(&states, limit);
            listed.retain(|finding| still.contains(finding));
            prop_assert_eq!(listed, still);
        }
    }

    #[test]
    fn a_cursor_of_a_file_that_went_goes_on_behind_it() {
        let all = findings(&[(1, 2), (3, 2)]);
        let check = |cursor: &str, expected: &[&str]| {
            let (items, _) = page(&all, FindingsCursor::parse(cursor).as_ref(), 9);
            let places: Vec<String> = items.iter().map(|item| format!("{}:{}", item.file, item.line)).collect();
            assert_eq!(places, expected, "{cursor}");
        };
        check("1:f:001", &["f:001:1", "f:003:0", "f:003:1"]);
        check("9:f:001", &["f:003:0", "f:003:1"]);
        check("1:f:002", &["f:003:0", "f:003:1"]);
        check("18446744073709551615:f:003", &[]);
        check("1:z", &[]);
    }

    #[test]
    fn what_is_no_cursor_is_none() {
        for text in ["", "1", "0:f", "-1:f", "f:1", "18446744073709551616:f"] {
            assert_eq!(FindingsCursor::parse(text), None, "{text}");
        }
    }
}
