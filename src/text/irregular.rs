//! English words whose forms have no stem in common: `met` is a form of `meet`.

use std::sync::LazyLock;

use foldhash::HashMap;

use super::analysis;

/// A word a line. Forms are left out that are mostly another word or a name, as `rose`, `led` and `drew`.
const WORDS: &str = include_str!("irregular.txt");

/// Of each form, as a term, those of its word.
static FORMS: LazyLock<HashMap<&'static str, &'static [String]>> = LazyLock::new(|| {
    let mut forms = HashMap::default();
    for word in WORDS.lines() {
        let mut of_word = Vec::new();
        analysis::terms(word, |term| of_word.push(term.to_owned()));
        let of_word: &'static [String] = of_word.leak();
        forms.extend(of_word.iter().map(|form| (form.as_str(), of_word)));
    }
    forms
});

/// The other forms of a word, all as terms of [`analysis::terms`]; none of one that is regular.
pub fn other_forms(term: &str) -> impl Iterator<Item = &'static str> {
    let all = FORMS.get(term).copied().unwrap_or_default();
    all.iter().map(String::as_str).filter(move |form| *form != term)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn check(word: &str, expected: &[&str]) {
        analysis::terms(word, |term| assert_eq!(other_forms(term).collect::<Vec<_>>(), expected, "{word}"));
    }

    #[test]
    fn each_form_leads_to_the_others() {
        check("going", &["goe", "went", "gone"]);
        check("goes", &["go", "went", "gone"]);
        check("went", &["go", "goe", "gone"]);
        check("children", &["child"]);
        check("walked", &[]);
        check("rose", &[]);
    }

    #[test]
    fn no_form_is_of_two_words() {
        let mut seen = HashSet::new();
        for word in WORDS.lines() {
            let forms: HashSet<&str> = word.split(' ').collect();
            assert!(forms.len() > 1, "{word}");
            analysis::terms(word, |term| assert!(seen.insert(term.to_owned()), "{term} of {word}"));
        }
    }
}
