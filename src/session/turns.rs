//! What each session is about: the context of its intent, and its last message with the tools that were called for it.
//!
//! An immutable map, bounded in sessions, of which tenants have equal shares.

use std::sync::Arc;

use imbl::HashMap;
use serde::{Deserialize, Serialize};

use super::{ByAge, MAX_CALLS, MAX_SESSIONS, Name};
use crate::qualify::{IntentContext, Says};
use crate::text::head::head;

/// Bytes of a message that are kept: what it wants stands at its beginning.
pub const MAX_MESSAGE_BYTES: usize = 2048;

/// Tools of a turn of which is known that they were suggested.
pub const MAX_SUGGESTED: usize = 32;

/// Messages of a context that are kept.
const MAX_SAID: usize = 4;

/// Bytes of each of them.
pub const MAX_SAID_BYTES: usize = 512;

/// Tools that one message can teach.
const MAX_TAUGHT: usize = 16;

/// The turns of all tenants' sessions.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    by_name: HashMap<Name, (u64, Arc<Turn>)>,
    by_age: ByAge,
    count: u64,
}

/// The last turn of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What the conversation is about.
    pub context: IntentContext,
    /// Messages of the session so far, this one included.
    #[serde(default)]
    pub number: u64,
    /// The message, cut to [`MAX_MESSAGE_BYTES`].
    pub message: String,
    /// Tools that were called for it and taught, or were missed.
    pub taught: Vec<String>,
    /// Tools that were called since the message, each once, at most [`MAX_CALLS`].
    #[serde(default)]
    pub called: Vec<String>,
    /// How often a tool was missed for it.
    pub misses: u64,
    /// Tools that were missed in this context.
    #[serde(default)]
    pub missed: Vec<String>,
    /// The messages that the context comes from, oldest first, each cut to [`MAX_SAID_BYTES`]; at most four.
    #[serde(default)]
    pub said: Vec<String>,
    /// Tools that were suggested since the message, each once, at most [`MAX_SUGGESTED`].
    #[serde(default)]
    pub suggested: Vec<String>,
    /// Those of them that were called after that.
    #[serde(default)]
    pub taken: Vec<String>,
    /// What the session used so far.
    #[serde(default)]
    pub used: Used,
    /// The token that said all of that; nothing if several did, or nobody knows.
    #[serde(default)]
    pub said_by: Option<String>,
}

/// What is kept of a turn when later ones stand: no word of its message, but what was made of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnSummary {
    /// Categories of its context.
    pub categories: Vec<String>,
    /// What the user was after, as a phrase.
    pub intent: Option<String>,
    /// 0 to 1.
    pub confidence: f32,
    /// Tools that were suggested.
    pub suggested: Vec<String>,
    /// Those of them that were called after that, whatever came of it.
    pub taken: Vec<String>,
}

/// What a session's turns used, as its streams and reports told it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Turns that told it.
    pub turns: u64,
    /// All input tokens, cached or not.
    pub tokens_in: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// Input tokens read from a cache.
    pub cached_tokens: u64,
    /// US dollars, of those turns that told it; nothing if none did.
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

impl Used {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cost_usd: match (self.cost_usd, other.cost_usd) {
                (Some(one), Some(two)) => Some(one + two),
                (one, two) => one.or(two),
            },
        }
    }
}

impl Turns {
    /// Replaces the turn of a session.
    pub fn set(&mut self, tenant: &str, session: &str, turn: Turn) {
        let name: Name = Arc::new((tenant.to_owned(), session.to_owned()));
        if let Some((age, _)) = self.by_name.get(&name) {
            self.by_age.remove(tenant, *age);
        }
        self.count += 1;
        self.by_age.insert(self.count, Arc::clone(&name));
        self.by_name.insert(name, (self.count, Arc::new(turn)));
        while self.by_name.len() > MAX_SESSIONS {
            let Some(oldest) = self.by_age.remove_quietest() else { break };
            self.by_name.remove(&oldest);
        }
    }

