//! Records that were acknowledged and are not in the database yet: a file that is only ever written forward and
//! flushed.
//!
//! One flush of a few hundred bytes is what an acknowledgement costs. The database takes the records over in larger
//! groups, and the journal then begins anew at its start, so it stays small and its blocks stay allocated. What is left
//! of an earlier time behind the last frame is told apart by its ids, which rise as long as the database is the same
//! one; so each opening clears the file. A frame that was not written whole is told by its checksum.

mod frames;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(super) use self::frames::{JournalContent, JournalDamage};
use super::file_identity::FileIdentity;
use crate::store::Durability;
use crate::strict::replacement;
use crate::timing::Execution;

/// What the file of any version begins with.
const NAME: &[u8] = b"almanac";

/// What this version's begins with. Another form of records has another number.
const MAGIC: &[u8; 8] = b"almanac1";

/// Where the first frame begins.
const START: u64 = MAGIC.len() as u64;

/// Bytes before a frame: its length, its checksum, the id of its first record.
const HEAD: usize = 4 + 4 + 8;

/// Bytes that are allocated at once.
const STEP: usize = 256 << 10;

/// The journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("it was written by another version of almanacd; start that one once, so that its records are taken over")]
    Version,
    #[error("it is no journal of almanacd; move it away")]
    Foreign,
    /// The file cannot be read or made.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    identity: FileIdentity,
    /// Was there none before?
    is_new: bool,
    durability: Durability,
    /// Where the next frame goes.
    end: u64,
    /// Up to here, writing changes no length.
    allocated: u64,
    /// Has the last write failed?
    is_doubtful: bool,
    frame: Vec<u8>,
    #[cfg(test)]
    fails_next: bool,
}

impl Journal {
    /// Opens the journal, or makes it. Returns what it holds.
    pub(super) fn open(path: &Path, durability: Durability) -> Result<(Self, JournalContent), JournalError> {
        let (file, is_new) = replacement::open_or_make(path, 0o600)?;
        let mut bytes = vec![0; file.metadata()?.len() as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let content = content_of(&bytes)?;
        let identity = FileIdentity::of(path)?;
        let allocated = bytes.len() as u64;
        let mut journal = Self {
            file,
            identity,
            is_new,
            durability,
            end: START,
            allocated,
            is_doubtful: false,
            frame: Vec::new(),
            #[cfg(test)]
            fails_next: false,
        };
        if !bytes.starts_with(MAGIC) {
            journal.begin(path)?;
        }
        Ok((journal, content))
    }

    /// Makes it a journal, which is there after the loss of power.
    fn begin(&mut self, path: &Path) -> io::Result<()> {
        self.end = 0;
        self.allocate(MAGIC.len())?;
        self.file.write_all_at(MAGIC, 0)?;
        self.end = START;
        self.file.sync_all()?;
        replacement::sync_directory_of(path)
    }

    /// Removes one that nobody needs: it was made when it was opened, and has nothing. What keeps it open writes
    /// nothing more.
    pub(super) fn remove_if_new(&self) {
        if self.is_new && self.end == START && self.is_in_place() {
            let _ = std::fs::remove_file(self.identity.path());
        }
    }

    /// Is it still the file at its path?
    pub(super) fn is_in_place(&self) -> bool {
        self.identity.is_unchanged()
    }

    /// Has a write failed, and none worked since?
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Writes records of ascending ids from `first` on, and has them on the disk (fdatasync, at the durability `power`)
    /// when this returns; after an error none of them counts.
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
        self.is_doubtful = written.is_err();
        if self.is_doubtful {
            // All of it may be there, and must not be read back: who is refused sends it again.
            let _ = self.file.write_all_at(&[0; HEAD], self.end);
        } else {
            self.end += frame.len() as u64;
        }
        self.frame = frame;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.allocate(bytes.len())?;
        self.file.write_all_at(bytes, self.end)?;
        #[cfg(test)]
        if std::mem::take(&mut self.fails_next) {
            return Err(io::ErrorKind::Other.into());
        }
        if self.durability == Durability::Power {
            // fdatasync: the frame is on the disk when this returns, and only then may it be acknowledged. At the
            // durability `crash` the kernel has it, which survives the end of the daemon, not the loss of power.
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Has what was appended on the disk (fdatasync), if it was not flushed with each frame; after an error none of it
    /// counts.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.sync_data();
        self.is_doubtful |= flushed.is_err();
        flushed
    }

    /// Bytes of the frames since it began anew.
    pub(super) fn length(&self) -> u64 {
        self.end - START
    }

    /// After a failure: does writing work again? There is room for what was not written then.
    pub(super) fn prove(&mut self) -> io::Result<()> {
        if self.is_doubtful {
            self.allocate(self.frame.len())?;
            self.write(&[0; HEAD])?;
            self.is_doubtful = false;
        }
        Ok(())
    }

    /// Sees to it that there are so many bytes behind the last frame: zeros, since space that was only promised costs
    /// another flush when it is written.
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
        if self.end > START {
            // So that it looks empty. If that fails, or never reaches the disk, the ids tell that the records are old.
            let _ = self.file.write_all_at(&[0; HEAD], START);
            self.end = START;
        }
    }

