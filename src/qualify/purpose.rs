//! What a tool's document says that it is for, analysed. Only tools that are among the best for some message need it,
//! so each is analysed when it first is.

use std::sync::OnceLock;

use super::message::Message;
use super::telling::{KnownWords, Telling};
use crate::catalog::Entry;
use crate::catalog::document::{ToolMetadata, UseCase};
use crate::text::embedding::Vector;

/// The purposes of a catalog's tools, by number.
#[derive(Debug)]
pub(super) struct Purposes {
    of_tools: Box<[OnceLock<Purpose>]>,
    words: KnownWords,
}

/// What one tool is for.
#[derive(Debug)]
pub(super) struct Purpose {
    /// The titles of its use cases, then its own.
    pub(super) phrases: Box<[Phrase]>,
    scenes: Box<[Scene]>,
}

/// A title.
#[derive(Debug)]
pub(super) struct Phrase {
    /// Without the stop at its end.
    pub(super) text: Box<str>,
    pub(super) telling: Telling,
}

/// A use case.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) title: Box<str>,
    /// What all of it tells.
    pub(super) telling: Telling,
    meanings: [Vector; 3],
}

impl Purposes {
    /// Those of that many tools.
    pub(super) fn new(tools: usize) -> Self {
        Self { of_tools: (0..tools).map(|_| OnceLock::new()).collect(), words: KnownWords::default() }
    }

    /// That of the tool of that number. `names` marks the words of a text that are of names, as for [`Telling::of`].
    pub(super) fn get(&self, number: usize, entry: &Entry, names: impl Fn(&str) -> Vec<bool>) -> &Purpose {
        self.of_tools[number].get_or_init(|| Purpose::of(&entry.document(), &names, &self.words))
    }
}

impl Purpose {
    pub(super) fn of(document: &ToolMetadata, names: &impl Fn(&str) -> Vec<bool>, words: &KnownWords) -> Self {
        let telling = |text: &str| Telling::of_catalog(text, &names(text), words);
        let titles = document.use_cases.iter().map(|case| &case.title).chain([&document.title]);
        let phrase = |text: &str| Phrase { text: text.into(), telling: telling(text) };
        Self {
            phrases: titles.map(|title| phrase(trimmed(title))).collect(),
            scenes: document.use_cases.iter().map(|case| Scene::of(case, telling)).collect(),
        }
    }

    /// The tool's own title.
    pub(super) fn title(&self) -> &str {
        self.phrases.last().map_or("", |title| &title.text)
    }

    /// The use case that is most like the message, the first of several.
    pub(super) fn nearest_scene(&self, message: &Message) -> Option<&Scene> {
        let mut nearest: Option<(f32, &Scene)> = None;
        for scene in &self.scenes {
            let similarity = scene.meanings.iter().map(|meaning| meaning.dot(&message.vector)).sum();
            if nearest.is_none_or(|(most, _)| similarity > most) {
                nearest = Some((similarity, scene));
            }
        }
        nearest.map(|(_, scene)| scene)
    }
}

impl Scene {
    fn of(case: &UseCase, telling: impl Fn(&str) -> Telling) -> Self {
        let UseCase { title, when_to_use, example, .. } = case;
        Self {
            title: title.as_str().into(),
            telling: telling(&format!("{title} {when_to_use} {example}")),
            meanings: [example, when_to_use, title].map(|text| Message::new(text).vector),
        }
    }
}

/// Without what only ends a sentence.
pub(super) fn trimmed(phrase: &str) -> &str {
    phrase.trim().trim_end_matches(['.', '?', '!']).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: Option<&str>) {
        let case =
            |title: &str, example: &str| UseCase { title: title.into(), example: example.into(), ..UseCase::default() };
        let use_cases = vec![case("Buy a token", "ape 1 SOL into it"), case("Weather", "is it raining in Paris?")];
        let document = ToolMetadata { title: "Both.".into(), use_cases, ..ToolMetadata::default() };
        let purpose = Purpose::of(&document, &|_| Vec::new(), &KnownWords::default());
        assert_eq!(purpose.title(), "Both");
        let nearest = purpose.nearest_scene(&Message::new(message));
        assert_eq!(nearest.map(|scene| &*scene.title), expected, "{message:?}");
    }

    #[test]
    fn the_nearest_use_case_is_found() {
        check("swap some tokens", Some("Buy a token"));
        check("how is the weather tomorrow?", Some("Weather"));
        check("", Some("Buy a token"));
    }
}
