//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::gateway::server;
use crate::peers::own::Kind;

pub(crate) enum Arguments {
    /// Measure these rows, or all if there are none.
    Rows { selected: Vec<String>, json: bool },
    /// Be one of the peers, and answer every request at `address` with the content of the file `answer`.
    Peer { kind: Kind, address: SocketAddr, answer: PathBuf },
    /// Be an MCP server with this many tools, which speaks after a while.
    McpServer { tools: usize, start: Duration },
    /// Started by `cargo test`, to which this is no test.
    Nothing,
}

impl Arguments {
    pub(crate) fn read() -> Self {
        Self::of(&std::env::args_os().skip(1).collect::<Vec<_>>())
    }

    fn of(arguments: &[OsString]) -> Self {
        if let [first, address, answer] = arguments
            && let Some(kind) = Kind::of(first)
            && let Some(address) = address.to_str().and_then(|address| address.parse().ok())
        {
            return Self::Peer { kind, address, answer: answer.into() };
        }
        let number = |argument: &OsString| argument.to_str().and_then(|argument| argument.parse::<u64>().ok());
        if let [first, tools, start] = arguments
            && first == server::WORD
            && let (Some(tools), Some(start)) = (number(tools), number(start))
        {
            return Self::McpServer { tools: tools as usize, start: Duration::from_millis(start) };
        }
        // cargo bench says --bench, cargo test does not.
        if !arguments.iter().any(|argument| argument == "--bench") {
            return Self::Nothing;
        }
        let words = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
        let (flags, selected): (Vec<String>, Vec<String>) = words.partition(|word| word.starts_with('-'));
        Self::Rows { selected, json: flags.iter().any(|flag| flag == "--json") }
    }
}
