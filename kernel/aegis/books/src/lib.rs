//! The bookkeeping of Aegis: who owns which page and which slice, what is bound where, who is
//! asked to give something back. All of the kernel's decisions are here, without a line of unsafe
//! code and without a processor: [`Hardware`] is what a kernel has and a test models.
//!
//! The records ([`postern_aegis_abi::records`]) are words that every environment can read, so they
//! are atomics, and two processors work on them at a time. The locks, in the order in which they
//! are taken; whoever waits for one serves other processors' requests meanwhile
//! ([`Hardware::poll`]):
//!
//! | lock | what it guards |
//! |---|---|
//! | an environment's claim | entering it; its page tables, which only who runs it or holds its claim changes, but for entries that [`Break`](postern_aegis_abi::Call::Break) takes out |
//! | the holdings' | who owns which part of a device |
//! | a device's, the kernel's own | its rings |
//! | an environment's `lock` | its list of pages, its counts and quotas |
//! | a page's `lock` | kind, owner and names of the page, and the list of its bindings: the entries of tables that bind it and their links |
//! | the free list's | the free list |
//!
//! Nothing here waits for an environment, or allocates: all that must be kept stands in records of
//! fixed number or in pages that environments gave.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod asked;
mod binding;
mod blocks;
mod boot;
mod call;
mod capability;
mod clock;
mod context;
mod death;
mod debt;
mod emergency;
mod ended;
mod endpoint;
mod entry;
mod environment;
mod fast;
mod frame;
mod guarantee;
mod handler;
mod holding;
mod interval;
mod kind;
mod lent;
mod life;
mod list;
mod lock;
mod many;
mod map;
mod minted;
mod page;
mod quota;
mod reap;
mod request;
mod revocation;
mod ring;
mod slice;
mod table;
#[cfg(test)]
mod tests;
mod user;

pub use boot::Start;
pub use emergency::Emergency;
pub use endpoint::Endpoint;
pub use handler::{Code, Run};
pub use interval::{Clock, Interval, Stopped};
pub use minted::Minted;
pub use quota::Resource;
pub use request::{Block, UnderWay};
pub use slice::{Tick, Turn};

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use postern_aegis_abi::records::{Environment, Machine, Page};

/// What the kernel's decisions need of a machine.
pub trait Hardware {
    /// The words of a page of memory. Environments can store to many of them at any time.
    fn words(&self, page: u32) -> &[AtomicU64; 512];

    /// Fills a page with zeros.
    fn clear(&self, page: u32) {
        for word in self.words(page) {
            word.store(0, core::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Copies a page.
    fn copy(&self, from: u32, to: u32) {
        use core::sync::atomic::Ordering::Relaxed;
        for (from, to) in self.words(from).iter().zip(self.words(to)) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    /// Fills the slots of a root table that the kernel fills: the one of
    /// [`BOOKS`](postern_aegis_abi::address::BOOKS) and the upper half.
    fn kernel_slots(&self, table: u32);

    /// A word of this processor's own, in which the books remember a page's number: the last-level
    /// table that was used last. Any value will do.
    fn last_table(&self) -> &AtomicU32;

    /// Memory of this processor's own, in which the books remember capabilities. Nobody else ever
    /// reads or writes it.
    fn minted(&self) -> &Minted;

    /// The number of this processor.
    fn processor(&self) -> usize;

    /// Forgets what this processor knows of an address, if the environment runs on it.
    fn flush(&self, environment: u16, address: u64);

    /// Makes another processor forget all translations, if it runs this environment, and waits for
    /// that. Does what [`Hardware::flush`] does for all addresses, if this one runs it.
    ///
    /// A processor that is in the kernel on behalf of the environment answers only when it polls
    /// or goes back: what it found in the environment's tables can be used until then.
    fn shoot(&self, environment: u16);

    /// As [`Hardware::shoot`], of the windows of handlers, which processor 0 alone uses.
    fn shoot_windows(&self);

    /// Gives a handler's window its table.
    fn window_opens(&self, _handler: usize, _table: u32) {}

    /// Takes a handler's window away: it does not run any more when this returns, and no processor
    /// knows what was mapped there.
    fn window_closes(&self, _handler: usize) {}

    /// Pages are constant from now on, or are not any more, for the kernel, too.
    fn constant(&self, _pages: &mut dyn Iterator<Item = u32>, _constant: bool) {}

    /// Copies bytes to a page from an offset on, a multiple of eight. They fit; of the last word
    /// the bytes behind them may become zeros.
    fn store(&self, page: u32, offset: usize, bytes: &[u8]) {
        use core::sync::atomic::Ordering::Relaxed;
        let words = &self.words(page)[offset / 8..];
        for (word, bytes) in words.iter().zip(bytes.chunks(8)) {
            let mut value = [0; 8];
            value[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(value), Relaxed);
        }
    }

    /// The processors' counter of cycles now.
    fn time(&self) -> u64;

    /// Endpoints have ended: filters are compiled again without them. Holdings are locked.
    fn endpoints_ended(&self) {}

    /// Makes another processor that runs this environment leave it if its claim says so
    /// ([`Environment::stopping`]). Does not wait.
    fn interrupt(&self, processor: usize);

    /// Serves what other processors ask of this one. Called whenever something is waited for.
    fn poll(&self);
}

/// The books of a machine.
#[derive(Clone, Copy)]
pub struct Books<'a, H> {
    /// Environments, slices, processors.
    pub machine: &'a Machine,
    /// All pages, by number.
    pub pages: &'a [Page],
    /// For how many transfers of devices each page is lent now.
    pub lent: &'a [AtomicU8],
    /// What proves capabilities: known to nobody else.
    pub key: &'a [u8; 16],
    /// The machine.
    pub hardware: &'a H,
}

impl<'a, H: Hardware> Books<'a, H> {
    /// The record of an environment's number, which may be a byte at most.
    pub fn environment(&self, number: u16) -> &'a Environment {
        &self.machine.environments[usize::from(number) & 0xff]
    }
}
