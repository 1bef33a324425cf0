//! Days that a text names by where they begin and end: "since Monday", "from 3 May to 7 June", "between 3 and 10
//! October", "before 2025".
//!
//! Read in English, as days in UTC. Where no year is named, days are those of each year, and those up to today begin
//! the last time.

use std::ops::Range;

use time::{Date, Duration, Month};

use super::date_token::Token;
use super::named_date::{Figures, Written, day, month, year};
use super::relative_date::{Span, of_present, of_weekday, of_year, span};

/// A day of whichever year: month and day.
type MonthDay = (u8, u8);

/// The days of a range, none of them after today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Days {
    Of(Span),
    /// From one to the other, both included; over the turn of the year if the first is the later.
    OfEachYear(MonthDay, MonthDay),
}

/// The words of a text, with what else decides on what they name.
pub(super) struct Said<'t> {
    pub(super) tokens: &'t [Token<'t>],
    /// The same in lower case.
    pub(super) words: &'t [&'t str],
    /// Is what is past spoken of?
    pub(super) is_past: bool,
    pub(super) today: Date,
}

/// A range: its days, unless all are to come, and the words that name it.
type Named = (Option<Days>, Range<usize>);

/// One end of a range, and the place behind its words.
struct End {
    days: EndDays,
    behind: usize,
}

enum EndDays {
    Calendar(Calendar),
    Relative(Span),
}

/// Some of a day, a month and a year.
#[derive(Clone, Copy, Default)]
struct Calendar {
    year: Option<i32>,
    month: Option<u8>,
    day: Option<u8>,
}

/// Words of an end such as "three days ago".
const MOST_RELATIVE: usize = 3;

