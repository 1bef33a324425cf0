//! L1: finding a tool while the catalog is replaced under the readers.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use almanac::Engine;
use almanac::catalog::load::{LoadOptions, Loaded, load};
use anyhow::Result;
use tempfile::TempDir;

use crate::corpus::{self, Words};
use crate::family::{Family, Wanted};
use crate::peers::locked::Locked;
use crate::quiet;
use crate::row::{Bar, Measured, Row};
use crate::sample::Pairs;

pub(crate) const FAMILY: Family = Family { rows: &["L1"], needs: &[], run };

const TOOLS: usize = 200;
const ROUNDS: usize = 9;
/// Of one side in one round.
const SLICE: Duration = Duration::from_millis(400);
/// A hundred swaps a second.
const BETWEEN_SWAPS: Duration = Duration::from_millis(10);

fn run(_: Wanted<'_>) -> Result<Vec<Row>> {
    let catalogs = [catalog("first")?, catalog("second")?];
    let mut random = Words::new(1);
    let names: Vec<String> = (0..1024).map(|_| corpus::name(random.number(TOOLS))).collect();
    let mut rows = Vec::new();
    for readers in [2, 8] {
        rows.extend(measure(&catalogs, &names, readers));
    }
    Ok(rows)
}

/// A catalog of which each document is of this version.
fn catalog(mark: &str) -> Result<Loaded> {
    let home = TempDir::new()?;
    for number in 0..TOOLS {
        std::fs::write(corpus::file(home.path(), number), corpus::document(number, TOOLS, mark))?;
    }
    Ok(load(LoadOptions::directory(home.path())))
}

fn measure(catalogs: &[Loaded; 2], names: &[String], readers: usize) -> [Row; 2] {
    let (engine, locked) = (Engine::new(), Locked::of(&catalogs[0].catalog));
    engine.publish(&catalogs[0]);
    let find = |name: &str| engine.generation().tool(name).map_or(0, |entry| entry.body().len());
    let publish = |loaded: &Loaded| {
        engine.publish(loaded);
    };
    let [mut by_lock, mut by_peace] = <[Pairs; 2]>::default();
    for _ in quiet::rounds(ROUNDS) {
        let swapped = rate(readers, names, &find, Some((catalogs, &publish)));
        let peaceful = rate(readers, names, &find, None);
        let peer =
            rate(readers, names, &|name| locked.length(name), Some((catalogs, &|next| locked.swap(&next.catalog))));
        by_lock.push(swapped, peer);
        by_peace.push(swapped, peaceful);
    }
    let figures = |pairs: &Pairs, peer: &str, bar| Measured {
        ours: format!("{:.1} M/s", pairs.ours() / 1e6),
        theirs: format!("{peer} {:.1} M/s", pairs.theirs() / 1e6),
        figure: pairs.ratio(),
        bar,
    };
    let what = |rest: &str| format!("lookups, {readers} readers, 100 swaps a second{rest}");
    [
        Row::new("L1", what(""), figures(&by_lock, "RwLock", Bar::at_least(3.0))),
        Row::new("L1", what(", by none"), figures(&by_peace, "no swaps", Bar::at_least(0.95))),
    ]
}

type Find<'f> = &'f (dyn Fn(&str) -> usize + Sync);
type Swap<'s> = &'s (dyn Fn(&Loaded) + Sync);

/// Lookups in a second, by all readers together.
fn rate(readers: usize, names: &[String], find: Find<'_>, swaps: Option<(&[Loaded; 2], Swap<'_>)>) -> f64 {
    let over = AtomicBool::new(false);
    let lookups: usize = scope(|scope| {
        let reading: Vec<_> = (0..readers)
            .map(|reader| {
                scope.spawn({
                    let over = &over;
                    move || read(names, reader, find, over)
                })
            })
            .collect();
        let start = Instant::now();
        for turn in 1_u32.. {
            if start.elapsed() >= SLICE {
                break;
            }
            sleep((start + BETWEEN_SWAPS * turn).saturating_duration_since(Instant::now()));
            if let Some((catalogs, swap)) = swaps {
                swap(&catalogs[turn as usize % 2]);
            }
        }
        over.store(true, Ordering::Relaxed);
        reading.into_iter().map(|reader| reader.join().unwrap_or_default()).sum()
    });
    lookups as f64 / SLICE.as_secs_f64()
}

fn read(names: &[String], reader: usize, find: Find<'_>, over: &AtomicBool) -> usize {
    let mut lookups = 0;
    // Each reader starts elsewhere, so that they do not wait for the same lines of memory in step.
    let mut names = names.iter().cycle().skip(reader * 97);
    while !over.load(Ordering::Relaxed) {
        for name in names.by_ref().take(256) {
            black_box(find(name));
        }
        lookups += 256;
    }
    lookups
}
