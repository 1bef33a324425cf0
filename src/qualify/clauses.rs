//! A message cut into clauses: what is asked stands apart from what is told, pasted or turned down.
//!
//! One vector and one bag of words for a whole message is the mean of all it says; two sentences of pasted text turn
//! that away from the request. So a message is cut where sentences end, where a further request is joined ("…, and
//! then …"), and around code and quotes. Pure, linear in the text, and bounded: at most [`MAX_CLAUSES`] are kept.

use std::ops::Range;
use std::sync::LazyLock;

use foldhash::HashSet;

use super::carried::carried;

/// Clauses of a message that are looked at; of more, the first third and the last two: requests stand at the ends.
pub(super) const MAX_CLAUSES: usize = 24;

/// A clause of fewer words is part of the one before: "Paris, please." says nothing by itself.
const LEAST_WORDS: usize = 3;

/// Words after which a capitalised verb of asking begins a new clause although no mark stands before it: a pasted text
/// ends anywhere.
const LONG: usize = 8;

/// Share of marks among the characters of a line from which on it is code.
const MARKS_OF_CODE: f32 = 0.18;

/// What a clause is to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It asks: a question, an order, a wish.
    Asked,
    /// It tells something.
    Told,
    /// Code or a quotation: material.
    Given,
    /// What a request carries along, such as what to remind of.
    Carried,
    /// It says what is not wanted.
    Rejected,
}

/// A clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clause<'t> {
    pub(super) text: &'t str,
    pub(super) role: Role,
}

/// Verbs with which an order begins, and a further one is joined.
const VERBS: &str = include_str!("verbs.txt");

/// How questions and wishes begin.
const OPENERS: &str = "can could would will should please what what's whats which who who's where where's when how \
    how's why is are do does did has have hey hi tell give help let i'd i'm i need want";

/// Anywhere in a clause, these ask.
const ASKS: [&str; 16] = [
    "can you",
    "could you",
    "would you",
    "will you",
    "please",
    "i want",
    "i need",
    "i'd like",
    "i would like",
    "looking for",
    "help me",
    "can i",
    "could i",
    "how do i",
    "i wish",
    "we need",
];

/// What joins a further request, longest first; the clause begins after it.
const JOINS: [&str; 14] = [
    ", and then ",
    " and then ",
    ", and also ",
    " and also ",
    ", then ",
    " then ",
    ", also ",
    ", plus ",
    ", but ",
    " but ",
    ", and ",
    " and ",
    "; ",
    ", ",
];

/// Of those that turn something down, the ones that begin a clause wherever they stand.
const APART: [&str; 3] = ["instead of ", "rather than ", "without using "];

/// What turns something down, and stands before it.
const REJECTS: [&str; 20] = [
    "do not want",
    "don't want",
    "dont want",
    "do not need",
    "don't need",
    "dont need",
    "not looking for",
    "not interested in",
    "not asking for",
    "not asking about",
    "do not mean",
    "don't mean",
    APART[0],
    APART[1],
    APART[2],
    "not about ",
    "no need for",
    "do not show",
    "don't show",
    "not the ",
];

static VERB_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| VERBS.split_whitespace().collect());
static OPENER_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| OPENERS.split_whitespace().collect());

/// What turns down what is named next, and no more: "not the price, the volume".
const BARE: [&str; 2] = ["not ", "never mind "];

/// So long such a beginning is at most, in bytes.
const BARE_BYTES: usize = 64;

/// Words between "no" and "please" that name what is not wanted.
const FEW_WORDS: usize = 3;

/// What is not there, and not turned down.
const NO_MATTER: [&str; 8] = ["thanks", "worries", "problem", "luck", "rush", "doubt", "idea", "wonder"];

/// Before a verb they turn something down: "don't use the web".
const REFUSALS: [&str; 5] = ["do not ", "don't ", "dont ", "never ", "please don't "];

/// Whoever says not to do these asks for something.
const KEEPS: [&str; 3] = ["forget", "worry", "stop"];

/// What may stand before the verb of an order that takes something's place.
const JUST: [&str; 6] = ["just ", "only ", "simply ", "rather ", "instead ", "but "];

/// Is it a verb with which orders begin?
pub(super) fn is_verb(word: &str) -> bool {
    VERB_SET.contains(word)
}

/// The clauses of `text` in their order. Never none, unless nothing is written.
pub(super) fn clauses(text: &str) -> Vec<Clause<'_>> {
    let mut all: Vec<Cut> = Vec::new();
    for (block, is_given) in blocks(text) {
        if is_given {
            all.push(Cut { range: block, role: Role::Given });
        } else {
            sentences(text, block, &mut |sentence| parts(text, sentence, &mut all));
        }
    }
    all.retain(|cut| text[cut.range.clone()].contains(char::is_alphanumeric));
    if all.len() > MAX_CLAUSES {
        all.drain(MAX_CLAUSES / 3..all.len() - (MAX_CLAUSES - MAX_CLAUSES / 3));
    }
    all.into_iter().map(|cut| Clause { text: &text[cut.range], role: cut.role }).collect()
}

