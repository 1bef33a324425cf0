//! Which tools are offered: those of the categories, the likely ones beside them, what was asked for, and no more than
//! the limit.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{JUDGED, LeftOut, Question, Selector};
use crate::qualify::qualification::HINTS;
use crate::qualify::ranking::{Ranked, Ranking};

/// What is offered.
pub(super) struct OfferedTools {
    pub(super) available: Vec<Ranked>,
    pub(super) conflicting: Vec<LeftOut>,
    pub(super) cut: Vec<Arc<str>>,
}

/// What decides on what is offered, beside the question.
pub(super) struct Shown<'s> {
    pub(super) categories: &'s [String],
    pub(super) networks: &'s [String],
    pub(super) extra: &'s Extra,
    /// Likely tools of other categories that are offered at most.
    pub(super) guesses: usize,
}

/// Tools that are offered whatever their categories.
pub(super) struct Extra {
    /// The conversation needed them.
    pub(super) missed: Vec<usize>,
    /// Choices speak for them.
    pub(super) taught: Vec<usize>,
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
        let mut chosen = exact.clone();
        let mut conflicting = Vec::new();
        if !question.ignore_other_tools || exact.is_empty() {
            for held in self.category_index.all() {
                if shown.categories.contains(&held.category.name) {
                    chosen.extend(
                        held.tools.iter().filter(|&&tool| {
                            ranking.confidence(tool) >= question.min_confidence || held.category.always
                        }),
                    );
                }
            }
            if shown.guesses > 0 {
                conflicting = self.add_likely(ranking, shown, question, &mut chosen);
            }
            chosen.extend(shown.extra.missed.iter().chain(&shown.extra.taught));
        }
        for name in question.excluded_tools {
            if let Some(number) = self.index.number(name) {
                chosen.remove(&number);
            }
        }
        let mut available: Vec<usize> = chosen.into_iter().collect();
        let is_asked = |number: &usize| exact.contains(number) || shown.extra.missed.contains(number);
        let score = |number: &usize| ranking.score(*number);
        // Numbers follow the names, so ties break by name.
        available
            .sort_unstable_by(|a, b| is_asked(b).cmp(&is_asked(a)).then(score(b).total_cmp(&score(a))).then(a.cmp(b)));
        let cut = self.cut(ranking, &mut available, question.max_tools);
        OfferedTools {
            available: available.into_iter().map(|number| ranking.ranked(number)).collect(),
            conflicting,
            cut,
        }
    }

    /// Holds the tools to the limit; the likely ones that it cost, best first. Those that are always offered stay and
    /// count, but leave room for the best.
    fn cut(&self, ranking: &mut Ranking<'_>, available: &mut Vec<usize>, most: usize) -> Vec<Arc<str>> {
        if available.len() <= most {
            return Vec::new();
        }
        let is_always = |tool: &usize| {
            self.category_index.places_of(*tool).any(|place| self.category_index.all()[place].category.always)
        };
        let always = available.iter().filter(|tool| is_always(tool)).count();
        let mut room = most.saturating_sub(always).max(most.min(HINTS));
        let likely = ranking.loaded_numbers(JUDGED);
        let mut cut = Vec::new();
        available.retain(|tool| {
            if is_always(tool) {
                return true;
            }
            let stays = room > 0;
            room = room.saturating_sub(1);
            if !stays && likely.contains(&(*tool as u32)) {
                cut.push(Arc::clone(self.index.entry(*tool).name()));
            }
            stays
        });
        cut.truncate(HINTS);
        cut
    }

    /// Adds the tools past the threshold: not those of networks nobody speaks of, nor what a better one excludes.
    fn add_likely(
        &self,
        ranking: &mut Ranking<'_>,
        shown: &Shown<'_>,
        question: &Question<'_>,
        chosen: &mut BTreeSet<usize>,
    ) -> Vec<LeftOut> {
        let mut conflicting = Vec::new();
        let mut better: Vec<usize> = Vec::new();
        let mut added = 0;
        for tool in ranking.loaded_numbers(question.max_tools).to_vec() {
            let tool = tool as usize;
            let elsewhere = self.category_index.places_of(tool).any(|place| {
                let needed = &self.category_index.all()[place].category.networks;
                !needed.is_empty() && !needed.iter().any(|network| shown.networks.contains(network))
            });
            if chosen.contains(&tool) {
                better.push(tool);
                continue;
            }
            if elsewhere || ranking.is_excluded(tool) || ranking.confidence(tool) < question.min_confidence {
                continue;
            }
            if let Some(&other) = better.iter().take(JUDGED).find(|&&other| self.index.is_conflict(tool, other)) {
                let name = |number: usize| Arc::clone(self.index.entry(number).name());
                conflicting.push((name(tool), name(other)));
            } else if added < shown.guesses {
                added += 1;
                chosen.insert(tool);
                better.push(tool);
            }
        }
        conflicting
    }
}
