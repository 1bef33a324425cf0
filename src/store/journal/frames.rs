//! What a journal's file has, whatever became of it.
//!
//! A frame that was not written whole is told by its checksum, and nobody was told of its records: it is the last, and
//! what is left of an earlier time behind it has lower ids. Where frames of higher ids follow, or the file ends within
//! a frame, what cannot be read may have been acknowledged. Then reading goes on at the next frame, which is found by
//! its checksum and its ids, and the damage is said.

use std::ops::Range;

use super::{HEAD, START, STEP};
use crate::timing::Execution;

/// Ids are lower; what stands in place of one in the middle of a frame mostly is not.
const BEYOND_IDS: i64 = 1 << 48;

/// Frames cannot be read that may have been acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct JournalDamage {
    /// The byte of the file from which on it cannot be read.
    pub(in crate::store) offset: u64,
    /// The first id that was read behind it; nothing if the file was cut there.
    pub(in crate::store) resumes_at: Option<i64>,
}

/// What is read of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct JournalContent {
    /// With ids that rise, by one but where frames were lost.
    pub(in crate::store) records: Vec<(i64, Execution)>,
    /// Bytes up to the end of the last frame.
    pub(in crate::store) length: u64,
    /// The last one, if there is any.
    pub(in crate::store) damage: Option<JournalDamage>,
    /// Where the last frame begins if it is not whole: a write that was cut short, or damage.
    pub(in crate::store) torn_at: Option<u64>,
}

/// Reads the frames of a file, which begin behind its magic.
pub(super) fn read(bytes: &[u8]) -> JournalContent {
    let (mut content, mut at) = (JournalContent::default(), 0);
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    loop {
        let last = content.records.last().map(|(id, _)| *id);
        let follows = |head: &Head| last.is_none_or(|last| head.first == last.saturating_add(1));
        let next = Head::at(bytes, at).filter(follows).and_then(|head| Some((head, head.records(bytes, at)?)));
        let (head, records) = if let Some(next) = next {
            next
        } else {
            let Some((place, head, records)) = found_behind(bytes, at..used, last) else { break };
            content.damage = Some(JournalDamage { offset: START + at as u64, resumes_at: Some(head.first) });
            at = place;
            (head, records)
        };
        content.records.extend((head.first..).zip(records));
        at += head.length;
        content.length = at as u64;
    }
    say_the_end(bytes, at, &mut content);
    content
}

/// What the place says at which nothing more is found.
fn say_the_end(bytes: &[u8], at: usize, content: &mut JournalContent) {
    let (offset, rest) = (START + at as u64, bytes.len() - at);
    let Some(head) = Head::at(bytes, at) else {
        // Files grow by whole steps.
        let length = START as usize + bytes.len();
        if ![0, START as usize].contains(&(length % STEP)) {
            content.damage = Some(JournalDamage { offset, resumes_at: None });
        }
        return;
    };
    let is_next = match content.records.last() {
        Some((last, _)) => head.first == last.saturating_add(1),
        None => !head.is_zero(),
    };
    if is_next && head.length > rest {
        // Room for a frame is there before it is written.
        content.damage = Some(JournalDamage { offset, resumes_at: None });
    } else if is_next {
        content.torn_at = Some(offset);
    }
}

/// The next frame that is of the same time as those before, with its place.
fn found_behind(bytes: &[u8], places: Range<usize>, last: Option<i64>) -> Option<(usize, Head, Vec<Execution>)> {
    let at = places.start;
    let head = Head::at(bytes, at)?;
    if last.is_none() && head.is_zero() {
        // All that follows was taken over.
        return None;
    }
    let is_later = |place: usize, first: i64| match last {
        // A record that was lost took a byte at least.
        Some(last) => first > last && first.saturating_sub(last) <= 1 + (place - at) as i64,
        None => (1..BEYOND_IDS).contains(&first),
    };
    let found = |place: usize| {
        let head = Head::at(bytes, place).filter(|head| is_later(place, head.first))?;
        Some((place, head, head.records(bytes, place)?))
    };
    // The only frame of its time, not whole, may stand before what is left of an earlier one.
    let is_left = |(place, found, _): &(usize, Head, Vec<Execution>)| {
        let is_later = head.first == 0 || (found.first..BEYOND_IDS).contains(&head.first);
        last.is_none() && is_later && *place != at + head.length
    };
    places.skip(1).find_map(found).filter(|found| !is_left(found))
}

/// What stands before the records of a frame.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// Bytes of the frame.
    length: usize,
    sum: u32,
    first: i64,
}

impl Head {
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let head = bytes.get(at..)?.get(..HEAD)?;
        Some(Self {
            length: u32::from_le_bytes(*head.first_chunk()?) as usize,
            sum: u32::from_le_bytes(*head[4..].first_chunk()?),
            first: i64::from_le_bytes(*head[8..].first_chunk()?),
        })
    }

    fn is_zero(&self) -> bool {
        (self.length, self.sum, self.first) == (0, 0, 0)
    }

    /// The records of the frame, if it is whole and has any.
    fn records(&self, bytes: &[u8], at: usize) -> Option<Vec<Execution>> {
        let frame = bytes.get(at..)?.get(..self.length)?;
        let body = frame.get(HEAD..)?;
        if crc32fast::hash(&frame[8..]) != self.sum {
            return None;
        }
        postcard::from_bytes(body).ok().filter(|records: &Vec<_>| !records.is_empty())
    }
}
