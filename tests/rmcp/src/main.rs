//! The Rust SDK of the Model Context Protocol in both its roles, for the system tests to talk to: `server` over
//! standard input and output, `client PREFIX MODE` and a URL, or a command and its arguments.

mod client;
mod server;

use std::error::Error;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended: Result<(), Box<dyn Error>> = match words[..] {
        ["server"] => server::serve().await,
        ["client", prefix, mode, target, ref more @ ..] => client::ask(prefix, mode, target, more).await,
        _ => Err("say `server`, or `client PREFIX MODE`, and a URL or a command".into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = error.to_string();
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{error}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}
