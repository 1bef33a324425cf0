//! Selection inside the engine: the selector for the catalog of the day, what tenants' choices taught, and where each
//! session stands.
//!
//! Readers hold what was published last. Whoever learns does so one after the other, after what is learnt from has
//! happened; no question waits for that, and no reload.

mod forgetting;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::{ArcSwap, ArcSwapOption};
use imbl::HashMap;
use parking_lot::Mutex;

use self::forgetting::Gone;
pub(super) use self::forgetting::OldAdaptation;
use super::grace::GracePeriods;
use super::published::Published;
use super::told::{Allowance, Told};
use super::{Generation, processors};
use crate::access::Grant;
use crate::qualify::{
    self, Adaptation, Index, IntentContext, Message, Qualification, Question, Says, Selector, Trust, Usage,
};
use crate::session::turns::{MAX_MESSAGE_BYTES, Used};
use crate::session::{Turn, Turns};
use crate::store::notes::{ChoiceNote, KeptTurnNote, Note, Notepad, Notes, TurnNote, digest};
use crate::store::{Followed, FollowedPurge, ForgottenTexts};
use crate::text::head::head;
use crate::timing::{Execution, Outcome};

/// Tenants whose choices are learnt at once; further ones are ranked for as if nothing was learnt.
const MAX_TENANTS: usize = 256;

/// Pairs learnt from one batch of records, so that it does not keep others waiting.
const MAX_PAIRS: usize = 64;

/// Choices that are worth a thread to analyse their messages, and those that are in memory with them.
const LEAST_SHARE: usize = 64;
const ANALYSED_AT_ONCE: usize = 512;

/// What selection needs beside the generation.
#[derive(Debug, Default)]
pub(super) struct Qualifier {
    /// Made when it is first asked for, and kept up with the catalog from then on.
    selector: ArcSwapOption<Selector>,
    /// The generation that was published last, as far as the selector was told.
    latest: ArcSwapOption<Generation>,
    /// Held while a selector is made. Choices of earlier days, until there is one to learn them with.
    making: Mutex<Vec<ChoiceNote>>,
    settings: ArcSwap<qualify::Settings>,
    turns: Published<Turns>,
    usages: Published<HashMap<Arc<str>, Arc<Usage>>>,
    /// What a tenant chose while its choices are learnt anew.
    since: Mutex<Option<Since>>,
    allowance: Mutex<Allowance>,
    /// Whoever asks or learns may have seen a message that a purge makes others forget, and note it.
    asking: GracePeriods,
    /// How often something of each tenant's went.
    purges: ArcSwap<HashMap<Arc<str>, u64>>,
    /// What went while the notes of earlier days are missing, which may have it still.
    gone: Mutex<Option<Vec<Gone>>>,
}

/// Choices of a tenant from a moment on.
#[derive(Debug)]
struct Since {
    tenant: String,
    old: OldAdaptation,
    choices: Vec<ChoiceNote>,
}

/// What a choice rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChosenBy {
    /// A call that succeeded.
    Call,
    /// Somebody said so.
    Word,
}

/// A tool that was missed.
#[derive(Debug, Clone, PartialEq)]
pub struct Missed {
    /// Its category, if it has one.
    pub category: Option<String>,
    /// The context with that category, if there is a session.
    pub context: Option<IntentContext>,
    /// Misses of this turn, this one included.
    pub retries: u64,
    pub is_learnt: bool,
}

impl Qualifier {
    /// How it is set up from now on.
    pub(super) fn set(&self, settings: qualify::Settings) {
        self.settings.store(Arc::new(settings));
    }

    /// How it is set up.
    pub(super) fn settings(&self) -> Arc<qualify::Settings> {
        self.settings.load_full()
    }

    /// The selector; it may be that of the catalog of a moment ago while a new one is made.
    pub(super) fn selector(&self, generation: &Generation) -> Arc<Selector> {
        self.selector.load_full().unwrap_or_else(|| self.make(generation))
    }

    /// How many tools are indexed, if there is an index.
    pub(super) fn indexed_tools(&self) -> Option<usize> {
        self.selector.load().as_ref().map(|selector| selector.index().len())
    }

    /// Makes the selector of this generation, or of a later one that was published meanwhile.
    fn make(&self, generation: &Generation) -> Arc<Selector> {
        let mut earlier = self.making.lock();
        let latest = self.latest.load_full().filter(|latest| latest.number() > generation.number());
        let generation = latest.as_deref().unwrap_or(generation);
        let before = self.selector.load_full();
        if let Some(made) = before.clone().filter(|selector| is_of(selector, generation)) {
            return made;
        }
        let selector =
            Arc::new(Selector::build(&generation.loaded().catalog, generation.categories(), before.as_deref()));
        self.learn_again(&selector, std::mem::take(&mut *earlier));
        self.selector.store(Some(Arc::clone(&selector)));
        selector
    }

