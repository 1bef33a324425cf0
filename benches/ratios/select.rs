//! Q1: what it costs to qualify a message in process, beside a pass over as many empty rows.

use std::hint::black_box;
use std::time::Instant;

use almanac::catalog::load::{LoadOptions, load};
use almanac::qualify::{Index, Message, Ranking, Usage};
use anyhow::Result;

use tempfile::TempDir;

use crate::family::{Family, Wanted};
use crate::row::{Bar, Measured, Row};
use crate::sample::{Pairs, Spread};
use crate::{corpus, quiet};

pub(crate) const FAMILY: Family = Family { rows: &["Q1"], needs: &[], run };

const ROUNDS: usize = 7;
const CALLS: usize = 300;

/// As people write them.
const MESSAGES: [&str; 6] = [
    "What's hot on Polymarket?",
    "Hey, can you swap 2 SOL for USDC and send it to my other wallet please?",
    "I have so many ideas for my blog! How do I add a new page and start jotting them down?",
    "what's the weather going to be like in New York for the next few days",
    "find me some promising low-cap gems",
    "read the report in the shared folder, summarise it and mail it to the team before five",
];

fn run(_: Wanted<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (tools, most) in [(200, 60.0), (3000, 250.0)] {
        let home = TempDir::new()?;
        corpus::write(home.path(), tools)?;
        let index = Index::build(&load(LoadOptions::directory(home.path())).catalog, None);
        let mut pairs = Pairs::default();
        for _ in quiet::rounds(ROUNDS) {
            let floor = pass(tools);
            pairs.push(messages(&index), floor);
        }
        let (figure, floor) = (pairs.difference(), pairs.theirs());
        let measured = Measured {
            ours: format!("{:.1} µs", pairs.ours()),
            theirs: format!("an empty pass over {tools} rows {floor:.1} µs"),
            figure: Spread { median: figure.median + floor, low: figure.low + floor, high: figure.high + floor },
            bar: Bar::at_most(most).of(" µs"),
        };
        rows.push(Row::new("Q1", format!("a message over {tools} tools"), measured));
    }
    Ok(rows)
}

/// Median microseconds to rank all tools for a message and take those that are loaded.
fn messages(index: &Index) -> f64 {
    let usage = Usage::new();
    let mut took = Vec::with_capacity(CALLS);
    for call in 0..CALLS {
        let text = MESSAGES[call % MESSAGES.len()];
        let start = Instant::now();
        let message = Message::new(text);
        black_box(Ranking::new(index, &message, &usage).loaded(100));
        took.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Spread::of(took).median
}

/// Microseconds of one pass over as many rows of nine numbers.
fn pass(tools: usize) -> f64 {
    let rows = vec![[0.5_f32; 9]; tools];
    let start = Instant::now();
    for _ in 0..CALLS {
        black_box(black_box(&rows).iter().map(|row| row.iter().sum::<f32>()).fold(0.0_f32, f32::max));
    }
    start.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}
