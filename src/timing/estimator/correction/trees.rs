//! Small decision trees whose answers are added up.

use super::features::{FEATURES, Features};

/// A fork or a leaf. What is below a fork's threshold comes next; `above` is the place of the other side.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Node {
    /// The feature that is compared; [`LEAF`] of a leaf.
    feature: u16,
    above: u16,
    /// The threshold of a fork, the answer of a leaf.
    value: f32,
}

/// No feature.
const LEAF: u16 = u16::MAX;

/// Trees, one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Trees {
    nodes: Vec<Node>,
    roots: Vec<u16>,
}

impl Trees {
    /// Adds a tree as [`super`] writes it. Nothing if it is none.
    pub(super) fn add(&mut self, line: &str) -> Option<()> {
        let root = u16::try_from(self.nodes.len()).ok()?;
        // Forks whose lower side is being read.
        let mut open: Vec<usize> = Vec::new();
        let mut words = line.split(' ');
        loop {
            let word = words.next()?;
            let place = self.nodes.len();
            if let Some(value) = word.strip_prefix('=') {
                self.nodes.push(Node { feature: LEAF, above: 0, value: number(value)? });
                let Some(fork) = open.pop() else { break };
                self.nodes[fork].above = u16::try_from(place + 1).ok()?;
            } else {
                let (feature, threshold) = word.split_once('<')?;
                let feature = feature.parse().ok().filter(|&feature| usize::from(feature) < FEATURES)?;
                self.nodes.push(Node { feature, above: 0, value: number(threshold)? });
                open.push(place);
            }
        }
        self.roots.push(root);
        words.next().is_none().then_some(())
    }

    /// The sum of what all trees say.
    pub(super) fn sum(&self, features: &Features) -> f32 {
        let values = features.values();
        self.roots.iter().map(|&root| self.leaf(root.into(), values)).sum()
    }

    fn leaf(&self, mut place: usize, values: &[f32; FEATURES]) -> f32 {
        loop {
            let Node { feature, above, value } = self.nodes[place];
            match values.get(usize::from(feature)) {
                None => return value,
                Some(&feature) if feature <= value => place += 1,
                Some(_) => place = above.into(),
            }
        }
    }
}

fn number(text: &str) -> Option<f32> {
    text.parse().ok().filter(|number: &f32| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(values: &[(usize, f32)]) -> Features {
        let mut features = [0.0; FEATURES];
        for &(place, value) in values {
            features[place] = value;
        }
        Features::from(features)
    }

    #[test]
    fn a_tree_says_what_its_leaf_says() {
        let mut trees = Trees::default();
        for line in ["3<.5 1<-1 =.1 =.2 =.3", "=10", "2<0 =0 2<7 =100 =200"] {
            assert_eq!(trees.add(line), Some(()), "{line}");
        }
        let check = |values: &[(usize, f32)], expected: f32| {
            let sum = trees.sum(&features(values));
            assert!((sum - expected).abs() < 1e-5, "{sum} instead of {expected} for {values:?}");
        };
        check(&[], 10.2);
        check(&[(3, 0.5), (1, -1.0)], 10.1);
        check(&[(3, 0.6), (1, -1.0)], 10.3);
        check(&[(2, 7.0)], 110.2);
        check(&[(2, 7.5), (3, 1.0)], 210.3);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for line in ["", "3<.5", "3<.5 =1", "=1 =2", "3<.5 =1 =2 =3", "x<1 =1 =2", "99<1 =1 =2", "3<nan =1 =2", "=inf"]
        {
            assert_eq!(Trees::default().add(line), None, "{line}");
        }
    }
}
