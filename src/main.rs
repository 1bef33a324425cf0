//! `almanacd`, the metadata daemon for AI agents. See the library for the map of the house.

use std::process::ExitCode;

use almanac::plugin_host::worker;

fn main() -> ExitCode {
    // A worker must not do anything else before.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == worker::ARGUMENT) {
        return worker::main();
    }
    almanac::cli::main()
}
