//! R1: reading two thousand documents when nothing is known yet.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use almanac::catalog::ToolMetadata;
use almanac::catalog::load::{LoadOptions, load};
use anyhow::{Result, ensure};
use serde::de::DeserializeOwned;
use serde_yaml::Value;
use tempfile::TempDir;

use crate::family::{Family, Wanted};
use crate::row::{Bar, Measured, Row};
use crate::sample::Pairs;
use crate::{corpus, quiet};

pub(crate) const FAMILY: Family = Family { rows: &["R1"], needs: &[], run };

const DOCUMENTS: usize = 2000;
const ROUNDS: usize = 7;

fn run(_: Wanted<'_>) -> Result<Vec<Row>> {
    let home = TempDir::new()?;
    corpus::write(home.path(), DOCUMENTS)?;
    let files: Vec<PathBuf> = (0..DOCUMENTS).map(|number| corpus::file(home.path(), number)).collect();
    let [mut by_value, mut by_typed] = <[Pairs; 2]>::default();
    for _ in quiet::rounds(ROUNDS) {
        let ours = loaded(home.path())?;
        by_value.push(ours, parsed::<Value>(&files)?);
        by_typed.push(ours, parsed::<ToolMetadata>(&files)?);
    }
    let figures = |pairs: &Pairs, peer: &str, bar| Measured {
        ours: format!("{:.0} ms", pairs.ours()),
        theirs: format!("{peer} {:.0} ms", pairs.theirs()),
        figure: pairs.ratio(),
        bar,
    };
    let what = |rest: &str| format!("cold load of {DOCUMENTS} documents, by {rest} in sequence");
    Ok(vec![
        Row::new("R1", what("parsing"), figures(&by_value, "parse", Bar::at_most(0.65))),
        Row::new("R1", what("typed parsing"), figures(&by_typed, "parse", Bar::OPEN)),
    ])
}

/// Milliseconds of a cold load.
fn loaded(directory: &Path) -> Result<f64> {
    let start = Instant::now();
    let loaded = load(LoadOptions::directory(directory));
    let took = start.elapsed();
    ensure!(loaded.documents.good == DOCUMENTS, "not all documents are good: {:?}", loaded.diagnostics.first());
    Ok(took.as_secs_f64() * 1e3)
}

/// Milliseconds of reading and parsing, file by file.
fn parsed<T: DeserializeOwned>(files: &[PathBuf]) -> Result<f64> {
    let start = Instant::now();
    for file in files {
        black_box(serde_yaml::from_slice::<T>(&fs::read(file)?)?);
    }
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
