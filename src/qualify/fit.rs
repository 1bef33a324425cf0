//! Fits the constants of the ranking on sets of messages whose tools are known; what it prints is put into `weights`
//! and `ranking` by hand, after a look at it.
//!
//! The weights of what documents tell are fitted where nothing was learnt, as a conditional logistic regression: the
//! needed tools against the best sixty of their message; those for short messages and for long ones at once, each
//! message between them by its length. Then the calibration, on the three best tools of each message. Each set counts
//! as much as any other. Sets that are not fitted on are only judged: with pasted text before their messages, with
//! several requests joined, or of other catalogs. What tells that no tool is needed is fitted and measured in
//! `no_tool/fit.rs`.

use std::fmt::Write as _;

use super::evaluate::Case;
use super::ranking::Ranking;
use super::weights::{
    Calibration, FEATURES, FeatureRow, LITERAL, STANDINGS, Standing, USE_MEANING, Weights, logistic, score,
};
use super::{Index, Usage, no_tool};

/// Tools of a message that the fit looks at.
const RIVALS: usize = 60;

/// Pulls weights towards 0.
const RIDGE: f64 = 0.003;

const ROUNDS: i32 = 400;

/// Tools that are offered at most.
const MOST: usize = 100;

/// Temperatures, and masses, that are tried for what is loaded.
const TEMPERATURES: [f32; 5] = [1.0, 1.5, 2.0, 2.5, 3.0];
const MASSES: [f32; 7] = [0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99];

/// A catalog with messages.
#[derive(Debug)]
pub struct Set {
    /// What it is called in the report.
    pub name: String,
    pub index: Index,
    /// Messages and their tools.
    pub cases: Vec<Case>,
    /// Is it fitted on, or only judged?
    pub is_fitted: bool,
}

/// The best tools of one message.
struct Sample {
    rows: Vec<FeatureRow>,
    gold: Vec<bool>,
    length: f32,
}

/// What was fitted, as text for whoever puts it into the source.
pub fn fit(sets: &[Set]) -> String {
    let fitted: Vec<&Set> = sets.iter().filter(|set| set.is_fitted).collect();
    let samples: Vec<Vec<Sample>> = fitted.iter().map(|set| samples(&set.index, &set.cases)).collect();
    let weights = regress(&samples);
    let mut text = String::new();
    let _ = writeln!(text, "short {:.2?}\nlong  {:.2?}", weights.short, weights.long);
    let judged: Vec<Vec<Judged>> = sets.iter().map(|set| judge_all(set, &weights)).collect();
    let points: Vec<&[Judged]> =
        sets.iter().zip(&judged).filter(|(set, _)| set.is_fitted).map(|(_, judged)| &**judged).collect();
    let calibration = calibrate(&points);
    let _ = writeln!(text, "calibration {:.3?}", calibration.0);
    for (set, judged) in sets.iter().zip(&judged) {
        let _ = writeln!(text, "{}", figures(set, judged, &calibration));
    }
    write_masses(&mut text, sets, &judged);
    text.push_str(&no_tool::fit::measure(fitted.iter().map(|set| (&set.index, &*set.cases))));
    let _ = writeln!(text, "no_tool/weights.txt\n{}", no_tool::fit::fit());
    text
}

fn samples(index: &Index, cases: &[Case]) -> Vec<Sample> {
    let nothing = Usage::new();
    let of_case = |case: &Case| {
        let message = index.message(&case.query);
        let mut ranking = Ranking::new(index, &message, &nothing);
        let best = ranking.best(RIVALS);
        let gold: Vec<bool> =
            best.iter().map(|tool| case.gold.iter().any(|gold| **gold == **tool.entry.name())).collect();
        let rows = best.iter().map(|tool| ranking.row(tool.number)).collect();
        gold.contains(&true).then_some(Sample { rows, gold, length: message.length })
    };
    cases.iter().filter_map(of_case).collect()
}