/// A clause by its place.
struct Cut {
    range: Range<usize>,
    role: Role,
}

/// Runs of lines that are prose, or code and quotations.
fn blocks(text: &str) -> Vec<(Range<usize>, bool)> {
    let (mut blocks, mut start, mut at) = (Vec::new(), 0, 0);
    let (mut is_fenced, mut was_given) = (false, false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        let is_given = is_fenced || is_fence || trimmed.starts_with('>') || is_code(line);
        // A blank line belongs to what it follows.
        let is_given = if trimmed.is_empty() { was_given } else { is_given };
        if is_given != was_given {
            blocks.push((start..at, was_given));
            start = at;
        }
        is_fenced ^= is_fence;
        was_given = is_given;
        at += line.len();
    }
    blocks.push((start..at, was_given));
    blocks.retain(|(block, _)| !text[block.clone()].trim().is_empty());
    blocks
}

/// Does the line read like code, or like a row of data?
fn is_code(line: &str) -> bool {
    let line = line.trim_end();
    let (mut marks, mut all) = (0, 0);
    for char in line.trim_start().chars() {
        all += 1;
        marks += usize::from(matches!(
            char,
            '{' | '}'
                | '['
                | ']'
                | '('
                | ')'
                | '<'
                | '>'
                | '='
                | ';'
                | '|'
                | '_'
                | '\\'
                | '$'
                | '#'
                | '/'
                | '*'
                | '"'
                | ':'
        ));
    }
    let ends_code = line.ends_with([';', '{', '}']) && all > 1;
    all >= 8 && (marks as f32 > MARKS_OF_CODE * all as f32 || ends_code && marks > 1)
}

/// Calls `sink` with each sentence of prose.
fn sentences(text: &str, block: Range<usize>, sink: &mut impl FnMut(Range<usize>)) {
    let prose = &text[block.clone()];
    let mut start = 0;
    let mut chars = prose.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        let ends = match char {
            '。' | '！' | '？' | '；' | '…' => true,
            '!' | '?' => next.is_none_or(|next| next.is_whitespace() || next == '"'),
            '.' => next.is_none_or(char::is_whitespace) && !is_abbreviation(&prose[start..at]),
            '\n' => ends_line(&prose[start..at], &prose[at + 1..]),
            _ => false,
        };
        if ends {
            let end = at + char.len_utf8();
            sink(block.start + start..block.start + end);
            start = end;
        }
    }
    sink(block.start + start..block.end);
}

/// A single letter, or what is cut short so often that a full stop behind it means nothing.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
    word.len() == 1 && word.chars().all(char::is_alphabetic)
        || ["mr", "mrs", "dr", "st", "vs", "etc", "approx"].contains(&&*word.to_lowercase())
}

/// Is a line's end a sentence's? Not where a wrapped text goes on.
fn ends_line(line: &str, rest: &str) -> bool {
    let next = rest.chars().find(|char| *char != ' ' && *char != '\t');
    let goes_on = next.is_some_and(char::is_lowercase) && !line.trim_end().ends_with(':');
    !goes_on
}

/// Cuts a sentence where a further request is joined to it.
fn parts(text: &str, sentence: Range<usize>, all: &mut Vec<Cut>) {
    let (offset, sentence) = (sentence.start, &text[sentence]);
    let lower = sentence.to_ascii_lowercase();
    let (mut start, mut from) = (0, 0);
    let first = all.len();
    while let Some((at, begin)) = next_cut(sentence, &lower, start, from) {
        from = begin;
        let (before, after) = (&sentence[start..at], &sentence[begin..]);
        let is_long = words(before) >= LEAST_WORDS && words(after) >= LEAST_WORDS;
        // What is turned down stands apart, however short it is.
        if is_long || role(before) == Role::Rejected || is_rejection(&lower[begin..]) && words(before) > 1 {
            push(text, Cut { range: offset + start..offset + at, role: role(before) }, all);
            start = begin;
            if all.len() - first >= MAX_CLAUSES {
                break;
            }
        }
    }
    let (rest, range) = (&sentence[start..], offset + start..offset + sentence.len());
    let role = role(rest);
    match all.last_mut() {
        Some(last) if role == Role::Told && words(rest) < LEAST_WORDS && last.range.end == range.start => {
            last.range.end = range.end;
        }
        _ => push(text, Cut { range, role }, all),
    }
}

