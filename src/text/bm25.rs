//! BM25F: ranks documents of several weighted fields for a query.
//!
//! Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.6: term frequencies
//! are normalised per field, weighted, summed, and saturated once.

use foldhash::HashMap;

use super::analysis;

/// How much a field counts.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Weight of one occurrence, above 0.
    pub weight: f32,
    /// Length normalisation, 0 (none) to 1 (full).
    pub b: f32,
}

/// An inverted index over documents numbered in the order they were given.
#[derive(Debug)]
pub struct Bm25 {
    terms: HashMap<Box<str>, Vec<Posting>>,
    documents: usize,
}

/// A term that some document has.
#[derive(Debug, Clone, Copy)]
pub struct PostingList<'i> {
    /// Its inverse document frequency, above 0.
    pub idf: f32,
    postings: &'i [Posting],
}

impl<'i> PostingList<'i> {
    /// The documents that have it, by number, each with how much of it: 0 to 1, saturated. The product with the idf is
    /// what the term adds to the document's score.
    pub fn documents(self) -> impl Iterator<Item = (usize, f32)> + use<'i> {
        self.postings.iter().map(|posting| (posting.document as usize, posting.amount))
    }

    /// Does that document have it?
    pub fn has(self, document: usize) -> bool {
        self.postings.binary_search_by_key(&document, |posting| posting.document as usize).is_ok()
    }
}

#[derive(Debug, Clone, Copy)]
struct Posting {
    document: u32,
    /// How often, weighted and by length; saturated.
    amount: f32,
}

impl Bm25 {
    /// Indexes `documents`; each yields the text of its fields, in the order of `fields`. The higher `saturation` (k1,
    /// above 0) is, the more repeats of a term count.
    pub fn build<'t, D>(fields: &[Field], saturation: f32, documents: impl IntoIterator<Item = D>) -> Self
    where
        D: IntoIterator<Item = (usize, &'t str)>,
    {
        let mut lengths: Vec<Vec<f32>> = Vec::new();
        let mut raw: HashMap<Box<str>, Vec<(u32, usize, f32)>> = HashMap::default();
        for (document, texts) in documents.into_iter().enumerate() {
            let mut length = vec![0.0; fields.len()];
            for (field, text) in texts {
                analysis::terms(text, |term| {
                    length[field] += 1.0;
                    let postings = match raw.get_mut(term) {
                        Some(postings) => postings,
                        None => raw.entry(term.into()).or_default(),
                    };
                    match postings.last_mut() {
                        Some(last) if last.0 == document as u32 && last.1 == field => last.2 += 1.0,
                        _ => postings.push((document as u32, field, 1.0)),
                    }
                });
            }
            lengths.push(length);
        }
        let mean = |field: usize| {
            let total: f32 = lengths.iter().map(|length| length[field]).sum();
            (total / lengths.len().max(1) as f32).max(1.0)
        };
        let means: Vec<f32> = (0..fields.len()).map(mean).collect();
        let weigh = |(document, field, count): (u32, usize, f32)| {
            let Field { weight, b } = fields[field];
            let length = lengths[document as usize][field] / means[field];
            Posting { document, amount: weight * count / (1.0 - b + b * length) }
        };
        let saturated = |mut postings: Vec<Posting>| {
            for posting in &mut postings {
                posting.amount /= saturation + posting.amount;
            }
            postings
        };
        let merged = raw.into_iter().map(|(term, postings)| (term, merge(postings.into_iter().map(weigh))));
        let terms = merged.map(|(term, postings)| (term, saturated(postings))).collect();
        Self { terms, documents: lengths.len() }
    }

    /// The inverse document frequency of a term that `having` documents have.
    pub fn idf(&self, having: usize) -> f32 {
        let (all, having) = (self.documents as f32, having as f32);
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }

    /// Looks for a term as [`analysis::terms`] makes them.
    pub fn find(&self, term: &str) -> Option<PostingList<'_>> {
        let postings = self.terms.get(term)?;
        Some(PostingList { idf: self.idf(postings.len()), postings })
    }

    /// Documents that share a term with `query`, best first, ties by number. Scores are above 0 and unbounded.
    pub fn rank(&self, query: &str) -> Vec<(u32, f32)> {
        let mut scores: HashMap<u32, f32> = HashMap::default();
        analysis::terms(query, |term| {
            let Some(found) = self.find(term) else { return };
            for (document, amount) in found.documents() {
                *scores.entry(document as u32).or_default() += found.idf * amount;
            }
        });
        let mut ranked: Vec<(u32, f32)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked
    }
}

/// Sums the postings of one document, which may stand apart when its fields interleave.
fn merge(postings: impl Iterator<Item = Posting>) -> Vec<Posting> {
    let mut merged: Vec<Posting> = Vec::new();
    for posting in postings {
        match merged.last_mut() {
            Some(last) if last.document == posting.document => last.amount += posting.amount,
            _ => merged.push(posting),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIELDS: [Field; 2] = [Field { weight: 5.0, b: 0.9 }, Field { weight: 2.0, b: 0.6 }];

    fn index(documents: &[(&'static str, &'static str)]) -> Bm25 {
        Bm25::build(&FIELDS, 5.0, documents.iter().map(|&(name, text)| [(0, name), (1, text)]))
    }

    fn check(query: &str, expected: &[u32]) {
        let index = index(&[
            ("web_search", "find pages on the web"),
            ("file_read", "read a file from the disk"),
            ("file_write", "write text to a file, or search and replace"),
        ]);
        let ranked: Vec<u32> = index.rank(query).into_iter().map(|(document, _)| document).collect();
        assert_eq!(ranked, expected, "ranking for {query:?}");
    }

    #[test]
    fn names_count_more_than_texts() {
        check("web search", &[0, 2]);
        check("searching", &[0, 2]);
        check("files", &[1, 2]);
        check("", &[]);
        check("zzz", &[]);
    }

    proptest! {
        #[test]
        fn a_repeated_query_term_never_lowers_a_score(term in "[a-c]{1,2}") {
            let index = index(&[("a b", "ab ac b"), ("c", "bc a a a"), ("ba ca", "c")]);
            let once: HashMap<u32, f32> = index.rank(&term).into_iter().collect();
            for (document, score) in index.rank(&format!("{term} {term}")) {
                prop_assert!(score >= once[&document]);
            }
        }
    }
}