    /// Keeps everybody from making a selector.
    #[cfg(test)]
    pub(super) fn hold_making(&self) -> parking_lot::MutexGuard<'_, Vec<ChoiceNote>> {
        self.making.lock()
    }

    /// Makes a new selector if there is one that is no longer that of the generation.
    pub(super) fn renew(&self, generation: &Arc<Generation>) {
        {
            // The first, if it is being made, may be that of an earlier one; and a later one may have been told.
            let _making = self.making.lock();
            if self.latest.load().as_ref().is_none_or(|latest| latest.number() <= generation.number()) {
                self.latest.store(Some(Arc::clone(generation)));
            }
        }
        if self.selector.load().as_ref().is_some_and(|selector| !is_of(selector, generation)) {
            self.make(generation);
        }
    }

    /// Remembers what the store does: before anything is asked, or late, and then what is known since stands.
    pub(super) fn restore(&self, mut notes: Notes) {
        // Whatever goes from now on is looked for in what is restored.
        let mut missing = self.gone.lock();
        let gone = missing.take().unwrap_or_default();
        let mut restored = Turns::default();
        for TurnNote { tenant, session, state, .. } in notes.turns {
            if let Ok(turn) = serde_json::from_str(&state)
                && !gone.iter().any(|gone| gone.has_turn(&tenant, &session, &turn))
            {
                restored.set(&tenant, &session, turn);
            }
        }
        notes.choices.retain(|choice| !gone.iter().any(|gone| gone.has_choice(choice)));
        self.turns.update(|turns| {
            restored.take_over(turns);
            *turns = restored;
        });
        let mut earlier = self.making.lock();
        match self.selector.load_full() {
            Some(selector) => self.learn_again(&selector, notes.choices),
            None => *earlier = notes.choices,
        }
    }

    fn learn_again(&self, selector: &Selector, choices: Vec<ChoiceNote>) {
        if choices.is_empty() {
            return;
        }
        self.usages.update(|usages| usages.extend(shared(learnt(selector, choices)).take(MAX_TENANTS)));
    }

    /// Takes over what other daemons wrote: purges, where sessions stand, and choices. What tenants' memories said that
    /// went is still to be forgotten, when whoever may have seen it is waited for.
    pub(super) fn follow(&self, followed: Followed) -> BTreeMap<String, ForgottenTexts> {
        let mut gone = BTreeMap::<String, ForgottenTexts>::new();
        for FollowedPurge { tenant, sessions, texts, choices } in followed.purges {
            let old = choices.as_ref().map_or(OldAdaptation::Forgotten, |left| OldAdaptation::by(left.are_all));
            self.forget(&tenant, &sessions, choices.map(|left| || left.choices), old);
            if !texts.is_empty() {
                gone.entry(tenant).or_default().extend(&texts);
            }
        }
        if !followed.turns.is_empty() {
            self.turns.update(|turns| {
                for TurnNote { tenant, session, state, .. } in followed.turns {
                    if let Ok(turn) = serde_json::from_str(&state) {
                        turns.hear(&tenant, &session, turn);
                    }
                }
            });
        }
        if !followed.choices.is_empty() {
            let mut earlier = self.making.lock();
            match self.selector.load_full() {
                Some(selector) => self.learn_more(&selector, followed.choices),
                None => earlier.extend(followed.choices),
            }
        }
        gone
    }

    /// Adds choices to what is learnt of their tenants.
    fn learn_more(&self, selector: &Selector, choices: Vec<ChoiceNote>) {
        self.usages.update(|usages| {
            for (tenant, choices) in of_tenants(choices) {
                let known = usages.get(&*tenant).map(|usage| Usage::clone(usage));
                if known.is_some() || usages.len() < MAX_TENANTS {
                    let usage = added(selector, known.unwrap_or_default(), &choices);
                    usages.insert(tenant.into(), Arc::new(usage));
                }
            }
        });
    }

    /// What the tenant's choices taught.
    pub(super) fn usage(&self, tenant: &str) -> Arc<Usage> {
        self.usages.load().get(tenant).cloned().unwrap_or_default()
    }

    /// What the tenant's sessions used, those that were heard of last first, at most `most`.
    pub(super) fn used(&self, tenant: &str, most: usize) -> Vec<(String, Used)> {
        self.turns.load().used(tenant, most)
    }

    /// The last turn of a session.
    pub(super) fn turn(&self, tenant: &str, session: &str) -> Option<Arc<Turn>> {
        self.turns.load().get(tenant, session).cloned()
    }

    /// The last turn of a session as who asks may be told of it: what others said there decides nothing for whoever
    /// may not read it, so that no answer can give it away.
    pub(super) fn turn_for(&self, grant: &Grant, session: &str) -> Option<Arc<Turn>> {
        let turn = self.turn(&grant.tenant, session)?;
        let is_told = grant.reads_what_was_said() || turn.is_said_by(&grant.name);
        Some(if is_told { turn } else { Arc::new(turn.without_words()) })
    }

    /// Which tools fit the message? Without a context in the question that of the session counts, and is replaced
    /// by whoever leaves traces.
    pub(super) fn qualify(
        &self,
        generation: &Generation,
        notes: &mut Notepad<'_>,
        grant: &Grant,
        session: Option<&str>,
        question: &Question<'_>,
    ) -> Qualification {
        let _asking = self.asking.enter();
        let (selector, tenant) = (self.selector(generation), &*grant.tenant);
        let before = session.and_then(|session| self.turn_for(grant, session));
        let context = question.context.or(before.as_ref().map(|turn| &turn.context));
        // Another context that is sent back is of another conversation.
        let said =
            before.as_deref().filter(|turn| question.context.is_none_or(|sent| sent.says_the_same(&turn.context)));
        let question = Question {
            context,
            said: said.map(|turn| &*turn.said).unwrap_or_default(),
            is_again: said.is_some_and(|turn| turn.is_of(question.message)),
            missed: said.map(|turn| &*turn.missed).unwrap_or_default(),
            ..question.clone()
        };
        let mut answer = selector.qualify(&question, &self.usage(tenant));
        if !selector.index().is_of(&generation.loaded().catalog) {
            answer.available.retain(|tool| generation.tool(tool.entry.name()).is_some());
            answer.tool_hints.retain(|name| generation.tool(name).is_some());
            answer.tools_total = generation.catalog().len();
        }
        if let Some(session) = session.filter(|_| grant.leaves_traces()) {
            self.replace(notes, tenant, session, |turn| {
                let turn = turn.map(|turn| &**turn);
                // A session that was forgotten since stays so.
                Turn::goes_on(before.as_deref(), turn).then(|| {
                    let next = Turn::next(turn, question.message, answer.context.clone(), answer.sticky);
                    let is_alone = matches!(answer.says, Says::New | Says::NoMore) && !answer.sticky;
                    let is_own = is_alone || before.as_ref().is_none_or(|before| before.is_said_by(&grant.name));
                    let said_by = grant.speaker().filter(|_| is_own).map(str::to_owned);
                    Turn { said_by, ..next.about(question.said, answer.says) }
                })
            });
        }
        answer
    }

    fn replace(
        &self,
        notes: &mut Notepad<'_>,
        tenant: &str,
        session: &str,
        next: impl FnOnce(Option<&Arc<Turn>>) -> Option<Turn>,
    ) {
        self.turns.update(|turns| {
            let before = turns.get(tenant, session).cloned();
            let Some(turn) = next(before.as_ref()) else { return };
            let state = serde_json::to_string(&turn).expect("a turn has only strings and finite numbers");
            let number = turn.number.cast_signed();
            let note = TurnNote {
                tenant: tenant.to_owned(),
                session: session.to_owned(),
                number,
                state,
                kept: kept(before.as_deref(), &turn),
            };
            notes.note(Note::Turn(note));
            turns.set(tenant, session, turn);
        });
    }

    fn change(&self, notes: &mut Notepad<'_>, tenant: &str, session: &str, change: impl FnOnce(&mut Turn)) {
        self.replace(notes, tenant, session, |turn| {
            let mut turn = turn.map(|turn| Turn::clone(turn)).unwrap_or_default();
            change(&mut turn);
            Some(turn)
        });
    }

    /// Takes over what a session's stream told: its intent, if it told one, and what it used.
    pub(super) fn hear(
        &self,
        notes: &mut Notepad<'_>,
        grant: &Grant,
        session: &str,
        intent: Option<IntentContext>,
        used: Used,
    ) {
        self.change(notes, &grant.tenant, session, |turn| {
            if let Some(intent) = intent {
                // Whoever passes on what was said says nothing.
                if intent.active_intent.is_some() && intent.active_intent != turn.context.active_intent {
                    turn.speak(grant.speaker());
                }
                turn.context = intent;
            }
            turn.used = turn.used.and(used);
        });
    }

    /// Takes note of what was suggested to a session, if messages of it were qualified.
    pub(super) fn suggest(&self, notes: &mut Notepad<'_>, grant: &Grant, session: &str, tools: &[String]) {
        let tenant = &*grant.tenant;
        if grant.leaves_traces()
            && self.turn(tenant, session).is_some_and(|turn| turn.has_message() && turn.lacks_suggestion(tools))
        {
            self.change(notes, tenant, session, |turn| turn.suggest(tools));
        }
    }

    /// Learns from calls: each was chosen for the last message of its session.
    pub(super) fn observe(&self, generation: &Generation, notes: &mut Notepad<'_>, executions: &[Execution]) {
        let _asking = self.asking.enter();
        let mut learnt = 0;
        for execution in executions {
            let Some(session) = &execution.session else { continue };
            let Some(turn) = self.turn(&execution.tenant, session) else { continue };
            if execution.outcome != Outcome::Success {
                if turn.takes(&execution.tool) {
                    self.change(notes, &execution.tenant, session, |turn| turn.take(&execution.tool));
                }
                continue;
            }
            let mut message = None;
            self.change(notes, &execution.tenant, session, |turn| {
                message = turn.call(&execution.tool).then(|| meant(turn));
            });
            let may = |_: &String| learnt < MAX_PAIRS && self.admits(generation, &execution.tenant, &execution.tool);
            if let Some(message) = message.filter(may) {
                let (tenant, tool) = (&execution.tenant, &execution.tool);
                learnt += usize::from(self.learn(generation, notes, tenant, &message, tool, ChosenBy::Call));
            }
        }
    }

    /// Learns from a call that succeeded, which answered what was looked for at the time of
    /// [`Self::purges`].
    pub(super) fn choose(
        &self,
        generation: &Generation,
        notes: &mut Notepad<'_>,
        tenant: &str,
        (message, purges): (&str, u64),
        tool: &str,
    ) -> bool {
        let _asking = self.asking.enter();
        purges == self.purges(tenant)
            && self.admits(generation, tenant, tool)
            && self.learn(generation, notes, tenant, message, tool, ChosenBy::Call)
    }

    /// May a call of this tool be learnt? What no tool is called counts for nobody.
    fn admits(&self, generation: &Generation, tenant: &str, tool: &str) -> bool {
        self.selector(generation).index().number(tool).is_some()
            && self.allowance.lock().call(tenant, tool, SystemTime::now())
    }

    /// Learns that the tool was chosen for the message, if there is such a tool.
    fn learn(
        &self,
        generation: &Generation,
        notes: &mut Notepad<'_>,
        tenant: &str,
        message: &str,
        tool: &str,
        by: ChosenBy,
    ) -> bool {
        if !self.settings.load().learn {
            return false;
        }
        let selector = self.selector(generation);
        let text = head(message, MAX_MESSAGE_BYTES);
        let message = selector.index().message(text);
        if !message.is_telling() {
            // "Yes, do that" says nothing of the tool.
            return false;
        }
        self.usages.update(|usages| {
            if usages.len() >= MAX_TENANTS && !usages.contains_key(tenant) {
                return false;
            }
            let mut usage = usages.get(tenant).map(|usage| Usage::clone(usage)).unwrap_or_default();
            let trust = match by {
                ChosenBy::Call => usage.learn(selector.index(), &message, tool),
                ChosenBy::Word => usage.hear(selector.index(), &message, tool),
            };
            let Some(trust) = trust else { return false };
            let mut choice = ChoiceNote {
                tenant: tenant.to_owned(),
                tool: tool.to_owned(),
                message: text.to_owned(),
                trust: trust.get(),
                adaptation: usage.adaptation().to_bytes(),
            };
            if let Some(since) = self.since.lock().as_mut().filter(|since| since.tenant == tenant) {
                if since.old == OldAdaptation::Forgotten {
                    // What it moved is taken back with what those that went had moved.
                    choice.adaptation.clear();
                }
                since.choices.push(choice.clone());
            }
            notes.note(Note::Choice(choice));
            usages.insert(tenant.into(), Arc::new(usage));
            true
        })
    }

    /// A tool was needed and not offered: its category joins the session's context, and the choice is learnt.
    pub(super) fn miss(
        &self,
        generation: &Generation,
        notes: &mut Notepad<'_>,
        grant: &Grant,
        session: Option<&str>,
        message: Option<&str>,
        tool: &str,
    ) -> Missed {
        let _asking = self.asking.enter();
        let (tenant, told) = (&*grant.tenant, Told { tenant: &grant.tenant, by: &grant.name });
        let selector = self.selector(generation);
        let category = selector
            .index()
            .number(tool)
            .and_then(|number| selector.category_index().of_tool(number).next().map(str::to_owned));
        let mut missed = Missed { category, context: None, retries: 1, is_learnt: false };
        let mut said = message.map(str::to_owned);
        if let Some(session) = session {
            self.change(notes, tenant, session, |turn| {
                if let Some(category) = &missed.category {
                    turn.context = turn.context.clone().with_category(category);
                }
                if let Some(message) = message.filter(|message| !message.is_empty() && !turn.has_message()) {
                    turn.speak(grant.speaker());
                    head(message, MAX_MESSAGE_BYTES).clone_into(&mut turn.message);
                }
                turn.miss(tool);
                missed.retries = turn.misses;
                if said.is_none() && turn.teach(tool) {
                    said = Some(meant(turn));
                }
            });
        }
        missed.context = session.and_then(|session| Some(self.turn_for(grant, session)?.context.clone()));
        missed.is_learnt = said.is_some_and(|message| {
            self.allowance.lock().word(told, tool, SystemTime::now())
                && self.learn(generation, notes, tenant, &message, tool, ChosenBy::Word)
        });
        missed
    }
}

