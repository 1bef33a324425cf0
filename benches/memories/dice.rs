//! Texts of words that are as frequent as Zipf's law says, the same in every run.

const VOCABULARY: f64 = 50_000.0;

/// Numbers that look random and are the same every time (xorshift64*).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / 9_007_199_254_740_992.0
    }

    pub(crate) fn text(&mut self, words: usize) -> String {
        // A rank is as likely as its inverse.
        self.words(words, |share| VOCABULARY.powf(share))
    }

    /// Words of the rarer half of the vocabulary.
    pub(crate) fn rare(&mut self, words: usize) -> String {
        self.words(words, |share| VOCABULARY * (1.0 + share) / 2.0)
    }

    fn words(&mut self, count: usize, rank: impl Fn(f64) -> f64) -> String {
        (0..count).map(|_| word(rank(self.roll()) as u64)).collect::<Vec<_>>().join(" ")
    }
}

fn word(mut rank: u64) -> String {
    let mut word = String::new();
    while rank > 0 {
        word.push_str(["ba", "do", "ki", "lu", "me", "no", "ra", "si", "te", "vu"][(rank % 10) as usize]);
        rank /= 10;
    }
    word
}