    /// Takes all turns of `later`, in their order.
    pub fn take_over(&mut self, later: &Self) {
        let mut turns: Vec<_> = later.by_name.iter().collect();
        turns.sort_unstable_by_key(|(_, (age, _))| *age);
        for (name, (_, turn)) in turns {
            self.set(&name.0, &name.1, Turn::clone(turn));
        }
    }

    /// Takes a session's turn as another daemon has it, which may be an earlier one.
    pub fn hear(&mut self, tenant: &str, session: &str, heard: Turn) {
        let turn = match self.get(tenant, session) {
            Some(known) => known.with(heard),
            None => heard,
        };
        self.set(tenant, session, turn);
    }

    pub fn forget(&mut self, tenant: &str, session: &str) {
        if let Some((age, _)) = self.by_name.remove(&(tenant.to_owned(), session.to_owned())) {
            self.by_age.remove(tenant, age);
        }
    }

    /// The tenant's sessions whose turns are such.
    pub fn sessions_where(&self, tenant: &str, is_such: impl Fn(&Turn) -> bool) -> Vec<String> {
        let sessions = self.by_age.latest_of(tenant);
        let such = sessions.filter(|name| self.by_name.get(*name).is_some_and(|(_, turn)| is_such(turn)));
        such.map(|name| name.1.clone()).collect()
    }

    /// The last turn of a session, if the tenant has it.
    pub fn get(&self, tenant: &str, session: &str) -> Option<&Arc<Turn>> {
        self.by_name.get(&(tenant.to_owned(), session.to_owned())).map(|(_, turn)| turn)
    }

    /// What the tenant's sessions used, those that were heard of last first, at most `most`.
    pub fn used(&self, tenant: &str, most: usize) -> Vec<(String, Used)> {
        let sessions = self.by_age.latest_of(tenant);
        let used = sessions.filter_map(|name| Some((name.1.clone(), self.by_name.get(name)?.1.used)));
        used.filter(|(_, used)| used.turns > 0).take(most).collect()
    }
}

impl Turn {
    /// The turn of a message.
    pub fn new(message: &str, context: IntentContext) -> Self {
        Self { context, message: head(message, MAX_MESSAGE_BYTES).to_owned(), ..Self::default() }
    }

    /// The turn of the session's next message. A message that is sent again goes on with its turn, and one that keeps
    /// the context (`is_kept`) knows what was missed in it.
    #[must_use]
    pub fn next(before: Option<&Self>, message: &str, context: IntentContext, is_kept: bool) -> Self {
        let next = Self::new(message, context);
        match before {
            Some(before) if before.is_of(message) => Self { context: next.context, ..before.clone() },
            Some(before) => {
                let missed = if is_kept { before.missed.clone() } else { Vec::new() };
                Self { number: before.number + 1, used: before.used, missed, ..next }
            }
            None => Self { number: 1, ..next },
        }
    }

    /// What two daemons have of a session, of which this one knows itself and `heard` comes later: the turn of the
    /// higher number; of one turn what either knows of it. Of what was used, the sum of more turns.
    fn with(&self, heard: Self) -> Self {
        let used = if self.used.turns > heard.used.turns { self.used } else { heard.used };
        if self.number > heard.number {
            return Self { used, ..self.clone() };
        }
        let mut turn = Self { used, ..heard };
        if self.number == turn.number && self.message == turn.message {
            turn.misses = turn.misses.max(self.misses);
            join(&mut turn.taught, &self.taught, MAX_TAUGHT);
            join(&mut turn.called, &self.called, MAX_CALLS);
            join(&mut turn.missed, &self.missed, MAX_TAUGHT);
            join(&mut turn.suggested, &self.suggested, MAX_SUGGESTED);
            join(&mut turn.taken, &self.taken, MAX_SUGGESTED);
        }
        turn
    }

    /// Is it the turn of this very message?
    pub fn is_of(&self, message: &str) -> bool {
        self.has_message() && self.message == head(message, MAX_MESSAGE_BYTES)
    }

