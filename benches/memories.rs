//! Many memories: how long adding and finding takes, and what it costs in memory. `cargo bench --bench memories --
//! [COUNT]`
//!
//! Nothing fails for being slow. Texts are made of words as frequent as Zipf's law says, in threads of twenty, so that
//! some words are everywhere and most are rare, as in what people write.
#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::sync::Arc;
use std::time::Instant;

use almanac::Engine;
use almanac::engine::memory::{Archived, MemoryPatch};
use almanac::memory::message::MessageDetails;
use almanac::memory::query::{FieldPath, Filter, SortBy};
use almanac::memory::search::Recall;
use almanac::memory::vocabulary::MessageRole;
use almanac::memory::{
    Kind, Metadata, create_agent_id, create_chat_id, create_message_metadata, create_thread_info, create_user_id,
};
use almanac::store::{Sqlite, sqlite};
use anyhow::{Context, Result};
use serde_json::json;
use tempfile::TempDir;

const TENANT: &str = "default";
const BATCH: usize = 2000;
const THREAD: usize = 20;
const WORDS: usize = 12;
const VOCABULARY: f64 = 50_000.0;

/// Numbers that look random and are the same every time (xorshift64*).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// A word of a rank that is as likely as its inverse.
    fn word(&mut self) -> String {
        let mut rank = VOCABULARY.powf(self.roll()) as u64;
        let mut word = String::new();
        while rank > 0 {
            word.push_str(["ba", "do", "ki", "lu", "me", "no", "ra", "si", "te", "vu"][(rank % 10) as usize]);
            rank /= 10;
        }
        word
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

/// What is searched for, how often, and how each search is made.
type Kinds<'k> = (&'k str, usize, &'k dyn Fn(usize, &mut Dice) -> Recall);

fn metadata(number: usize) -> Result<Metadata> {
    let (thread, position) = (number / THREAD, (number % THREAD) as u64);
    let role = [MessageRole::User, MessageRole::Assistant][number % 2];
    Ok(Metadata::Message(create_message_metadata(
        role,
        create_user_id(&format!("u{}", thread % 1000))?,
        create_agent_id("assistant")?,
        create_chat_id(&format!("c{}", thread / 5))?,
        create_thread_info(&format!("t{thread}"), position, None)?,
        MessageDetails::default(),
    )?))
}

fn resident_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the kernel tells it")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0)
}

fn tell(what: &str, mut times: Vec<f64>, total: u64) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize] * 1e3;
    println!("{what:44} p50 {:9.2} ms   p99 {:9.2} ms   total {total}", at(0.5), at(0.99));
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    // Cargo adds an argument of its own.
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(20_000);
    // Beside the build, since a temporary directory may be memory.
    let home = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let file = home.path().join("almanac.db");
    let store = Sqlite::start(sqlite::Options::file(&file), Box::new(|_, _| ()))?;
    let engine = Engine::on(Arc::new(store));
    let mut dice = Dice(42);
    let start = Instant::now();
    let mut batches = Vec::new();
    for first in (0..count).step_by(BATCH) {
        let batch = (first..count.min(first + BATCH)).map(|number| {
            Ok(Archived {
                id: None,
                content: dice.text(WORDS),
                metadata: metadata(number)?,
                deletion_time: None,
                version: 1,
                created_us: None,
                updated_us: None,
                history: Vec::new(),
            })
        });
        let begun = Instant::now();
        engine.import_memories(TENANT, batch.collect::<Result<_>>()?).await?;
        batches.push(begun.elapsed().as_secs_f64());
    }
    let took = start.elapsed().as_secs_f64();
    let size = std::fs::metadata(&file)?.len() as f64 / 1_048_576.0;
    println!("{count} memories in {took:.0} s ({:.0}/s), {size:.0} MiB of file", count as f64 / took);
    tell("a batch of 2,000", batches, count as u64);
    println!("{:44} {:.0} MiB", "resident before the first search by text", resident_mib()?);
    let begun = Instant::now();
    let first =
        Recall { query: Some(dice.text(3)), sort: SortBy::Score, ..Recall::all(Kind::Message, Filter::default()) };
    let found = engine.recall(TENANT, &first).await?;
    tell("the first search by text", vec![begun.elapsed().as_secs_f64()], found.total);
    println!("{:44} {:.0} MiB", "resident after it", resident_mib()?);
    let of = |filter: Filter| Recall::all(Kind::Message, Filter { kind: Some(Kind::Message.number()), ..filter });
    let chat = |number: usize| Some(format!("chat:chat:c{}", number % (count / 100).max(1)));
    let by = |path: &str| SortBy::Field(FieldPath::parse(path).expect("it is a path"));
    let kinds: [Kinds<'_>; 7] = [
        ("newest first", 100, &|_, _| of(Filter::default())),
        ("of a chat", 1000, &|number, _| of(Filter { chat: chat(number), ..Filter::default() })),
        ("a thread by position", 1000, &|number, _| Recall {
            sort: by("thread.position"),
            descending: false,
            ..of(Filter { thread: Some(format!("t{}", number * 7 % (count / THREAD).max(1))), ..Filter::default() })
        }),
        ("of one role (half of all)", 10, &|_, _| of(Filter { word: Some("user".into()), ..Filter::default() })),
        ("by three words", 200, &|_, dice| Recall {
            query: Some(dice.text(3)),
            sort: SortBy::Score,
            ..of(Filter::default())
        }),
        ("by twelve words", 200, &|_, dice| Recall {
            query: Some(dice.text(12)),
            sort: SortBy::Score,
            ..of(Filter::default())
        }),
        ("by three words in a chat", 200, &|number, dice| Recall {
            query: Some(dice.text(3)),
            sort: SortBy::Score,
            ..of(Filter { chat: chat(number), ..Filter::default() })
        }),
    ];
    for (what, rounds, make) in kinds {
        let (mut times, mut total) = (Vec::new(), 0);
        for round in 0..rounds {
            let recall = make(round, &mut dice);
            let begun = Instant::now();
            total = engine.recall(TENANT, &recall).await?.total;
            times.push(begun.elapsed().as_secs_f64());
        }
        tell(what, times, total);
    }
    let (mut adds, mut gets, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for number in count..count + 200 {
        let (metadata, text) = (metadata(number)?, dice.text(WORDS));
        let begun = Instant::now();
        let (memory, _) = engine.remember(TENANT, text, &metadata, None).await?;
        adds.push(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        engine.memory(TENANT, &memory.id, false).await?;
        gets.push(begun.elapsed().as_secs_f64());
        let patch = MemoryPatch { metadata: json!({"x": 1}).as_object().cloned().unwrap_or_default(), content: None };
        let begun = Instant::now();
        engine.revise_memory(TENANT, &memory.id, None, patch).await?;
        changes.push(begun.elapsed().as_secs_f64());
    }
    tell("add one, durably", adds, 1);
    tell("get one", gets, 1);
    tell("change one, durably", changes, 1);
    println!("{:44} {:.0} MiB", "resident at the end", resident_mib()?);
    Ok(())
}