/// Adds a clause, and what it carries along as one of its own.
fn push(text: &str, Cut { range, role }: Cut, all: &mut Vec<Cut>) {
    let content = if role == Role::Rejected { None } else { carried(&text[range.clone()]) };
    let Some(content) = content else { return all.push(Cut { range, role }) };
    let (from, to) = (range.start + content.start, range.start + content.end);
    // Whoever has something kept or told asks for it.
    all.push(Cut { range: range.start..from, role: Role::Asked });
    all.push(Cut { range: from..to, role: Role::Carried });
    all.push(Cut { range: to..range.end, role: Role::Asked });
}

/// Where the next clause of a sentence may begin: the end of the one before, and its own beginning.
fn next_cut(sentence: &str, lower: &str, start: usize, from: usize) -> Option<(usize, usize)> {
    let bytes = lower.as_bytes();
    let mut since = words(&sentence[start..from]);
    // Each stretch between two contrasts is looked at once.
    let (mut seen, mut is_rejected) = (start, false);
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        if !matches!(byte, b' ' | b',' | b';') {
            continue;
        }
        let rest = &lower[at..];
        if let Some(join) = JOINS.iter().find(|join| rest.starts_with(**join)) {
            let after = &rest[join.len()..];
            let is_contrast = join.ends_with("but ") && {
                is_rejected |= role(&sentence[seen..at]) == Role::Rejected;
                seen = at;
                is_rejected
            };
            let is_other = *join == ", " && at - start <= BARE_BYTES && is_bare_rejection(&lower[start..at]);
            if begins_request(after) || is_contrast || is_other || is_rejection(after) {
                return Some((at, at + join.len()));
            }
        }
        if *byte == b' ' {
            since += 1;
            if APART.iter().any(|apart| rest[1..].starts_with(apart)) {
                return Some((at, at + 1));
            }
            let written = &sentence[at + 1..];
            if since >= LONG
                && written.starts_with(char::is_uppercase)
                && begins_request(&lower[at + 1..])
                && !written.starts_with("I ")
            {
                return Some((at, at + 1));
            }
        }
    }
    None
}

/// Is something turned down from here on? `text` is in lower case.
fn is_rejection(text: &str) -> bool {
    REJECTS.iter().any(|reject| text.starts_with(reject))
        || BARE.iter().any(|bare| text.starts_with(bare))
        || is_done_without(text)
        || is_refusal(text)
}

/// "No web search please", but not "no worries, book it please". `text` is in lower case.
fn is_done_without(text: &str) -> bool {
    let named = text.trim_end_matches(|char: char| !char.is_alphanumeric());
    let named = named.strip_prefix("no ").and_then(|named| named.strip_suffix(" please"));
    named.is_some_and(|named| {
        let first = named.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
        words(named) <= FEW_WORDS && !named.contains([',', ';']) && !NO_MATTER.contains(&first)
    })
}

/// Is nothing said but what is not meant? `text` is in lower case.
fn is_bare_rejection(text: &str) -> bool {
    let text = text.trim_start();
    (BARE.iter().any(|bare| text.starts_with(bare)) || text.starts_with("no ")) && role(text) == Role::Rejected
}

/// Does it begin by telling what not to do? `text` is in lower case.
fn is_refusal(text: &str) -> bool {
    let told = REFUSALS.iter().find_map(|refusal| text.strip_prefix(refusal));
    let verb = told.and_then(|told| told.split(|char: char| !char.is_alphanumeric()).next());
    verb.is_some_and(|verb| is_verb(verb) && !KEEPS.contains(&verb))
}

/// Does an order, a question or a wish begin here? `text` is in lower case.
fn begins_request(text: &str) -> bool {
    let text = JUST.iter().find_map(|just| text.strip_prefix(just)).unwrap_or(text);
    let first = text.split(|char: char| !char.is_alphanumeric() && char != '\'').find(|word| !word.is_empty());
    first.is_some_and(|first| VERB_SET.contains(first) || OPENER_SET.contains(first))
}

fn role(text: &str) -> Role {
    let lower = text.trim_start_matches(|char: char| !char.is_alphanumeric()).to_lowercase().replace('\u{2019}', "'");
    if REJECTS.iter().any(|reject| lower.contains(reject)) || is_rejection(&lower) {
        return Role::Rejected;
    }
    let first = lower.split(|char: char| !char.is_alphanumeric() && char != '\'').next().unwrap_or_default();
    let ends_asking = text.trim_end().ends_with(['?', '？', '؟']);
    let is_asked = ends_asking
        || VERB_SET.contains(first)
        || OPENER_SET.contains(first) && first != "i"
        || ASKS.iter().any(|ask| lower.contains(ask));
    if is_asked { Role::Asked } else { Role::Told }
}

