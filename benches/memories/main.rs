//! Many memories: how long adding and finding takes, and what it costs in memory. `cargo bench --bench memories --
//! [COUNT…]`
//!
//! Nothing fails for being slow: a figure is `met` or `MISSED`. Texts are made of words as frequent as Zipf's law says,
//! in threads of twenty, so that some words are everywhere and most are rare, as in what people write. Searches by text
//! are taken beside the same ones of SQLite's own full-text index.
#![expect(clippy::print_stdout, reason = "it prints a table")]

mod dice;
mod full_text;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use almanac::Engine;
use almanac::engine::memory::{Archived, MemoryPatch};
use almanac::memory::message::MessageDetails;
use almanac::memory::query::{FieldPath, Filter, SortBy, Wanted};
use almanac::memory::search::Recall;
use almanac::memory::vocabulary::MessageRole;
use almanac::memory::{
    Kind, Metadata, create_agent_id, create_chat_id, create_message_metadata, create_thread_info, create_user_id,
};
use almanac::store::memories::Purge;
use almanac::store::{Sqlite, sqlite};
use anyhow::{Context, Result};
use serde_json::json;
use tempfile::TempDir;
use tikv_jemallocator::Jemalloc;

use dice::Dice;
use full_text::FullText;

/// The daemon's.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const TENANT: &str = "default";
const BATCH: usize = 2000;
const THREAD: usize = 20;
const WORDS: usize = 12;
const SIZES: [usize; 2] = [10_000, 100_000];

fn metadata(number: usize) -> Result<Metadata> {
    let (thread, position) = (number / THREAD, (number % THREAD) as u64);
    let role = [MessageRole::User, MessageRole::Assistant][number % 2];
    let mut details = MessageDetails { source: Some(format!("source-{}", number % 500)), ..MessageDetails::default() };
    details.base.tags = Some(vec![format!("tag-{}", number % 1000)]);
    Ok(Metadata::Message(create_message_metadata(
        role,
        create_user_id(&format!("u{}", thread % 1000))?,
        create_agent_id("assistant")?,
        create_chat_id(&format!("c{}", thread / 5))?,
        create_thread_info(&format!("t{thread}"), position, None)?,
        details,
    )?))
}

fn resident_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the kernel tells it")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0)
}

/// Milliseconds of the middle one, and of the slowest but one in a hundred.
fn middle(mut seconds: Vec<f64>) -> (f64, f64) {
    seconds.sort_by(f64::total_cmp);
    let at = |share: f64| seconds[((seconds.len() - 1) as f64 * share).round() as usize] * 1e3;
    (at(0.5), at(0.99))
}

fn tell(what: &str, (middle, slow): (f64, f64), note: &str) {
    println!("{what:44} p50 {middle:9.2} ms   p99 {slow:9.2} ms   {note}");
}

/// What is asked of a figure at ten thousand memories, a hundred thousand, and a million.
type Bars = [f64; 3];

/// The bar, and whether the figure keeps it.
fn verdict(figure: f64, bars: Bars, count: usize, unit: &str) -> String {
    let bar = bars[[50_000, 500_000, usize::MAX].iter().position(|most| count < *most).unwrap_or(2)];
    if bar == 0.0 {
        return String::new();
    }
    format!("≤ {bar}{unit}: {}", if figure <= bar { "met" } else { "MISSED" })
}

