//! Dates that a text names: which of its terms a memory's date may have, and which days it is about.
//!
//! "What did we agree on 8 May 2023?" has next to no word of the answer; what was said on that day is the answer. Days
//! are read as people write them in English, and in figures: `2023-05-08`, `8.5.2023`, `8/5/2023`. Where the order of
//! day and month cannot be told, both are meant.

use std::collections::HashMap;
use std::sync::LazyLock;

use time::{Date, Month};

use crate::text::analysis;

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
    /// The days, and months of a year, that are named.
    pub whole: Vec<NamedDate>,
}

impl NamedDates {
    /// Is this one of the days and months that are named whole?
    pub fn has(&self, date: Date) -> bool {
        self.whole.iter().any(|named| named.has(date))
    }

    /// What a text names, whose terms these are.
    pub fn of(text: &str, terms: &[String]) -> Self {
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '/');
        let words: Vec<&str> = text
            .split(|c| !is_inside(c))
            .map(|word| word.trim_matches(['.', '-', '/']))
            .filter(|word| !word.is_empty())
            .collect();
        let mut dates = Self { parts: parts(terms), whole: written_out(&words) };
        for figures in words.iter().filter_map(|word| Figures::read(word)) {
            dates.whole.extend(figures.dates());
        }
        dates
    }
}

/// Which terms a date may have: a year, a month's name, and beside one of these the day.
fn parts(terms: &[String]) -> Vec<(usize, DatePart)> {
    let mut parts = Vec::new();
    for (number, term) in terms.iter().enumerate() {
        if let Some(&month) = MONTHS.get(term) {
            parts.push((number, DatePart::Month(month)));
        } else if let Some(year) = year(term) {
            parts.push((number, DatePart::Year(year)));
        }
    }
    if !parts.is_empty() {
        let days = terms.iter().enumerate().filter_map(|(number, term)| Some((number, DatePart::Day(day(term)?))));
        parts.extend(days);
    }
    parts
}

/// `8 May`, `May 8th, 2023`, `the 8th of May`, `May 2023`.
fn written_out(words: &[&str]) -> Vec<NamedDate> {
    let words: Vec<String> =
        words.iter().map(|word| word.to_lowercase()).filter(|word| !matches!(word.as_str(), "of" | "the")).collect();
    let mut dates = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let mut term = String::new();
        analysis::terms(word, |stem| term.push_str(stem));
        let Some(&month) = MONTHS.get(&term) else { continue };
        let before = at.checked_sub(1).and_then(|before| day(&words[before]));
        let mut after = words[at + 1..].iter().map(String::as_str).peekable();
        let day = before.or_else(|| after.next_if(|word| day(word).is_some()).and_then(day));
        let year = after.next().and_then(year);
        match day {
            Some(day) => dates.extend(NamedDate::day(year, month, day)),
            None if year.is_some() => dates.push(NamedDate { year, month, day: None }),
            None => {}
        }
    }
    dates
}

/// A date in figures, as it stands.
struct Figures {
    separator: char,
    numbers: [u16; 3],
    /// Does the year come first? Else it is the last.
    is_year_first: bool,
}

impl Figures {
    /// Reads one, also before a time: `2023-05-08T10:00`.
    fn read(word: &str) -> Option<Self> {
        let date = word.split(['T', 't']).next().unwrap_or(word);
        let separator = date.chars().find(|c| !c.is_ascii_digit())?;
        let texts: Vec<&str> = date.split(separator).collect();
        let &[first, second, third] = texts.as_slice() else { return None };
        let is_year_first = first.len() == 4;
        if !is_year_first && third.len() != 4 || second.len() > 2 {
            return None;
        }
        let number = |text: &str| text.parse().ok();
        Some(Self { separator, numbers: [number(first)?, number(second)?, number(third)?], is_year_first })
    }

