//! Days that a text names by how long ago they are: "yesterday", "last week", "three days ago", "on Monday".
//!
//! Read in English, as days in UTC. Weeks begin on Monday.

use std::iter;
use std::ops::RangeInclusive;

use time::{Date, Duration, Month, Weekday};

/// First and last of some days.
pub(super) type Span = RangeInclusive<Date>;

/// The days that the words, in lower case, name, none of them after `today`; `is_past` says whether what is past is
/// spoken of.
pub(super) fn spans(words: &[&str], is_past: bool, today: Date) -> Vec<Span> {
    let spans = (0..words.len()).filter_map(|at| {
        let (before, words) = words.split_at(at);
        span(before, words, today).or_else(|| is_past.then(|| present(words, today)).flatten())
    });
    spans.filter(|span| *span.start() <= today).map(|span| *span.start()..=today.min(*span.end())).collect()
}

/// What the words from here on name, which these stand before.
pub(super) fn span(before: &[&str], words: &[&str], today: Date) -> Option<Span> {
    match words {
        ["yesterday", ..] if before.ends_with(&["day", "before"]) => days_ago(today, 2),
        ["yesterday", ..] | ["last", "night" | "evening", ..] => days_ago(today, 1),
        ["few" | "several" | "couple", unit, "ago", ..]
        | ["last" | "past", "few", unit, ..]
        | ["last" | "past", "couple", "of", unit, ..] => since(today, FEW, unit),
        ["last" | "past" | "previous", count, unit, ..] if number(count).is_some() => {
            since(today, number(count)?, unit)
        }
        ["past", unit, ..] => since(today, 1, unit),
        ["last", unit, ..] if matches!(before, [.., "in" | "over" | "during" | "within" | "for", "the"]) => {
            since(today, 1, unit)
        }
        ["last" | "previous", unit, ..] => of_unit(today, unit, 1).or_else(|| of_weekday(today, unit)),
        ["couple", "of", unit, "ago", ..] => of_unit(today, unit, 2),
        [count, unit, "ago", ..] => of_unit(today, unit, number(count)?),
        _ => None,
    }
}

/// The same of what may as well be to come: "what do I have on monday?"
fn present(words: &[&str], today: Date) -> Option<Span> {
    match words {
        ["on", day, ..] => of_weekday(today, day),
        _ => of_present(words, today),
    }
}

/// "Today", "this week".
pub(super) fn of_present(words: &[&str], today: Date) -> Option<Span> {
    match words {
        ["today", ..] | ["this", "morning" | "afternoon" | "evening", ..] => days_ago(today, 0),
        ["this", unit, ..] => of_unit(today, unit, 0),
        _ => None,
    }
}

/// Is it a word for what is past? Nearly all others end in "ed".
pub(super) fn says_past(word: &str) -> bool {
    const PAST: [&str; 14] = [
        "did",
        "was",
        "were",
        "been",
        "done",
        "said",
        "told",
        "met",
        "went",
        "came",
        "wrote",
        "got",
        "yesterday",
        "from",
    ];
    PAST.contains(&word) || word.len() > 4 && word.ends_with("ed")
}

/// What "a few" are at most.
const FEW: u16 = 5;

/// No text means more.
const MOST: u16 = 1000;

