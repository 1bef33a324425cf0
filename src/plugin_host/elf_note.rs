//! What a shared object says it is, read from its bytes without running any of it.
//!
//! Also the place where a file that is half written, for another machine, or no library at all is told apart, so that
//! the dynamic loader never sees one: it maps what the headers promise, and dies of what is not there.

use almanac_plugin_abi::{ABI_MAJOR, NOTE_ID_SIZE, NOTE_OWNER, NOTE_TYPE, NOTE_VERSION_SIZE, Note};
use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use serde::{Deserialize, Serialize};

/// Id, version and interface of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub id: String,
    pub version: String,
    /// The interface it was built for: major and minor.
    pub abi: (u32, u32),
}

/// The bytes are no library that could be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfNoteError {
    /// No ELF, or a broken one.
    #[error("it is no shared object, or is damaged: {0}")]
    NotElf(&'static str),
    /// Not all of it is there.
    #[error("it is cut off: its headers promise {promised} bytes, and {there} are there")]
    Truncated {
        /// Bytes that its segments take.
        promised: u64,
        /// Bytes of the file.
        there: u64,
    },
    #[error("it is built for {0}, and this machine runs {arch}; build it here, or for this \
        one", arch = std::env::consts::ARCH)]
    Machine(&'static str),
    /// A shared object like any other.
    #[error(
        "it has no note of a rule library (in Rust export_plugin! makes it, in C ALMANAC_PLUGIN_NOTE of \
         almanac_plugin.h)"
    )]
    Missing,
    /// The note is not what the interface says.
    #[error("its note is wrong: {0}")]
    Wrong(&'static str),
    #[error("it was built for version {0} of the interface, and this host speaks version {ABI_MAJOR}")]
    Major(u32),
}

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = elf::EM_X86_64.0;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = elf::EM_AARCH64.0;

/// The common ones by the names that compilers use.
fn machine_name(machine: u16) -> &'static str {
    match elf::Machine(machine) {
        elf::EM_X86_64 => "x86_64",
        elf::EM_AARCH64 => "aarch64",
        elf::EM_RISCV => "riscv64",
        elf::EM_PPC64 => "powerpc64",
        elf::EM_S390 => "s390x",
        _ => "another machine",
    }
}

/// What the library says it is.
pub fn identify(bytes: &[u8]) -> Result<Identity, ElfNoteError> {
    let broken = |_| ElfNoteError::NotElf("its headers cannot be read");
    let is_elf = bytes.starts_with(&elf::ELFMAG);
    // The fifth byte is the class: 1 for 32 bits.
    if is_elf && bytes.get(4) == Some(&1) {
        return Err(ElfNoteError::Machine("a machine of 32 bits"));
    }
    let no_header = ElfNoteError::NotElf(if is_elf { "its ELF header is cut off" } else { "it has no ELF header" });
    let header = FileHeader64::<Endianness>::parse(bytes).map_err(|_| no_header)?;
    let endian = header.endian().map_err(broken)?;
    let machine = header.e_machine(endian).0;
    if machine != MACHINE {
        return Err(ElfNoteError::Machine(machine_name(machine)));
    }
    if header.e_type(endian) != elf::ET_DYN {
        return Err(ElfNoteError::NotElf("it is no shared object"));
    }
    let segments = header.program_headers(endian, bytes).map_err(broken)?;
    let end =
        |segment: &elf::ProgramHeader64<Endianness>| segment.p_offset(endian).saturating_add(segment.p_filesz(endian));
    let promised = segments.iter().map(end).max().unwrap_or_default();
    let there = bytes.len() as u64;
    if promised > there {
        return Err(ElfNoteError::Truncated { promised, there });
    }
    for segment in segments {
        let Ok(Some(mut notes)) = segment.notes(endian, bytes) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == &NOTE_OWNER[..NOTE_OWNER.len() - 1] && note.n_type(endian).0 == NOTE_TYPE {
                return read(note.desc(), endian);
            }
        }
    }
    Err(ElfNoteError::Missing)
}

