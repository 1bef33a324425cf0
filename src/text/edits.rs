//! Changes to a seed that any bytes stand for: what is nearly right reaches further than what is merely random.

/// The seed with up to 64 changes: bytes replaced, added, taken away and copied.
pub(crate) fn edited(seed: &[u8], edits: &[u8]) -> Vec<u8> {
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
