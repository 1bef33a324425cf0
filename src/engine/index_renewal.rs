//! The index of selection follows the catalog on a thread of its own: no save waits until the one before is indexed.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::Builder;

use super::Engine;

/// Renews an engine's index when it is told to. The thread ends with it.
#[derive(Debug)]
pub(super) struct IndexRenewal(SyncSender<()>);

impl IndexRenewal {
    pub(super) fn start(engine: Arc<Engine>) -> io::Result<Self> {
        let (sender, orders) = sync_channel(1);
        Builder::new().name("index".into()).spawn(move || renew(&engine, &orders))?;
        Ok(Self(sender))
    }

    /// Makes the index that of the latest generation, soon. Will it be done?
    pub(super) fn order(&self) -> bool {
        // A full queue has an order that has not begun, and that sees this generation.
        !matches!(self.0.try_send(()), Err(TrySendError::Disconnected(())))
    }
}

fn renew(engine: &Engine, orders: &Receiver<()>) {
    while orders.recv().is_ok() {
        engine.renew_search();
    }
}