fn read(description: &[u8], endian: Endianness) -> Result<Identity, ElfNoteError> {
    if description.len() < Note::DESC_SIZE {
        return Err(ElfNoteError::Wrong("it is shorter than that of version 1.0"));
    }
    let number = |at: usize| {
        let bytes = description[at..].first_chunk().expect("the length was compared");
        if endian == Endianness::Little { u32::from_le_bytes(*bytes) } else { u32::from_be_bytes(*bytes) }
    };
    let (major, minor) = (number(0), number(4));
    if major != ABI_MAJOR {
        return Err(ElfNoteError::Major(major));
    }
    let id = text(&description[8..8 + NOTE_ID_SIZE]).ok_or(ElfNoteError::Wrong("its id is empty or not ended"))?;
    let is_of_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    if !id.bytes().all(is_of_id) || id.bytes().all(|byte| byte == b'.') {
        return Err(ElfNoteError::Wrong("an id is made of a-z, 0-9, `-`, `_` and `.`"));
    }
    let version = &description[8 + NOTE_ID_SIZE..8 + NOTE_ID_SIZE + NOTE_VERSION_SIZE];
    let version = text(version).ok_or(ElfNoteError::Wrong("its version is empty or not ended"))?;
    if !version.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ElfNoteError::Wrong("a version is made of printable ASCII"));
    }
    Ok(Identity { id: id.to_owned(), version: version.to_owned(), abi: (major, minor) })
}

/// A text that is padded with at least one NUL.
fn text(padded: &[u8]) -> Option<&str> {
    let end = padded.iter().position(|&byte| byte == 0).filter(|&end| end > 0)?;
    str::from_utf8(&padded[..end]).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(note: &Note) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [note.abi_major, note.abi_minor] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(note.id);
        bytes.extend(note.version);
        bytes
    }

    #[test]
    fn a_note_says_what_its_library_is() {
        let check = |change: &dyn Fn(&mut Note), expected: Result<&str, ElfNoteError>| {
            let mut note = Note::new("org.example.rules", "1.2.0");
            change(&mut note);
            let said = read(&bytes(&note), Endianness::Little);
            let said = said.map(|said| format!("{} {} {:?}", said.id, said.version, said.abi));
            assert_eq!(said, expected.map(str::to_owned));
        };
        check(&|_| {}, Ok("org.example.rules 1.2.0 (1, 0)"));
        check(&|note| note.abi_minor = 7, Ok("org.example.rules 1.2.0 (1, 7)"));
        check(&|note| note.abi_major = 2, Err(ElfNoteError::Major(2)));
        check(&|note| note.id = [b'a'; NOTE_ID_SIZE], Err(ElfNoteError::Wrong("its id is empty or not ended")));
        check(&|note| note.version[0] = 0, Err(ElfNoteError::Wrong("its version is empty or not ended")));
        check(&|note| note.version[1] = b' ', Err(ElfNoteError::Wrong("a version is made of printable ASCII")));
        check(&|note| note.id[0] = b'/', Err(ElfNoteError::Wrong("an id is made of a-z, 0-9, `-`, `_` and `.`")));
    }

    #[test]
    fn what_cannot_run_here_is_told_apart() {
        let elf = |class: u8, machine: u16| {
            let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
            bytes.resize(16, 0);
            bytes.extend([3, 0]);
            bytes.extend(machine.to_le_bytes());
            bytes.resize(64, 0);
            bytes
        };
        let check = |bytes: &[u8], part: &str| {
            let error = identify(bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        check(b"a text that is named x.so", "it has no ELF header");
        check(&elf(2, MACHINE)[..20], "its ELF header is cut off");
        check(&elf(1, 3), "built for a machine of 32 bits");
        check(&elf(2, 243), "built for riscv64");
        check(&elf(2, 9999), "built for another machine");
        check(&elf(2, MACHINE), "no note");
    }

    proptest! {
        /// Bytes of any kind are an identity or an error.
        #[test]
        fn no_bytes_are_too_odd(noise in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(identify(&noise).is_err());
            let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0".to_vec();
            elf.extend(noise);
            let _ = identify(&elf);
            let _ = read(&elf, Endianness::Little);
        }
    }
}
