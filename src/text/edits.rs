//! Feeding made-up bytes: what is nearly right reaches further than what is merely random, so any bytes also stand for
//! changes to one of the files in `tests/corpus`. What was found goes there, too.

use std::fs;
use std::panic::RefUnwindSafe;
use std::path::Path;

/// Has `check` see the files of `tests/corpus/NAME` as they are, then made-up bytes, and the files with made-up
/// changes.
pub(crate) fn fuzz(name: &str, check: impl Fn(&[u8]) + RefUnwindSafe) {
    let seeds = corpus(name);
    for seed in &seeds {
        check(seed);
    }
    bolero::check!().for_each(|bytes: &[u8]| {
        check(bytes);
        if let Some((&which, edits)) = bytes.split_first() {
            check(&edited(&seeds[usize::from(which) % seeds.len()], edits));
        }
    });
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The seed with up to 64 changes: bytes replaced, added, taken away and copied.
fn edited(seed: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut text = seed.to_vec();
    for edit in edits.chunks_exact(4).take(64) {
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % (text.len() + 1);
        let (length, byte) = (usize::from(edit[2] >> 2) + 1, edit[3]);
        let end = (place + length).min(text.len());
        match edit[2] & 3 {
            0 if place < text.len() => text[place] = byte,
            1 => text.insert(place, byte),
            2 => drop(text.drain(place..end)),
            _ => {
                let copy = text[place..end].to_vec();
                let to = usize::from(byte) * (text.len() + 1) / 256;
                text.splice(to..to, copy);
            }
        }
    }
    text
}
