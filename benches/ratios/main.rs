//! The bars of the design, measured. `cargo bench --bench ratios -- [--json] [ROW…]`
//!
//! An absolute figure means nothing on a shared machine, so each is taken beside a peer or a floor, in turns, in one
//! run, and what is held to a bar is the ratio. Nothing fails for being slow: a row is `met` or `MISSED`, and whoever
//! reads it decides.
//!
//! A file per family of rows; what they are measured with stands beside them: [`daemon`] and [`peers`] are what is
//! measured, [`wrk`] and [`client`] ask, [`process`] reads the kernel's accounts, [`sample`] takes turns, [`row`] and
//! [`table`] tell.
#![expect(clippy::disallowed_methods, reason = "a measurement is made of pauses; none of them stands for an event")]

mod above_hyper;
mod arguments;
mod calls;
mod client;
mod cold_load;
mod cores;
mod corpus;
mod daemon;
mod durable;
mod family;
mod fleet;
mod forecast;
mod gateway;
mod growth;
mod http;
mod lookup;
mod memory;
mod peers;
mod process;
mod quiet;
mod row;
mod rules;
mod sample;
mod save;
mod scrape;
mod select;
mod start;
mod table;
mod wrk;

use anyhow::Result;

use arguments::Arguments;
use family::FAMILIES;

fn main() -> Result<()> {
    match Arguments::read() {
        Arguments::Peer { kind, address, answer } => kind.serve(address, std::fs::read(answer)?),
        Arguments::Rows { selected, json } => {
            let rows = FAMILIES.iter().flat_map(|family| family.measure(&selected)).collect::<Vec<_>>();
            table::print(&rows, json);
            Ok(())
        }
        Arguments::McpServer { tools, start } => gateway::server::serve(tools, start),
        Arguments::Nothing => Ok(()),
    }
}
