//! The experts: five answers to "how long will it take", each a distribution on the same axis.

use super::grid::{BINS, Mass, bin, spread};
use super::residuals::Residuals;
use super::survival::Durations;

/// How many experts there are.
pub(crate) const EXPERTS: usize = 5;

/// One way to foretell a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expert {
    /// What the key has seen.
    History,
    /// The key's slow location with the deviations that others had from theirs.
    Slow,
    /// The same around the median of the last five calls.
    Recent,
    /// What the tool has seen in any mode, over the prior.
    Tool,
    /// What other hosts have seen of the key, over [`Expert::Tool`].
    Fleet,
}

impl Expert {
    pub(crate) const ALL: [Self; EXPERTS] = [Self::History, Self::Slow, Self::Recent, Self::Tool, Self::Fleet];

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// Weight of the prior in the tool's distribution, in calls.
const PRIOR_CALLS: f64 = 4.0;
/// Weight of the tool's distribution in the fleet's, in calls.
const TOOL_CALLS: f64 = 2.0;
/// Weight of the tool's or the fleet's distribution in the key's, in calls.
const BACKGROUND_CALLS: f64 = 1.0;

/// What the experts say.
#[derive(Debug, Clone)]
pub(crate) struct Panel([Mass; EXPERTS]);

/// What they are asked with.
pub(crate) struct ExpertEvidence<'a> {
    /// Of the key, if it has a call.
    pub(crate) history: Option<&'a Durations>,
    /// How much later than usual the covariates let expect the call, in ln(ms).
    pub(crate) shift: f64,
    /// What sizes that are uncertain let expect beside that, in ln(ms), each as likely.
    pub(crate) uncertain: &'a [f64],
    /// The key's slow location, in ln(ms), shifted.
    pub(crate) slow: f64,
    /// The median of its last calls, in ln(ms), shifted.
    pub(crate) recent: f64,
    /// Expected deviation, in ln(ms).
    pub(crate) spread: f64,
    /// Deviations from the slow location and from the median.
    pub(crate) residuals: (&'a Residuals, &'a Residuals),
    /// Of the tool.
    pub(crate) tool: &'a Durations,
    /// The prior, of mass 1.
    pub(crate) prior: Mass,
    /// Of the other hosts, if there are any.
    pub(crate) fleet: Option<&'a Durations>,
    /// Bins of the axis; what lies beyond is in the last of them.
    pub(crate) axis: usize,
}

/// Puts what lies beyond the axis into its last bin.
fn fold(mass: &mut Mass, axis: usize) {
    let beyond: f32 = mass[axis..].iter().sum();
    mass[axis..].fill(0.0);
    mass[axis - 1] += beyond;
}

impl Panel {
    /// Asks all of them.
    pub(crate) fn ask(evidence: &ExpertEvidence<'_>) -> Self {
        let tool = evidence.tool.over(&evidence.prior, PRIOR_CALLS, 0.0);
        let fleet = evidence.fleet.map_or([0.0; BINS], |fleet| fleet.over(&tool, TOOL_CALLS, 0.0));
        let background = if evidence.fleet.is_some_and(|fleet| fleet.total() > 0.0) { &fleet } else { &tool };
        let history = match evidence.history {
            Some(history) => history.over(background, BACKGROUND_CALLS, evidence.shift),
            None => *background,
        };
        let (slow, recent) = evidence.residuals;
        let slow = slow.unfold(evidence.slow, evidence.spread);
        let recent = recent.unfold(evidence.recent, evidence.spread);
        let mut panel = [history, slow, recent, tool, fleet];
        // The tool's and the fleet's calls are counted as they came, of whatever size.
        for mass in &mut panel[..3] {
            spread(mass, evidence.uncertain);
        }
        for mass in &mut panel {
            fold(mass, evidence.axis);
        }
        Self(panel)
    }

    /// What one of them says.
    pub(crate) fn of(&self, expert: Expert) -> Mass {
        self.0[expert.index()]
    }

    /// What they say together.
    pub(crate) fn mix(&self, weights: &[f64; EXPERTS]) -> Mass {
        let mut mixture = [0.0; BINS];
        for (expert, weight) in self.0.iter().zip(weights).filter(|(_, weight)| **weight > 0.0) {
            let weight = *weight as f32;
            for (mixture, mass) in mixture.iter_mut().zip(expert) {
                *mixture += weight * mass;
            }
        }
        mixture
    }

    /// The density that each gave to the place `ln`, per bin: the mean of three bins, and never nothing.
    pub(crate) fn densities(&self, ln: f64) -> [f64; EXPERTS] {
        let centre = bin(ln);
        let around = centre.saturating_sub(1)..(centre + 2).min(BINS);
        let bins = around.len() as f64;
        self.0.each_ref().map(|mass| f64::from(mass[around.clone()].iter().sum::<f32>()) / bins + 1e-7)
    }

    /// What each says about something, in the order of [`Expert::ALL`].
    pub(crate) fn each(&self, say: impl Fn(&Mass) -> f64) -> [f64; EXPERTS] {
        self.0.each_ref().map(say)
    }
}
