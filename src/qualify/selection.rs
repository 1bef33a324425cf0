//! A message becomes tools, categories, networks and an intent: everything the ranking, the categories and the context of the
//! conversation say together. Pure; it cannot fail.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::account::{Account, intent_of};
use super::categories::{Board, Words};
use super::context::{IntentContext, Own, Rules, Turn};
use super::message::Message;
use super::quiet;
use super::ranking::{Ranked, Ranking};
use super::usage::Usage;
use super::{Categories, Index};
use crate::catalog::Catalog;
use crate::catalog::entry::Facet;

/// A category qualifies by likeness from this probability on.
const LEAST_CATEGORY: f32 = 0.12;

/// And from this share of the best one's on.
const CATEGORY_OF_BEST: f32 = 0.3;

/// The probability that a message that calls a category by name needs one of its tools, whatever its other words are.
const NAMED: f32 = 0.85;

/// What a keyword of the category adds to that, if it is not called by name.
const KEYWORD: f32 = 0.25;

/// A category that is not called by name, beside one that is, needs a keyword and this share of the best one's probability.
const BESIDE_NAMED: f32 = 0.5;

/// Tools that are hinted at.
const HINTS: usize = 5;

/// Tools whose conflicts are looked at.
const JUDGED: usize = 100;

/// An index with the categories of its tools.
#[derive(Debug)]
pub struct Desk {
    index: Index,
    board: Board,
    categories: Arc<Categories>,
}

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Question<'q> {
    /// The message.
    pub message: &'q str,
    /// What the conversation was about before.
    pub context: Option<&'q IntentContext>,
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
    /// Tools at most.
    pub max_tools: usize,
    /// Leave out tools that are less likely, 0 to 1.
    pub min_confidence: f32,
    /// When contexts are replaced and kept.
    pub rules: Rules,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Qualification {
    /// Networks that matter.
    pub networks: Vec<String>,
    /// Categories that are offered, those always offered first.
    pub categories: Vec<String>,
    /// The best category's probability, 0 to 1, or what the context has left of its own.
    pub confidence: f32,
    /// Why, in plain words.
    pub reasoning: String,
    /// The best tools, best first.
    pub tool_hints: Vec<Arc<str>>,
    /// What the user is after.
    pub active_intent: Option<String>,
    /// The tools that are offered, best first.
    pub available: Vec<Ranked>,
    /// Tools in the catalog.
    pub tools_total: usize,
    /// Can a model answer by itself?
    pub no_tool_needed: bool,
    /// The context for the next turn.
    pub context: IntentContext,
    /// Was an older context kept?
    pub sticky: bool,
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
}

impl Desk {
    /// Indexes `catalog` and sorts its tools into `categories`.
    pub fn build(catalog: &Arc<Catalog>, categories: &Arc<Categories>) -> Self {
        let index = Index::build(catalog);
        Self { board: Board::new(categories, &index), index, categories: Arc::clone(categories) }
    }

