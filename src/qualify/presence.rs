//! Is a message about any tool of a small catalog at all?
//!
//! Probabilities are shares among the catalog's tools. Among many, some tool is near any message, and the share of the
//! best tells how sure that is. Of one tool it is always 1, whatever the message says; there only the likeness in
//! meaning can tell.

use super::message::Message;
use super::weights::logistic;

/// Tools of a catalog up to which likeness counts in full, and from which on it does not.
const FEW: [f32; 2] = [8.0, 20.0];

/// The constant and what the largest similarity and the largest share of a message's words count, in the logarithm of
/// the odds. A logistic regression on parts of
/// 1 to 8 tools of seven public catalogs, with messages for these tools and as many for others of the catalog; judged
/// on a catalog that was left out, the area under the curve is .92 in the mean. Two messages in three are taken to be
/// about one of the tools.
const ODDS: [f32; 3] = [-2.84, 8.86, 4.44];

/// The probability that a message is about one of so many tools, the most alike of which has this similarity, -1 to 1,
/// and that which has most of its words this share of them.
pub(super) fn presence(message: &Message, tools: usize, similarity: f32, cover: f32) -> f32 {
    let [few, many] = FEW;
    // A long message is like no tool as a whole.
    let counts = ((many - tools as f32) / (many - few)).clamp(0.0, 1.0) * (1.0 - message.length);
    1.0 - counts * (1.0 - logistic(ODDS[0] + ODDS[1] * similarity + ODDS[2] * cover))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_tools_are_meant_by_what_is_like_them() {
        let check = |tools: usize, (similarity, cover): (f32, f32), expected: f32| {
            let found = presence(&Message::new("Will it rain?"), tools, similarity, cover);
            assert!((found - expected).abs() < 0.01, "{found} of {tools} tools at {similarity} and {cover}");
        };
        check(1, (0.1, 0.0), 0.12);
        check(1, (0.5, 0.1), 0.88);
        check(1, (0.1, 0.8), 0.83);
        check(8, (0.1, 0.0), 0.12);
        check(14, (0.1, 0.0), 0.56);
        check(20, (0.1, 0.0), 1.0);
        check(3000, (-1.0, 0.0), 1.0);
        let long = "I went to the market and came home again. ".repeat(30);
        assert!(presence(&Message::new(&long), 1, 0.1, 0.0) > 0.8);
    }
}
