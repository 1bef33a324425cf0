//! What searches are compared with: BM25 over the texts alone.

use crate::text::bm25::{Bm25, Field};

/// The usual parameters (Robertson & Zaragoza 2009, section 3.2).
const FIELD: Field = Field { weight: 1.0, b: 0.75 };
const SATURATION: f32 = 1.2;

/// An index of texts by their order.
#[derive(Debug)]
pub struct RecallBaseline(Bm25);

impl RecallBaseline {
    /// Indexes texts.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let documents = texts.into_iter().map(|text| [(0, text)]);
        Self(Bm25::build(&[FIELD], SATURATION, documents))
    }

    /// The numbers of the best texts for a query, best first, `depth` at most.
    pub fn best(&self, query: &str, depth: usize) -> Vec<usize> {
        self.0.rank(query).into_iter().take(depth).map(|(text, _)| text as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_count_more() {
        let baseline = RecallBaseline::of(["tea and milk", "tea and rum", "tea"]);
        assert_eq!(baseline.best("tea with rum", 2), [1, 2]);
        assert_eq!(baseline.best("coffee", 2), [] as [usize; 0]);
    }
}