/// Weights, none negative, that make the needed tools likeliest (Adam, Kingma & Ba 2015). What was learnt is not fitted
/// here, nor what a name said literally counts: few recorded messages say one.
fn regress(sets: &[Vec<Sample>]) -> Weights {
    let mut weights = Weights::FITTED;
    let free = || (0..USE_MEANING).filter(|feature| *feature != LITERAL);
    for feature in free() {
        (weights.short[feature], weights.long[feature]) = (0.3, 0.3);
    }
    let mut moments = [[(0.0_f64, 0.0_f64); FEATURES]; 2];
    for round in 1..=ROUNDS {
        let gradients = gradients(sets, &weights);
        for ((own, gradient), moments) in
            [&mut weights.short, &mut weights.long].into_iter().zip(gradients).zip(&mut moments)
        {
            for feature in free() {
                let slope = gradient[feature] + RIDGE * f64::from(own[feature]);
                let (mean, square) = &mut moments[feature];
                *mean = 0.9 * *mean + 0.1 * slope;
                *square = 0.999 * *square + 0.001 * slope * slope;
                let (mean, square) = (*mean / (1.0 - 0.9_f64.powi(round)), *square / (1.0 - 0.999_f64.powi(round)));
                let weight = f64::from(own[feature]) - 0.05 * mean / (square.sqrt() + 1e-8);
                own[feature] = weight.max(0.0) as f32;
            }
        }
    }
    weights
}

/// The slopes of the weights for short messages, and of those for long ones.
fn gradients(sets: &[Vec<Sample>], weights: &Weights) -> [[f64; FEATURES]; 2] {
    let mut gradients = [[0.0; FEATURES]; 2];
    for samples in sets {
        let counts = 1.0 / (samples.len().max(1) * sets.len()) as f64;
        for sample in samples {
            let own = weights.of_length(sample.length);
            let scores: Vec<f64> = sample.rows.iter().map(|row| f64::from(score(&own, row))).collect();
            let best = scores.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = scores.iter().map(|score| (score - best).exp()).sum();
            let needed = sample.gold.iter().filter(|gold| **gold).count() as f64;
            let length = f64::from(sample.length);
            for ((row, score), gold) in sample.rows.iter().zip(&scores).zip(&sample.gold) {
                let error = counts * ((score - best).exp() / total - if *gold { 1.0 / needed } else { 0.0 });
                for (feature, value) in row.iter().enumerate() {
                    gradients[0][feature] += (1.0 - length) * error * f64::from(*value);
                    gradients[1][feature] += length * error * f64::from(*value);
                }
            }
        }
    }
    gradients
}

/// A message with the tools that were ranked for it.
struct Judged {
    /// Scores of the best tools, best first, and which of them are needed.
    scores: Vec<f32>,
    hits: Vec<bool>,
    needed: usize,
    /// Logarithms of the sums of e^(score / temperature) over all tools.
    totals: [f32; TEMPERATURES.len()],
    /// Of the best three.
    standings: Vec<Standing>,
}

fn judge_all(set: &Set, weights: &Weights) -> Vec<Judged> {
    let nothing = Usage::new();
    let judge = |case: &Case| {
        let message = set.index.message(&case.query);
        let mut ranking = Ranking::weighted(&set.index, &message, &nothing, weights);
        let best = ranking.best(MOST);
        let highest = best.first().map_or(0.0, |best| ranking.score(best.number));
        let totals = TEMPERATURES.map(|temperature| {
            let sum: f32 = (0..set.index.len()).map(|tool| ((ranking.score(tool) - highest) / temperature).exp()).sum();
            highest / temperature + sum.ln()
        });
        let standing = |number: usize| ranking.standing(ranking.share(number));
        Judged {
            scores: best.iter().map(|tool| ranking.score(tool.number)).collect(),
            hits: best.iter().map(|tool| case.gold.iter().any(|gold| **gold == **tool.entry.name())).collect(),
            needed: case.gold.len(),
            totals,
            standings: best.iter().take(3).map(|tool| standing(tool.number)).collect(),
        }
    };
    set.cases.iter().filter(|case| !case.gold.is_empty()).map(judge).collect()
}