impl Said<'_> {
    /// The ranges that are named, in their order.
    pub(super) fn ranges(&self) -> Vec<Named> {
        let (mut ranges, mut at) = (Vec::new(), 0);
        while at < self.words.len() {
            let found = self.closed(at).or_else(|| self.open(at));
            at = found.as_ref().map_or(at + 1, |(_, words)| words.end);
            ranges.extend(found);
        }
        ranges
    }

    /// "Since Monday", "after 8 May", "before 2025", "until last week".
    fn open(&self, at: usize) -> Option<Named> {
        let word = *self.words.get(at)?;
        if !matches!(word, "since" | "after" | "before" | "until" | "till") || self.is_behind_unit(at) {
            return None;
        }
        let end = self.end(at + 1)?;
        let is_meant = word == "since" || self.is_past || end.has_year();
        if !is_meant || !end.is_surely_one(word == "since") || self.is_of_another(end.behind) {
            return None;
        }
        let behind = end.behind;
        let named = end.latest(self.today)?;
        let (first, last) = match word {
            "since" => (*named.start(), self.today),
            "after" => (named.end().next_day()?, self.today),
            "before" => (Date::MIN, named.start().previous_day()?),
            _ => (Date::MIN, *named.end()),
        };
        Some((self.up_to_today(first..=last), at..behind))
    }

    /// "From 3 May to 7 June", "between 3 and 10 October", "3 May until today".
    fn closed(&self, at: usize) -> Option<Named> {
        let word = *self.words.get(at)?;
        let has_word = matches!(word, "from" | "between");
        let first = self.end(at + usize::from(has_word))?;
        let is_joined = match *self.words.get(first.behind)? {
            "and" => word == "between",
            joint => matches!(joint, "to" | "until" | "till" | "through" | "thru"),
        };
        let last = self.end(first.behind + 1).filter(|_| is_joined)?;
        // "Move 3 to 10", but "from May to July".
        let is_one = has_word || first.has_day_and_month();
        // "Am I free between Monday and Tuesday?"
        let is_meant = self.is_past || first.calendar().is_some() && last.calendar().is_some();
        if !is_one || !is_meant || self.is_of_another(last.behind) {
            return None;
        }
        let behind = last.behind;
        let days = match (first.days, last.days) {
            (EndDays::Calendar(first), EndDays::Calendar(last)) => between(first, last)?,
            (EndDays::Relative(first), EndDays::Relative(last)) if first.start() > last.end() => {
                // From Monday to Friday of the week before.
                Days::Of(first.start().checked_sub(Duration::WEEK)?..=*last.end())
            }
            (first, last) => {
                let [first, last] = [first, last].map(|days| End { days, behind }.latest(self.today));
                Days::Of(*first?.start()..=*last?.end())
            }
        };
        let days = match days {
            Days::Of(days) => self.up_to_today(days),
            of_each_year @ Days::OfEachYear(..) => Some(of_each_year),
        };
        Some((days, at..behind))
    }

    fn up_to_today(&self, days: Span) -> Option<Days> {
        let last = self.today.min(*days.end());
        (*days.start() <= last).then(|| Days::Of(*days.start()..=last))
    }

    /// Does a span stand before, as in "the day before yesterday"?
    fn is_behind_unit(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |before| self.words[before]);
        let unit = before.strip_suffix('s').unwrap_or(before);
        ["day", "night", "evening", "morning", "week", "weekend", "month", "year"].contains(&unit)
    }

    /// "After yesterday's meeting" is not after yesterday.
    fn is_of_another(&self, behind: usize) -> bool {
        self.tokens.get(behind).is_some_and(|next| next.text == "s" && matches!(next.gap, "'" | "\u{2019}"))
    }

    /// The end that begins at a word.
    fn end(&self, at: usize) -> Option<End> {
        let at = at + usize::from(self.words.get(at) == Some(&"the"));
        self.relative(at).or_else(|| self.in_figures(at)).or_else(|| self.written_out(at)).or_else(|| self.alone(at))
    }

    fn relative(&self, at: usize) -> Option<End> {
        let words = self.words.get(at..)?;
        let of = |length: usize| {
            let words = &words[..length];
            let days = span(&[], words, self.today).or_else(|| of_present(words, self.today));
            let days = days.or_else(|| Some(self.today..=self.today).filter(|_| words == ["now"]));
            days.or_else(|| of_weekday(self.today, words[0]).filter(|_| length == 1))
        };
        let lengths = 1..=words.len().min(MOST_RELATIVE);
        let (days, length) = lengths.into_iter().find_map(|length| Some((of(length)?, length)))?;
        Some(End { days: EndDays::Relative(days), behind: at + length })
    }

    /// `2025-05-08` and `8.5.2025`. Where day and month may be either, the day stands first.
    fn in_figures(&self, at: usize) -> Option<End> {
        let (year, month, day) = Figures::at(self.tokens, at)?.first_reading()?;
        let calendar = Calendar { year: Some(year), month: Some(month), day: Some(day) };
        Some(End { days: EndDays::Calendar(calendar), behind: at + 3 })
    }

    /// `8 May`, `the 8th of May 2025`, `May 8`, `May 2025`.
    fn written_out(&self, at: usize) -> Option<End> {
        let is_part = |place: &usize| {
            let word = self.words[*place];
            day(word).is_some() || matches!(word, "of" | "the")
        };
        let place = (at..self.tokens.len()).find(|place| !is_part(place))?;
        let month = month(self.words[place])?;
        let written = Written::around(self.tokens, at, place)?;
        // What stands before the month must be its own.
        let day = written.days.as_ref().map(|days| *days.start());
        if place > at && day != self::day(self.words[at]) {
            return None;
        }
        let calendar = Calendar { year: written.year, month: Some(month), day };
        Some(End { days: EndDays::Calendar(calendar), behind: written.end })
    }

    /// A month, a year or a number by itself.
    fn alone(&self, at: usize) -> Option<End> {
        let word = *self.words.get(at)?;
        let goes_on = self.tokens.get(at + 1).is_some_and(|next| next.gap == " " && !is_joint(next.text));
        let calendar = Calendar {
            year: year(word).filter(|_| !goes_on),
            month: month(word),
            day: day(word).filter(|_| self.tokens.get(at + 1).is_none_or(|next| next.gap.starts_with([' ', ',', '?']))),
        };
        let is_any = calendar.year.is_some() || calendar.month.is_some() || calendar.day.is_some();
        is_any.then_some(End { days: EndDays::Calendar(calendar), behind: at + 1 })
    }
}

/// The days of both and between them. What one of them leaves out is as in the other.
fn between(mut first: Calendar, mut last: Calendar) -> Option<Days> {
    if first.day.is_some() && last.day.is_some() {
        (first.month, last.month) = (first.month.or(last.month), last.month.or(first.month));
    }
    let is_over_new_year = first.month_day(false) > last.month_day(true);
    match (first.year, last.year) {
        (None, Some(year)) => first.year = Some(year - i32::from(is_over_new_year)),
        (Some(year), None) => last.year = Some(year + i32::from(is_over_new_year)),
        (None, None) => return Some(Days::OfEachYear(first.month_day(false)?, last.month_day(true)?)),
        (Some(_), Some(_)) => {}
    }
    Some(Days::Of(*first.of_its_year()?.start()..=*last.of_its_year()?.end()))
}

