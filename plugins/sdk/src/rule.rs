//! What an author implements.

use crate::{Host, Request, Sink, Snapshot};

/// Why an instance could not be made: any error, or a sentence (`"threshold: above 1".into()`).
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A rule, or many of them: what a library proposes.
///
/// Calls for one instance never overlap, but come from any thread. Several instances can exist at a time, so state
/// belongs here and not into globals. An answer should depend on nothing but the configuration, the snapshot and the
/// request.
pub trait Rule: Send + Sized + 'static {
    /// Makes an instance. An error is shown as the library's fault, in the log and in `/v1/plugins`.
    fn create(setup: &Setup<'_>) -> Result<Self, Error>;

    /// Learns the catalog: once after [`create`](Self::create), and once for each new generation of it. Only for rules
    /// that need to know tools; suggestions of tools that don't exist are dropped anyway.
    fn on_snapshot(&mut self, snapshot: &Snapshot<'_>) {
        let _ = snapshot;
    }

    /// Proposes what to call next, best first. To propose nothing is a fine answer.
    fn suggest(&mut self, request: &Request<'_>, sink: &mut Sink<'_>);
}

/// What an instance is made from.
#[derive(Debug)]
pub struct Setup<'a> {
    config: &'a str,
    host: Host<'a>,
}

impl<'a> Setup<'a> {
    pub(crate) fn new(config: &'a str, host: Host<'a>) -> Self {
        Self { config, host }
    }

    /// The library's configuration: a JSON object, `{}` if the operator gave none. It has not been checked against the
    /// library's schema.
    pub fn config(&self) -> &'a str {
        self.config
    }

    /// The services of the daemon.
    pub fn host(&self) -> Host<'a> {
        self.host
    }
}
