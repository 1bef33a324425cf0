//! A journal of which something cannot be read: it is kept, since the database begins it anew.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::store::journal::{self, JournalContent, JournalDamage};
use crate::strict::replacement;

/// Keeps a copy of a journal of which records cannot be read that the database lacks, and says so.
pub(super) fn keep(path: &Path, content: &JournalContent, next_id: i64) {
    // What was lost before a record that the database has is in the database, too.
    let is_lacking = |damage: &JournalDamage| damage.resumes_at.is_none_or(|id| id > next_id);
    let Some(JournalDamage { offset, .. }) = content.damage.filter(is_lacking) else { return };
    let kept = match copy(path) {
        Ok(kept) => kept.display().to_string(),
        Err(error) => format!("no copy can be kept: {error}"),
    };
    tracing::error!(
        file = %path.display(),
        offset,
        kept,
        "the journal is damaged from this byte on, and records that were acknowledged may be lost; those that can be \
         read are taken over: look for the cause, and record again what is missing"
    );
}

/// The database empties the journal, so the copy is there after a loss of power, too.
fn copy(path: &Path) -> io::Result<PathBuf> {
    let kept = journal::damaged_name(path);
    let (mut copy, is_new) = replacement::open_or_make(&kept, 0o600)?;
    let copied = (|| {
        copy.set_len(0)?;
        io::copy(&mut File::open(path)?, &mut copy)?;
        copy.sync_all()
    })();
    if copied.is_err() && is_new {
        let _ = fs::remove_file(&kept);
    }
    copied.map(|()| kept)
}
