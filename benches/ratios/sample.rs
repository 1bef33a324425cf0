//! Samples that are taken in turns, and what they come to.

/// The middle of some figures, and the quartiles that half of them lie between: far outliers are the machine's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted.get(((sorted.len() as f64 - 1.0) * share).round() as usize).copied();
        let at = |share| at(share).unwrap_or(f64::NAN);
        Self { median: at(0.5), low: at(0.25), high: at(0.75) }
    }
}

/// Two sides of one comparison; each round adds a figure to both.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Pairs {
    pub(crate) fn push(&mut self, ours: f64, theirs: f64) {
        self.ours.push(ours);
        self.theirs.push(theirs);
    }

    /// The median on our side.
    pub(crate) fn ours(&self) -> f64 {
        Spread::of(self.ours.iter().copied()).median
    }

    /// The median on theirs.
    pub(crate) fn theirs(&self) -> f64 {
        Spread::of(self.theirs.iter().copied()).median
    }

    /// Ours by theirs. Each round gives one ratio, so that what slows both sides of a round cancels.
    pub(crate) fn ratio(&self) -> Spread {
        Spread::of(self.rounds().map(|(ours, theirs)| ours / theirs))
    }

    /// Ours less theirs, round by round.
    pub(crate) fn difference(&self) -> Spread {
        Spread::of(self.rounds().map(|(ours, theirs)| ours - theirs))
    }

    fn rounds(&self) -> impl Iterator<Item = (f64, f64)> {
        self.ours.iter().copied().zip(self.theirs.iter().copied())
    }
}