    /// Removes what is left of an earlier time. All that was read is kept elsewhere now.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(START)?;
        (self.end, self.allocated) = (START, START);
        self.allocate(HEAD)
    }
}

/// What the journal at `path` holds, whoever writes to it; nothing if there is none.
pub(super) fn peek(path: &Path) -> Result<Vec<(i64, Execution)>, JournalError> {
    Ok(peek_content(path)?.records)
}

/// The same with what is to be said of it.
pub(super) fn peek_content(path: &Path) -> Result<JournalContent, JournalError> {
    match std::fs::read(path) {
        Ok(bytes) => content_of(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(JournalContent::default()),
        Err(error) => Err(error.into()),
    }
}

fn content_of(bytes: &[u8]) -> Result<JournalContent, JournalError> {
    match bytes.strip_prefix(MAGIC) {
        Some(frames) => Ok(frames::read(frames)),
        // A start that was cut short.
        None if bytes.iter().all(|&byte| byte == 0) => Ok(JournalContent::default()),
        None if bytes.starts_with(NAME) => Err(JournalError::Version),
        None => Err(JournalError::Foreign),
    }
}

/// Damaged files that are kept beside each other.
const MOST_DAMAGED: u32 = 100;

/// A name beside `path` that nothing has, for a file that is damaged.
pub(super) fn damaged_name(path: &Path) -> PathBuf {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 0 { ".damaged".to_owned() } else { format!(".damaged-{number}") });
        PathBuf::from(name)
    };
    (0..MOST_DAMAGED).map(named).find(|name| name.symlink_metadata().is_err()).unwrap_or_else(|| named(MOST_DAMAGED))
}

#[cfg(test)]
impl Journal {
    /// The next frame is written, and its flush fails.
    pub(super) fn fail_next(&mut self) {
        self.fails_next = true;
    }

