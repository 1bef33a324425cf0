//! What a message means after what was said before.

use std::borrow::Cow;

use super::{Question, Selector};
use crate::qualify::change::{changes_something, runs, speaks_of_change};
use crate::qualify::context::{IntentContext, OWN_INTENT};
use crate::qualify::follow_up::{self, Leaning, fragment, outcome, reaction};
use crate::qualify::message::MAX_BYTES;
use crate::qualify::no_tool;
use crate::qualify::ranking::Ranking;
use crate::qualify::usage::Usage;
use crate::text::analysis;
use crate::text::head::head;

/// From this probability on that one of its few best tools is needed, a message of a few words says what it wants by
/// itself.
const SURE_ALONE: f32 = 0.5;

/// And from this probability on that it needs no tool, it is a courtesy. "Cheaper?" and "20 is better" have up to .9.
pub(super) const COURTEOUS: f32 = 0.92;

/// Who asks for more of something means its details.
const DETAILS: &str = "details";

/// What a message means where it leans on the one before it.
pub(super) struct Meaning<'q> {
    pub(super) leaning: Leaning,
    /// What is ranked for.
    pub(super) text: Cow<'q, str>,
    /// What was said before, if the message points at it.
    pub(super) earlier: Option<String>,
}

impl Meaning<'_> {
    /// Is the message after what its context is after, or, by its own confidence, after something that it says?
    pub(super) fn is_after(&self, own_confidence: f32) -> bool {
        self.leaning != Leaning::AsksOutcome && (!self.leaning.is_alone() || own_confidence >= OWN_INTENT)
    }
}

/// Examples of what needs no tool, which stand for all that say as little.
const REACTION: &str = "lol that was funny";
const CALLED_OFF: &str = "never mind";

/// What is ranked for where somebody asks how it went.
const OUTCOME: &str = "what is the status: did it go through, is it confirmed, completed, still pending, or failed?";

/// Tools whose probabilities are looked at together: several may do the same.
const FEW_BEST: usize = 3;

/// Has the text the word, in whatever case?
fn has_word(text: &str, word: &str) -> bool {
    follow_up::split(text).any(|other| other.to_lowercase() == word)
}

/// The numbers of the few best tools.
fn of_best(ranking: &mut Ranking<'_>) -> Vec<usize> {
    ranking.best_numbers(FEW_BEST).iter().map(|&number| number as usize).collect()
}

impl Selector {
    /// What the message means after what was said before, if that is still what the conversation is about.
    pub(super) fn read<'q>(
        &self,
        question: &Question<'q>,
        before: Option<&IntentContext>,
        usage: &Usage,
    ) -> Meaning<'q> {
        let alone = || Meaning { leaning: Leaning::Not, text: question.message.into(), earlier: None };
        let said = head(question.message, MAX_BYTES);
        // However long ago it was said.
        let called_off = Meaning { leaning: Leaning::CallsOff, text: CALLED_OFF.into(), earlier: None };
        if before.is_some() && follow_up::is_called_off(said) {
            return called_off;
        }
        let kept = before.filter(|before| question.selected_categories.is_empty() && question.rules.keeps(before));
        let Some(before) = kept else { return alone() };
        let subject = || self.subject(question, before);
        let is_ordered = |subject: &String| match question.said {
            [] => speaks_of_change(subject),
            said => said.iter().any(|message| changes_something(message)),
        };
        let changing = || subject().filter(is_ordered);
        if outcome::is_asked_for(said, |_| true)
            && let Some(earlier) =
                changing().filter(|earlier| outcome::is_asked_for(said, |word| has_word(earlier, word)))
        {
            return Meaning { leaning: Leaning::AsksOutcome, text: OUTCOME.into(), earlier: Some(earlier) };
        }
        let named = self.category_index.network_words(question.message);
        let is_known = |word: &str| {
            let mut all = true;
            analysis::terms(word, |term| all &= self.index.names.contains_key(term));
            all
        };
        if reaction::objects(said) && changing().is_some() {
            return called_off;
        }
        let may_run = || question.said.iter().any(|message| runs(message));
        if reaction::declines(said, |word| is_known(word) || may_run()) {
            let reacts = Meaning { leaning: Leaning::Reacts, text: REACTION.into(), earlier: None };
            return if changing().is_some() { called_off } else { reacts };
        }
        let leaning = match Leaning::of(said, &named, is_known) {
            Leaning::Not | Leaning::Refers
                if fragment::is_fragment(said, &named, is_known)
                    && !self.stands_alone(said, usage, fragment::is_joined(said)) =>
            {
                Leaning::Varies
            }
            leaning => leaning,
        };
        let alone = Meaning { leaning, ..alone() };
        if leaning == Leaning::Reacts {
            return Meaning { text: REACTION.into(), ..alone };
        }
        let Some(subject) = subject() else { return alone };
        match leaning {
            Leaning::Not | Leaning::Reacts | Leaning::CallsOff | Leaning::AsksOutcome => alone,
            Leaning::Refers => Meaning { earlier: Some(subject), ..alone },
            Leaning::Continues if follow_up::asks_for_details(question.message) => {
                Meaning { text: format!("{subject} {DETAILS}").into(), ..alone }
            }
            Leaning::Continues => Meaning { text: subject.into(), ..alone },
            Leaning::Varies => Meaning { text: self.joined(subject, question.message).into(), ..alone },
        }
    }

    /// Do a few words say by themselves what they want, or that they want nothing?
    /// Words whose form joins them to what was said must call a category: a tool's document may have any of them by
    /// chance.
    fn stands_alone(&self, words: &str, usage: &Usage, is_joined: bool) -> bool {
        let mut mentions = self.category_index.mentions(words).into_iter();
        let message = self.index.message(words);
        let mut ranking = Ranking::new(&self.index, &message, usage);
        let best = of_best(&mut ranking);
        let is_sure = ranking.confidence_of(best) >= SURE_ALONE;
        mentions.any(|mention| mention.name.is_some() || !mention.keywords.is_empty())
            || !is_joined && (is_sure || no_tool::probability(&mut ranking, &message) >= COURTEOUS)
    }

    /// What the conversation is about, in words; nothing if it is about nothing.
    fn subject(&self, question: &Question<'_>, before: &IntentContext) -> Option<String> {
        let said = question.said.iter().fold(String::new(), |said, message| self.joined(said, message));
        if let Some(said) = Some(said).filter(|said| !said.is_empty()).or_else(|| before.active_intent.clone()) {
            return Some(said);
        }
        let chosen = self.category_index.all().iter().map(|held| &held.category);
        let chosen = chosen.filter(|category| !category.always && before.categories.contains(&category.name));
        let described = chosen.map(|category| format!("{} {}", category.name, category.description));
        Some(described.collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
    }

    /// Both texts, where the networks of the later replace those of the earlier.
    fn joined(&self, earlier: String, later: &str) -> String {
        let moves = !earlier.is_empty() && self.category_index.network_words(later).contains(&true);
        let earlier = if moves { self.category_index.without_networks(&earlier) } else { earlier };
        format!("{earlier} {later}").trim().to_owned()
    }
}