    /// The days that it may mean.
    fn dates(&self) -> Vec<NamedDate> {
        let [first, second, third] = self.numbers;
        let date = |year: u16, month: u16, day: u16| {
            NamedDate::day(Some(i32::from(year)), u8::try_from(month).ok()?, u8::try_from(day).ok()?)
        };
        if self.is_year_first {
            return date(first, second, third).into_iter().collect();
        }
        let (european, american) = (date(third, second, first), date(third, first, second));
        match self.separator {
            '.' => european.into_iter().collect(),
            _ if european == american => european.into_iter().collect(),
            _ => european.into_iter().chain(american).collect(),
        }
    }
}

fn year(word: &str) -> Option<i32> {
    word.parse().ok().filter(|year| (1970..2100).contains(year))
}

/// 1 to 31, also as `21st`.
fn day(word: &str) -> Option<u8> {
    let bare = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    bare.parse().ok().filter(|day| (1..=31).contains(day))
}

/// The months' English names, stemmed, and their numbers.
static MONTHS: LazyLock<HashMap<String, u8>> = LazyLock::new(|| {
    let names = "january february march april may june july august september october november december";
    let mut months = HashMap::new();
    for (name, number) in names.split(' ').zip(1..) {
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
        NamedDates::of(text, &crate::memory::text::query(text).0)
    }

    #[test]
    fn a_date_s_words_are_told_from_numbers() {
        let check = |text: &str, expected: &[DatePart]| {
            let parts: Vec<DatePart> = named(text).parts.into_iter().map(|(_, part)| part).collect();
            assert_eq!(parts, expected, "{text}");
        };
        check("what did I do on 8 May, 2023?", &[DatePart::Month(5), DatePart::Year(2023), DatePart::Day(8)]);
        check("the 21st of Sep", &[DatePart::Month(9), DatePart::Day(21)]);
        check("who has 8 dogs?", &[]);
        check("room 9000 in July", &[DatePart::Month(7)]);
    }

    #[test]
    fn days_are_read_as_people_write_them() {
        let check = |text: &str, expected: &[(Option<i32>, u8, Option<u8>)]| {
            let whole: Vec<_> = named(text).whole.iter().map(|date| (date.year, date.month, date.day)).collect();
            assert_eq!(whole, expected, "{text}");
        };
        let may = (Some(2023), 5, Some(8));
        for text in [
            "what did I do on 8 May, 2023?",
            "on May 8th, 2023",
            "the 8th of May 2023",
            "May the 8th 2023",
            "2023-05-08",
            "since 2023-05-08T10:00:00Z",
            "2023/5/8",
            "on 08.05.2023.",
            "8.5.2023",
        ] {
            check(text, &[may]);
        }
        check("13/5/2023", &[(Some(2023), 5, Some(13))]);
        check("5-13-2023", &[(Some(2023), 5, Some(13))]);
        check("3/5/2023", &[(Some(2023), 5, Some(3)), (Some(2023), 3, Some(5))]);
        check("5/5/2023", &[(Some(2023), 5, Some(5))]);
        check("the 21st of Sep", &[(None, 9, Some(21))]);
        check("29 February", &[(None, 2, Some(29))]);
        check("in July 2023", &[(Some(2023), 7, None)]);
        check("from 3 May to 7 June", &[(None, 5, Some(3)), (None, 6, Some(7))]);
        for text in
            ["in July", "2023", "may I?", "30 February 2023", "30.2.2023", "1.2.3", "10.0.0.12", "12/24", "8 dogs"]
        {
            check(text, &[]);
        }
    }

    proptest! {
        #[test]
        fn a_day_has_itself_alone(ordinal in 1_u16..=365, year in 1970_i32..2100, other in 1_u16..=365) {
            let day = Date::from_ordinal_date(year, ordinal).unwrap();
            let text = format!("what was on {day}?");
            let named = named(&text).whole;
            prop_assert_eq!(named.len(), 1);
            prop_assert!(named[0].has(day));
            let other = Date::from_ordinal_date(year, other).unwrap();
            prop_assert_eq!(named[0].has(other), other == day);
        }

        #[test]
        fn any_text_is_read(text in "([0-9]{1,5}[./-]|may |[a-zé] ){0,8}") {
            named(&text);
        }
    }
}
