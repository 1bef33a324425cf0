//! What selection does when memories are removed for good: it forgets what they said, and learns anew from what is
//! left.

use std::sync::Arc;

use super::{Qualifier, Since, added, learnt};
use crate::blocking::{self, NoThread};
use crate::qualify::{Adaptation, Selector, Usage};
use crate::session::Turn;
use crate::store::memories::Forgotten;
use crate::store::notes::ChoiceNote;

/// What becomes of what a tenant's choices moved when they are learnt anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum OldAdaptation {
    /// Some went, and it cannot be taken apart.
    Forgotten,
    Kept,
}

impl OldAdaptation {
    pub(super) fn by(are_all_left: bool) -> Self {
        if are_all_left { Self::Kept } else { Self::Forgotten }
    }
}

/// What went of a tenant's.
#[derive(Debug)]
pub(super) struct Gone {
    tenant: String,
    forgotten: Arc<Forgotten>,
}

impl Gone {
    pub(super) fn has_turn(&self, tenant: &str, session: &str, turn: &Turn) -> bool {
        self.tenant == tenant
            && (self.forgotten.sessions.iter().any(|gone| gone == session) || says(turn, &self.forgotten))
    }

    pub(super) fn has_choice(&self, choice: &ChoiceNote) -> bool {
        self.tenant == choice.tenant && self.forgotten.texts.has(&choice.message)
    }
}

fn says(turn: &Turn, forgotten: &Forgotten) -> bool {
    turn.texts().any(|text| forgotten.texts.has(text))
}

/// Leaves out those of `noted` that are written already, from the end.
fn leave_out(left: &mut Vec<ChoiceNote>, noted: &[ChoiceNote]) {
    for choice in noted.iter().rev() {
        // What choices moved is the tenant's latest of all that are left.
        let is_it = |kept: &ChoiceNote| {
            (&kept.tenant, &kept.tool, &kept.message) == (&choice.tenant, &choice.tool, &choice.message)
                && kept.trust.to_bits() == choice.trust.to_bits()
        };
        if let Some(place) = left.iter().rposition(is_it) {
            left.remove(place);
        }
    }
}

impl Qualifier {
    /// The notes of earlier days are missing: what goes until they come is to go from them as well.
    pub(in crate::engine) fn await_notes(&self) {
        self.gone.lock().get_or_insert_default();
    }

    /// Forgets what went, and waits for all who may have seen any of it: what they noted of it is with the store then.
    pub(in crate::engine) async fn forget_purged(self: &Arc<Self>, tenant: &str, forgotten: &Arc<Forgotten>) {
        // Those who are waited for may set a turn at what they ask; then those who saw that are waited for.
        for _ in 0..2 {
            let (qualifier, gone, of) = (Arc::clone(self), Arc::clone(forgotten), tenant.to_owned());
            if let Err(NoThread) = blocking::run(move || qualifier.forget_said(&of, &gone)).await {
                self.forget_said(tenant, forgotten);
            }
            self.asking.pass().await;
        }
    }

    fn forget_said(&self, tenant: &str, forgotten: &Arc<Forgotten>) {
        self.purges.rcu(|purges| purges.alter(|count| Some(count.unwrap_or_default() + 1), tenant.into()));
        if let Some(gone) = &mut *self.gone.lock() {
            gone.push(Gone { tenant: tenant.to_owned(), forgotten: Arc::clone(forgotten) });
        }
        // Looked for in a snapshot: who asks meanwhile does not wait.
        let saying = self.turns.snapshot().sessions_where(tenant, |turn| says(turn, forgotten));
        self.turns.update(|turns| {
            for session in saying {
                if turns.get(tenant, &session).is_some_and(|turn| says(turn, forgotten)) {
                    turns.forget(tenant, &session);
                }
            }
        });
        self.forget_turns(tenant, &forgotten.sessions);
    }

    /// To be held by whoever may bring back what is purged meanwhile.
    pub(in crate::engine) fn enter(&self) -> Arc<impl Sized + use<>> {
        self.asking.enter()
    }

    /// Grows with each purge of the tenant's that is heard of: what was looked for before is not to be learnt any more.
    pub(in crate::engine) fn purges(&self, tenant: &str) -> u64 {
        self.purges.load().get(tenant).copied().unwrap_or_default()
    }

