//! A journal of which something cannot be read: it is kept, since the database begins it anew.

use std::path::Path;
use std::{fs, io};

use crate::store::journal::{self, JournalContent, JournalDamage};

/// Keeps a copy of a journal of which records cannot be read that the database lacks, and says so.
pub(super) fn keep(path: &Path, content: &JournalContent, next_id: i64) -> io::Result<()> {
    // What was lost before a record that the database has is in the database, too.
    let is_lacking = |damage: &JournalDamage| damage.resumes_at.is_none_or(|id| id > next_id);
    let Some(JournalDamage { offset, .. }) = content.damage.filter(is_lacking) else { return Ok(()) };
    let kept = journal::damaged_name(path);
    fs::copy(path, &kept)?;
    tracing::error!(
        file = %path.display(),
        offset,
        kept = %kept.display(),
        "the journal is damaged from this byte on, and records that were acknowledged may be lost; those that can be \
         read are taken over, and a copy of the file is kept: look for the cause, and record again what is missing"
    );
    Ok(())
}