/// What joins two ends, or a year to what is asked.
fn is_joint(word: &str) -> bool {
    ["to", "and", "until", "till", "through", "thru", "in", "at", "with", "about"].contains(&&*word.to_lowercase())
}

impl Days {
    /// Is this one of them?
    pub(super) fn has(&self, date: Date) -> bool {
        match self {
            Self::Of(days) => days.contains(&date),
            Self::OfEachYear(first, last) => {
                let day = (u8::from(date.month()), date.day());
                if first <= last { (first..=last).contains(&&day) } else { day >= *first || day <= *last }
            }
        }
    }
}

impl End {
    fn calendar(&self) -> Option<Calendar> {
        match self.days {
            EndDays::Calendar(calendar) => Some(calendar),
            EndDays::Relative(_) => None,
        }
    }

    fn has_year(&self) -> bool {
        self.calendar().is_some_and(|calendar| calendar.year.is_some())
    }

    fn has_day_and_month(&self) -> bool {
        self.calendar().is_some_and(|calendar| calendar.day.is_some() && calendar.month.is_some())
    }

    /// "After may" begins another question, and "after 3" is a time of day.
    fn is_surely_one(&self, takes_months: bool) -> bool {
        let is_one = |calendar: Calendar| {
            let is_month = calendar.month.is_some_and(|month| takes_months || !MONTHS_THAT_ARE_VERBS.contains(&month));
            calendar.year.is_some() || calendar.month.is_some() && calendar.day.is_some() || is_month
        };
        self.calendar().is_none_or(is_one)
    }

    /// Its days, of the last year in which they have begun if none is named.
    fn latest(self, today: Date) -> Option<Span> {
        match self.days {
            EndDays::Relative(days) => Some(days),
            EndDays::Calendar(calendar) if calendar.year.is_some() => calendar.of_its_year(),
            EndDays::Calendar(calendar) => {
                let of = |year| Calendar { year: Some(year), ..calendar }.of_its_year();
                of(today.year()).filter(|days| *days.start() <= today).or_else(|| of(today.year() - 1))
            }
        }
    }
}

/// March and May.
const MONTHS_THAT_ARE_VERBS: [u8; 2] = [3, 5];

impl Calendar {
    /// Its first day of a year, or its last.
    fn month_day(self, is_last: bool) -> Option<MonthDay> {
        Some((self.month?, self.day.unwrap_or(if is_last { 31 } else { 1 })))
    }

