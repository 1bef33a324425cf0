//! A message becomes tools, categories, networks and an intent: everything the ranking, the categories and the context
//! of the conversation say together. Pure; it cannot fail.

mod meaning;
mod offer;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use self::meaning::{COURTEOUS, Meaning};
use self::offer::{Extra, OfferedTools, Shown};
use super::categories::{Category, CategoryIndex};
use super::context::{ContextTurn, IntentContext, Own, Rules};
use super::explanation::Explanation;
use super::follow_up::Leaning;
use super::intent::{self, Wish};
use super::languages::in_english;
use super::message::{MAX_BYTES, Message};
use super::purpose::{Purpose, Purposes};
use super::qualification::{HINTS, Qualification, Says};
use super::ranking::Ranking;
use super::said_names::LAST_PART;
use super::usage::Usage;
use super::{Categories, Index, change, no_tool};
use crate::catalog::Catalog;

/// A category qualifies by similarity from this probability on.
const LEAST_CATEGORY: f32 = 0.12;

/// And from this share of the best one's on.
const CATEGORY_OF_BEST: f32 = 0.3;

/// The probability that a message that calls a category by name needs one of its tools, whatever its other words are.
const NAMED: f32 = 0.85;

/// The same where it is called by the name of a network that it serves, which may as well be what the message is about.
const ON_NETWORK: f32 = 0.5;

/// What a keyword of the category adds to that, if it is not called by name.
const KEYWORD: f32 = 0.25;

/// A category that is not called by name, beside one that is, needs a keyword and this share of the best one's
/// probability.
const BESIDE_NAMED: f32 = 0.5;

/// Tools whose phrases can be the intent.
const TOOLS_OF_INTENT: usize = 3;

/// Tools whose conflicts are looked at.
const JUDGED: usize = 100;

/// What the message before counts in the ranking of one that points at it. A fifth and a half find the needed tool less
/// often.
const SHARE_OF_EARLIER: f32 = 0.3;

/// What speaks for a tool of the context's categories, as a logarithm of odds.
const FROM_CONTEXT: f32 = 1.0;

/// A tool that the message before brings with this probability has done it, when somebody asks how that went.
const LEAST_DONE: f32 = 0.1;

/// What speaks against such a tool then, as a logarithm of odds.
const DONE_ALREADY: f32 = -4.0;

/// A message that keeps its context brings categories of its own from this probability on.
const LEAST_BESIDE_CONTEXT: f32 = 0.4;

/// Likely tools that such a message, or one that points at what was said, brings; more would bury the context's own.
const MOST_BESIDE_CONTEXT: usize = 5;

/// What is left of the probability that no tool is needed where a category is called by name, or what was said or
/// chosen before speaks for tools.
const SPOKEN_FOR: f32 = 0.1;

/// An index with the categories of its tools.
#[derive(Debug)]
pub struct Selector {
    index: Index,
    category_index: CategoryIndex,
    categories: Arc<Categories>,
    purposes: Purposes,
}

#[derive(Debug, Clone, Default)]
pub struct Question<'q> {
    pub message: &'q str,
    /// The same as it was written, where it was put into English.
    pub written: Option<&'q str>,
    /// What the conversation was about before.
    pub context: Option<&'q IntentContext>,
    /// The same in the messages that it came from, oldest first; the context's intent stands in for them.
    pub said: &'q [String],
    /// Is the message the conversation's last one, sent again?
    pub is_again: bool,
    /// Tools that the conversation needed and that were not offered.
    pub missed: &'q [String],
    /// Networks that the caller names beside the message.
    pub networks: &'q [String],
    /// The only categories to offer, if there is one.
    pub selected_categories: &'q [String],
    /// Tools to offer whatever the message is.
    pub exact_tools: &'q [String],
    /// Offer these tools alone.
    pub ignore_other_tools: bool,
    /// Tools never to offer.
    pub excluded_tools: &'q [String],
    pub max_tools: usize,
    /// Leave out tools that are less likely, 0 to 1.
    pub min_confidence: f32,
    /// When contexts are replaced and kept.
    pub rules: Rules,
}