/// What is to be kept of a turn, if that is news.
fn kept(before: Option<&Turn>, turn: &Turn) -> Option<KeptTurnNote> {
    let summary = turn.summary()?;
    if before.is_some_and(|before| before.number == turn.number && before.summary().as_ref() == Some(&summary)) {
        return None;
    }
    let state = serde_json::to_string(&summary).expect("a turn has only strings and finite numbers");
    Some(KeptTurnNote { digest: digest(&turn.message), state })
}

/// What a turn's message asks for: "yes, do it" asks for what was said before.
fn meant(turn: &Turn) -> String {
    let before = turn.said.last().filter(|_| !Message::new(&turn.message).is_telling());
    before.unwrap_or(&turn.message).clone()
}

/// What was learnt of each tenant, as it is published.
fn shared(learnt: BTreeMap<String, Usage>) -> impl Iterator<Item = (Arc<str>, Arc<Usage>)> {
    learnt.into_iter().map(|(tenant, usage)| (Arc::from(tenant), Arc::new(usage)))
}

/// What choices taught each tenant.
fn learnt(selector: &Selector, choices: Vec<ChoiceNote>) -> BTreeMap<String, Usage> {
    let learnt = of_tenants(choices).into_iter();
    learnt.map(|(tenant, choices)| (tenant, added(selector, Usage::default(), &choices))).collect()
}

