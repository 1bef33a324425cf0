//! What the user is after, as a phrase: of a tool's document, where one says what the message does, else the message's
//! own.
//!
//! A use case's title is what somebody else wanted of the tool. It is true to a message if each says what the other
//! does, word by word: by the same stem, or by a like meaning; or if all of the case says what the message does. Names
//! of networks, categories and assets are left out of that, since "buy a token with SOL" and "the price of SOL" share
//! nothing else.

use super::message::Message;
use super::purpose::{Purpose, trimmed};
use super::telling::Telling;

/// Characters of a message that can stand for its intent; a longer one is no phrase.
const LONGEST: usize = 100;

/// How true a phrase must be, 0 to 1. Below, titles say what nobody asked for; above, hardly one is left.
const LEAST_TRUE: f32 = 0.5;

/// What each further tool's phrases must be truer.
const LATER_TOOL: f32 = 0.03;

/// How much of the message a use case must have, 0 to 1, for its title to stand for it.
const LEAST_TOLD: f32 = 0.8;

/// The text that an intent is looked for.
pub(super) struct Wish<'a> {
    pub(super) text: &'a str,
    /// The same, analysed.
    pub(super) message: &'a Message,
    /// For each of its words, split at whatever is no letter and no digit: is it of a name that says where, not what?
    pub(super) names: &'a [bool],
    /// Does it go on with what was said before? Then it is no phrase of its own.
    pub(super) is_follow_up: bool,
}

/// The truest phrase of the best tools, the best first.
pub(super) fn intent(wish: &Wish<'_>, best: &[&Purpose]) -> Option<String> {
    let said = Telling::of(wish.text, wish.names);
    truest(&said, best).or_else(|| told(wish.message, &said, best)).or_else(|| own(wish, best)).map(str::to_owned)
}

/// The phrase that says most what the message does; of equals the first.
fn truest<'p>(said: &Telling, best: &[&'p Purpose]) -> Option<&'p str> {
    let mut truest: Option<(f32, &str)> = None;
    for (place, purpose) in (0_u8..).zip(best) {
        for phrase in purpose.phrases.iter().filter(|phrase| !phrase.text.is_empty()) {
            let truth = phrase.telling.same_as(said) - LATER_TOOL * f32::from(place);
            if truth >= LEAST_TRUE && truest.is_none_or(|(most, _)| truth > most) {
                truest = Some((truth, &phrase.text));
            }
        }
    }
    truest.map(|(_, phrase)| phrase)
}

/// The title of a use case that says all of the message.
fn told<'p>(message: &Message, said: &Telling, best: &[&'p Purpose]) -> Option<&'p str> {
    if said.is_empty() {
        return None;
    }
    let scenes = best.iter().filter_map(|purpose| purpose.nearest_scene(message));
    let mut telling = scenes.filter(|scene| said.covered_by(&scene.telling) >= LEAST_TOLD);
    telling.find_map(|scene| Some(trimmed(&scene.title)).filter(|title| !title.is_empty()))
}

/// The message, if it is a phrase; what only goes on with what was said is what the best tool is.
fn own<'p>(wish: &Wish<'p>, best: &[&'p Purpose]) -> Option<&'p str> {
    let own = if wish.is_follow_up { best.first().map_or("", |purpose| purpose.title()) } else { trimmed(wish.text) };
    let is_phrase = !own.is_empty() && own.chars().count() <= LONGEST && !own.contains(char::is_control);
    is_phrase.then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ToolMetadata;
    use crate::catalog::document::UseCase;
    use crate::qualify::follow_up;
    use crate::qualify::telling::KnownWords;

    fn check(text: &str, is_follow_up: bool, expected: Option<&str>) {
        let names =
            |text: &str| follow_up::split(text).map(|word| ["SOL", "Polymarket"].contains(&word)).collect::<Vec<_>>();
        let purpose = |title: &str, case: &str, example: &str| {
            let case = UseCase { title: case.into(), example: example.into(), ..UseCase::default() };
            let document = ToolMetadata { title: title.into(), use_cases: vec![case], ..ToolMetadata::default() };
            Purpose::of(&document, &names, &KnownWords::default())
        };
        let tools = [
            purpose("Token Swap", "Buy a token with SOL", "ape 1 SOL into it"),
            purpose("Token Price", "Price of one coin", ""),
            purpose("Events", "Finding trending prediction market events.", "what is hot on Polymarket"),
        ];
        let wish = Wish { text, message: &Message::new(text), names: &names(text), is_follow_up };
        let best: Vec<&Purpose> = tools.iter().collect();
        assert_eq!(intent(&wish, &best).as_deref(), expected, "{text:?}");
    }

    #[test]
    fn a_phrase_is_true_to_the_message() {
        check("What's the price of SOL?", false, Some("Price of one coin"));
        check("What's hot on Polymarket?", false, Some("Finding trending prediction market events"));
        check("I want to buy a token", false, Some("Buy a token with SOL"));
    }

    #[test]
    fn without_one_the_message_speaks_for_itself() {
        check("Compose a lullaby in Welsh!", false, Some("Compose a lullaby in Welsh"));
        check("Compose a lullaby in Welsh!", true, Some("Token Swap"));
        check("", false, None);
        check(&"lullaby ".repeat(50), false, None);
    }
}