/// A kind of text to search for: its name, how it is made, and its bars as multiples of the peer's time.
type Texts = (&'static str, fn(&mut Dice) -> String, Bars);

/// A kind of search: its name, how often, its bars in ms, and how each is made.
type Searches<'k> = (&'k str, usize, Bars, &'k dyn Fn(usize, &mut Dice) -> Recall);

struct Store {
    engine: Engine,
    peer: FullText,
    count: usize,
    /// Memories that were added beside a purge.
    added: AtomicUsize,
}

impl Store {
    async fn filled(home: &Path, count: usize, dice: &mut Dice) -> Result<Self> {
        let file = home.join("almanac.db");
        let store = Sqlite::start(sqlite::Options::file(&file), Box::new(|_, _| ()))?;
        let engine = Engine::on(Arc::new(store));
        let mut peer = FullText::create(&home.join("peer.db"))?;
        let (mut batches, mut took) = (Vec::new(), 0.0);
        for first in (0..count).step_by(BATCH) {
            let texts: Vec<String> = (first..count.min(first + BATCH)).map(|_| dice.text(WORDS)).collect();
            peer.add(texts.iter().map(String::as_str))?;
            let batch = texts.into_iter().enumerate().map(|(place, content)| {
                Ok(Archived {
                    id: None,
                    content,
                    metadata: metadata(first + place)?,
                    deletion_time: None,
                    version: 1,
                    created_us: None,
                    updated_us: None,
                    history: Vec::new(),
                })
            });
            let batch = batch.collect::<Result<_>>()?;
            let begun = Instant::now();
            engine.import_memories(TENANT, batch).await?;
            batches.push(begun.elapsed().as_secs_f64());
            took += begun.elapsed().as_secs_f64();
        }
        let size = std::fs::metadata(&file)?.len() as f64 / 1_048_576.0;
        println!("\n{count} memories in {took:.0} s ({:.0}/s), {size:.0} MiB of file", count as f64 / took);
        tell("a batch of 2,000", middle(batches), "");
        Ok(Self { engine, peer, count, added: AtomicUsize::new(0) })
    }

    async fn seconds_of(&self, recall: &Recall) -> Result<f64> {
        let begun = Instant::now();
        self.engine.recall(TENANT, recall).await?;
        Ok(begun.elapsed().as_secs_f64())
    }

    fn of_a_chat(&self, number: usize) -> Recall {
        let chat = number * 7 % (self.count / 100).max(1);
        of(Filter { chat: Some(format!("chat:chat:c{chat}")), ..Filter::default() })
    }

    /// The first search, by which an index may be read.
    async fn first_search(&self, dice: &mut Dice) -> Result<()> {
        println!("{:44} {:.0} MiB", "resident before the first search by text", resident_mib()?);
        let took = self.seconds_of(&by_text(dice.text(3), of(Filter::default()))).await? * 1e3;
        tell("the first search by text", (took, took), &verdict(took, [0.0, 0.0, 300.0], self.count, " ms"));
        println!("{:44} {:.0} MiB", "resident after it", resident_mib()?);
        Ok(())
    }

    /// Searches by text, beside the peer's.
    async fn by_texts(&self, dice: &mut Dice) -> Result<()> {
        // The first bar is twenty times tantivy's, which takes a seventh of FTS5's time.
        let kinds: [Texts; 3] = [
            ("by three rare words", |dice| dice.rare(3), [2.9, 3.3, 2.5]),
            ("by three words", |dice| dice.text(3), [0.0; 3]),
            ("by twelve words", |dice| dice.text(12), [0.5, 0.3, 0.25]),
        ];
        for (what, text, bars) in kinds {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..100 {
                let words = text(dice);
                theirs.push(self.peer.search(&words)?);
                ours.push(self.seconds_of(&by_text(words, of(Filter::default()))).await?);
            }
            let (ours, theirs) = (middle(ours), middle(theirs));
            let ratio = ours.0 / theirs.0;
            let note = verdict(ratio, bars, self.count, " ×");
            tell(what, ours, &format!("{ratio:.2} × FTS5's {:.2} ms  {note}", theirs.0));
        }
        Ok(())
    }

    async fn by_fields(&self, dice: &mut Dice) -> Result<()> {
        let chat = |number: usize| self.of_a_chat(number);
        let by = |path: &str| SortBy::Field(FieldPath::parse(path).expect("it is a path"));
        let source = |number: usize| {
            let path = FieldPath::parse("source").expect("it is a path");
            of(Filter { fields: vec![(path, Wanted::Text(format!("source-{}", number % 500)))], ..Filter::default() })
        };
        let kinds: [Searches<'_>; 9] = [
            ("newest first", 100, [0.0; 3], &|_, _| of(Filter::default())),
            ("of a chat", 500, [0.0; 3], &|number, _| chat(number)),
            ("a thread by position", 500, [0.0; 3], &|number, _| Recall {
                sort: by("thread.position"),
                descending: false,
                ..of(Filter {
                    thread: Some(format!("t{}", number * 7 % (self.count / THREAD).max(1))),
                    ..Filter::default()
                })
            }),
            ("of one role (half of all)", 20, [0.0; 3], &|_, _| {
                of(Filter { word: Some("user".into()), ..Filter::default() })
            }),
            ("by three words in a chat", 200, [1.5, 1.7, 2.0], &|number, dice| by_text(dice.text(3), chat(number))),
            ("by an own key", 50, [2.0, 8.0, 60.0], &|number, _| source(number)),
            ("by a tag", 50, [2.0, 8.0, 60.0], &|number, _| {
                of(Filter { tags: vec![format!("tag-{}", number % 1000)], ..Filter::default() })
            }),
            ("sorted by an own key", 20, [2.0, 8.0, 60.0], &|_, _| Recall {
                sort: by("source"),
                ..of(Filter::default())
            }),
            ("sorted by the last change", 20, [2.0, 8.0, 60.0], &|_, _| Recall {
                sort: SortBy::Updated,
                ..of(Filter::default())
            }),
        ];
        for (what, rounds, bars, make) in kinds {
            let mut times = Vec::new();
            for round in 0..rounds {
                times.push(self.seconds_of(&make(round, dice)).await?);
            }
            let times = middle(times);
            tell(what, times, &verdict(times.0, bars, self.count, " ms"));
        }
        Ok(())
    }

    async fn one_by_one(&self, dice: &mut Dice) -> Result<()> {
        let (mut adds, mut gets, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        for number in self.count..self.count + 200 {
            let begun = Instant::now();
            let id = self.add(number, dice).await?;
            adds.push(begun.elapsed().as_secs_f64());
            let begun = Instant::now();
            self.engine.memory(TENANT, &id, false).await?;
            gets.push(begun.elapsed().as_secs_f64());
            let patch =
                MemoryPatch { metadata: json!({"x": 1}).as_object().cloned().unwrap_or_default(), content: None };
            let begun = Instant::now();
            self.engine.revise_memory(TENANT, &id, None, patch).await?;
            changes.push(begun.elapsed().as_secs_f64());
        }
        let alone = middle(adds);
        tell("add one, durably", alone, "");
        tell("get one", middle(gets), "");
        tell("change one, durably", middle(changes), "");
        let beside = middle(self.adds_beside_searches(dice).await?);
        let ratio = beside.1 / alone.1;
        let note = format!("p99 {ratio:.1} × alone  {}", verdict(ratio, [3.0; 3], self.count, " ×"));
        tell("add one, durably, beside two that search", beside, &note);
        Ok(())
    }

    /// How long additions take while memories are removed for good, in each way that there is.
    async fn purges(&self, dice: &mut Dice) -> Result<()> {
        let newest = of(Filter::default());
        let page = self.engine.recall(TENANT, &Recall { limit: 200, ..newest }).await?;
        let ids: Vec<String> = page.memories.into_iter().map(|recalled| recalled.memory.id).collect();
        for id in &ids[..100] {
            self.engine.forget_memory(TENANT, id, None).await?;
        }
        let ways = [
            ("100 by id", Purge::Ids(ids[100..].to_vec())),
            ("what was deleted before", Purge::DeletedBefore(i64::MAX)),
            ("a person", Purge::Person(create_user_id("u1")?.to_string())),
            ("everybody", Purge::Everybody),
        ];
        for (what, which) in ways {
            let (took, (seconds, purged)) = self.adds_beside(dice, self.purge(which)).await?;
            let most = took.iter().copied().fold(0.0, f64::max) * 1e3;
            let bar = verdict(most, [50.0; 3], self.count, " ms");
            let note = format!("at most {most:.0} ms {bar}; {purged} went in {seconds:.2} s");
            tell(&format!("add one, durably, beside a purge: {what}"), middle(took), &note);
        }
        Ok(())
    }

    /// Removes for good; how many seconds it took, and how many memories that were.
    async fn purge(&self, which: Purge) -> Result<(f64, u64)> {
        let begun = Instant::now();
        let purged = self.engine.purge_memories(TENANT, which).await?;
        Ok((begun.elapsed().as_secs_f64(), purged))
    }

    /// Seconds of each addition while something else is done, and what that came to.
    async fn adds_beside<T>(&self, dice: &mut Dice, work: impl Future<Output = Result<T>>) -> Result<(Vec<f64>, T)> {
        let is_done = AtomicBool::new(false);
        let work = async {
            let outcome = work.await;
            is_done.store(true, Ordering::Relaxed);
            outcome
        };
        let add = async {
            let mut took = Vec::new();
            while !is_done.load(Ordering::Relaxed) || took.is_empty() {
                let begun = Instant::now();
                self.add(self.count + 400 + self.added.fetch_add(1, Ordering::Relaxed), dice).await?;
                took.push(begun.elapsed().as_secs_f64());
            }
            anyhow::Ok(took)
        };
        let (outcome, took) = tokio::join!(work, add);
        Ok((took?, outcome?))
    }

    async fn add(&self, number: usize, dice: &mut Dice) -> Result<String> {
        let (metadata, text) = (metadata(number)?, dice.text(WORDS));
        Ok(self.engine.remember(TENANT, text, &metadata, None).await?.0.id)
    }

    /// Seconds of each addition while two clients search without a pause.
    async fn adds_beside_searches(&self, dice: &mut Dice) -> Result<Vec<f64>> {
        let stop = AtomicBool::new(false);
        let search = |seed: u64| {
            let stop = &stop;
            async move {
                let mut dice = Dice(seed);
                while !stop.load(Ordering::Relaxed) {
                    self.seconds_of(&by_text(dice.text(3), of(Filter::default()))).await?;
                }
                anyhow::Ok(())
            }
        };
        let add = async {
            let mut took = Vec::new();
            for number in self.count + 200..self.count + 400 {
                let begun = Instant::now();
                self.add(number, dice).await?;
                took.push(begun.elapsed().as_secs_f64());
            }
            stop.store(true, Ordering::Relaxed);
            anyhow::Ok(took)
        };
        let (first, second, took) = tokio::join!(search(7), search(11), add);
        first.and(second).and(took)
    }
}

fn of(filter: Filter) -> Recall {
    Recall::all(Kind::Message, Filter { kind: Some(Kind::Message.number()), ..filter })
}

fn by_text(query: String, recall: Recall) -> Recall {
    Recall { query: Some(query), sort: SortBy::Score, ..recall }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    // Cargo adds an argument of its own.
    let mut counts: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    if counts.is_empty() {
        counts.extend(SIZES);
    }
    for count in counts {
        // Beside the build, since a temporary directory may be memory.
        let home = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let mut dice = Dice(42);
        let store = Store::filled(home.path(), count, &mut dice).await?;
        store.first_search(&mut dice).await?;
        store.by_texts(&mut dice).await?;
        store.by_fields(&mut dice).await?;
        store.one_by_one(&mut dice).await?;
        let bars = [30.0, 0.0, 200.0];
        let resident = resident_mib()?;
        println!("{:44} {resident:.0} MiB   {}", "resident before any purge", verdict(resident, bars, count, " MiB"));
        store.purges(&mut dice).await?;
    }
    Ok(())
}