    /// The days of it, if the year is named.
    fn of_its_year(self) -> Option<Span> {
        let year = self.year?;
        let month = match (self.month, self.day) {
            (Some(month), _) => Month::try_from(month).ok()?,
            (None, None) => return of_year(year),
            (None, Some(_)) => return None,
        };
        let date = |day| Date::from_calendar_date(year, month, day).ok();
        let [first, last] = self.day.map_or([1, month.length(year)], |day| [day; 2]);
        Some(date(first)?..=date(last)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::date;

    use super::*;
    use crate::memory::date_token::tokens;

    /// A Wednesday.
    const TODAY: Date = date!(2026 - 03 - 18);

    fn ranges(text: &str, is_past: bool, today: Date) -> Vec<Named> {
        let tokens = tokens(text);
        let lower: Vec<String> = tokens.iter().map(|token| token.text.to_lowercase()).collect();
        let words: Vec<&str> = lower.iter().map(String::as_str).collect();
        Said { tokens: &tokens, words: &words, is_past, today }.ranges()
    }

    fn check(text: &str, expected: &[Days]) {
        let found: Vec<Days> = ranges(text, true, TODAY).into_iter().filter_map(|(days, _)| days).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn ranges_are_named_by_their_ends() {
        check("anything since Monday?", &[Days::Of(date!(2026 - 03 - 16)..=TODAY)]);
        check("since yesterday please", &[Days::Of(date!(2026 - 03 - 17)..=TODAY)]);
        check("since last week", &[Days::Of(date!(2026 - 03 - 09)..=TODAY)]);
        check("since three days ago", &[Days::Of(date!(2026 - 03 - 15)..=TODAY)]);
        check("since May", &[Days::Of(date!(2025 - 05 - 01)..=TODAY)]);
        check("since May of 2023", &[Days::Of(date!(2023 - 05 - 01)..=TODAY)]);
        check("since the 3rd of March", &[Days::Of(date!(2026 - 03 - 03)..=TODAY)]);
        check("since 2025-05-08", &[Days::Of(date!(2025 - 05 - 08)..=TODAY)]);
        check("since 2025-05-08T10:00:00Z", &[Days::Of(date!(2025 - 05 - 08)..=TODAY)]);
        check("after 8 May 2025", &[Days::Of(date!(2025 - 05 - 09)..=TODAY)]);
        check("after 5/13/2025", &[Days::Of(date!(2025 - 05 - 14)..=TODAY)]);
        check("before October", &[Days::Of(Date::MIN..=date!(2025 - 09 - 30))]);
        check("before 2025?", &[Days::Of(Date::MIN..=date!(2024 - 12 - 31))]);
        check("until 8.5.2025", &[Days::Of(Date::MIN..=date!(2025 - 05 - 08))]);
        check("between 3 and 10 October", &[Days::OfEachYear((10, 3), (10, 10))]);
        check("from October 3 to 10", &[Days::OfEachYear((10, 3), (10, 10))]);
        check("from 3 May to 7 June", &[Days::OfEachYear((5, 3), (6, 7))]);
        check("from November to February", &[Days::OfEachYear((11, 1), (2, 31))]);
        check("from November to February 2026", &[Days::Of(date!(2025 - 11 - 01)..=date!(2026 - 02 - 28))]);
        check("from December 2025 to January", &[Days::Of(date!(2025 - 12 - 01)..=date!(2026 - 01 - 31))]);
        check("3 May 2024 to 7 June 2025", &[Days::Of(date!(2024 - 05 - 03)..=date!(2025 - 06 - 07))]);
        check("from 2023 to 2024 at work", &[Days::Of(date!(2023 - 01 - 01)..=date!(2024 - 12 - 31))]);
        check("between Monday and yesterday", &[Days::Of(date!(2026 - 03 - 16)..=date!(2026 - 03 - 17))]);
        check("from Monday to Friday", &[Days::Of(date!(2026 - 03 - 09)..=date!(2026 - 03 - 13))]);
        check("from 8 January until now", &[Days::Of(date!(2026 - 01 - 08)..=TODAY)]);
        check(
            "since Monday or before 2020",
            &[Days::Of(date!(2026 - 03 - 16)..=TODAY), Days::Of(Date::MIN..=date!(2019 - 12 - 31))],
        );
    }

    #[test]
    fn other_words_name_no_range() {
        for text in [
            "move 3 to 10",
            "since 3",
            "after may",
            "before 2 people came",
            "since 2000 people signed up",
            "since when",
            "since version 2025.1.2",
            "from Anna to Tom",
            "from 2 to 10 dollars",
            "between you and me",
            "is she free between 3 and 4, may I ask?",
            "ever since",
            "on 8 May",
            "the day before yesterday",
            "two days before 5 October",
            "after last night's call",
            "",
        ] {
            assert_eq!(ranges(text, true, TODAY), [], "{text}");
        }
    }

    #[test]
    fn what_is_to_come_names_none() {
        for text in ["what is due before Friday?", "what do I need before 20 March", "free between Monday and Tuesday?"]
        {
            assert_eq!(ranges(text, false, TODAY), [], "{text}");
        }
        assert_eq!(ranges("what happened after 2030?", false, TODAY), [(None, 2..4)]);
        assert_eq!(ranges("anything since Monday", false, TODAY).len(), 1);
    }

    #[test]
    fn a_range_of_each_year_may_go_over_its_turn() {
        let days = Days::OfEachYear((11, 20), (2, 3));
        for (date, expected) in [
            (date!(2023 - 11 - 20), true),
            (date!(2024 - 01 - 01), true),
            (date!(2024 - 02 - 03), true),
            (date!(2024 - 02 - 04), false),
            (date!(2024 - 11 - 19), false),
        ] {
            assert_eq!(days.has(date), expected, "{date}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_read_and_no_day_is_to_come(
            text in "((from|to|between|and|since|before|last|the|of|may|[0-9]{1,4}|days?|ago|monday)[ .-]){0,9}",
            day in -1_900_000_i32..5_300_000,
        ) {
            let today = Date::from_julian_day(day).unwrap();
            for (days, place) in ranges(&text, true, today) {
                prop_assert!(place.end <= tokens(&text).len());
                if let Some(Days::Of(days)) = days {
                    prop_assert!(days.start() <= days.end() && *days.end() <= today);
                }
            }
        }
    }
}
