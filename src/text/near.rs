//! "Did you mean": the names nearest to a mistyped one.

/// The one candidate near enough to be what was meant; ties go to the first.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    nearest_few(word, candidates, 1).pop()
}

/// The candidate that it takes the fewest slips to write `word` for, `most` at most; ties go to the one that is nearer
/// in length, then to the first. Both are in lower case.
pub fn nearest_within<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>, most: usize) -> Option<&'c str> {
    let letters = letters(word);
    let near = candidates.into_iter().filter(|name| (self::letters(name) ^ letters).count_ones() as usize <= 2 * most);
    let measured = near.map(|name| (strsim::osa_distance(word, name), name));
    let near = measured.filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, name)| (*distance, name.len().abs_diff(word.len()))).map(|(_, name)| name)
}

/// Up to `most` candidates near enough to be what was meant, nearest first, then by name.
pub fn nearest_few<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>, most: usize) -> Vec<&'c str> {
    // A long name would make the distance quadratic in what a client sends.
    let word: String = word.chars().take(64).flat_map(char::to_lowercase).collect();
    let allowed = (word.chars().count() / 3).max(1);
    let letters = letters(&word);
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        // A name of other letters is further away than its letters tell: most are passed over without measuring.
        .filter(|name| (self::letters(name) ^ letters).count_ones() as usize <= 2 * allowed)
        .filter(|name| name.chars().count().abs_diff(word.chars().count()) <= allowed)
        .filter_map(|name| {
            let distance = strsim::osa_distance(&word, &name.to_lowercase());
            (distance <= allowed).then_some((distance, name))
        })
        .collect();
    near.sort_by_key(|&(distance, _)| distance);
    near.into_iter().map(|(_, name)| name).take(most).collect()
}

/// The set of characters of a word, as far as 64 bits tell them apart.
fn letters(word: &str) -> u64 {
    word.bytes().map(|byte| 1_u64 << (byte.to_ascii_lowercase() & 63)).fold(0, |set, bit| set | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: &[&str]) {
        let names = ["alternatives", "conflicts", "name", "use_cases", "web_fetch", "web_search"];
        assert_eq!(nearest_few(word, names, 3), expected, "near {word}");
    }

    #[test]
    fn suggests_only_what_is_near() {
        check("use_case", &["use_cases"]);
        check("Alternative", &["alternatives"]);
        check("conlficts", &["conflicts"]);
        check("web_serach", &["web_search", "web_fetch"]);
        check("nam", &["name"]);
        check("timing", &[]);
        check("", &[]);
        check(&"x".repeat(10_000), &[]);
    }

    #[test]
    fn slips_are_counted() {
        let check = |word: &str, most: usize, expected: Option<&str>| {
            assert_eq!(nearest_within(word, ["bride", "bridge", "arbitrum"], most), expected, "{word}");
        };
        check("brigde", 1, Some("bridge"));
        check("bridg", 1, Some("bride"));
        check("brid", 1, Some("bride"));
        check("arbtirun", 1, None);
        check("arbtirun", 2, Some("arbitrum"));
    }
}
