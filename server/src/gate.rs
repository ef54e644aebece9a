//! How many requests are served at once: a program's instances, those who wait for one, and what one client may have.

use crate::failure::Failure;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets in as many requests as there are instances; a bounded number waits for a bounded time.
#[derive(Debug)]
pub struct Gate {
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

impl Gate {
    /// For so many instances.
    pub fn new(instances: usize, most_waiting: usize, wait: Duration) -> Gate {
        Gate {
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

/// Requests of each address that are being served.
#[derive(Debug)]
pub struct Clients {
    most: usize,
    now: Mutex<HashMap<IpAddr, usize>>,
}

/// One of an address's requests.
#[derive(Debug)]
pub struct Share {
    clients: Arc<Clients>,
    address: IpAddr,
}

impl Clients {
    /// At most so many for each.
    pub fn new(most: usize) -> Clients {
        Clients {
            most,
            now: Mutex::default(),
        }
    }

    /// One more request of an address.
    ///
    /// # Errors
    /// It has enough.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Result<Share, Failure> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let count = now.entry(address).or_default();
        if *count >= self.most {
            return Err(Failure::Greedy(self.most));
        }
        *count += 1;
        Ok(Share {
            clients: self.clone(),
            address,
        })
    }
}

impl Drop for Share {
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
