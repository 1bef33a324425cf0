//! `almanacd`, the metadata daemon for AI agents. See the library for the map of the house.

use std::process::ExitCode;

fn main() -> ExitCode {
    almanac::cli::main()
}