fn number(word: &str) -> Option<u16> {
    const NUMBERS: [&str; 13] =
        ["a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let named = NUMBERS.iter().position(|number| *number == word).map(|place| place.max(1) as u16);
    named.or_else(|| word.parse().ok()).filter(|number| (1..=MOST).contains(number))
}

fn days_ago(today: Date, days: i64) -> Option<Span> {
    let day = today.checked_sub(Duration::days(days))?;
    Some(day..=day)
}

/// The days of a year.
pub(super) fn of_year(year: i32) -> Option<Span> {
    Some(first_of(year, 0)?..=first_of(year + 1, 0)?.previous_day()?)
}

/// The day, week, month, year or weekend so many before the one that `today` is in.
fn of_unit(today: Date, unit: &str, count: u16) -> Option<Span> {
    match unit {
        "day" | "days" => days_ago(today, count.into()),
        "week" | "weeks" => days_from(monday(today)?.checked_sub(Duration::weeks(count.into()))?, 7),
        "weekend" | "weekends" => {
            days_from(monday(today)?.checked_sub(Duration::weeks(count.into()))?.checked_add(Duration::days(5))?, 2)
        }
        "month" | "months" => {
            let month = today.year() * 12 + i32::from(u8::from(today.month())) - 1 - i32::from(count);
            let first = first_of(month.div_euclid(12), month.rem_euclid(12))?;
            Some(first..=first_of((month + 1).div_euclid(12), (month + 1).rem_euclid(12))?.previous_day()?)
        }
        "year" | "years" => of_year(today.year() - i32::from(count)),
        _ => None,
    }
}

/// From so many days, weeks, months or years ago until today.
fn since(today: Date, count: u16, unit: &str) -> Option<Span> {
    let days = match unit {
        "day" | "days" => 1,
        "week" | "weeks" => 7,
        "month" | "months" => 31,
        "year" | "years" => 366,
        _ => return None,
    };
    Some(today.checked_sub(Duration::days(i64::from(count) * days))?..=today)
}

/// The latest such day before today.
pub(super) fn of_weekday(today: Date, name: &str) -> Option<Span> {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let place = DAYS.iter().position(|day| *day == name)?;
    let wanted = Weekday::Monday.nth_next(place as u8);
    let day = iter::successors(today.previous_day(), |day| day.previous_day()).find(|day| day.weekday() == wanted)?;
    Some(day..=day)
}

fn days_from(first: Date, days: i64) -> Option<Span> {
    Some(first..=first.checked_add(Duration::days(days - 1))?)
}

fn monday(today: Date) -> Option<Date> {
    today.checked_sub(Duration::days(today.weekday().number_days_from_monday().into()))
}

/// The first of a month, which is counted from 0.
fn first_of(year: i32, month: i32) -> Option<Date> {
    let month = u8::try_from(month + 1).ok().and_then(|month| Month::try_from(month).ok())?;
    Date::from_calendar_date(year, month, 1).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::date;

    use super::*;
    use crate::memory::date_token::words;

    /// A Wednesday.
    const TODAY: Date = date!(2026 - 03 - 18);

    fn named(text: &str, today: Date) -> Vec<Span> {
        let words = words(text);
        spans(&words, words.iter().any(|word| says_past(word)), today)
    }

    fn check(text: &str, expected: &[Span]) {
        assert_eq!(named(text, TODAY), expected, "{text}");
    }

    fn day(day: u8) -> Span {
        let day = Date::from_calendar_date(2026, Month::March, day).unwrap();
        day..=day
    }

    #[test]
    fn days_are_named_by_how_long_ago_they_are() {
        check("what did I say yesterday?", &[day(17)]);
        check("the day before yesterday", &[day(16)]);
        check("what did we decide today", &[day(18)]);
        check("what came up in this morning's call", &[day(18)]);
        check("who called last night?", &[day(17)]);
        for text in ["3 days ago", "three days ago, I think"] {
            check(text, &[day(15)]);
        }
        check("a couple of days ago", &[day(16)]);
        check("who called on monday", &[day(16)]);
        check("last friday", &[day(13)]);
        check("what was said on wednesday", &[day(11)]);
        check("yesterday and on sunday", &[day(17), day(15)]);
        check("last week", &[date!(2026 - 03 - 09)..=date!(2026 - 03 - 15)]);
        check("a week ago", &[date!(2026 - 03 - 09)..=date!(2026 - 03 - 15)]);
        check("two weeks ago", &[date!(2026 - 03 - 02)..=date!(2026 - 03 - 08)]);
        check("what was planned this week", &[date!(2026 - 03 - 16)..=TODAY]);
        check("last weekend", &[date!(2026 - 03 - 14)..=date!(2026 - 03 - 15)]);
        check("notes from this month", &[date!(2026 - 03 - 01)..=TODAY]);
        check("last month", &[date!(2026 - 02 - 01)..=date!(2026 - 02 - 28)]);
        check("three months ago", &[date!(2025 - 12 - 01)..=date!(2025 - 12 - 31)]);
        check("what did we buy this year", &[date!(2026 - 01 - 01)..=TODAY]);
        check("last year", &[date!(2025 - 01 - 01)..=date!(2025 - 12 - 31)]);
        check("in the last 10 days", &[date!(2026 - 03 - 08)..=TODAY]);
        check("over the past two weeks", &[date!(2026 - 03 - 04)..=TODAY]);
        check("in the past few days", &[date!(2026 - 03 - 13)..=TODAY]);
        check("the last couple of days", &[date!(2026 - 03 - 13)..=TODAY]);
        check("a few days ago", &[date!(2026 - 03 - 13)..=TODAY]);
        check("in the last week", &[date!(2026 - 03 - 11)..=TODAY]);
        check("several days ago", &[date!(2026 - 03 - 13)..=TODAY]);
        check("in the past month", &[date!(2026 - 02 - 15)..=TODAY]);
    }

    #[test]
    fn other_words_name_no_day() {
        for text in [
            "my last name",
            "the last one",
            "this weekend",
            "what do I have on monday?",
            "what should I cook today?",
            "what is due this week?",
            "tomorrow",
            "next week",
            "long ago",
            "0 days ago",
            "99999 days ago",
            "1000 years ago, 1000 months ago",
            "on my desk",
            "this",
            "ago",
            "",
        ] {
            let named = named(text, TODAY);
            assert!(named.iter().all(|span| *span.end() < date!(1950 - 01 - 01)), "{text}: {named:?}");
        }
    }

    proptest! {
        #[test]
        fn no_day_is_after_today_whatever_is_said(
            text in "((last|past|this|on|a|few|couple|of|ago|[0-9]{1,4}|days?|weeks?|months?|years?|monday) ){0,9}",
            day in 0_i32..4_000_000,
        ) {
            let today = Date::from_julian_day(day).unwrap();
            for span in named(&text, today) {
                prop_assert!(span.start() <= span.end() && *span.end() <= today, "{text} {today} {span:?}");
            }
        }
    }
}
