//! Calls of others' code: how those end that do not return, and what a program hands over meanwhile.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::println;
use postern_gates::sync::{Mutex, MutexGuard};

use crate::extension::{self, Domain, Failure, FaultKind};

/// Bytes of an answer at most.
pub const ANSWER: usize = 1 << 20;

/// Why a call gave no answer: the status for it, its number in the log, and words.
#[derive(Clone, Debug)]
pub struct Failed {
    /// 504 for what took too long, 500 for all else.
    pub status: u16,
    /// What it is called in the log.
    pub id: u64,
    /// What the fault is called; empty if it is none.
    pub kind: &'static str,
    /// A sentence.
    pub words: String,
}

static IDS: AtomicU64 = AtomicU64::new(1);

impl Failed {
    /// One that is told in the log, too.
    pub fn new(status: u16, kind: &'static str, words: String) -> Failed {
        let id = IDS.fetch_add(1, Relaxed);
        println!("www: id {id}: {words}");
        Failed {
            status,
            id,
            kind,
            words,
        }
    }
}

/// Why the last call did not return. The domain begins anew.
pub fn failed(domain: &Domain) -> Failed {
    let (status, kind, words) = extension::with_failure(|failure| match failure {
        Some(Failure::Fault(fault)) => {
            let late = fault.kind == FaultKind::Deadline;
            let status = if late { 504 } else { 500 };
            (status, fault.kind.name(), fault.message())
        }
        Some(Failure::Exited(number)) => (500, "", format!("it ended with status {number}")),
        Some(Failure::Refused(why)) => (500, "", format!("it was not called: {why:?}")),
        None => (500, "", String::from("it did not return")),
    });
    extension::clear_failure();
    if let Err(error) = domain.reset() {
        println!("www: {}: {error}", domain.name());
    }
    Failed::new(status, kind, words)
}

/// What the program that is called has handed over, and where in its area answers stand.
#[derive(Debug)]
struct Handed {
    at: u32,
    room: u64,
    bytes: Vec<u8>,
}

static HANDED: Mutex<Handed> = Mutex::new(Handed {
    at: 0,
    room: 0,
    bytes: Vec::new(),
});

fn handed() -> MutexGuard<'static, Handed> {
    HANDED.lock().unwrap_or_else(|never| never.into_inner())
}

/// A program is about to be called whose answers stand at `at`.
pub fn begin(at: u32, room: usize) {
    *handed() = Handed {
        at,
        room: room as u64,
        bytes: Vec::new(),
    };
}

/// For the program: takes so many bytes. Whether there was room for them.
pub fn hand_over(size: u64) -> bool {
    let mut handed = handed();
    let size = size.min(handed.room) as usize;
    let before = handed.bytes.len();
    if before + size > ANSWER || handed.bytes.try_reserve(size).is_err() {
        return false;
    }
    handed.bytes.resize(before + size, 0);
    let at = handed.at;
    let place = handed.bytes.get_mut(before..).unwrap_or_default();
    extension::read_caller(at, place)
}

/// All that was handed over.
pub fn end() -> Vec<u8> {
    core::mem::take(&mut handed().bytes)
}