    /// Forgets sessions, and learns a tenant's choices anew from those that are left, if any went. It takes as long as
    /// learning them does; who chooses or asks meanwhile does not wait. Of several purges each reads what is left when
    /// its turn comes, so none brings back what another took.
    pub(in crate::engine) fn forget(
        &self,
        tenant: &str,
        sessions: &[String],
        left: Option<impl FnOnce() -> Vec<ChoiceNote>>,
        old: OldAdaptation,
    ) {
        self.forget_turns(tenant, sessions);
        let Some(left) = left else { return };
        let mut earlier = self.making.lock();
        let Some(selector) = self.selector.load_full() else {
            earlier.retain(|choice| choice.tenant != tenant);
            earlier.extend(left());
            return;
        };
        if self.usages.load().contains_key(tenant) {
            self.note_from_now_on(tenant, old);
            let mut left = left();
            if let Some(since) = &*self.since.lock() {
                leave_out(&mut left, &since.choices);
            }
            self.learn_instead(&selector, tenant, learnt(&selector, left).remove(tenant));
        }
    }

    fn note_from_now_on(&self, tenant: &str, old: OldAdaptation) {
        let since = Since { tenant: tenant.to_owned(), old, choices: Vec::new() };
        // Nobody is amid a choice: what was chosen before is with the store.
        self.usages.update(|_| *self.since.lock() = Some(since));
    }

    /// Replaces what a tenant's choices taught, and adds what it chose since that was begun.
    fn learn_instead(&self, selector: &Selector, tenant: &str, usage: Option<Usage>) {
        self.usages.update(|usages| {
            let since = self.since.lock().take();
            let old = since.as_ref().map_or(OldAdaptation::Forgotten, |since| since.old);
            let since = since.map(|since| since.choices).unwrap_or_default();
            if usage.is_none() && since.is_empty() {
                usages.remove(tenant);
                return;
            }
            let mut usage = added(selector, usage.unwrap_or_default(), &since);
            if old == OldAdaptation::Forgotten {
                // What any of them moved was moved from where those that went had brought it.
                usage = usage.with_adaptation(Adaptation::NONE);
            }
            usages.insert(tenant.into(), Arc::new(usage));
        });
    }

