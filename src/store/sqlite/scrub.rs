//! Overwrites what SQLite leaves behind in the pages of its file.
//!
//! With `secure_delete` SQLite overwrites what it removes, but not the gap in a page whose cells it put in another
//! order: whole texts of cells that moved to a sibling stay there. Nothing reads the gap, and nothing but this writes
//! it apart from SQLite itself, which is kept from it meanwhile: the log is empty, so that nobody moves pages from it,
//! and the lock of writers is held, so that nobody adds to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Bytes of the log's header, and of a frame's; the form is the file format's, at sqlite.org/fileformat2.html.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// Bytes of the database's header, which stands at the beginning of its first page.
const FILE_HEADER: usize = 100;

/// A set of pages by their numbers.
#[derive(Debug, Default)]
struct Pages(Vec<u64>);

impl Pages {
    fn insert(&mut self, page: u32) {
        let word = page as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (page % 64);
    }

    fn contains(&self, page: u32) -> bool {
        self.0.get(page as usize / 64).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    fn pop(&mut self) -> Option<u32> {
        while let Some(last) = self.0.last_mut() {
            if *last == 0 {
                self.0.pop();
                continue;
            }
            let bit = 63 - last.leading_zeros();
            *last &= !(1 << bit);
            return Some((self.0.len() as u32 - 1) * 64 + bit);
        }
        None
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScrubProgress {
    /// Nothing is left behind in any page.
    Done,
    /// There are more pages.
    More,
    /// Somebody reads an older state, or writes; the log cannot be emptied until then.
    Held,
}

/// The file of a database, and which of its pages may have something left behind.
#[derive(Debug)]
pub(super) struct Scrubber {
    file: Arc<File>,
    log: File,
    page_size: usize,
    /// Pages that were written since they were last looked at.
    written: Pages,
    /// From this page on all are to be looked at; of what was written before this process began nothing is known.
    unknown_from: Option<u32>,
    /// Of the log: what makes it another one, and up to where its frames are known.
    salts: [u8; 8],
    known: usize,
}

impl Scrubber {
    /// `keep` keeps the file open for as long as any connection to it: closing a file gives up all of a process's locks
    /// on it, SQLite's, too.
    pub(super) fn open(
        database: &Path,
        log: &Path,
        page_size: usize,
        is_new: bool,
        keep: impl FnOnce(Arc<File>),
    ) -> io::Result<Self> {
        let file = Arc::new(File::options().read(true).write(true).open(database)?);
        keep(Arc::clone(&file));
        Ok(Self {
            file,
            log: File::open(log)?,
            page_size,
            written: Pages::default(),
            unknown_from: (!is_new).then_some(1),
            salts: [0; 8],
            known: LOG_HEADER,
        })
    }

    /// Takes note of the pages that a transaction wrote. To be called after each: the next may begin the log anew.
    pub(super) fn note(&mut self) {
        if self.note_log().is_err() {
            self.unknown_from = Some(1);
        }
    }

    fn note_log(&mut self) -> io::Result<()> {
        let mut header = [0; LOG_HEADER];
        if !read_all(&self.log, &mut header, 0)? {
            return Ok(());
        }
        let salts = &header[16..24];
        if salts != self.salts {
            self.salts.copy_from_slice(salts);
            self.known = LOG_HEADER;
        }
        let (mut at, mut frame) = (self.known, [0; FRAME_HEADER]);
        while read_all(&self.log, &mut frame, at)? && frame[8..16] == self.salts {
            self.written.insert(number(&frame, 0));
            at += FRAME_HEADER + self.page_size;
            // What was not committed is written over.
            if number(&frame, 4) != 0 {
                self.known = at;
            }
        }
        Ok(())
    }

    /// Looks at pages for `budget`, and overwrites what was left behind in them.
    pub(super) fn scrub(&mut self, connection: &Connection, budget: Duration) -> Result<ScrubProgress, ScrubError> {
        self.note_log()?;
        let is_held: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if is_held {
            return Ok(ScrubProgress::Held);
        }
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let progress = if self.log.metadata()?.len() == 0 { self.look(budget) } else { Ok(ScrubProgress::Held) };
        connection.execute_batch("ROLLBACK")?;
        // Pages in memory still have what was overwritten, and would be written as they are.
        connection.execute_batch("PRAGMA shrink_memory")?;
        Ok(progress?)
    }

    fn look(&mut self, budget: Duration) -> io::Result<ScrubProgress> {
        let deadline = Instant::now() + budget;
        let pages = u32::try_from(self.file.metadata()?.len() / self.page_size as u64).unwrap_or(u32::MAX);
        let free = self.free_pages(pages)?;
        let mut page = vec![0; self.page_size];
        while let Some(number) = self.next(pages) {
            self.clean(number, &free, &mut page)?;
            if Instant::now() > deadline {
                return Ok(ScrubProgress::More);
            }
        }
        self.file.sync_data()?;
        Ok(ScrubProgress::Done)
    }

    fn next(&mut self, pages: u32) -> Option<u32> {
        if let Some(unknown) = self.unknown_from {
            self.unknown_from = (unknown < pages).then_some(unknown + 1);
            return Some(unknown).filter(|unknown| *unknown <= pages);
        }
        // The file may be shorter than it was.
        std::iter::from_fn(|| self.written.pop()).find(|number| (1..=pages).contains(number))
    }

    /// Pages that hold nothing, but for the list of them.
    fn free_pages(&self, pages: u32) -> io::Result<Free> {
        let (mut free, mut page) = (Free::default(), vec![0; self.page_size]);
        read_all(&self.file, &mut page, 0)?;
        let (mut trunk, mut left) = (number(&page, 32), number(&page, 36));
        while (1..=pages).contains(&trunk) && left > 0 && read_all(&self.file, &mut page, self.place(trunk))? {
            free.trunks.insert(trunk);
            let leaves = leaves(&page);
            let numbers = (0..leaves).map(|leaf| number(&page, TRUNK_HEADER + 4 * leaf));
            numbers.filter(|leaf| (1..=pages).contains(leaf)).for_each(|leaf| free.leaves.insert(leaf));
            left = left.saturating_sub(leaves as u32 + 1);
            trunk = number(&page, 0);
        }
        Ok(free)
    }

    fn place(&self, number: u32) -> usize {
        (number as usize - 1) * self.page_size
    }

    fn clean(&self, number: u32, free: &Free, page: &mut [u8]) -> io::Result<()> {
        if !read_all(&self.file, page, self.place(number))? {
            return Ok(());
        }
        let gap = match number {
            _ if free.leaves.contains(number) => 0..page.len(),
            _ if free.trunks.contains(number) => TRUNK_HEADER + 4 * leaves(page)..page.len(),
            1 => gap(page, FILE_HEADER),
            _ => gap(page, 0),
        };
        if page[gap.clone()].iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        page[gap.clone()].fill(0);
        self.file.write_all_at(&page[gap.clone()], (self.place(number) + gap.start) as u64)
    }
}

/// Pages that are not used: those that list others, and those that are listed.
#[derive(Debug, Default)]
struct Free {
    trunks: Pages,
    leaves: Pages,
}

/// Bytes before the numbers that a page lists: those of the next such page, and how many they are.
const TRUNK_HEADER: usize = 8;

fn leaves(trunk: &[u8]) -> usize {
    (number(trunk, 4) as usize).min((trunk.len() - TRUNK_HEADER) / 4)
}

/// What a page of a tree has between its cells' places and its cells; nothing if it is none.
fn gap(page: &[u8], header: usize) -> std::ops::Range<usize> {
    let short = |at: usize| usize::from(u16::from_be_bytes([page[header + at], page[header + at + 1]]));
    // Other pages begin with a page's number, whose highest byte is 0 up to 64 GB.
    let places = match page[header] {
        2 | 5 => header + 12,
        10 | 13 => header + 8,
        _ => return 0..0,
    };
    let start = places + 2 * short(3);
    let end = if short(5) == 0 { 1 << 16 } else { short(5) };
    if start <= end && end <= page.len() { start..end } else { 0..0 }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Fills `buffer` from a place; false if there is not so much.
fn read_all(file: &File, buffer: &mut [u8], at: usize) -> io::Result<bool> {
    match file.read_exact_at(buffer, at as u64) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Pages could not be looked at.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScrubError {
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error(transparent)]
    File(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_pages_gives_each_once() {
        let mut pages = Pages::default();
        for page in [1, 64, 63, 1000, 64] {
            pages.insert(page);
        }
        assert!(pages.contains(63) && !pages.contains(62) && !pages.contains(5000));
        assert_eq!(std::iter::from_fn(|| pages.pop()).collect::<Vec<_>>(), [1000, 64, 63, 1]);
    }

    #[test]
    fn only_pages_of_trees_have_a_gap() {
        let check = |kind: u8, cells: u8, content: u8, expected: std::ops::Range<usize>| {
            let mut page = vec![0; 512];
            (page[0], page[4], page[6]) = (kind, cells, content);
            assert_eq!(gap(&page, 0), expected, "{kind} {cells} {content}");
        };
        check(13, 2, 200, 12..200);
        check(5, 2, 200, 16..200);
        check(13, 200, 100, 0..0);
        check(0, 2, 200, 0..0);
        check(7, 2, 200, 0..0);
    }
}