    /// The same, with the messages that the context comes from: those said `before` and its own, as that says.
    #[must_use]
    pub fn about(mut self, before: &[String], says: Says) -> Self {
        self.said = if matches!(says, Says::New | Says::NoMore) { Vec::new() } else { before.to_vec() };
        if matches!(says, Says::New | Says::More) && self.has_message() {
            // The first one says what all others go on with.
            if self.said.len() >= MAX_SAID {
                self.said.remove(1);
            }
            self.said.push(head(&self.message, MAX_SAID_BYTES).to_owned());
        }
        self
    }

    /// Is `now` what a session that was at `before` went on to? Otherwise it was forgotten, and may have begun anew.
    pub fn goes_on(before: Option<&Self>, now: Option<&Self>) -> bool {
        let [before, now] = [before, now].map(|turn| turn.map_or(0, |turn| turn.number));
        before <= now
    }

    /// What of its session's messages it keeps.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        [&self.message].into_iter().chain(&self.said).map(String::as_str)
    }

    /// Takes note that a tool was missed.
    pub fn miss(&mut self, tool: &str) {
        self.misses += 1;
        if self.missed.len() < MAX_TAUGHT && !self.missed.iter().any(|missed| missed == tool) {
            self.missed.push(tool.to_owned());
        }
    }

    /// The same without a word of what was said: which categories and tools it is about.
    #[must_use]
    pub fn without_words(&self) -> Self {
        let context = IntentContext { active_intent: None, ..self.context.clone() };
        Self { context, message: String::new(), said: Vec::new(), said_by: None, ..self.clone() }
    }

    /// Does it keep no words but those of this token?
    pub fn is_said_by(&self, token: &str) -> bool {
        self.said_by.as_deref() == Some(token)
            || self.context.active_intent.is_none() && self.texts().all(str::is_empty)
    }

    /// Takes note that this token is about to say something in it, or somebody who is not told apart.
    pub fn speak(&mut self, token: Option<&str>) {
        self.said_by = token.filter(|token| self.is_said_by(token)).map(str::to_owned);
    }

    /// Is there a message that it is the turn of?
    pub fn has_message(&self) -> bool {
        !self.message.is_empty()
    }

    /// Takes note that a tool was called. Says whether that is to be learnt, as [`Turn::teach`] does.
    pub fn call(&mut self, tool: &str) -> bool {
        if self.called.len() < MAX_CALLS && !self.called.iter().any(|called| called == tool) {
            self.called.push(tool.to_owned());
        }
        self.take(tool);
        self.teach(tool)
    }

    /// Takes note of suggestions.
    pub fn suggest(&mut self, tools: &[String]) {
        join(&mut self.suggested, tools, MAX_SUGGESTED);
    }

    /// Are some of these suggestions news, of which note can be taken?
    pub fn lacks_suggestion(&self, tools: &[String]) -> bool {
        self.suggested.len() < MAX_SUGGESTED && tools.iter().any(|tool| !self.suggested.contains(tool))
    }

    /// Is the call of this tool the first that takes a suggestion?
    pub fn takes(&self, tool: &str) -> bool {
        let among = |tools: &[String]| tools.iter().any(|known| known == tool);
        among(&self.suggested) && !among(&self.taken)
    }

    /// Takes note that a tool was called, which may have been suggested.
    pub fn take(&mut self, tool: &str) {
        if self.takes(tool) {
            self.taken.push(tool.to_owned());
        }
    }

    /// What is kept of it; nothing of what is no turn of a message.
    pub fn summary(&self) -> Option<TurnSummary> {
        (self.number > 0 && self.has_message()).then(|| TurnSummary {
            categories: self.context.categories.clone(),
            intent: self.context.active_intent.clone(),
            confidence: self.context.last_confidence,
            suggested: self.suggested.clone(),
            taken: self.taken.clone(),
        })
    }

    /// Takes note that a tool was chosen for the message. Says whether that is news, and to be learnt.
    pub fn teach(&mut self, tool: &str) -> bool {
        let is_news = !self.message.is_empty()
            && self.taught.len() < MAX_TAUGHT
            && !self.taught.iter().any(|taught| taught == tool);
        if is_news {
            self.taught.push(tool.to_owned());
        }
        is_news
    }
}

