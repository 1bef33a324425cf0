//! `almanacd`, the metadata daemon for AI agents. See the library for the map of the house.

use std::process::ExitCode;

use almanac::plugin_host::worker;
use almanac::upstream::launch;

fn main() -> ExitCode {
    // Neither may do anything else before.
    match std::env::args_os().nth(1) {
        Some(argument) if argument == worker::ARGUMENT => return worker::main(),
        Some(argument) if argument == launch::ARGUMENT => return launch::main(),
        _ => {}
    }
    almanac::cli::main()
}
