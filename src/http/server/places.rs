//! Places for connections: a limit for all, and a share for each address that is not this machine's own.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of a door.
#[derive(Debug, Clone)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    shares: Arc<Shares>,
}

#[derive(Debug)]
struct Shares {
    most: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection's place; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    _share: Option<Share>,
}

#[derive(Debug)]
struct Share {
    shares: Arc<Shares>,
    peer: IpAddr,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoPlace {
    #[error("there are as many connections as the daemon takes; try again")]
    All,
    #[error("this address has as many connections as one may have; close some, or try again")]
    Share,
}

impl NoPlace {
    /// As it is counted.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::All => "too_many_connections",
            Self::Share => "too_many_of_address",
        }
    }
}

impl Places {
    /// So many places, of which one address has no more than its share.
    pub(super) fn new(all: usize, share: usize) -> Self {
        let shares = Shares { most: share, taken: Mutex::default() };
        Self { all: Arc::new(Semaphore::new(all)), shares: Arc::new(shares) }
    }

    /// A place for a connection of this peer; nobody shares if there is none, or if it is on this machine.
    pub(super) fn take(&self, peer: Option<IpAddr>) -> Result<Place, NoPlace> {
        let peer = peer.map(network).filter(|peer| !peer.is_loopback());
        let share = peer.map(|peer| self.share(peer)).transpose()?;
        let permit = Arc::clone(&self.all).try_acquire_owned().map_err(|_| NoPlace::All)?;
        Ok(Place { _permit: permit, _share: share })
    }

    fn share(&self, peer: IpAddr) -> Result<Share, NoPlace> {
        let mut taken = self.shares.taken.lock();
        let count = taken.entry(peer).or_default();
        if *count >= self.shares.most {
            return Err(NoPlace::Share);
        }
        *count += 1;
        Ok(Share { shares: Arc::clone(&self.shares), peer })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock();
        if let Some(count) = taken.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.peer);
            }
        }
    }
}

/// The address, or of IPv6 its network: whoever has one address there has 2^64.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_share_and_all_have_the_limit() {
        let places = Places::new(4, 2);
        let take = |peer: &str| places.take(Some(peer.parse().unwrap()));
        let first = (take("192.0.2.1").unwrap(), take("::ffff:192.0.2.1").unwrap());
        assert_eq!(take("192.0.2.1").unwrap_err(), NoPlace::Share);
        let second = (take("2001:db8::1").unwrap(), take("2001:db8::2").unwrap());
        assert_eq!(take("192.0.2.9").unwrap_err(), NoPlace::All);
        drop(second);
        let third = (take("2001:db8::3").unwrap(), take("2001:db8:0:1::1").unwrap());
        drop((first, third));
        let local = [take("127.0.0.1"), take("127.0.0.1"), take("127.0.0.1"), places.take(None)];
        assert!(local.iter().all(Result::is_ok), "nobody else can be behind the address of this machine");
        assert_eq!(take("192.0.2.1").unwrap_err(), NoPlace::All);
        assert!(places.shares.taken.lock().is_empty(), "what is given back is forgotten");
    }
}
