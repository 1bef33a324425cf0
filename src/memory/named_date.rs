//! Dates that a text names: which of its terms a memory's date may have, and which days it is about.
//!
//! "What happened on 8 May 2023?" has no word of the answer; what was said on that day is the answer. Days are read as
//! people write them in English, and in figures: `2023-05-08`, `8.5.2023`, `8/5/2023`. Where the order of day and month
//! cannot be told, both are meant.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use time::{Date, Month};

use super::asked_days::asks_for_days_alone;
use super::asked_time::MOST_WORDS;
use super::date_token::{Token, tokens};
use super::day_range::{Days, Said};
use super::relative_date;
use crate::text::analysis;

/// Dates of one text; more say nothing more, and each memory is compared with all of them.
const MAX_DATES: usize = 16;

/// A part of a date in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatePart {
    /// Such as 2026.
    Year(i32),
    /// 1 to 12.
    Month(u8),
    /// 1 to 31.
    Day(u8),
}

impl DatePart {
    /// Has a date it?
    pub fn has(self, date: Date) -> bool {
        match self {
            Self::Year(year) => date.year() == year,
            Self::Month(month) => u8::from(date.month()) == month,
            Self::Day(day) => date.day() == day,
        }
    }
}

/// A day in UTC, of each year if none is named; or a whole month of a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedDate {
    year: Option<i32>,
    month: u8,
    day: Option<u8>,
}

impl NamedDate {
    /// Is this one of its days?
    pub fn has(&self, date: Date) -> bool {
        self.month == u8::from(date.month())
            && self.day.is_none_or(|day| day == date.day())
            && self.year.is_none_or(|year| year == date.year())
    }

    fn day(year: Option<i32>, month: u8, day: u8) -> Option<Self> {
        const LEAP: i32 = 2024;
        let month_of_year = Month::try_from(month).ok()?;
        Date::from_calendar_date(year.unwrap_or(LEAP), month_of_year, day).ok()?;
        Some(Self { year, month, day: Some(day) })
    }
}

/// The dates of a text that is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedDates {
    /// Terms that a memory's date may have, by their place among the terms.
    pub parts: Vec<(usize, DatePart)>,
    /// The days, and months of a year, that are named; each once, at most 16.
    pub whole: Vec<NamedDate>,
    /// Days that are named by how long ago they are, or by where they begin and end; at most 16 ranges of them.
    ranges: Vec<Days>,
    /// Months of whichever year, where nothing else is asked for; at most 16.
    months: Vec<u8>,
    /// Is nothing else asked for but what was on these days?
    pub is_all: bool,
}

impl NamedDates {
    /// What a text names that is asked `today`, and whose terms these are.
    pub fn of(text: &str, terms: &[String], today: Date) -> Self {
        let mut tokens = tokens(text);
        let lower: Vec<String> = tokens.iter().map(|token| token.text.to_lowercase()).collect();
        let mut words: Vec<&str> = lower.iter().map(String::as_str).collect();
        let is_read = words.len() <= MOST_WORDS;
        let is_past = words.iter().any(|word| relative_date::says_past(word));
        let said = Said { tokens: &tokens, words: &words, is_past, today };
        let ranges = if is_read { said.ranges() } else { Vec::new() };
        // The ends of a range are no dates of their own: one of them may be what is not meant.
        let parts = if ranges.is_empty() { parts(terms, &figures(&tokens)) } else { Vec::new() };
        for at in ranges.iter().flat_map(|(_, place)| place.clone()) {
            (tokens[at].text, words[at]) = ("", "");
        }
        let spans = if is_read { relative_date::spans(&words, is_past, today) } else { Vec::new() };
        let ranges = spans.into_iter().map(Days::Of).chain(ranges.into_iter().filter_map(|(days, _)| days));
        let ranges = ranges.take(MAX_DATES).collect();
        let mut dates = Self { parts, whole: Vec::new(), ranges, months: Vec::new(), is_all: false };
        let figures = figures(&tokens);
        let in_figures = figures.iter().flat_map(|figures| figures.readings().map(|reading| reading.date));
        for date in written_out(&tokens).into_iter().chain(in_figures) {
            if dates.whole.len() < MAX_DATES && !dates.whole.contains(&date) {
                dates.whole.push(date);
            }
        }
        if asks_for_days_alone(&words, terms) {
            if !dates.is_any_named() {
                dates.add_months_and_years(&tokens);
            }
            dates.is_all = dates.is_any_named();
        }
        dates
    }