fn of_tenants(choices: Vec<ChoiceNote>) -> BTreeMap<String, Vec<ChoiceNote>> {
    let mut of_tenants: BTreeMap<String, Vec<ChoiceNote>> = BTreeMap::new();
    for choice in choices {
        of_tenants.entry(choice.tenant.clone()).or_default().push(choice);
    }
    of_tenants
}

/// What was learnt with further choices of its tenant, and with what the latest of them had moved.
fn added(selector: &Selector, mut usage: Usage, choices: &[ChoiceNote]) -> Usage {
    for choices in choices.chunks(ANALYSED_AT_ONCE) {
        let messages = analysed(selector.index(), choices);
        let all = choices.iter().zip(&messages);
        usage
            .add_all(selector.index(), all.map(|(choice, message)| (message, &*choice.tool, Trust::new(choice.trust))));
    }
    match choices.last() {
        Some(latest) => usage.with_adaptation(Adaptation::from_bytes(&latest.adaptation).unwrap_or(Adaptation::NONE)),
        None => usage,
    }
}

/// The messages of choices, analysed by all processors: that is what most of the time goes into.
fn analysed(index: &Index, choices: &[ChoiceNote]) -> Vec<Message> {
    let share = choices.len().div_ceil(processors()).max(LEAST_SHARE);
    let analyse = |choices: &[ChoiceNote]| choices.iter().map(|choice| index.message(&choice.message)).collect();
    std::thread::scope(|scope| {
        let shares: Vec<_> = choices.chunks(share).skip(1).map(|share| scope.spawn(move || analyse(share))).collect();
        let mut messages: Vec<Message> = choices.chunks(share).next().map(analyse).unwrap_or_default();
        for share in shares {
            messages.extend(share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        messages
    })
}

fn is_of(selector: &Arc<Selector>, generation: &Generation) -> bool {
    selector.is_of(&generation.loaded().catalog, generation.categories())
}