/// What a message is to those before; `is_subject` says whether it may be what the conversation is about.
fn says(leaning: Leaning, is_subject: bool) -> Says {
    match leaning {
        Leaning::Not if is_subject => Says::New,
        Leaning::Refers | Leaning::Varies => Says::More,
        Leaning::CallsOff => Says::NoMore,
        Leaning::Not | Leaning::Reacts | Leaning::AsksOutcome | Leaning::Continues => Says::Nothing,
    }
}

/// A tool that was left out, and the better one that it conflicts with.
pub(super) type LeftOut = (Arc<str>, Arc<str>);

/// A category and what speaks for it.
pub(super) struct Scored {
    pub(super) place: usize,
    pub(super) probability: f32,
    pub(super) name: Option<Box<str>>,
    pub(super) keywords: Vec<Box<str>>,
    /// Its networks are not named.
    pub(super) is_elsewhere: bool,
    /// It serves some networks only.
    pub(super) is_of_networks: bool,
    /// It holds most of the catalog.
    pub(super) is_wide: bool,
}

impl Scored {
    /// Does the message say that this category is meant, and no other? A network's name says where, not what.
    fn is_singled_out(&self) -> bool {
        self.name.is_some() && !self.is_of_networks
    }
}

impl Selector {
    /// Indexes `catalog` and sorts its tools into `categories`, with what is still true of the selector before.
    pub fn build(catalog: &Arc<Catalog>, categories: &Arc<Categories>, before: Option<&Self>) -> Self {
        let index = Index::build(catalog, before.map(|before| &before.index));
        Self {
            category_index: CategoryIndex::new(categories, &index),
            categories: Arc::clone(categories),
            purposes: Purposes::new(index.len()),
            index,
        }
    }

