//! The bridge for clients that only start commands: lines of JSON on one side, a daemon's door on the other.
//!
//! It keeps one session for the life of the process. What it must know of a message it reads off the envelope; all
//! else passes as it is. A daemon that restarts, or is not there yet, is the bridge's affair: it waits for one, starts
//! one if it may, and introduces its client again.
//!
//! Nothing but messages goes to standard output. A daemon that cannot be reached is an error to each request, and never
//! the bridge's end.

mod bridge;
mod home;
mod lines;
mod way;

use std::path::PathBuf;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::request::Waits;
use crate::config::UserFiles;
use bridge::Bridge;
use lines::StdioOutput;
use way::Way;
pub use way::WayError;

/// Which daemon is meant.
#[derive(Debug, Clone)]
pub enum Target {
    /// The one behind this socket.
    Socket(PathBuf),
    /// The one at `http://host:port` or `https://host`, and what lets us in.
    Url {
        /// The address.
        url: String,
        /// The token, if there is one.
        token: Option<String>,
    },
    /// The user's own or the machine's; one of the user's own is started if there is none.
    Any,
}

/// Connects standard input and output to the view of a daemon until the input ends. Did all that was asked get an
/// answer?
///
/// # Errors
/// If the target is no address that may be used.
pub async fn run(target: Target, view: Option<&str>, waits: Waits) -> Result<bool, WayError> {
    let way = match target {
        Target::Socket(path) => Way::socket(path),
        Target::Url { url, token } => Way::url(&url, token)?,
        Target::Any => Way::home(UserFiles::find()),
    };
    let (lines, output) = (lines::input().map_err(WayError::Input)?, StdioOutput::open());
    let is_answered = Bridge::new(way, path_of(view, waits), output.clone()).run(lines).await;
    output.flush();
    Ok(is_answered)
}

/// The path of a view; `server/` before a server's name stays. How long the client waits is its query.
fn path_of(view: Option<&str>, waits: Waits) -> String {
    let encoded = |name: &str| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
    let mut path = match view {
        None => "/mcp".to_owned(),
        Some(view) => match view.strip_prefix("server/") {
            Some(server) => format!("/mcp/server/{}", encoded(server)),
            None => format!("/mcp/{}", encoded(view)),
        },
    };
    let limit = waits.limit.map(|limit| format!("client_timeout={}ms", limit.as_millis()));
    let resets = waits.progress_resets.then(|| "progress_resets=true".to_owned());
    for (place, parameter) in limit.into_iter().chain(resets).enumerate() {
        path.push(if place == 0 { '?' } else { '&' });
        path.push_str(&parameter);
    }
    path
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_view_is_a_path() {
        for (view, path) in [
            (None, "/mcp"),
            (Some("all"), "/mcp/all"),
            (Some("server/a b"), "/mcp/server/a%20b"),
            (Some("a/b"), "/mcp/a%2Fb"),
        ] {
            assert_eq!(path_of(view, Waits::default()), path);
        }
        let waits = Waits { limit: Some(Duration::from_secs(300)), progress_resets: true };
        assert_eq!(path_of(None, waits), "/mcp?client_timeout=300000ms&progress_resets=true");
    }
}