    /// Is it made of these very two?
    pub fn is_of(&self, catalog: &Arc<Catalog>, categories: &Arc<Categories>) -> bool {
        self.index.is_of(catalog) && Arc::ptr_eq(&self.categories, categories)
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The categories with their tools.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Which tools fit the message?
    pub fn qualify(&self, question: &Question<'_>, usage: &Usage) -> Qualification {
        let message = Message::new(question.message);
        let mut ranking = Ranking::new(&self.index, &message, usage);
        let mut before = question.context.cloned();
        let dropped = before.as_mut().map(|context| self.restrict(context)).unwrap_or_default();
        let (words, mentions) = self.board.mentions(question.message);
        let named_networks = self.named_networks(&words, question);
        let known_networks = before.iter().flat_map(|context| &context.networks).chain(&named_networks).collect();
        let scored = self.score(&ranking, mentions, &known_networks);
        let best = ranking.best(1);
        let no_tool_needed = scored.iter().all(|category| category.name.is_none())
            && best.first().is_none_or(|best| {
                let likeness = self.index.meanings[best.number].dot(&message.quantized);
                quiet::needs_no_tool(&message, likeness, best.confidence)
            });
        let (own, scored) = self.own(&mut ranking, scored, named_networks, question, &message, no_tool_needed);
        let own_confidence = own.confidence;
        let Turn { context, sticky } = if question.selected_categories.is_empty() {
            question.rules.turn(own, before.as_ref())
        } else {
            question.rules.turn(own, None)
        };
        let (available, conflicting) = self.available(&mut ranking, &context, question, no_tool_needed, &scored);
        let hints = if no_tool_needed { 0 } else { HINTS };
        let hints = available.iter().filter(|tool| !ranking.is_excluded(tool.number)).take(hints);
        let tool_hints: Vec<Arc<str>> = hints.map(|tool| Arc::clone(tool.entry.name())).collect();
        let account = Account {
            desk: self,
            ranking: &ranking,
            message: &message,
            text: question.message,
            scored: &scored,
            context: &context,
            before: before.as_ref().filter(|_| sticky),
            dropped: &dropped,
            conflicting: &conflicting,
            selected: !question.selected_categories.is_empty(),
            no_tool_needed,
            own_confidence,
        };
        Qualification {
            reasoning: account.tell(),
            networks: context.networks.clone(),
            categories: context.categories.clone(),
            confidence: context.last_confidence,
            active_intent: context.active_intent.clone(),
            tools_total: self.index.len(),
            tool_hints,
            available,
            no_tool_needed,
            context,
            sticky,
        }
    }

    fn restrict(&self, context: &mut IntentContext) -> Vec<String> {
        context.restrict(
            |name| self.board.names().any(|known| known == name),
            |name| self.board.networks().any(|known| known == name),
        )
    }

    fn named_networks(&self, words: &Words, question: &Question<'_>) -> Vec<String> {
        let mut named: Vec<String> = self.board.networks_in(words).into_iter().map(str::to_owned).collect();
        for network in question.networks {
            if self.board.networks().any(|known| known == network) && !named.contains(network) {
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
        let all = self.board.all().iter().zip(mentions).enumerate();
        let scored = all.filter(|(_, (held, _))| !held.category.always).map(|(place, (held, mention))| {
            let by_tools = ranking.confidence_of(held.tools.iter().copied());
            let by_text = if mention.name.is_some() {
                NAMED
            } else {
                1.0 - (1.0 - KEYWORD).powi(mention.keywords.len().min(3) as i32)
            };
            let needed = &held.category.networks;
            Scored {
                place,
                probability: 1.0 - (1.0 - by_tools) * (1.0 - by_text),
                is_elsewhere: !needed.is_empty() && !needed.iter().any(|network| networks.contains(network)),
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
        message: &Message,
        no_tool_needed: bool,
    ) -> (Own, Vec<Scored>) {
        if question.selected_categories.is_empty() {
            let is_named = scored.iter().any(|category| category.name.is_some());
            let best = scored.iter().filter(|category| !category.is_elsewhere).map(|category| category.probability);
            let best = best.fold(0.0_f32, f32::max);
            let least = LEAST_CATEGORY.max(best * CATEGORY_OF_BEST).max(question.min_confidence);
            scored.retain(|category| {
                let beside = is_named && !category.keywords.is_empty() && category.probability >= best * BESIDE_NAMED;
                let is_likely = (!is_named || beside) && !category.is_elsewhere && category.probability >= least;
                category.name.is_some() || is_likely && !no_tool_needed
            });
        } else {
            let name = |category: &Scored| &self.board.all()[category.place].category.name;
            scored.retain(|category| question.selected_categories.contains(name(category)));
        }
        let always = self.board.all().iter().filter(|held| held.category.always).map(|held| &held.category.name);
        let qualified = scored.iter().map(|category| &self.board.all()[category.place].category.name);
        let confidence = scored
            .iter()
            .map(|category| category.probability)
            .fold(None, |best: Option<f32>, own| Some(best.map_or(own, |best| best.max(own))));
        let own = Own {
            categories: always.chain(qualified).cloned().collect(),
            intent: (!no_tool_needed).then(|| self.intent(ranking, &scored, message)).flatten(),
            confidence: confidence.unwrap_or_else(|| {
                // Nothing but what is always offered: as likely as its best tool, and never as sure as a category.
                ranking.best(1).first().map_or(0.0, |best| best.confidence.min(question.rules.new_context / 2.0))
            }),
            networks,
        };
        (own, scored)
    }

    /// A phrase from the best tool of the qualified categories.
    fn intent(&self, ranking: &mut Ranking<'_>, scored: &[Scored], message: &Message) -> Option<String> {
        let best = ranking.best(JUDGED);
        let is_qualified = |tool: &&Ranked| {
            scored.is_empty()
                || self.board.places_of(tool.number).any(|place| scored.iter().any(|own| own.place == place))
        };
        let best = best.iter().find(is_qualified)?;
        let category = scored.iter().find(|own| self.board.places_of(best.number).any(|place| place == own.place));
        intent_of(&best.entry, category.and_then(|category| category.name.as_deref()), message)
    }

    /// The tools that are offered, best first, and those left out for a conflict.
    fn available(
        &self,
        ranking: &mut Ranking<'_>,
        context: &IntentContext,
        question: &Question<'_>,
        no_tool_needed: bool,
        scored: &[Scored],
    ) -> (Vec<Ranked>, Vec<LeftOut>) {
        let mut chosen: BTreeSet<usize> =
            question.exact_tools.iter().filter_map(|name| self.index.number(name)).collect();
        let exact = chosen.clone();
        let mut conflicting = Vec::new();
        if !question.ignore_other_tools || exact.is_empty() {
            for held in self.board.all() {
                if context.categories.contains(&held.category.name) {
                    chosen.extend(
                        held.tools.iter().filter(|&&tool| {
                            ranking.confidence(tool) >= question.min_confidence || held.category.always
                        }),
                    );
                }
            }
            let is_named = scored.iter().any(|category| category.name.is_some());
            if !is_named && !no_tool_needed && question.selected_categories.is_empty() {
                conflicting = self.add_likely(ranking, context, question, &mut chosen);
            }
        }
        for name in question.excluded_tools {
            if let Some(number) = self.index.number(name) {
                chosen.remove(&number);
            }
        }
        let mut available: Vec<Ranked> = chosen.into_iter().map(|number| ranking.ranked(number)).collect();
        let place = |tool: &Ranked| ranking.score(tool.number);
        // Numbers follow the names, so ties break by name.
        available.sort_by(|a, b| {
            let exactly = |tool: &Ranked| exact.contains(&tool.number);
            exactly(b).cmp(&exactly(a)).then(place(b).total_cmp(&place(a))).then(a.number.cmp(&b.number))
        });
        available.truncate(question.max_tools);
        (available, conflicting)
    }

    /// Adds the tools past the gate: not those of networks nobody speaks of, nor what a better one excludes.
    fn add_likely(
        &self,
        ranking: &mut Ranking<'_>,
        context: &IntentContext,
        question: &Question<'_>,
        chosen: &mut BTreeSet<usize>,
    ) -> Vec<LeftOut> {
        let mut conflicting = Vec::new();
        let mut better: Vec<Ranked> = Vec::new();
        for tool in ranking.loaded() {
            let elsewhere = self.board.places_of(tool.number).any(|place| {
                let needed = &self.board.all()[place].category.networks;
                !needed.is_empty() && !needed.iter().any(|network| context.networks.contains(network))
            });
            if chosen.contains(&tool.number) {
                better.push(tool);
                continue;
            }
            if elsewhere || ranking.is_excluded(tool.number) || tool.confidence < question.min_confidence {
                continue;
            }
            if let Some(other) = better.iter().take(JUDGED).find(|other| conflict(&tool, other)) {
                conflicting.push((Arc::clone(tool.entry.name()), Arc::clone(other.entry.name())));
            } else {
                chosen.insert(tool.number);
                better.push(tool);
            }
        }
        conflicting
    }
}

/// Must the two never be used beside each other?
fn conflict(one: &Ranked, other: &Ranked) -> bool {
    let declares =
        |one: &Ranked, other: &Ranked| one.entry.values(Facet::HighConflict).any(|name| *name == **other.entry.name());
    declares(one, other) || declares(other, one)
}

#[cfg(test)]
mod tests;
