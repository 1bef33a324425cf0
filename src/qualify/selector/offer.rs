//! Which tools are offered: those of the categories, the likely ones beside them, what was asked for, and no more than
//! the limit.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{JUDGED, LeftOut, Question, Selector};
use crate::qualify::qualification::HINTS;
use crate::qualify::ranking::{Ranked, Ranking};

/// How likely a tool is at least that is offered although nobody speaks of its network.
const LEAST_OF_UNNAMED_NETWORK: f32 = 0.1;

/// Tools of categories that nobody names which are offered at most, the best of all these: a needed one is hardly ever
/// behind them, and a large category that is only likely would bury it.
pub(super) const MOST_OF_LIKELY: usize = 12;

/// What is offered.
pub(super) struct OfferedTools {
    pub(super) available: Vec<Ranked>,
    pub(super) conflicting: Vec<LeftOut>,
    pub(super) cut: Vec<Arc<str>>,
}

/// What decides on what is offered, beside the question.
pub(super) struct Shown<'s> {
    pub(super) categories: &'s [String],
    /// Those of them that the message names, or the caller.
    pub(super) whole: &'s [&'s str],
    pub(super) networks: &'s [String],
    pub(super) extra: &'s Extra,
    /// Likely tools of other categories that are offered at most.
    pub(super) guesses: usize,
}

impl Shown<'_> {
    fn has(&self, category: &str) -> bool {
        self.categories.iter().any(|shown| shown == category)
    }
}

/// Tools that are offered whatever their categories.
pub(super) struct Extra {
    /// The conversation needed them.
    pub(super) missed: Vec<usize>,
    /// Choices speak for them.
    pub(super) taught: Vec<usize>,
    /// The message says their names.
    pub(super) said: Vec<usize>,
}

/// Some of a catalog's tools, each once.
struct Chosen(Vec<bool>);

impl Chosen {
    fn none_of(tools: usize) -> Self {
        Self(vec![false; tools])
    }

    fn has(&self, tool: usize) -> bool {
        self.0[tool]
    }

    fn add(&mut self, tool: usize) {
        self.0[tool] = true;
    }

    fn extend(&mut self, tools: impl IntoIterator<Item = usize>) {
        tools.into_iter().for_each(|tool| self.add(tool));
    }

    fn remove(&mut self, tool: usize) {
        self.0[tool] = false;
    }

    /// Ascending.
    fn numbers(&self) -> Vec<usize> {
        self.0.iter().enumerate().filter_map(|(tool, is_chosen)| is_chosen.then_some(tool)).collect()
    }
}

/// Those that were asked for first, then the best; numbers follow the names, so ties break by name.
fn by_rank(ranking: &Ranking<'_>, is_asked: impl Fn(usize) -> bool, a: usize, b: usize) -> Ordering {
    let by_score = || ranking.score(b).total_cmp(&ranking.score(a)).then(a.cmp(&b));
    is_asked(b).cmp(&is_asked(a)).then_with(by_score)
}

impl Selector {
    /// The tools that are offered, best first, those left out for a conflict, and those that the limit cut.
    pub(super) fn available(
        &self,
        ranking: &mut Ranking<'_>,
        shown: &Shown<'_>,
        question: &Question<'_>,
    ) -> OfferedTools {
        let exact: BTreeSet<usize> = question.exact_tools.iter().filter_map(|name| self.index.number(name)).collect();
        let mut chosen = Chosen::none_of(self.index.len());
        chosen.extend(exact.iter().copied());
        let mut conflicting = Vec::new();
        if !question.ignore_other_tools || exact.is_empty() {
            let is_likely =
                |tool: usize| question.min_confidence <= 0.0 || ranking.confidence(tool) >= question.min_confidence;
            self.add_categories(ranking, shown, is_likely, &mut chosen);
            if shown.guesses > 0 {
                conflicting = self.add_likely(ranking, shown, question, &mut chosen);
            }
            chosen.extend(shown.extra.missed.iter().chain(&shown.extra.taught).chain(&shown.extra.said).copied());
        }
        for name in question.excluded_tools {
            if let Some(number) = self.index.number(name) {
                chosen.remove(number);
            }
        }
        let mut asked = Chosen::none_of(self.index.len());
        asked.extend(exact.iter().chain(&shown.extra.missed).chain(&shown.extra.said).copied());
        let is_asked = |number: usize| asked.has(number);
        let (mut available, cut) = self.cut(ranking, &chosen, is_asked, question.max_tools);
        available.sort_unstable_by(|a, b| by_rank(ranking, is_asked, *a, *b));
        OfferedTools {
            available: available.into_iter().map(|number| ranking.ranked(number)).collect(),
            conflicting,
            cut,
        }
    }