    /// Adds the months and years that are named by themselves.
    fn add_months_and_years(&mut self, tokens: &[Token<'_>]) {
        // By itself it may be a name, or a number.
        let is_meant = |pair: &&[Token<'_>]| BEFORE_MONTH.iter().any(|word| pair[0].is(word));
        for pair in tokens.windows(2).filter(is_meant).take(MAX_DATES) {
            self.months.extend(month(pair[1].text));
            self.ranges.extend(year(pair[1].text).and_then(relative_date::of_year).map(Days::Of));
        }
    }

    /// Are any days named?
    pub fn is_any_named(&self) -> bool {
        !self.whole.is_empty() || !self.ranges.is_empty() || !self.months.is_empty()
    }

    /// Is this one of the days that are named, or in one of the months?
    pub fn has(&self, date: Date) -> bool {
        self.whole.iter().any(|named| named.has(date))
            || self.ranges.iter().any(|days| days.has(date))
            || self.months.contains(&date.month().into())
    }
}

/// Which terms a date may have: the numbers of one in figures, a year, a month's name, and beside one of these the day.
fn parts(terms: &[String], figures: &[Figures<'_>]) -> Vec<(usize, DatePart)> {
    let place = |text: &str| terms.iter().position(|term| term == text);
    let mut parts = Vec::new();
    for reading in figures.iter().flat_map(Figures::readings) {
        parts.extend(reading.parts.into_iter().filter_map(|(text, part)| Some((place(text)?, part))));
    }
    for (number, term) in terms.iter().enumerate() {
        if let Some(&month) = STEMMED_MONTHS.get(term) {
            parts.push((number, DatePart::Month(month)));
        } else if let Some(year) = year(term) {
            parts.push((number, DatePart::Year(year)));
        }
    }
    if !parts.is_empty() {
        let is_free = |term: &String| !figures.iter().any(|figures| figures.texts.contains(&term.as_str()));
        let days = terms.iter().enumerate().filter(|(_, term)| is_free(term));
        parts.extend(days.filter_map(|(number, term)| Some((number, DatePart::Day(day(term)?)))));
    }
    let mut once: Vec<(usize, DatePart)> = Vec::new();
    for part in parts {
        if !once.contains(&part) {
            once.push(part);
        }
    }
    once
}

/// `8 May`, `May 8th, 2023`, `the 8th of May`, `8-10 May`, `2023 May 8`, `May 2023`.
fn written_out(tokens: &[Token<'_>]) -> Vec<NamedDate> {
    let mut dates = Vec::new();
    // What stands before is of an earlier date.
    let mut free = 0;
    for at in 0..tokens.len() {
        let Some(month) = month(tokens[at].text).filter(|_| at >= free) else { continue };
        let Some(written) = Written::around(tokens, free, at) else { continue };
        match written.days {
            None => dates.push(NamedDate { year: written.year, month, day: None }),
            Some(days) => dates.extend(days.filter_map(|day| NamedDate::day(written.year, month, day))),
        }
        free = written.end;
    }
    dates
}

/// What stands around the name of a month.
pub(super) struct Written {
    /// None for the whole month.
    pub(super) days: Option<RangeInclusive<u8>>,
    pub(super) year: Option<i32>,
    /// The token after the last.
    pub(super) end: usize,
}

impl Written {
    /// A date around the month at `at`, of tokens from `free` on; nothing if the month stands there by itself.
    pub(super) fn around(tokens: &[Token<'_>], free: usize, at: usize) -> Option<Self> {
        let before = (free..at).rev().find(|&place| !tokens[place].is_filler());
        let before = before.filter(|_| tokens[at].is_joined() || tokens[at].gap.trim() == ".");
        let behind = |from: usize| (from..tokens.len()).find(|&place| !tokens[place].is_filler());
        let (mut begin, mut end) = (at, at + 1);
        let mut days: Option<RangeInclusive<u8>> = None;
        if let Some(place) = before.filter(|&place| is_whole(tokens, place)) {
            let last = day(tokens[place].text)?;
            let first = tokens[free..place].last().filter(|_| tokens[place].ends_range());
            let first = first.and_then(|token| day(token.text)).filter(|first| *first < last);
            (days, begin) = (Some(first.unwrap_or(last)..=last), place);
        } else if let Some(place) = behind(end).filter(|&place| is_whole(tokens, place)) {
            let first = day(tokens[place].text)?;
            let next = tokens.get(place + 1).filter(|token| token.ends_range());
            let last = next.and_then(|token| day(token.text)).filter(|last| *last > first);
            end = place + if last.is_some() { 2 } else { 1 };
            days = Some(first..=last.unwrap_or(first));
        }
        let mut year_named = None;
        if let Some(place) = behind(end).filter(|&place| year(tokens[place].text).is_some()) {
            (year_named, end) = (year(tokens[place].text), place + 1);
        } else if begin == at && days.is_some() {
            year_named = before.and_then(|place| year(tokens[place].text));
        }
        let on = tokens[..begin].iter().rfind(|token| !token.is("the")).is_some_and(|token| token.is("on"));
        let is_said = on || year_named.is_some() || tokens[begin..end].iter().any(|token| token.is("of"));
        let is_ordinal =
            begin == at && tokens[at..end].iter().any(|token| !token.is_number() && day(token.text).is_some());
        // "I have 8. May I have more?"
        let ends_sentence = begin < at && !tokens[at].is_joined();
        let is_date = days.is_some() || year_named.is_some();
        let written = Self { days, year: year_named, end };
        (is_date && (is_said || !ends_sentence && (is_ordinal || !is_verb(tokens[at].text)))).then_some(written)
    }
}

/// Is the number here a day, and no part of another: `10:30`, `COVID-19`, `3.5`?
fn is_whole(tokens: &[Token<'_>], place: usize) -> bool {
    let token = tokens[place];
    let goes_on = tokens.get(place + 1).is_some_and(|next| matches!(next.gap, "." | ":") && next.is_number());
    let begins = match token.gap {
        "." | ":" => false,
        "-" => {
            place == 0
                || token.ends_range() && day(tokens[place - 1].text).is_some()
                || month(tokens[place - 1].text).is_some()
        }
        _ => true,
    };
    day(token.text).is_some() && begins && !goes_on
}

/// Words before a month or a year that is meant as one.
const BEFORE_MONTH: [&str; 2] = ["in", "during"];

/// Is it a verb, too, as it is written? "Which of these 3 may fail?", "they march 5 miles".
fn is_verb(month: &str) -> bool {
    matches!(month, "may" | "march")
}

/// A date in figures, as it stands.
pub(super) struct Figures<'t> {
    separator: &'t str,
    texts: [&'t str; 3],
}

/// What one may mean.
struct Reading<'t> {
    date: NamedDate,
    /// Which number is what.
    parts: [(&'t str, DatePart); 3],
}

fn figures<'t>(tokens: &[Token<'t>]) -> Vec<Figures<'t>> {
    let figures = (0..tokens.len()).filter_map(|at| Figures::at(tokens, at));
    figures.filter(|figures| figures.readings().next().is_some()).collect()
}

impl<'t> Figures<'t> {
    /// The one that begins at a token, also before a time: `2023-05-08T10:00`.
    pub(super) fn at(tokens: &[Token<'t>], at: usize) -> Option<Self> {
        let &[first, second, third] = tokens.get(at..at + 3)? else { return None };
        let separator = second.gap;
        if !matches!(separator, "." | "-" | "/") || third.gap != separator {
            return None;
        }
        let last = third.text.split(['T', 't']).next().unwrap_or(third.text);
        let texts = [first.text, second.text, last];
        // Four numbers in a row are an address or a version; a time may stand behind a date.
        let is_iso = separator == "-" && texts.map(str::len) == [4, 2, 2];
        let goes_on = |token: Option<&Token<'_>>, gap: &str| gap == separator && token.is_some_and(Token::is_number);
        let next = tokens.get(at + 3).filter(|_| !is_iso);
        if goes_on(at.checked_sub(1).and_then(|before| tokens.get(before)), first.gap)
            || goes_on(next, next.map_or("", |next| next.gap))
        {
            return None;
        }
        Some(Self { separator, texts })
    }

    /// Year, month and day of what it means, where it may be either with the day before the month.
    pub(super) fn first_reading(&self) -> Option<(i32, u8, u8)> {
        let NamedDate { year, month, day } = self.readings().next()?.date;
        Some((year?, month, day?))
    }

    /// The days that it may mean.
    fn readings(&self) -> impl Iterator<Item = Reading<'t>> + use<'t> {
        let [first, second, third] = self.texts;
        let readings = if first.len() == 4 {
            // `2025.1.2` is a version.
            let is_date = self.separator != "." || second.len() == 2 && third.len() == 2;
            [Reading::of(first, second, third).filter(|_| is_date), None]
        } else if self.separator == "." {
            [Reading::of(third, second, first), None]
        } else {
            [Reading::of(third, second, first), Reading::of(third, first, second)]
        };
        readings.into_iter().flatten()
    }
}

impl<'t> Reading<'t> {
    fn of(year: &'t str, month: &'t str, day: &'t str) -> Option<Self> {
        if year.len() != 4 || [month, day].iter().any(|text| text.len() > 2) {
            return None;
        }
        let (y, m, d) = (self::year(year)?, month.parse().ok()?, day.parse().ok()?);
        let parts = [(year, DatePart::Year(y)), (month, DatePart::Month(m)), (day, DatePart::Day(d))];
        Some(Self { date: NamedDate::day(Some(y), m, d)?, parts })
    }
}

pub(super) fn year(word: &str) -> Option<i32> {
    word.parse().ok().filter(|year| (1970..2100).contains(year))
}

/// May a term be a part of a date, or say how many days?
pub(super) fn is_of_date(term: &str) -> bool {
    day(term).is_some() || year(term).is_some()
}

/// 1 to 31, also as `21st`.
pub(super) fn day(word: &str) -> Option<u8> {
    let is_ordinal = word
        .get(word.len().saturating_sub(2)..)
        .is_some_and(|end| ["st", "nd", "rd", "th"].iter().any(|ordinal| end.eq_ignore_ascii_case(ordinal)));
    let bare = if is_ordinal { &word[..word.len() - 2] } else { word };
    bare.parse().ok().filter(|day| (1..=31).contains(day))
}

pub(super) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The number of a month by its English name, or the name's first three letters.
pub(super) fn month(word: &str) -> Option<u8> {
    let word = word.to_lowercase();
    let is_called = |name: &str| word == name || word == name[..3] || word == "sept" && name == "september";
    let place = MONTHS.iter().position(|name| is_called(name))?;
    u8::try_from(place + 1).ok()
}

/// The same by what is left of the names as terms.
static STEMMED_MONTHS: LazyLock<HashMap<String, u8>> = LazyLock::new(|| {
    let mut months = HashMap::new();
    for (name, number) in MONTHS.into_iter().zip(1..).chain([("sept", 9)]) {
        for spelt in [name, &name[..3]] {
            analysis::terms(spelt, |term| {
                months.insert(term.to_owned(), number);
            });
        }
    }
    months
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(text: &str) -> NamedDates {
        NamedDates::of(text, &crate::memory::text::query(text).0, time::macros::date!(2026 - 03 - 18))
    }

    #[test]
    fn months_and_years_are_meant_where_nothing_else_is_asked_for() {
        let check = |text: &str, of: Option<Date>| {
            let dates = named(text);
            assert_eq!((dates.is_all, dates.is_any_named()), (of.is_some(), of.is_some()), "{text}");
            assert!(of.is_none_or(|day| dates.has(day)), "{text}");
        };
        check("what happened in May?", Some(time::macros::date!(2024 - 05 - 31)));
        check("what did we talk about during 2025", Some(time::macros::date!(2025 - 12 - 31)));
        check("what happened yesterday?", Some(time::macros::date!(2026 - 03 - 17)));
        check("What happened since Monday?", Some(time::macros::date!(2026 - 03 - 16)));
        check("what did we say between 3 and 10 October?", Some(time::macros::date!(2024 - 10 - 05)));
        check("what did we talk about before 2025", Some(time::macros::date!(2024 - 12 - 31)));
        check("what happened the day before yesterday?", Some(time::macros::date!(2026 - 03 - 16)));
        assert!(!named("what happened the day before yesterday?").has(time::macros::date!(2026 - 03 - 15)));
        let after = named("what did Anna say after 26 November 2025?");
        assert!(after.parts.is_empty() && !after.has(time::macros::date!(2025 - 11 - 26)), "{after:?}");
        assert!(after.has(time::macros::date!(2025 - 11 - 27)) && !after.is_all);
        assert!(named("what happened yesterday in \u{130}stanbul?").has(time::macros::date!(2026 - 03 - 17)));
        for text in [
            "June",
            "what did June say?",
            "messages from May",
            "what may happen",
            "this may happen",
            "8",
            "2025",
            "",
            "the trip in May",
        ] {
            check(text, None);
        }
        assert!(!named("what did Anna say yesterday?").is_all);
    }

    #[test]
    fn a_date_s_words_are_told_from_numbers() {
        let check = |text: &str, expected: &[DatePart]| {
            let parts: Vec<DatePart> = named(text).parts.into_iter().map(|(_, part)| part).collect();
            assert_eq!(parts, expected, "{text}");
        };
        check("what did I do on 8 May, 2023?", &[DatePart::Month(5), DatePart::Year(2023), DatePart::Day(8)]);
        check("the 21st of Sep", &[DatePart::Month(9), DatePart::Day(21)]);
        check("Sept 8", &[DatePart::Month(9), DatePart::Day(8)]);
        check("8-May-2023", &[DatePart::Month(5), DatePart::Year(2023), DatePart::Day(8)]);
        check("who has 8 dogs?", &[]);
        check("room 9000 in July", &[DatePart::Month(7)]);
        check("2023-05-08", &[DatePart::Year(2023), DatePart::Month(5), DatePart::Day(8)]);
        check("8.5.2023", &[DatePart::Year(2023), DatePart::Month(5), DatePart::Day(8)]);
    }

    #[test]
    fn each_number_is_what_it_stands_for() {
        let named = NamedDates::of("2023-05-08", &["08", "2023", "05"].map(str::to_owned), Date::MIN);
        let mut parts = named.parts;
        parts.sort_by_key(|(term, _)| *term);
        assert_eq!(parts, [(0, DatePart::Day(8)), (1, DatePart::Year(2023)), (2, DatePart::Month(5))]);
    }

    #[test]
    fn days_are_read_as_people_write_them() {
        let check = |text: &str, expected: &[(Option<i32>, u8, Option<u8>)]| {
            let whole: Vec<_> = named(text).whole.iter().map(|date| (date.year, date.month, date.day)).collect();
            assert_eq!(whole, expected, "{text}");
        };
        let day = |year: i32, month: u8, day: u8| (Some(year), month, Some(day));
        let of_any_year = |month: u8, day: u8| (None, month, Some(day));
        for text in [
            "what did I do on 8 May, 2023?",
            "on May 8th, 2023",
            "the 8th of May 2023",
            "May the 8th 2023",
            "8 may 2023",
            "8. May 2023",
            "on the 8. of May 2023",
            "8TH MAY 2023",
            "THE 8TH OF MAY 2023",
            "at 10:30 May 8, 2023",
            "8-May-2023",
            "08/May/2023",
            "2023 May 8",
            "2023-05-08",
            "at 2023-05-08T10:00:00Z",
            "2023/5/8",
            "on 08.05.2023.",
            "8.5.2023",
            "read app-2023-05-08.log",
            "backup-2023-05-08T10-30-00.tar",
            "2023-05-08-10-30.png",
            "2023.05.08",
            "2023-05-08, again 8 May 2023",
        ] {
            check(text, &[day(2023, 5, 8)]);
        }
        check("13/5/2023", &[day(2023, 5, 13)]);
        check("5-13-2023", &[day(2023, 5, 13)]);
        check("3/5/2023", &[day(2023, 5, 3), day(2023, 3, 5)]);
        check("5/5/2023", &[day(2023, 5, 5)]);
        check("2023-05-01/2023-05-08", &[day(2023, 5, 1), day(2023, 5, 8)]);
        check("between 3 and 10 October, and on 5 May 2023", &[day(2023, 5, 5)]);
        check("Sept 8, 2023", &[day(2023, 9, 8)]);
        check("the 21st of Sep", &[of_any_year(9, 21)]);
        check("29 February", &[of_any_year(2, 29)]);
        check("what was on 8 may?", &[of_any_year(5, 8)]);
        check("the 8th of may", &[of_any_year(5, 8)]);
        check("On the 8 may what happened?", &[of_any_year(5, 8)]);
        check("8-10 May 2023", &[day(2023, 5, 8), day(2023, 5, 9), day(2023, 5, 10)]);
        check("May 8\u{2013}9, 2023", &[day(2023, 5, 8), day(2023, 5, 9)]);
        check("COVID-19 March 2020", &[(Some(2020), 3, None)]);
        check("release 1.12 March 2025", &[(Some(2025), 3, None)]);
        check("version 3, May 2025", &[(Some(2025), 5, None)]);
        check("in July 2023", &[(Some(2023), 7, None)]);
        check("between May 3 \u{2013} June 5, 2023", &[of_any_year(5, 3), day(2023, 6, 5)]);
        check("May 8, June 9", &[of_any_year(5, 8), of_any_year(6, 9)]);
        for text in [
            "in July",
            "what was said from 3 May to 7 June",
            "before 5 October 2023",
            "2023",
            "may I?",
            "which of these 3 may fail?",
            "the 1st may be cheaper",
            "the budget for 2025 may change",
            "what I said in 2024. May we?",
            "May 3.5 million",
            "version 2025.1.2",
            "1000-02-03",
            "they march 5 miles",
            "I have 8. May I have more?",
            "they marched 5 miles",
            "Mars 2020",
            "30 February 2023",
            "30.2.2023",
            "1.2.3",
            "10.0.0.12",
            "1.2.3.2024",
            "12/24",
            "8 dogs",
            "10x12x2020",
            "2024a1a5",
            "12\u{663}05\u{663}2023",
            "99999-1-1",
        ] {
            check(text, &[]);
        }
        assert_eq!(named(&(1..=28).map(|day| format!("2023-05-{day} ")).collect::<String>()).whole.len(), MAX_DATES);
    }

    proptest! {
        #[test]
        fn a_day_has_itself_alone(ordinal in 1_u16..=365, year in 1970_i32..2100, other in 1_u16..=365) {
            let day = Date::from_ordinal_date(year, ordinal).unwrap();
            let named = named(&format!("what was on {day}?")).whole;
            prop_assert_eq!(named.len(), 1);
            prop_assert!(named[0].has(day));
            let other = Date::from_ordinal_date(year, other).unwrap();
            prop_assert_eq!(named[0].has(other), other == day);
        }

        #[test]
        fn any_text_is_read(text in "([0-9٣]{1,5}[./T-]?|may |on |of |[a-zé] ?){0,12}") {
            named(&text);
        }
    }
}