    /// Is it made of these very two?
    pub fn is_of(&self, catalog: &Arc<Catalog>, categories: &Arc<Categories>) -> bool {
        self.index.is_of(catalog) && Arc::ptr_eq(&self.categories, categories)
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The categories with their tools.
    pub fn category_index(&self) -> &CategoryIndex {
        &self.category_index
    }

    /// Which tools fit the message?
    pub fn qualify(&self, question: &Question<'_>, usage: &Usage) -> Qualification {
        if question.message.len() <= MAX_BYTES
            && let Cow::Owned(english) = in_english(question.message)
        {
            let said = Question { message: &english, written: Some(question.message), ..question.clone() };
            return self.qualify_english(&said, usage);
        }
        self.qualify_english(question, usage)
    }

    fn qualify_english(&self, question: &Question<'_>, usage: &Usage) -> Qualification {
        let mut before = question.context.cloned();
        let dropped = before.as_mut().map(|context| self.restrict(context)).unwrap_or_default();
        if let Some(context) = &mut before {
            self.add_always(context);
        }
        let meaning = self.read(question, before.as_ref(), usage);
        before = before.filter(|_| meaning.leaning != Leaning::CallsOff);
        let mut message = self.index.message(&meaning.text);
        message.add_written(question.written.unwrap_or_default());
        let mut ranking = Ranking::new(&self.index, &message, usage);
        let mentions = self.category_index.mentions(&meaning.text);
        let named_networks = self.named_networks(question);
        let names_networks = !named_networks.is_empty() && meaning.leaning != Leaning::AsksOutcome;
        if let Some(before) = before.as_mut().filter(|before| names_networks && before.networks != named_networks) {
            before.categories = self.category_index.moved_to(&named_networks, &before.categories);
            before.networks.clone_from(&named_networks);
        }
        let known_networks = before.iter().flat_map(|context| &context.networks).chain(&named_networks).collect();
        let scored = self.score(&ranking, mentions, &known_networks);
        let extra = self.extra(&ranking, question, usage, &message);
        let has_intent = before.as_ref().is_some_and(|before| before.active_intent.is_some());
        // Of what stands for a message nothing was learnt.
        let is_itself = meaning.leaning == Leaning::Not;
        let may_need_none = meaning.leaning.is_alone()
            && (!is_itself || extra.taught.is_empty() && extra.said.is_empty() && !usage.was_chosen_for(&message))
            && (!question.is_again || extra.missed.is_empty());
        let no_tool_probability = Self::no_tool_probability(&mut ranking, &scored, &message, may_need_none);
        let no_tool_needed = no_tool_probability >= question.rules.no_tool_threshold;
        let (own, scored) =
            self.own(&mut ranking, scored, named_networks, question, (&message, &meaning.text), no_tool_needed);
        let own_confidence = own.confidence;
        let own = Self::in_conversation(own, question, before.as_ref(), meaning.leaning);
        let rules = question.rules;
        let ContextTurn { mut context, sticky } =
            rules.turn(own, before.as_ref().filter(|_| question.selected_categories.is_empty()));
        let is_named = scored.iter().any(Scored::is_singled_out);
        let scored = if sticky { Self::beside_context(scored, meaning.leaning) } else { scored };
        let categories = if sticky { self.offered(&context, &scored, question) } else { context.categories.clone() };
        if no_tool_probability >= COURTEOUS && context.active_intent.is_none() && self.is_of_nothing(&context) {
            // There is nothing that an "ok" could mean.
            context.categories.clear();
        }
        let extra = if sticky || question.is_again { extra } else { Extra { missed: Vec::new(), ..extra } };
        if sticky || meaning.earlier.is_some() {
            self.lean(&mut ranking, &message, &meaning, sticky.then_some(&context), usage);
            if matches!(meaning.leaning, Leaning::Refers | Leaning::Varies) {
                context.active_intent = self
                    .intent(&mut ranking, &categories, &scored, (&message, &meaning.text))
                    .or(context.active_intent);
            }
        }
        let shown = Shown {
            categories: &categories,
            whole: &self.named(&scored, question),
            networks: &context.networks,
            extra: &extra,
            guesses: if is_named || no_tool_needed || !question.selected_categories.is_empty() {
                0
            } else if (sticky || meaning.leaning == Leaning::Refers) && !self.is_of_nothing(&context) {
                MOST_BESIDE_CONTEXT
            } else {
                usize::MAX
            },
        };
        let OfferedTools { available, conflicting, cut } = self.available(&mut ranking, &shown, question);
        let is_meant = |number: usize| extra.said.contains(&number) || !ranking.is_excluded(number);
        let hints = available.iter().filter(|tool| is_meant(tool.number)).take(if no_tool_needed { 0 } else { HINTS });
        let tool_hints: Vec<Arc<str>> = hints.map(|tool| Arc::clone(tool.entry.name())).collect();
        let explanation = Explanation {
            selector: self,
            ranking: &ranking,
            message: &message,
            text: &meaning.text,
            scored: &scored,
            context: &context,
            names_networks,
            available: &available,
            before: before.as_ref().filter(|_| sticky),
            dropped: &dropped,
            conflicting: &conflicting,
            cut: &cut,
            said: &extra.said,
            selected: !question.selected_categories.is_empty(),
            no_tool_needed,
            own_confidence,
        };
        Qualification {
            reasoning: explanation.render(),
            networks: context.networks.clone(),
            categories,
            confidence: context.last_confidence,
            active_intent: context.active_intent.clone().filter(|_| !sticky || meaning.is_after(own_confidence)),
            tools_total: self.index.len(),
            says: says(meaning.leaning, message.is_telling() && !(has_intent && no_tool_needed)),
            tool_hints,
            available,
            no_tool_needed,
            no_tool_probability,
            context,
            sticky,
            cut,
        }
    }

    /// The probability that no tool is needed. What the conversation, choices or a category's name say for tools
    /// leaves little of what the message says.
    fn no_tool_probability(
        ranking: &mut Ranking<'_>,
        scored: &[Scored],
        message: &Message,
        may_need_none: bool,
    ) -> f32 {
        let probability = no_tool::probability(ranking, message);
        if may_need_none && scored.iter().all(|category| category.name.is_none()) {
            probability
        } else {
            probability * SPOKEN_FOR
        }
    }

    /// Tools that are offered whatever their categories: those that the conversation missed, those that were chosen for
    /// messages of these very words, and those whose names the message says.
    fn extra(&self, ranking: &Ranking<'_>, question: &Question<'_>, usage: &Usage, message: &Message) -> Extra {
        let missed: Vec<usize> = question.missed.iter().filter_map(|name| self.index.number(name)).collect();
        let taught = usage.taught(&self.index, message).into_iter();
        let taught = taught.filter(|number| !missed.contains(number) && !ranking.is_excluded(*number)).collect();
        let said = self.index.said_names.find(&message.names).into_iter();
        let mut said: Vec<usize> = said.filter(|(_, surely)| *surely >= LAST_PART).map(|(number, _)| number).collect();
        said.sort_unstable();
        said.dedup();
        Extra { missed, taught, said }
    }

    /// What a message says by itself, as the rules of contexts look at it.
    fn in_conversation(mut own: Own, question: &Question<'_>, before: Option<&IntentContext>, leaning: Leaning) -> Own {
        own.says_nothing_new = leaning.says_nothing_new();
        own.is_again = question.is_again
            || own.intent.is_some() && before.is_some_and(|before| before.active_intent == own.intent);
        if own.says_nothing_new {
            // It has the intent of what was said before, which the context has already.
            own.intent = None;
        }
        if let Some(before) = before.filter(|_| leaning == Leaning::Refers && own.networks.is_empty()) {
            own.networks.clone_from(&before.networks);
        }
        own
    }

    /// Categories that a message brings beside the context that it keeps.
    fn beside_context(mut scored: Vec<Scored>, leaning: Leaning) -> Vec<Scored> {
        scored.retain(|category| {
            !leaning.says_nothing_new() && (category.name.is_some() || category.probability >= LEAST_BESIDE_CONTEXT)
        });
        scored
    }

    /// The categories that the message calls by name, or the caller.
    fn named<'n>(&'n self, scored: &[Scored], question: &Question<'n>) -> Vec<&'n str> {
        let name = |category: &Scored| self.category_index.all()[category.place].category.name.as_str();
        let named = scored.iter().filter(|category| category.is_singled_out()).map(name);
        named.chain(question.selected_categories.iter().map(String::as_str)).collect()
    }

    /// The categories of the context, and of what the message brings.
    fn offered(&self, context: &IntentContext, scored: &[Scored], question: &Question<'_>) -> Vec<String> {
        let name = |category: &Scored| &self.category_index.all()[category.place].category.name;
        let likely = |category: &&Scored| category.probability >= question.min_confidence;
        let more = scored.iter().filter(likely).map(name).filter(|name| !context.categories.contains(name));
        context.categories.iter().chain(more).cloned().collect()
    }

    /// Lets the ranking know what was said before, and which categories the conversation is about.
    fn lean(
        &self,
        ranking: &mut Ranking<'_>,
        message: &Message,
        meaning: &Meaning<'_>,
        context: Option<&IntentContext>,
        usage: &Usage,
    ) {
        let is_chosen = |category: &Category| {
            !category.always && context.is_some_and(|context| context.categories.contains(&category.name))
        };
        let chosen = self.category_index.all().iter().filter(|held| is_chosen(&held.category));
        let mut favoured: Vec<usize> = chosen.flat_map(|held| held.tools.iter().copied()).collect();
        favoured.sort_unstable();
        favoured.dedup();
        let mut earlier = meaning.earlier.as_ref().map(|text| {
            let message = Message { only_asks: false, ..self.index.message(text) };
            Ranking::new(&self.index, &message, usage)
        });
        let mut done = Vec::new();
        if let Some(earlier) = earlier.as_mut().filter(|_| meaning.leaning == Leaning::AsksOutcome) {
            let telling = ranking.best_numbers(HINTS).to_vec();
            let did = |&&number: &&u32| {
                self.index.acts(number as usize)
                    || !telling.contains(&number) && !change::tells(self.index.entry(number as usize).name())
            };
            done.extend(earlier.best_numbers(HINTS).iter().filter(did).map(|&number| number as usize));
            done.retain(|&number| earlier.confidence(number) >= LEAST_DONE);
            favoured.retain(|number| !done.contains(number));
        }
        ranking.lean_on(earlier.as_ref().map(|earlier| (earlier, SHARE_OF_EARLIER)), &favoured, FROM_CONTEXT);
        if message.only_asks && earlier.is_some() {
            ranking.lower_acting();
        }
        ranking.lean_on(None, &done, DONE_ALREADY);
    }

    fn restrict(&self, context: &mut IntentContext) -> Vec<String> {
        context.restrict(
            |name| self.category_index.names().any(|known| known == name),
            |name| self.category_index.networks().any(|known| known == name),
        )
    }

    /// Puts the categories that are always offered first.
    fn add_always(&self, context: &mut IntentContext) {
        if !context.categories.is_empty() || context.active_intent.is_some() {
            let always = self.always();
            context.categories.retain(|name| !always.contains(name));
            context.categories.splice(0..0, always);
        }
    }

    /// Has the context no category but those that are always offered?
    fn is_of_nothing(&self, context: &IntentContext) -> bool {
        context.categories.len() <= self.always().len()
    }

    /// The categories that are always offered.
    fn always(&self) -> Vec<String> {
        let held = self.category_index.all().iter().filter(|held| held.category.always);
        held.map(|held| held.category.name.clone()).collect()
    }

    fn named_networks(&self, question: &Question<'_>) -> Vec<String> {
        let mut named = self.category_index.networks_in(question.message);
        for network in question.networks {
            if self.category_index.networks().any(|known| known == network) && !named.contains(network) {
                named.push(network.clone());
            }
        }
        named
    }

    /// The probability of each category that is not offered anyway.
    fn score(
        &self,
        ranking: &Ranking<'_>,
        mentions: Vec<super::categories::Mention>,
        networks: &BTreeSet<&String>,
    ) -> Vec<Scored> {
        let all = self.category_index.all().iter().zip(mentions).enumerate();
        let scored = all.filter(|(_, (held, _))| !held.category.always).map(|(place, (held, mention))| {
            let by_tools = ranking.confidence_of(held.tools.iter().copied());
            let by_text = match &mention.name {
                Some(_) if held.is_of_networks() => ON_NETWORK,
                Some(_) => NAMED,
                None => 1.0 - (1.0 - KEYWORD).powi(mention.keywords.len().min(3) as i32),
            };
            let needed = &held.category.networks;
            Scored {
                place,
                probability: 1.0 - (1.0 - by_tools) * (1.0 - by_text),
                is_elsewhere: !needed.is_empty() && !needed.iter().any(|network| networks.contains(network)),
                is_of_networks: held.is_of_networks(),
                is_wide: held.is_wide,
                name: mention.name,
                keywords: mention.keywords,
            }
        });
        let mut scored: Vec<Scored> = scored.collect();
        scored.sort_by(|a, b| b.probability.total_cmp(&a.probability).then_with(|| a.place.cmp(&b.place)));
        scored
    }

    /// What the message supports by itself, and the categories that qualify with what speaks for them.
    fn own(
        &self,
        ranking: &mut Ranking<'_>,
        mut scored: Vec<Scored>,
        networks: Vec<String>,
        question: &Question<'_>,
        said: (&Message, &str),
        no_tool_needed: bool,
    ) -> (Own, Vec<Scored>) {
        let without = if question.selected_categories.is_empty() {
            self.confidence_without_category(ranking, question)
        } else {
            0.0
        };
        if question.selected_categories.is_empty() {
            let is_named = scored.iter().any(Scored::is_singled_out);
            let best = scored.iter().filter(|category| !category.is_elsewhere && !category.is_wide);
            let best = best.map(|category| category.probability);
            let best = best.fold(without, f32::max);
            let least = LEAST_CATEGORY.max(best * CATEGORY_OF_BEST).max(question.min_confidence);
            scored.retain(|category| {
                let beside = is_named && !category.keywords.is_empty() && category.probability >= best * BESIDE_NAMED;
                let may_be_meant = (!is_named || beside) && !category.is_elsewhere && !category.is_wide;
                let is_likely = may_be_meant && category.probability >= least;
                category.name.is_some() || is_likely && !no_tool_needed
            });
        } else {
            let name = |category: &Scored| &self.category_index.all()[category.place].category.name;
            scored.retain(|category| question.selected_categories.contains(name(category)));
        }
        let qualified = scored.iter().map(|category| &self.category_index.all()[category.place].category.name);
        let confidence = scored.iter().map(|category| category.probability).reduce(f32::max);
        let without = if no_tool_needed || !question.selected_categories.is_empty() {
            0.0
        } else {
            without.max(self.confidence_of_unnamed(ranking, question, &networks))
        };
        let own = Own {
            categories: self.always().into_iter().chain(qualified.cloned()).collect(),
            intent: (!no_tool_needed).then(|| self.intent(ranking, &[], &scored, said)).flatten(),
            confidence: confidence.map_or_else(
                || {
                    // Nothing but what is always offered: as likely as its best tool, and never as sure as a category.
                    let best = ranking.best(1).first().map_or(0.0, |best| best.confidence);
                    best.min(question.rules.new_context / 2.0).max(without)
                },
                |confidence| confidence.max(without),
            ),
            networks,
            ..Own::default()
        };
        (own, scored)
    }

    /// The best tool's probability if it has no category that could speak for it, as most of MCP servers; else 0.
    fn confidence_without_category(&self, ranking: &mut Ranking<'_>, question: &Question<'_>) -> f32 {
        let is_wide = |place: usize| self.category_index.all()[place].is_wide;
        Self::confidence_of_best(ranking, question, |_, best| self.category_index.places_of(best).all(is_wide))
    }

    /// The same if it is offered although nobody names its network. That is no reason to leave what was spoken of.
    fn confidence_of_unnamed(&self, ranking: &mut Ranking<'_>, question: &Question<'_>, networks: &[String]) -> f32 {
        if question.context.is_some() {
            return 0.0;
        }
        Self::confidence_of_best(ranking, question, |ranking, best| {
            self.of_unnamed_networks(ranking, networks).contains(&best)
        })
    }

    fn confidence_of_best(
        ranking: &mut Ranking<'_>,
        question: &Question<'_>,
        is_meant: impl FnOnce(&mut Ranking<'_>, usize) -> bool,
    ) -> f32 {
        let Some(best) = ranking.best(1).pop() else { return 0.0 };
        let is_offered = !ranking.is_excluded(best.number)
            && !question.excluded_tools.iter().any(|name| **name == **best.entry.name());
        if is_offered && is_meant(ranking, best.number) { best.confidence } else { 0.0 }
    }

    /// A phrase from the best tools of the qualified categories, or of those offered.
    fn intent(
        &self,
        ranking: &mut Ranking<'_>,
        offered: &[String],
        scored: &[Scored],
        (message, text): (&Message, &str),
    ) -> Option<String> {
        let name = |place: usize| &self.category_index.all()[place].category.name;
        let is_qualified = |tool: &usize| {
            let mut places = self.category_index.places_of(*tool);
            scored.is_empty() && offered.is_empty()
                || places.any(|place| scored.iter().any(|own| own.place == place) || offered.contains(name(place)))
        };
        let names = self.category_index.words_of_names(text);
        let wish = Wish { text, message, names: &names, is_follow_up: !offered.is_empty() };
        let best = ranking.best_numbers(JUDGED).iter().map(|&number| number as usize);
        let best = best.filter(is_qualified).take(TOOLS_OF_INTENT).map(|number| self.purpose(number));
        intent::intent(&wish, &best.collect::<Vec<_>>())
    }

    /// What the tool of that number is for.
    pub(super) fn purpose(&self, number: usize) -> &Purpose {
        let names = |text: &str| self.category_index.words_of_names(text);
        self.purposes.get(number, self.index.entry(number), names)
    }
}

#[cfg(test)]
mod tests;