/// Adds the tools that are not there, as far as there is room.
fn join(tools: &mut Vec<String>, more: &[String], most: usize) {
    for tool in more {
        if tools.len() < most && !tools.contains(tool) {
            tools.push(tool.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_of_one_token_until_another_speaks() {
        let mut turn = Turn { message: "storms".to_owned(), said: vec!["storms".to_owned()], ..Turn::default() };
        assert!(!turn.is_said_by("a"), "nobody knows who said it");
        turn.said_by = Some("a".to_owned());
        assert!(turn.is_said_by("a") && !turn.is_said_by("b"));
        let without = Turn { taught: vec!["t".to_owned()], ..turn.clone() }.without_words();
        assert!(without.is_said_by("b") && without.texts().all(str::is_empty) && without.taught == ["t"]);
        turn.speak(Some("a"));
        assert!(turn.is_said_by("a"));
        turn.speak(Some("b"));
        assert!(!turn.is_said_by("a") && !turn.is_said_by("b"));
        let mut silent = Turn::default();
        silent.speak(Some("b"));
        assert_eq!(silent.said_by.as_deref(), Some("b"));
    }

    #[test]
    fn a_tool_is_taught_once_a_message() {
        let mut turn = Turn::new(&"ü".repeat(MAX_MESSAGE_BYTES), IntentContext::default());
        assert_eq!(turn.message.len(), MAX_MESSAGE_BYTES);
        assert!(turn.teach("a") && turn.teach("b") && !turn.teach("a"));
        assert!(!Turn::default().teach("a"), "there is no message");
    }

    #[test]
    fn a_session_that_was_forgotten_does_not_go_on() {
        let turn = |number: u64| Some(Turn { number, ..Turn::default() });
        let check = |before: Option<Turn>, now: Option<Turn>, expected: bool| {
            assert_eq!(Turn::goes_on(before.as_ref(), now.as_ref()), expected, "{before:?} {now:?}");
        };
        check(None, None, true);
        check(None, turn(1), true);
        check(turn(2), turn(2), true);
        check(turn(2), turn(3), true);
        check(turn(1), None, false);
        // A stream or another message began it anew.
        check(turn(1), turn(0), false);
        check(turn(2), turn(1), false);
    }

    #[test]
    fn a_message_that_is_sent_again_goes_on_with_its_turn() {
        let mut turn =
            Turn { misses: 2, used: Used { turns: 3, ..Used::default() }, ..Turn::new("m", IntentContext::default()) };
        assert!(turn.call("a") && !turn.call("a") && turn.call("b"));
        turn.miss("c");
        let check = |turn: &Turn, misses: u64, called: usize, missed: usize| {
            assert_eq!(
                (turn.misses, turn.called.len(), turn.missed.len(), turn.used.turns),
                (misses, called, missed, 3)
            );
        };
        check(&Turn::next(Some(&turn), "m", IntentContext::default(), false), 3, 2, 1);
        check(&Turn::next(Some(&turn), "n", IntentContext::default(), true), 0, 0, 1);
        check(&Turn::next(Some(&turn), "n", IntentContext::default(), false), 0, 0, 0);
        for tool in 0..MAX_CALLS + 9 {
            turn.call(&tool.to_string());
        }
        assert_eq!((turn.called.len(), turn.taught.len()), (MAX_CALLS, MAX_TAUGHT));
    }

    #[test]
    fn suggestions_are_taken_by_calls_that_follow_them() {
        let mut turn = Turn { number: 1, ..Turn::new("m", IntentContext::default()) };
        turn.call("early");
        let tools = ["early", "a", "b"].map(str::to_owned);
        assert!(turn.lacks_suggestion(&tools));
        turn.suggest(&tools);
        assert!(!turn.lacks_suggestion(&tools) && turn.takes("a") && !turn.takes("c"));
        for tool in ["a", "a", "c"] {
            turn.call(tool);
        }
        let summary = turn.summary().unwrap();
        assert_eq!((summary.suggested.len(), &*summary.taken), (3, &["a".to_owned()][..]));
        let next = Turn::next(Some(&turn), "n", IntentContext::default(), true).summary().unwrap();
        assert!(next.suggested.is_empty() && next.taken.is_empty());
        let again = Turn::next(Some(&turn), "m", IntentContext::default(), true).summary();
        assert_eq!(again, Some(summary));
        let many: Vec<String> = (0..2 * MAX_SUGGESTED).map(|tool| tool.to_string()).collect();
        turn.suggest(&many);
        assert!(turn.suggested.len() == MAX_SUGGESTED && !turn.lacks_suggestion(&many));
        assert_eq!(Turn { number: 0, ..turn }.summary(), None, "no message was qualified");
    }

    #[test]
    fn what_a_context_comes_from_is_bounded() {
        let mut said = Vec::new();
        let mut check = |message: &str, says: Says, expected: &[&str]| {
            said = Turn::new(message, IntentContext::default()).about(&said, says).said;
            assert_eq!(said, expected, "{message:.9}");
        };
        check("a", Says::New, &["a"]);
        check("yes", Says::Nothing, &["a"]);
        check("b", Says::More, &["a", "b"]);
        check("c", Says::More, &["a", "b", "c"]);
        check("d", Says::More, &["a", "b", "c", "d"]);
        check("e", Says::More, &["a", "c", "d", "e"]);
        check("never mind", Says::NoMore, &[]);
        check(&"ü".repeat(MAX_SAID_BYTES), Says::New, &[&"ü".repeat(MAX_SAID_BYTES / 2)]);
    }

    #[test]
    fn of_two_daemons_the_later_turn_stands() {
        let said = |before: Option<&Turn>, message: &str| Turn::next(before, message, IntentContext::default(), false);
        let first = said(None, "m");
        let (mut here, mut there) = (first.clone(), first.clone());
        assert!(here.call("a") && there.call("b"));
        there.used.turns = 2;
        let check = |known: &Turn, heard: &Turn, message: &str, called: &[&str]| {
            let mut turns = Turns::default();
            turns.set("t", "s", known.clone());
            turns.hear("t", "s", heard.clone());
            turns.hear("t", "other", heard.clone());
            assert_eq!(turns.get("t", "other").map(|turn| &**turn), Some(heard));
            let turn = turns.get("t", "s").unwrap();
            assert_eq!((&*turn.message, turn.used.turns), (message, 2));
            assert_eq!(turn.called, called, "{known:?} {heard:?}");
        };
        check(&here, &there, "m", &["b", "a"]);
        check(&there, &here, "m", &["a", "b"]);
        let next = said(Some(&there), "n");
        assert_eq!((first.number, said(Some(&first), "m").number, next.number), (1, 1, 2));
        check(&here, &next, "n", &[]);
        check(&next, &here, "n", &[]);
    }

    #[test]
    fn sessions_are_bounded_and_tenants_apart() {
        let mut turns = Turns::default();
        turns.set("t", "first", Turn::new("m", IntentContext::default()));
        assert!(turns.get("u", "first").is_none());
        for session in 0..MAX_SESSIONS {
            turns.set("t", &session.to_string(), Turn::default());
        }
        assert_eq!(turns.by_name.len(), MAX_SESSIONS);
        assert!(turns.get("t", "first").is_none());
        assert!(turns.get("t", "0").is_some());
        turns.forget("u", "0");
        turns.forget("t", "1");
        assert_eq!((turns.by_name.len(), turns.by_age.len()), (MAX_SESSIONS - 1, MAX_SESSIONS - 1));
        assert!(turns.get("t", "0").is_some() && turns.get("t", "1").is_none());
    }
}
