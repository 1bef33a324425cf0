//! Forms of short sentences, place by place: `did|didnt IT not? GO`.
//!
//! A place takes one of some words, or of a list's that is named in capitals; where it ends in a question mark, none
//! may stand there. `IT` takes what points at something: "it", "that", "my transfer", if "transfer" is a name of it.

use crate::qualify::word_list::is_in;

/// What was spoken of, in a word, and what stands before its name.
const IT: &str = "it this that they those these everything";
const BEFORE_NAME: &str = "the my our that this those these";

/// What forms speak of.
pub(super) struct Vocabulary<'v> {
    /// Lists of words by their names in forms.
    pub(super) lists: &'v [(&'v str, &'v str)],
    /// Is what was spoken of called so?
    pub(super) is_name: &'v dyn Fn(&str) -> bool,
}

impl Vocabulary<'_> {
    /// Do the words have one of the forms, and say nothing else?
    pub(super) fn fits_any(&self, forms: &[&str], words: &[&str]) -> bool {
        forms.iter().any(|form| self.fits(&form.split(' ').collect::<Vec<_>>(), words))
    }

    fn fits(&self, places: &[&str], words: &[&str]) -> bool {
        let [place, places @ ..] = places else { return words.is_empty() };
        let (choices, may_lack) = place.strip_suffix('?').map_or((*place, false), |choices| (choices, true));
        let goes_on = |taken: usize| taken > 0 && self.fits(places, &words[taken..]);
        may_lack && self.fits(places, words)
            || choices.split('|').any(|choice| self.taken(choice, words).into_iter().any(goes_on))
    }

    /// How many words such a choice takes, in each way it can.
    fn taken(&self, choice: &str, words: &[&str]) -> [usize; 2] {
        let is_first = |list: &str| words.first().is_some_and(|first| is_in(list, first));
        if choice == "IT" {
            let is_named = is_first(BEFORE_NAME) && words.get(1).is_some_and(|name| (self.is_name)(name));
            return [usize::from(is_first(IT)), if is_named { 2 } else { 0 }];
        }
        let list = self.lists.iter().find(|(name, _)| *name == choice).map_or(choice, |(_, list)| list);
        [usize::from(is_first(list)), 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expected: bool) {
        let forms = ["did IT not? GO|go through?", "DONE"];
        let lists = [("GO", "work land"), ("DONE", "done sent")];
        let vocabulary = Vocabulary { lists: &lists, is_name: &|name| name == "transfer" };
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(vocabulary.fits_any(&forms, &words), expected, "{words:?}");
    }

    #[test]
    fn a_form_takes_all_words() {
        for words in ["did it work", "did my transfer land", "did that go through", "did it not go", "sent"] {
            check(words, true);
        }
        for words in ["", "did", "did it", "did it work well", "did my land", "did my horse land", "GO", "done sent"] {
            check(words, false);
        }
    }
}