    /// It was written last then.
    pub(super) fn touch(&self, at: std::time::SystemTime) {
        self.file.set_modified(at).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::timing::{Measures, Outcome};

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
            idempotency_key: Some("k".into()),
        }
    }

    fn open(path: &Path) -> (Journal, Vec<(i64, Execution)>) {
        let (journal, content) = Journal::open(path, Durability::Power).unwrap();
        (journal, content.records)
    }

    fn records_in(bytes: &[u8]) -> Result<Vec<(i64, Execution)>, JournalError> {
        Ok(content_of(bytes)?.records)
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
            let (records, length) = (expected.clone(), journal.length());
            prop_assert_eq!(peek_content(&path).unwrap(), JournalContent { records, length, ..Default::default() });
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
            prop_assert_eq!(frames::read(&noise).records, Vec::new());
        }
    }

    /// A byte that is damaged costs the frame that it is in, and a file that is cut what is behind; both are said.
    #[test]
    fn what_is_damaged_costs_no_other_frame() {
        check_damage(&[&[2, 1, 3, 2]]);
        // Before what is left of an earlier time.
        check_damage(&[&[3, 1, 2, 4, 2, 5], &[2, 1, 3, 2]]);
    }

    fn check_damage(generations: &[&[usize]]) {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, _) = open(&path);
        let (mut id, mut frames) = (1, Vec::new());
        for (generation, sizes) in generations.iter().enumerate() {
            journal.rewind();
            frames.clear();
            for (place, size) in sizes.iter().enumerate() {
                let records = vec![execution(&"x".repeat(generation * 7 + place + 1)); *size];
                let begin = journal.end as usize;
                journal.append(id, &records).unwrap();
                frames.push((begin..journal.end as usize, (id..).zip(records).collect::<Vec<_>>()));
                id += *size as i64;
            }
        }
        let whole = std::fs::read(&path).unwrap();
        let kept = |hit: usize| -> Vec<(i64, Execution)> {
            let others = frames.iter().enumerate().filter(|(place, _)| *place != hit);
            others.flat_map(|(_, (_, records))| records.clone()).collect()
        };
        assert_eq!(
            content_of(&whole).unwrap(),
            JournalContent { records: kept(usize::MAX), length: journal.length(), ..Default::default() }
        );
        for (hit, (place, _)) in frames.iter().enumerate() {
            for (byte, mask) in place.clone().flat_map(|byte| [(byte, 0xff), (byte, 1), (byte, 0x80)]) {
                let mut bytes = whole.clone();
                bytes[byte] ^= mask;
                let content = content_of(&bytes).unwrap();
                assert_eq!(content.records, kept(hit), "byte {byte} of frame {hit} by {mask}");
                let is_last = hit + 1 == frames.len();
                let expected = (!is_last).then_some(place.start as u64);
                let said = content.damage.filter(|_| !is_last).map(|damage| damage.offset);
                assert_eq!(said, expected, "byte {byte} of frame {hit} by {mask}: {:?}", content.damage);
            }
        }
        for cut in START as usize + 1..journal.end as usize {
            let content = content_of(&whole[..cut]).unwrap();
            let before = frames.iter().filter(|(place, _)| place.end <= cut);
            let end = before.clone().next_back().map_or(START, |(place, _)| place.end as u64);
            let expected: Vec<_> = before.flat_map(|(_, records)| records.clone()).collect();
            let damage = Some(JournalDamage { offset: end, resumes_at: None });
            assert_eq!((content.records, content.damage), (expected, damage), "cut at {cut}");
        }
    }

    #[test]
    fn a_write_that_was_cut_short_is_no_damage() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, _) = open(&path);
        for id in 1..6 {
            journal.append(id, &[execution("left of an earlier time")]).unwrap();
        }
        journal.rewind();
        let check = |journal: &mut Journal, first: i64, before: &[(i64, Execution)]| {
            let (begin, old) = (journal.end as usize, std::fs::read(&path).unwrap());
            journal.append(first, &[execution("a"), execution("b")]).unwrap();
            let (new, end) = (std::fs::read(&path).unwrap(), journal.end as usize);
            for cut in begin..end {
                let torn = [&new[..cut], &old[cut..]].concat();
                let content = content_of(&torn).unwrap();
                assert_eq!((&content.records[..], content.damage), (before, None), "{first} from {begin} at {cut}");
            }
        };
        check(&mut journal, 6, &[]);
        check(&mut journal, 8, &[(6, execution("a")), (7, execution("b"))]);
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
    fn what_is_no_journal_of_this_version_is_refused_and_left_alone() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("journal");
        let check = |bytes: &[u8], expected: &str| {
            std::fs::write(&path, bytes).unwrap();
            let said = Journal::open(&path, Durability::Crash).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        };
        check(b"almanac2 and more", "another version");
        check(b"-- Boot 1 --", "move it away");
    }

    /// If this fails, the form of records is another: give `MAGIC` its next number.
    #[test]
    fn the_form_of_records_is_that_of_the_number() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("journal");
        open(&path).0.append(258, &[execution("tool")]).unwrap();
        let frame = b"\x02\x01\0\0\0\0\0\0\x01\x01t\x04tool\x01\x01m\x01\x07\x02\0\0\x01\x03\0\0\0\x01\x01\x01k";
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[..START as usize], b"almanac1");
        assert_eq!(&bytes[START as usize + 8..][..=frame.len()], [&frame[..], &[0]].concat());
    }

    #[test]
    fn what_was_refused_is_not_read_back() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, _) = open(&path);
        journal.append(1, &[execution("a")]).unwrap();
        journal.fail_next();
        journal.append(2, &[execution("b")]).unwrap_err();
        assert!(journal.is_doubtful());
        assert_eq!(open(&path).1, [(1, execution("a"))]);
        journal.prove().unwrap();
        assert!(!journal.is_doubtful());
        journal.append(2, &[execution("c")]).unwrap();
        assert_eq!(open(&path).1, [(1, execution("a")), (2, execution("c"))]);
    }

    /// Any bytes are records of ids that rise, or none.
    #[test]
    fn fuzz_journal() {
        // What is no journal of this version reaches little.
        assert_eq!(records_in(include_bytes!("../../tests/corpus/journal/three_batches")).unwrap().len(), 4);
        crate::text::edits::fuzz("journal", |bytes| {
            let mut file = MAGIC.to_vec();
            // With the right checksums, so that what is behind them is reached.
            for body in bytes.chunks(61) {
                let length = (HEAD + body.len()) as u32;
                let rest: Vec<u8> = 1_i64.to_le_bytes().into_iter().chain(body.iter().copied()).collect();
                file.extend(length.to_le_bytes());
                file.extend(crc32fast::hash(&rest).to_le_bytes());
                file.extend(rest);
            }
            for bytes in [bytes, &file] {
                let Ok(records) = records_in(bytes) else { continue };
                assert!(records.windows(2).all(|pair| pair[0].0 < pair[1].0));
            }
        });
    }

    /// What a disk may do to writes that were not flushed: lose any of them, and tear the last one. After each flush
    /// the journal is tried with every subset of the later writes that is a prefix, or a prefix with one write left
    /// out, and with every cut of that one in steps.
    #[test]
    fn what_was_flushed_survives_any_disk() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, _) = open(&path);
        let mut kept: Vec<(i64, Execution)> = Vec::new();
        let mut id = 1;
        for round in 0..12 {
            let before = std::fs::read(&path).unwrap();
            let from = journal.end;
            let batch: Vec<Execution> = (0..=round % 4).map(|n| execution(&"x".repeat(n * 40 + 1))).collect();
            if round % 5 == 4 {
                journal.rewind();
                // Taken over: these need not be there any more, and those that are do no harm.
                kept.clear();
            }
            journal.append(id, &batch).unwrap();
            let after = std::fs::read(&path).unwrap();
            let written = changes(&before, &after);
            let old: Vec<(i64, Execution)> = records_in(&before).unwrap();
            for disk in disks(&before, &written) {
                let read = records_in(&disk).unwrap();
                // All records that were flushed before, unless they were taken over since; never a part of a batch.
                let is_old = read == old;
                let is_new = read == [kept.clone(), (id..).zip(batch.clone()).collect()].concat();
                let is_rest = read.iter().all(|record| old.contains(record)) && round % 5 == 4;
                assert!(is_old || is_new || is_rest, "round {round} from {from}: {} records", read.len());
            }
            kept.extend((id..).zip(batch.clone()));
            id += batch.len() as i64;
            assert_eq!(records_in(&after).unwrap(), kept, "what was acknowledged");
        }
    }

    /// Ranges in which two states of the file differ, in sectors, as a disk writes them.
    fn changes(before: &[u8], after: &[u8]) -> Vec<(usize, Vec<u8>)> {
        const SECTOR: usize = 64;
        let differs = |at: &usize| {
            before.get(*at..(*at + SECTOR).min(before.len())) != after.get(*at..(*at + SECTOR).min(after.len()))
        };
        (0..after.len())
            .step_by(SECTOR)
            .filter(differs)
            .map(|at| (at, after[at..(at + SECTOR).min(after.len())].to_vec()))
            .collect()
    }

    /// What may be on the disk when the power goes: each prefix of the writes, each with one of them lost, and with the
    /// last one torn.
    fn disks(before: &[u8], writes: &[(usize, Vec<u8>)]) -> Vec<Vec<u8>> {
        let apply = |chosen: &[&(usize, Vec<u8>)]| {
            let mut disk = before.to_vec();
            for (at, bytes) in chosen {
                disk.resize(disk.len().max(at + bytes.len()), 0);
                disk[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            disk
        };
        let mut all = Vec::new();
        for end in 0..=writes.len() {
            let prefix: Vec<_> = writes[..end].iter().collect();
            all.push(apply(&prefix));
            for lost in 0..end.saturating_sub(1) {
                let others: Vec<_> =
                    prefix.iter().enumerate().filter(|(at, _)| *at != lost).map(|(_, write)| *write).collect();
                all.push(apply(&others));
            }
            if let Some((at, bytes)) = writes.get(end) {
                for cut in (0..bytes.len()).step_by(7) {
                    let torn = (*at, bytes[..cut].to_vec());
                    all.push(apply(&[prefix.as_slice(), &[&torn]].concat()));
                }
            }
        }
        all
    }
}