    /// Holds the tools to the limit, in no order; and the likely ones that it cost, best first. Those that are always
    /// offered stay and count, but leave room for the best.
    fn cut(
        &self,
        ranking: &mut Ranking<'_>,
        chosen: &Chosen,
        is_asked: impl Fn(usize) -> bool + Copy,
        most: usize,
    ) -> (Vec<usize>, Vec<Arc<str>>) {
        let available = chosen.numbers();
        if available.len() <= most {
            return (available, Vec::new());
        }
        let (mut stays, mut rest): (Vec<usize>, Vec<usize>) =
            available.into_iter().partition(|&tool| self.category_index.is_always(tool));
        let room = most.saturating_sub(stays.len()).max(most.min(HINTS));
        let mut cut = Vec::new();
        if rest.len() > room {
            let likely = ranking.loaded_numbers(JUDGED).to_vec();
            rest.select_nth_unstable_by(room, |a, b| by_rank(ranking, is_asked, *a, *b));
            let mut lost = Chosen::none_of(self.index.len());
            lost.extend(rest.drain(room..));
            cut.extend(likely.into_iter().map(|tool| tool as usize).filter(|&tool| lost.has(tool)));
            cut.sort_unstable_by(|a, b| by_rank(ranking, is_asked, *a, *b));
            cut.truncate(HINTS);
        }
        stays.append(&mut rest);
        (stays, cut.into_iter().map(|tool| Arc::clone(self.index.entry(tool).name())).collect())
    }

    /// Adds the tools of the categories: of those that are meant whole all that are likely, of the others the best.
    fn add_categories(
        &self,
        ranking: &Ranking<'_>,
        shown: &Shown<'_>,
        is_likely: impl Fn(usize) -> bool,
        chosen: &mut Chosen,
    ) {
        let held = self.category_index.all().iter().filter(|held| shown.has(&held.category.name));
        let (whole, others): (Vec<_>, Vec<_>) =
            held.partition(|held| held.category.always || shown.whole.contains(&&*held.category.name));
        for held in whole {
            chosen.extend(held.tools.iter().copied().filter(|&tool| held.category.always || is_likely(tool)));
        }
        let others = others.into_iter().flat_map(|held| &held.tools).copied();
        let mut others: Vec<usize> = others.filter(|&tool| is_likely(tool) && !chosen.has(tool)).collect();
        others.sort_unstable_by(|a, b| by_rank(ranking, |_| false, *a, *b));
        others.dedup();
        chosen.extend(others.into_iter().take(MOST_OF_LIKELY));
    }

    /// Adds the tools past the threshold: not those of networks nobody speaks of, nor what a better one excludes.
    fn add_likely(
        &self,
        ranking: &mut Ranking<'_>,
        shown: &Shown<'_>,
        question: &Question<'_>,
        chosen: &mut Chosen,
    ) -> Vec<LeftOut> {
        let mut conflicting = Vec::new();
        let mut better: Vec<usize> = Vec::new();
        let mut added = 0;
        for tool in self.loaded_here(ranking, shown.networks, question.max_tools) {
            if chosen.has(tool) {
                better.push(tool);
                continue;
            }
            if ranking.is_excluded(tool) || ranking.confidence(tool) < question.min_confidence {
                continue;
            }
            // The seats beside the context are for others than its own.
            let is_of_shown = || self.category_index.of_tool(tool).any(|name| shown.has(name));
            if shown.guesses < usize::MAX && is_of_shown() {
                continue;
            }
            let excluding = self.index.conflicts_of(tool);
            if let Some(&other) = better.iter().take(JUDGED).find(|&&other| excluding.contains(&(other as u32))) {
                let name = |number: usize| Arc::clone(self.index.entry(number).name());
                conflicting.push((name(tool), name(other)));
            } else if added < shown.guesses {
                added += 1;
                chosen.add(tool);
                better.push(tool);
            }
        }
        conflicting
    }

    /// The tools past the threshold, best first, without those of networks that nobody speaks of. Where these have the
    /// probability that counts, the five best of the others have their place.
    fn loaded_here(&self, ranking: &mut Ranking<'_>, networks: &[String], most: usize) -> Vec<usize> {
        let unnamed = self.of_unnamed_networks(ranking, networks);
        let loaded = ranking.loaded_numbers(most).len();
        let best = ranking.best_numbers(loaded.max(JUDGED.min(most)));
        let mut here = Vec::with_capacity(loaded);
        for (place, &tool) in best.iter().enumerate() {
            let is_starved = here.len() < place.min(HINTS);
            if place >= loaded && !is_starved {
                break;
            }
            let tool = tool as usize;
            if unnamed.contains(&tool) || !self.is_elsewhere(tool, networks) {
                here.push(tool);
            }
        }
        here
    }

    /// Has the tool a category of networks of which none is spoken of?
    pub(in crate::qualify) fn is_elsewhere(&self, tool: usize, networks: &[String]) -> bool {
        self.category_index.places_of(tool).any(|place| {
            let needed = &self.category_index.all()[place].category.networks;
            !needed.is_empty() && !needed.iter().any(|network| networks.contains(network))
        })
    }

    /// Of the best tools, those of networks that nobody speaks of: where no network is named at all, what fits so well
    /// may be meant ("revoke the approvals of my wallet").
    pub(super) fn of_unnamed_networks(&self, ranking: &mut Ranking<'_>, networks: &[String]) -> Vec<usize> {
        if !networks.is_empty() {
            return Vec::new();
        }
        let best = ranking.best_numbers(HINTS).iter().map(|&tool| tool as usize).collect::<Vec<_>>();
        let is_likely = |tool: &usize| ranking.confidence(*tool) >= LEAST_OF_UNNAMED_NETWORK;
        best.into_iter().filter(is_likely).filter(|&tool| self.is_elsewhere(tool, networks)).collect()
    }
}
