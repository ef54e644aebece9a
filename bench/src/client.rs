//! Requests to a server for a while: begun at a fixed rate, or as fast as answers come.

use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Threads that connect: so many connections at once at most.
const CLIENTS: usize = 16;

/// What a load found.
pub struct Found {
    /// Of each answer, from the moment at which its request was due.
    pub times: Vec<Duration>,
    /// From the first request to the last answer.
    pub spent: Duration,
}

/// How requests follow each other.
#[derive(Clone, Copy)]
pub enum Load {
    /// By a connection each, so many in a second.
    Rate(u64),
    /// By a connection each, one behind the other by each client.
    Connections,
    /// The same by one connection of each client.
    Kept,
}

/// Who asks, and how often all have asked before.
#[derive(Clone, Copy)]
pub struct Request {
    /// The client.
    pub client: usize,
    /// The request.
    pub number: u64,
}

/// Requests for one turn, each by `ask`, which may keep its client's connection.
pub fn load(
    how: Load,
    turn: Duration,
    ask: impl Fn(Request, &mut Option<TcpStream>) -> std::io::Result<()> + Sync,
) -> Result<Found, String> {
    let next = AtomicU64::new(0);
    let failed = Mutex::new(None);
    let begin = Instant::now();
    let one = |client: usize| {
        let mut times = Vec::new();
        let mut kept = None;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let due = match how {
                Load::Rate(rate) => begin + Duration::from_secs_f64(number as f64 / rate as f64),
                Load::Connections | Load::Kept => Instant::now(),
            };
            if due >= begin + turn {
                return times;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            match ask(Request { client, number }, &mut kept) {
                Ok(()) => times.push(due.elapsed()),
                Err(error) => {
                    let mut failed = failed.lock().unwrap_or_else(|e| e.into_inner());
                    *failed = Some(error.to_string());
                    return times;
                }
            }
        }
    };
    let one = &one;
    let times = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || one(client)))
            .collect();
        let found = clients
            .into_iter()
            .map(|client| client.join().unwrap_or_default());
        found.flatten().collect()
    });
    let spent = begin.elapsed();
    match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some(error) => Err(error),
        None => Ok(Found { times, spent }),
    }
}
