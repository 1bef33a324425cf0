//! Prints the figures of a stream as JSON: `cargo run --release --example eval_timing -- STREAM [ANSWERS]`. With the
//! answers of another implementation to the stream's first calls, prints how far ours are from them instead.

use std::fs;

use almanac::timing::Defaults;
use almanac::timing::evaluate::agreement::{agreement, answers};
use almanac::timing::evaluate::{Stream, evaluate};
use anyhow::Context as _;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().context("usage: eval_timing STREAM [ANSWERS]")?;
    let stream = Stream::parse(&fs::read(&file)?).with_context(|| file)?;
    let json = match arguments.next() {
        None => serde_json::to_string_pretty(&evaluate(&stream, &Defaults::default())),
        Some(file) => {
            let answers = answers(&fs::read(&file)?).with_context(|| file)?;
            serde_json::to_string_pretty(&agreement(&stream, &answers, false))
        }
    };
    #[expect(clippy::print_stdout, reason = "it is what this example is for")]
    {
        println!("{}", json?);
    }
    Ok(())
}
