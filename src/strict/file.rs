//! Files that others write while we read: their identity, and reading them without ever waiting.

use std::ffi::OsStr;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A file's identity and times. A file whose stamp did not change was not changed, unless it was changed within the
/// clock's grain of being read: see [`FileStamp::is_settled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of the file that `path` names, if it is a regular one.
    pub fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().filter(Metadata::is_file).map(|metadata| Self::of_metadata(&metadata))
    }

    /// The stamp of a file that was looked at already.
    pub fn of_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Was the file last touched at least two seconds before `now` (seconds since the epoch)? Only then can an equal
    /// stamp later be trusted to mean equal content: file systems keep times in ticks of up to two seconds.
    pub fn is_settled(&self, now: i64) -> bool {
        self.changed.0 + 2 < now && self.modified.0 + 2 < now
    }
}

/// Is it named like a file of YAML or JSON, and not hidden? Editors keep their temporary files behind a dot.
pub fn is_structured(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let is_one = |extension: &OsStr| ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known));
    !is_hidden && path.extension().is_some_and(is_one)
}

/// Is it named like a file of JSON?
pub fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Does the name, or a link on the way to it below `root`, lead out of that directory? Also if that cannot be told.
pub fn leads_outside(path: &Path, root: &Path) -> bool {
    match (path.canonicalize(), root.canonicalize()) {
        (Ok(path), Ok(root)) => !path.starts_with(root),
        _ => true,
    }
}

/// Reads at most `limit` + 1 bytes of a regular file, so that a longer one can be told. Never blocks: a path that
/// became a pipe since it was listed is an error.
pub fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    read_with_metadata(path, limit).map(|(content, _)| content)
}

/// The same, and what is known of the file that was read.
pub fn read_with_metadata(path: &Path, limit: usize) -> io::Result<(Vec<u8>, Metadata)> {
    // Looked at first: to open some devices is to use them.
    regular(&fs::metadata(path)?)?;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    regular(&metadata)?;
    let mut content = Vec::with_capacity(limit.min(metadata.len() as usize) + 1);
    file.take(limit as u64 + 1).read_to_end(&mut content)?;
    Ok((content, metadata))
}

fn regular(metadata: &Metadata) -> io::Result<()> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    if metadata.is_file() { Ok(()) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_names() {
        let check = |name: &str, structured: bool, json: bool| {
            let path = Path::new(name);
            assert_eq!((is_structured(path), is_json(path)), (structured, json), "{name}");
        };
        check("d/a.yaml", true, false);
        check("d/a.YAML", true, false);
        check("a.Yml", true, false);
        check("a.json", true, true);
        check("A.JSON", true, true);
        check(".a.yaml", false, false);
        check("yaml", false, false);
        check("a.yaml~", false, false);
        check("a.jsonl", false, false);
    }
}
