//! Keeps what is shown in line with the servers, the catalog and the configuration.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::Mcp;
use super::meta_tool::MetaTool;
use super::offering::Offering;
use super::own::OwnTool;
use super::request::McpRequest;
use super::shown::Shown;
use crate::blocking;
use crate::catalog::reload::Reloader;

/// Changes that come together are shown together.
const QUIET: Duration = Duration::from_millis(20);

/// For how long a server is waited for of which nothing was ever listed.
const STARTING: Duration = Duration::from_secs(5);

/// How long the catalog may take to have what servers list, at least.
const TAKEN: Duration = Duration::from_secs(1);

impl Mcp {
    /// Offers the catalog what the servers listed last, and waits until it has it: so everything is there before the
    /// first question, whether a server runs or not.
    pub fn offer_first(&self, reloader: &Reloader) {
        let (served, is_served) = mpsc::channel();
        let offered = self.offer_to(reloader, move || {
            // Whoever waits is there until it was told.
            let _ = served.send(());
        });
        if offered {
            // Without an answer the catalog's thread has ended, which its watchdog says.
            let _ = is_served.recv();
        }
        self.show();
    }

    /// Follows changes for as long as the daemon runs.
    pub async fn follow(self: Arc<Self>, reloader: Reloader) {
        let (mut servers, mut generations) = (self.upstreams.changes(), self.engine.generations());
        let mut settings = self.settings.clone();
        loop {
            // At once: something may have changed before this followed.
            self.offer_to(&reloader, || ());
            let door = Arc::clone(&self);
            // Lists of thousands of tools take milliseconds; if nobody can make them now, the next change does.
            let _ = blocking::run(move || door.show()).await;
            let is_open = tokio::select! {
                changed = servers.changed() => changed.is_ok(),
                changed = generations.changed() => changed.is_ok(),
                changed = settings.changed() => changed.is_ok(),
                () = self.offers.one_taken() => true,
            };
            if !is_open {
                return;
            }
            sleep(QUIET).await;
        }
    }

    /// Offers the servers' tools to the catalog, if they are others than before.
    fn offer_to(&self, reloader: &Reloader, served: impl FnOnce() + Send + 'static) -> bool {
        let before = self.shown();
        let max_name = self.settings().max_name;
        let is_own = |name: &str| OwnTool::parse(name).is_some() || MetaTool::parse(name).is_some();
        let offering = Offering::of(&self.upstreams.servers(), max_name, &before.offering, is_own);
        let is_other = !offering.offers_the_same(&before.offering);
        let offers = is_other.then(|| (offering.offers(), self.offers.make()));
        self.shown.send_replace(Arc::new(before.with_offering(offering)));
        let Some((offers, offer)) = offers else { return false };
        let taken = move |_: &_| {
            served();
            drop(offer);
        };
        reloader.offer(offers, taken).is_ok()
    }

    /// Renders what is shown anew.
    fn show(&self) {
        let taken = self.offers.taken();
        let before = self.shown();
        let shown = Shown::render(self.settings(), Arc::clone(&before.offering), &self.engine, &before);
        for (address, list) in shown.lists() {
            let bytes = self.metrics.mcp.list_bytes.with_label_values(&[&address.to_string()]);
            bytes.set(list.bytes() as i64);
        }
        self.names.keep(shown.offering.owners());
        self.shown.send_replace(Arc::new(shown));
        self.offers.show(taken);
    }

    /// Waits a while for servers of which nothing was ever listed, and for the catalog to have what they list.
    pub(super) async fn await_starting(&self, request: &McpRequest) {
        let is_decided = |shown: &Arc<Shown>| shown.offering.starting().next().is_none();
        if is_decided(&self.shown()) && self.offers.are_shown() {
            return;
        }
        let until = Instant::now() + STARTING.min(self.patience(request).limit / 2);
        let mut shown = self.shown.subscribe();
        // Who is not there by then is named as starting.
        let _ = timeout_at(until, shown.wait_for(is_decided)).await;
        let _ = timeout_at(until.max(Instant::now() + TAKEN), self.offers.all_shown()).await;
    }
}