/// Words, as far as spaces tell; two Chinese or Japanese characters are one.
fn words(text: &str) -> usize {
    text.split_whitespace().count() + text.chars().filter(|char| ('\u{3040}'..='\u{9FFF}').contains(char)).count() / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &[(&str, Role)]) {
        let found: Vec<(&str, Role)> = clauses(text).iter().map(|clause| (clause.text.trim(), clause.role)).collect();
        assert_eq!(found, expected, "clauses of {text:?}");
    }

    use Role::{Asked, Carried, Given, Rejected, Told};

    #[test]
    fn sentences_and_joined_requests_stand_apart() {
        check("", &[]);
        check("What's the weather in Paris?", &[("What's the weather in Paris?", Asked)]);
        check("I lost my bag. Please file a claim.", &[("I lost my bag.", Told), ("Please file a claim.", Asked)]);
        check("Dr. Smith sent 3.5 MB", &[("Dr. Smith sent 3.5 MB", Told)]);
        check(
            "Book a flight to Paris, and then send the plan to Ann",
            &[("Book a flight to Paris", Asked), ("send the plan to Ann", Asked)],
        );
        check("bread and butter for my guests", &[("bread and butter for my guests", Told)]);
        check("明天天气怎么样？请订酒店。", &[("明天天气怎么样？", Asked), ("请订酒店。", Told)]);
        check("a text that is\nwrapped by hand", &[("a text that is\nwrapped by hand", Told)]);
        check(
            "the party won more than half of the seats of the Find me a hotel in Rome",
            &[("the party won more than half of the seats of the", Told), ("Find me a hotel in Rome", Asked)],
        );
    }

    #[test]
    fn code_and_quotations_are_given() {
        check(
            "Explain this function:\n```\nfn send(mail: Mail) {}\n```\nThanks a lot!",
            &[("Explain this function:", Asked), ("```\nfn send(mail: Mail) {}\n```", Given), ("Thanks a lot!", Told)],
        );
        check(
            "> book the flight for me\nWhat did he mean?",
            &[("> book the flight for me", Given), ("What did he mean?", Asked)],
        );
        check(
            "Remind me to book the flight, and then show me the weather",
            &[("Remind me to", Asked), ("book the flight", Carried), ("show me the weather", Asked)],
        );
        check("let x = f(&[1, 2]);\nFix it, please.", &[("let x = f(&[1, 2]);", Given), ("Fix it, please.", Asked)]);
    }

    #[test]
    fn what_is_not_wanted_is_rejected() {
        check(
            "I do NOT want weather, I want a recipe",
            &[("I do NOT want weather", Rejected), ("I want a recipe", Asked)],
        );
        check("send a fax instead of an email", &[("send a fax", Asked), ("instead of an email", Rejected)]);
        check("Don't forget to water the plants", &[("Don't forget to water the plants", Told)]);
        check("use fax instead of email", &[("use fax", Asked), ("instead of email", Rejected)]);
        check("I don't want a fax but an email", &[("I don't want a fax", Rejected), ("an email", Told)]);
        check("I do not want fax, use email", &[("I do not want fax", Rejected), ("use email", Asked)]);
        check(
            "Don't send a fax, just write an email",
            &[("Don't send a fax", Rejected), ("just write an email", Told)],
        );
        check("read it without using the web", &[("read it", Asked), ("without using the web", Rejected)]);
        check("I don't know the way", &[("I don't know the way", Told)]);
        check(
            "no web search please, just read the page",
            &[("no web search please", Rejected), ("just read the page", Told)],
        );
        check("not the price, the volume of it", &[("not the price", Rejected), ("the volume of it", Told)]);
        check("never mind the floor, who owns it?", &[("never mind the floor", Rejected), ("who owns it?", Asked)]);
        check("no, find me a hotel", &[("no, find me a hotel", Told)]);
        check("no problem, thanks", &[("no problem, thanks", Told)]);
        for asked in ["No worries, book the flight please", "no rush but could you book it please", "no luck please"] {
            assert_ne!(clauses(asked)[0].role, Rejected, "{asked}");
        }
        let asked = "Hey there, could you find me a hotel";
        check(&format!("{asked} instead of a hostel"), &[(asked, Asked), ("instead of a hostel", Rejected)]);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_into_parts_of_itself(text in "(\\PC|[\n.,;`> ]){0,200}") {
            let all = clauses(&text);
            prop_assert!(all.len() <= MAX_CLAUSES);
            prop_assert!(all.iter().all(|clause| text.contains(clause.text)));
            prop_assert_eq!(all.is_empty(), !text.contains(char::is_alphanumeric));
        }
    }
}
