//! Records that were acknowledged and are not in the database yet: a file that is only ever written forward and flushed.
//!
//! One flush of a few hundred bytes is what an acknowledgement costs. The database takes the records over in larger groups, and
//! the journal then begins anew at its start, so it stays small and its blocks stay allocated. What is left of an earlier time
//! behind the last frame is told apart by its ids, which always rise; a frame that was not written whole, by its checksum.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::{Durability, Execution};

/// What the file begins with. Another form of records has another number.
const MAGIC: &[u8; 8] = b"almanac1";

/// Bytes before a frame: its length, its checksum, the id of its first record.
const HEAD: usize = 4 + 4 + 8;

/// Bytes that are allocated at once.
const STEP: usize = 256 << 10;

/// The journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another version's.
    #[error("it was written by another version of almanacd; start that one once, so that its records are taken over")]
    Version,
    /// The file cannot be read or made.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    durability: Durability,
    /// Where the next frame goes.
    end: u64,
    /// Up to here, writing changes no length.
    allocated: u64,
    frame: Vec<u8>,
}

impl Journal {
    /// Opens the journal, or makes it. Returns what it holds, with ids, in their order.
    pub(super) fn open(path: &Path, durability: Durability) -> Result<(Self, Vec<(i64, Execution)>), JournalError> {
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)?;
        let mut bytes = vec![0; file.metadata()?.len() as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let records = records_in(&bytes)?;
        let mut journal =
            Self { file, durability, end: MAGIC.len() as u64, allocated: bytes.len() as u64, frame: Vec::new() };
        if !bytes.starts_with(MAGIC) {
            journal.allocate(MAGIC.len())?;
            journal.file.write_all_at(MAGIC, 0)?;
            journal.file.sync_all()?;
            if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
                File::open(directory)?.sync_all()?;
            }
        }
        Ok((journal, records))
    }

    /// Writes records of ascending ids from `first` on. Durable when this returns; after an error none of them counts.
    pub(super) fn append(&mut self, first: i64, records: &[Execution]) -> io::Result<()> {
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        frame.extend_from_slice(&[0; HEAD]);
        let mut frame = postcard::to_extend(records, frame).expect("records are plain data, and a vector grows");
        frame[8..HEAD].copy_from_slice(&first.to_le_bytes());
        let sum = crc32fast::hash(&frame[8..]);
        let length = u32::try_from(frame.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        frame[..4].copy_from_slice(&length.to_le_bytes());
        frame[4..8].copy_from_slice(&sum.to_le_bytes());
        let written = self.write(&frame);
        self.frame = frame;
        written
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        self.allocate(frame.len())?;
        self.file.write_all_at(frame, self.end)?;
        if self.durability == Durability::Power {
            self.file.sync_data()?;
        }
        self.end += frame.len() as u64;
        Ok(())
    }

    /// Sees to it that there are so many bytes behind the last frame: zeros, since space that was only promised costs another
    /// flush when it is written.
    fn allocate(&mut self, length: usize) -> io::Result<()> {
        let needed = self.end + length as u64;
        if self.allocated >= needed {
            return Ok(());
        }
        let zeros = vec![0; STEP];
        while self.allocated < needed {
            self.file.write_all_at(&zeros, self.allocated)?;
            self.allocated += STEP as u64;
        }
        Ok(())
    }

    /// All that was written is kept elsewhere now.
    pub(super) fn rewind(&mut self) {
        let start = MAGIC.len() as u64;
        if self.end > start {
            // So that it looks empty. If that fails, or never reaches the disk, the ids tell that the records are old.
            let _ = self.file.write_all_at(&[0; HEAD], start);
            self.end = start;
        }
    }
}

