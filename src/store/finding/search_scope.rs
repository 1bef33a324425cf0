//! What a search's filter lets through, in the cache of rows.

use fixedbitset::FixedBitSet;
use time::{Date, OffsetDateTime};

use super::row_cache::{RowCache, Sums};
use crate::memory::named_date::DatePart;
use crate::memory::query::Filter;

/// What a filter lets through, as places in the cache.
pub(in crate::store) enum SearchScope<'f> {
    /// All of a kind.
    Plain(&'f Filter),
    /// These, in order, and as a set.
    Rows(Vec<u32>, FixedBitSet),
}

impl<'f> SearchScope<'f> {
    /// What a filter lets through that asks for nothing but the kind and deletion; nothing for others.
    pub(in crate::store) fn plain(filter: &'f Filter) -> Option<Self> {
        filter.is_plain().then_some(Self::Plain(filter))
    }

    /// The rows of these numbers.
    pub(in crate::store) fn of_rows(cache: &RowCache, seqs: &[i64]) -> Self {
        let mut set = FixedBitSet::with_capacity(cache.rows().len());
        let mut before = 0;
        for &seq in seqs {
            // They come in the order of an index, which mostly is that of their numbers.
            if let Some(index) = cache.index_of_near(before, seq) {
                set.insert(index);
                before = index;
            }
        }
        Self::of_set(set)
    }

    fn of_set(set: FixedBitSet) -> Self {
        Self::Rows(set.ones().map(|row| row as u32).collect(), set)
    }

    pub(in crate::store) fn has(&self, cache: &RowCache, index: usize) -> bool {
        match self {
            Self::Plain(filter) => cache.passes(index, filter),
            Self::Rows(_, set) => set.contains(index),
        }
    }

    /// How many rows were added on such a date.
    pub(in crate::store) fn dated(&self, cache: &RowCache, part: DatePart) -> usize {
        let mut days = Days::default();
        self.rows(cache)
            .filter(|&index| days.of(cache.rows()[index].created_us).is_some_and(|day| part.has(day)))
            .count()
    }

    /// Places of what is let through, in order.
    pub(in crate::store) fn rows<'a>(&'a self, cache: &'a RowCache) -> Box<dyn Iterator<Item = usize> + 'a> {
        match self {
            Self::Plain(filter) => Box::new((0..cache.rows().len()).filter(|&index| cache.passes(index, filter))),
            Self::Rows(rows, _) => Box::new(rows.iter().map(|&row| row as usize)),
        }
    }

    pub(in crate::store) fn sums(&self, cache: &RowCache) -> Sums {
        match self {
            Self::Plain(filter) => cache.sums(filter),
            Self::Rows(rows, _) => (rows.len(), rows.iter().map(|&row| u64::from(cache.length(row as usize))).sum()),
        }
    }
}

/// Days in UTC; that of the last moment is kept, since the next row is mostly of the same.
#[derive(Debug, Default)]
pub(in crate::store) struct Days {
    number: i64,
    date: Option<Date>,
}

const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;

impl Days {
    pub(in crate::store) fn of(&mut self, moment_us: i64) -> Option<Date> {
        let number = moment_us.div_euclid(DAY_US);
        if self.date.is_none() || self.number != number {
            let date = OffsetDateTime::from_unix_timestamp(moment_us.div_euclid(1_000_000)).map(OffsetDateTime::date);
            (self.number, self.date) = (number, date.ok());
        }
        self.date
    }
}
