//! How many requests are served at once: a program's instances, those who wait for one, and what
//! one client may have.

use crate::failure::Failure;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets in as many requests as there are instances; a bounded number waits for a bounded time.
#[derive(Debug)]
pub struct Admission {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
    wait: Duration,
}

/// A request that waits; it is no more when this is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    /// For so many instances.
    pub fn new(instances: usize, most_waiting: usize, wait: Duration) -> Admission {
        Admission {
            free: Arc::new(Semaphore::new(instances)),
            waiting: AtomicUsize::new(0),
            most_waiting,
            wait,
        }
    }

    /// Waits for an instance.
    ///
    /// # Errors
    /// Enough wait already, or it took too long.
    pub async fn enter(&self) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.most_waiting {
            return Err(Failure::Full(self.most_waiting));
        }
        let permit = tokio::time::timeout(self.wait, self.free.clone().acquire_owned()).await;
        drop(waiting);
        match permit {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Failure::Ending),
            Err(_) => Err(Failure::Busy(self.wait)),
        }
    }

    /// Requests that wait now.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// Requests that are being served, or connections, of each address; of each network of 64 bits with
/// IPv6, where one client has all of it.
#[derive(Debug)]
pub struct ClientLimit {
    most: usize,
    now: Mutex<HashMap<IpAddr, usize>>,
}

/// One of an address's.
#[derive(Debug)]
pub struct ClientPermit {
    clients: Arc<ClientLimit>,
    address: IpAddr,
}

impl ClientLimit {
    /// At most so many for each.
    pub fn new(most: usize) -> ClientLimit {
        ClientLimit {
            most,
            now: Mutex::default(),
        }
    }

    /// One more of an address.
    ///
    /// # Errors
    /// It has enough.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Result<ClientPermit, Failure> {
        let address = client(address);
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let count = now.entry(address).or_default();
        if *count >= self.most {
            return Err(Failure::Greedy(self.most));
        }
        *count += 1;
        Ok(ClientPermit {
            clients: self.clone(),
            address,
        })
    }
}

/// Who shares what there is of something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Party {
    /// An address, or a network of 64 bits with IPv6.
    Address(IpAddr),
    /// Somebody whom the site knows, wherever they are.
    Known(String),
}

impl Party {
    /// Of an address.
    pub fn of(address: IpAddr) -> Party {
        Party::Address(client(address))
    }
}

/// Who has an address.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(long) => Ipv6Addr::from_bits(long.to_bits() & !0 << 64).into(),
        short => short,
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut now = self
            .clients
            .now
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = now.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                now.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network() {
        let clients = Arc::new(ClientLimit::new(2));
        let enter = |address: &str| clients.enter(address.parse().unwrap()).ok();
        let held = [enter("10.0.0.1"), enter("::ffff:10.0.0.1")];
        assert!(held.iter().all(Option::is_some));
        assert!(enter("10.0.0.1").is_none());
        assert!(enter("10.0.0.2").is_some());
        let networks = [enter("2001:db8::1"), enter("2001:db8::ffff:0:2")];
        assert!(networks.iter().all(Option::is_some));
        assert!(enter("2001:db8::3").is_none());
        assert!(enter("2001:db8:0:1::1").is_some());
        drop(held);
        assert!(enter("10.0.0.1").is_some());
        drop(networks);
        assert!(clients.now.lock().unwrap().is_empty());
    }
}