    fn forget_turns(&self, tenant: &str, sessions: &[String]) {
        self.turns.update(|turns| {
            for session in sessions {
                turns.forget(tenant, session);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::load::{LoadOptions, load};
    use crate::engine::Engine;
    use crate::qualify::IntentContext;
    use crate::store::notes::{Notes, TurnNote};
    use crate::store::{ForgottenTexts, Notepad};

    #[test]
    fn what_went_is_not_restored_from_notes_that_come_late() {
        let (qualifier, mut texts) = (Arc::new(Qualifier::default()), ForgottenTexts::default());
        texts.insert("find the tea");
        let sessions = vec!["named".to_owned()];
        let forgotten = Arc::new(Forgotten { texts: texts.into(), sessions, ..Forgotten::default() });
        qualifier.await_notes();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(qualifier.forget_purged("t", &forgotten));
        let turn = |tenant: &str, session: &str, message: &str| TurnNote {
            tenant: tenant.to_owned(),
            session: session.to_owned(),
            number: 1,
            state: serde_json::to_string(&Turn::next(None, message, IntentContext::default(), false)).unwrap(),
            kept: None,
        };
        let choice = |tenant: &str, message: &str| ChoiceNote {
            tenant: tenant.to_owned(),
            tool: "a".to_owned(),
            message: message.to_owned(),
            trust: 1.0,
            adaptation: Vec::new(),
        };
        let turns = vec![
            turn("t", "at it", "find the tea"),
            turn("t", "named", "anything"),
            turn("t", "at other", "find the coffee"),
            turn("u", "at it", "find the tea"),
        ];
        let choices = vec![choice("t", "find the tea"), choice("t", "find the coffee"), choice("u", "find the tea")];
        qualifier.restore(Notes { turns, choices });
        let has = [("t", "at it"), ("t", "named"), ("t", "at other"), ("u", "at it")]
            .map(|(tenant, session)| qualifier.turn(tenant, session).is_some());
        assert_eq!(has, [false, false, true, true]);
        let kept = qualifier.hold_making().iter().map(|kept| (kept.tenant.clone(), kept.message.clone())).collect();
        let kept: Vec<(String, String)> = kept;
        let expected = [("t", "find the coffee"), ("u", "find the tea")];
        assert_eq!(kept, expected.map(|(tenant, message)| (tenant.to_owned(), message.to_owned())));
        // What goes later goes from what was restored.
        qualifier.restore(Notes { turns: vec![turn("t", "at it", "find the tea")], choices: Vec::new() });
        assert!(qualifier.turn("t", "at it").is_some());
        runtime.block_on(qualifier.forget_purged("t", &forgotten));
        assert!(qualifier.turn("t", "at it").is_none());
    }

    #[test]
    fn what_is_chosen_while_old_choices_are_learnt_anew_is_learnt() {
        let directory = tempfile::TempDir::new().unwrap();
        let rest = "title: t\ndescription: d\ncategory: test\ncapabilities: []\nkeywords: []\nuse_cases: []\n";
        std::fs::write(directory.path().join("tool.yaml"), format!("name: tool\n{rest}")).unwrap();
        let engine = Engine::new();
        engine.publish(&load(LoadOptions::directory(directory.path())));
        let (qualifier, generation, store) = (&engine.qualifier, engine.generation(), engine.store.as_ref());
        let choose = |tenant: &str, message: &str| {
            let mut notes = Notepad::new(store);
            assert!(qualifier.choose(&generation, &mut notes, tenant, (message, 0), "tool"), "{message}");
        };
        let choices = || ["t", "other"].map(|tenant| qualifier.usage(tenant).choices());
        choose("t", "how high is the lighthouse of Genoa");
        choose("t", "which lighthouse is the tallest one");
        let kept = ChoiceNote {
            tenant: "t".to_owned(),
            tool: "tool".to_owned(),
            message: "which lighthouse is the tallest one".to_owned(),
            trust: 1.0,
            adaptation: qualifier.usage("t").adaptation().to_bytes(),
        };
        let since_chosen = || ChoiceNote {
            tenant: "t".to_owned(),
            tool: "tool".to_owned(),
            message: "is there a lighthouse in Wrangel".to_owned(),
            trust: 1.0,
            adaptation: Vec::new(),
        };
        let has_moved = || qualifier.usage("t").adaptation().to_bytes() != Adaptation::NONE.to_bytes();
        assert!(has_moved());
        let relearnt = learnt(&qualifier.selector(&generation), vec![kept]).remove("t");
        qualifier.note_from_now_on("t", OldAdaptation::Forgotten);
        choose("t", "how bright is the lighthouse of Ushant");
        choose("other", "how bright is the lighthouse of Ushant");
        assert_eq!(choices(), [3, 1], "nobody waits, and who asks is answered as before");
        let noted = || qualifier.since.lock().as_ref().unwrap().choices[0].adaptation.clone();
        assert_eq!(noted(), [0; 0], "a start in between brings back nothing that those that went had moved");
        qualifier.learn_instead(&qualifier.selector(&generation), "t", relearnt);
        assert_eq!(choices(), [2, 1]);
        assert!(!has_moved(), "what the others moved is forgotten with them");
        choose("t", "is there a lighthouse in Wrangel");
        let all = vec![ChoiceNote { adaptation: qualifier.usage("t").adaptation().to_bytes(), ..since_chosen() }];
        qualifier.forget("t", &[], Some(|| all), OldAdaptation::Kept);
        assert!(choices() == [1, 1] && has_moved(), "what was moved stays where none went");
        let kept = || {
            let note = |message: &str| ChoiceNote {
                tenant: "t".to_owned(),
                tool: "tool".to_owned(),
                message: message.to_owned(),
                trust: qualifier.since.lock().as_ref().unwrap().choices[0].trust,
                adaptation: Vec::new(),
            };
            // It is written while they are read.
            choose("t", "how old is the lighthouse of Kish");
            vec![note("which lighthouse is the tallest one"), note("how old is the lighthouse of Kish")]
        };
        qualifier.forget("t", &[], Some(kept), OldAdaptation::Forgotten);
        assert_eq!(choices(), [2, 1], "it is counted once");
        qualifier.forget("t", &[], Some(Vec::new), OldAdaptation::Forgotten);
        assert_eq!(choices(), [0, 1]);
    }
}