/// What the journal at `path` holds, whoever writes to it; nothing if there is none.
pub(super) fn peek(path: &Path) -> Result<Vec<(i64, Execution)>, JournalError> {
    match std::fs::read(path) {
        Ok(bytes) => records_in(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn records_in(bytes: &[u8]) -> Result<Vec<(i64, Execution)>, JournalError> {
    match bytes.strip_prefix(MAGIC) {
        Some(frames) => Ok(read(frames)),
        // A start that was cut short.
        None if bytes.iter().all(|&byte| byte == 0) => Ok(Vec::new()),
        None => Err(JournalError::Version),
    }
}

/// The records of all frames up to the first that is none, or that does not follow the one before.
fn read(mut bytes: &[u8]) -> Vec<(i64, Execution)> {
    let mut records: Vec<(i64, Execution)> = Vec::new();
    while let Some((first, frame, rest)) = next(bytes) {
        let follows = records.last().is_none_or(|(last, _)| first == last + 1);
        if !follows || frame.is_empty() {
            break;
        }
        records.extend((first..).zip(frame));
        bytes = rest;
    }
    records
}

fn next(bytes: &[u8]) -> Option<(i64, Vec<Execution>, &[u8])> {
    let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let (frame, rest) = bytes.split_at_checked(length)?;
    let sum = u32::from_le_bytes(*frame.get(4..)?.first_chunk()?);
    let first = i64::from_le_bytes(*frame.get(8..)?.first_chunk()?);
    if crc32fast::hash(&frame[8..]) != sum {
        return None;
    }
    Some((first, postcard::from_bytes(&frame[HEAD..]).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::super::{Measures, Outcome};
    use super::*;

    fn execution(tool: &str) -> Execution {
        Execution {
            tenant: "t".to_owned(),
            tool: tool.to_owned(),
            mode: Some("m".to_owned()),
            duration_ms: Some(7),
            outcome: Outcome::Timeout,
            measures: Measures { num_branches: Some(3), ..Measures::default() },
            session: None,
            at_ms: -1,
            idempotency_key: Some("k".to_owned()),
        }
    }

    fn open(path: &Path) -> (Journal, Vec<(i64, Execution)>) {
        Journal::open(path, Durability::Power).unwrap()
    }

    proptest! {
        /// Whatever was flushed since the last rewind is read back, however the file ends and whatever is left in it.
        #[test]
        fn what_was_flushed_is_read_back(
            frames in prop::collection::vec(("[a-z]{1,30}", 1usize..6, 0u8..4), 1..20),
            torn in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let directory = TempDir::new().unwrap();
            let path = directory.path().join("journal");
            let (mut journal, mut id, mut expected) = (open(&path).0, 1, Vec::new());
            for (tool, count, then) in &frames {
                if *then == 0 {
                    journal.rewind();
                    expected.clear();
                }
                let records = vec![execution(tool); *count];
                journal.append(id, &records).unwrap();
                expected.extend((id..).zip(records));
                id += *count as i64;
            }
            prop_assert_eq!(&open(&path).1, &expected);
            prop_assert_eq!(peek(&path).unwrap(), expected.clone());
            // A frame that was on its way.
            journal.file.write_all_at(&torn, journal.end).unwrap();
            let read = open(&path).1;
            prop_assert!(read.starts_with(&expected) || !torn.is_empty());
            prop_assert_eq!(&read[..expected.len()], &expected[..]);
            // A file that was cut, within what was written and before.
            for cut in [journal.end, journal.end - 1] {
                journal.file.set_len(cut).unwrap();
                let read = open(&path).1;
                prop_assert!(expected.starts_with(&read[..read.len().min(expected.len())]));
            }
        }

        #[test]
        fn noise_is_no_record(noise in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(read(&noise).is_empty());
        }
    }

    #[test]
    fn a_longer_record_than_is_allocated_at_once_is_kept() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("journal");
        let records = vec![execution(&"x".repeat(STEP)), execution("y")];
        open(&path).0.append(5, &records).unwrap();
        assert_eq!(open(&path).1, (5..).zip(records).collect::<Vec<_>>());
    }

    #[test]
    fn another_version_s_journal_is_refused() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("journal");
        std::fs::write(&path, b"almanac2 and more").unwrap();
        assert!(matches!(Journal::open(&path, Durability::Crash), Err(JournalError::Version)));
    }
}