/// Logistic regression of being needed on how the best three stand. What a score counts is not negative.
fn calibrate(sets: &[&[Judged]]) -> Calibration {
    let mut points: Vec<([f64; STANDINGS], f64, f64)> = Vec::new();
    for set in sets {
        for judged in *set {
            for (place, (standing, hit)) in judged.standings.iter().zip(&judged.hits).enumerate() {
                let counts = if place == 0 { 1.0 } else { 0.25 } / (set.len() * sets.len()).max(1) as f64;
                points.push((standing.as_array().map(f64::from), f64::from(u8::from(*hit)), counts));
            }
        }
    }
    let mut weights = [0.0_f64; STANDINGS];
    weights[0] = 0.7;
    let mut moments = [(0.0_f64, 0.0_f64); STANDINGS];
    for round in 1..=1500 {
        let mut gradient = [0.0; STANDINGS];
        for (values, hit, counts) in &points {
            let sum: f64 = weights.iter().zip(values).map(|(weight, value)| weight * value).sum();
            let error = counts * (f64::from(logistic(sum as f32)) - hit);
            for (slope, value) in gradient.iter_mut().zip(values) {
                *slope += error * value;
            }
        }
        for (place, (weight, slope)) in weights.iter_mut().zip(gradient).enumerate() {
            let (mean, square) = &mut moments[place];
            *mean = 0.9 * *mean + 0.1 * slope;
            *square = 0.999 * *square + 0.001 * slope * slope;
            let (mean, square) = (*mean / (1.0 - 0.9_f64.powi(round)), *square / (1.0 - 0.999_f64.powi(round)));
            *weight -= 0.01 * mean / (square.sqrt() + 1e-8);
        }
        for weight in &mut weights[..2] {
            *weight = weight.max(0.0);
        }
        // However long the message is, a larger share is no worse.
        weights[2] = weights[2].max(-0.9 * weights[0]);
    }
    Calibration(weights.map(|weight| weight as f32))
}

/// One line about a set.
fn figures(set: &Set, judged: &[Judged], calibration: &Calibration) -> String {
    let queries = judged.len().max(1) as f64;
    let recall = |most: usize| {
        let of =
            |judged: &Judged| judged.hits.iter().take(most).filter(|hit| **hit).count() as f64 / judged.needed as f64;
        100.0 * judged.iter().map(of).sum::<f64>() / queries
    };
    let first = judged.iter().filter(|judged| judged.hits.first() == Some(&true)).count() as f64 / queries;
    let ndcg = judged
        .iter()
        .map(|judged| super::evaluate::ndcg(&judged.hits[..judged.hits.len().min(10)], judged.needed))
        .sum::<f64>();
    let (mut bins, mut confidences) = ([(0.0_f64, 0.0_f64); 10], 0.0);
    for judged in judged {
        let Some(standing) = judged.standings.first() else { continue };
        let confidence = f64::from(logistic(calibration.log_odds(*standing)));
        confidences += confidence;
        let bin = &mut bins[((confidence * 10.0) as usize).min(9)];
        *bin = (bin.0 + confidence, bin.1 + f64::from(u8::from(judged.hits[0])));
    }
    let ece = bins.iter().map(|(confidences, hits)| (confidences - hits).abs()).sum::<f64>() / queries;
    format!(
        "{:28}{} NDCG@10 {:5.1}  first {:5.1}  R@1 {:5.1}  R@5 {:5.1}  R@10 {:5.1}  R@30 {:5.1}  R@100 {:5.1}  \
         ECE {ece:.3} ({:.2})",
        set.name,
        if set.is_fitted { '*' } else { ' ' },
        100.0 * ndcg / queries,
        100.0 * first,
        recall(1),
        recall(5),
        recall(10),
        recall(30),
        recall(100),
        confidences / queries,
    )
}

/// How many are loaded, and how many of the needed ones are among them, by temperature and mass.
fn write_masses(text: &mut String, sets: &[Set], judged: &[Vec<Judged>]) {
    for (place, temperature) in TEMPERATURES.into_iter().enumerate() {
        for mass in MASSES {
            let _ = write!(text, "T {temperature} mass {mass}:");
            for (set, judged) in sets.iter().zip(judged) {
                let (mut loaded, mut found, mut needed) = (0, 0.0, 0.0);
                for judged in judged {
                    let mut sum = 0.0;
                    let mut count = 0;
                    for score in &judged.scores {
                        if sum >= mass {
                            break;
                        }
                        sum += (score / temperature - judged.totals[place]).exp();
                        count += 1;
                    }
                    loaded += count;
                    found += judged.hits[..count].iter().filter(|hit| **hit).count() as f64 / judged.needed as f64;
                    needed += 1.0;
                }
                let _ = write!(
                    text,
                    " {} {:.0}/{:.1}",
                    &set.name[..set.name.len().min(9)],
                    100.0 * found / needed,
                    loaded as f64 / needed
                );
            }
            text.push('\n');
        }
    }
}
