//! Map, unmap and protect for arrays of requests in the caller's memory.
//!
//! Invariant: a request is done as if it had been called alone, and after the ones before it.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::address::{END, index, mappable};
use postern_aegis_abi::call::MANY;
use postern_aegis_abi::mapping::Request;
use postern_aegis_abi::records::binding;
use postern_aegis_abi::{Error, Mapping};

use crate::{Books, Hardware};

/// Requests that are read from the caller's memory at a time.
const READ: usize = 16;

/// More addresses than these are not forgotten one by one, but all at once at the end: nobody
/// uses them before the call returns.
const FLUSHES: u64 = 32;

/// The 2 MiB of the last request that was done in line: entries of its table, and their links.
struct Span<'a> {
    number: u64,
    table: u32,
    slots: &'a [AtomicU64; 512],
    links: &'a [AtomicU64; 512],
}

impl<'a> Span<'a> {
    /// The index of an address, if it is in the span and may be mapped.
    #[inline(always)]
    fn index<'s>(span: &'s Option<Span<'a>>, address: u64) -> Option<(&'s Span<'a>, usize)> {
        let span = span.as_ref()?;
        (span.number == address >> 21 && mappable(address)).then_some((span, index(address, 1)))
    }
}

impl<'a, H: Hardware> Books<'a, H> {
    /// The call: how many were done.
    #[inline(never)]
    pub fn map_many(&self, caller: u16, requests: u64, count: u64) -> Result<u64, Error> {
        const WORDS: usize = size_of::<Request>() / 8;
        let (mut span, mut stale) = (None, false);
        let done = self.many::<{ READ * WORDS }, WORDS>(caller, requests, count, |request| {
            let [address, mapping, capability] = *request;
            let unmap = mapping == Request::UNMAP.0;
            let mapping = Mapping(mapping);
            if let Some((near, at)) = Span::index(&span, address) {
                let slot = &near.slots[at];
                if unmap && self.empty_one(slot) {
                    self.forget(caller, address, count, &mut stale);
                    return Ok(());
                }
                let binding = binding(near.table, at);
                if !unmap && self.fill(slot, &near.links[at], binding, mapping, caller) {
                    return Ok(());
                }
            }
            let done = match unmap {
                true => self.unmap_page(caller, address),
                false => self.map_page(caller, caller, address, mapping, capability),
            };
            span = self.span(caller, address);
            done
        });
        if stale {
            self.hardware.shoot(caller);
        }
        done
    }

    /// The call: how many were done.
    #[inline(never)]
    pub fn protect_many(
        &self,
        caller: u16,
        addresses: u64,
        count: u64,
        flags: u64,
    ) -> Result<u64, Error> {
        if flags & !Mapping::FLAGS != 0 {
            return Err(Error::Argument);
        }
        let (mut span, mut stale) = (None, false);
        let done = self.many::<READ, 1>(caller, addresses, count, |&[address]| {
            if let Some((near, at)) = Span::index(&span, address)
                && self.change(&near.slots[at], caller, flags)
            {
                self.forget(caller, address, count, &mut stale);
                return Ok(());
            }
            let done = self.protect_page(caller, address, flags);
            span = self.span(caller, address);
            done
        });
        if stale {
            self.hardware.shoot(caller);
        }
        done
    }

    /// Forgets an address, now or with all others.
    #[inline(always)]
    fn forget(&self, caller: u16, address: u64, count: u64, stale: &mut bool) {
        if count > FLUSHES {
            *stale = true;
        } else {
            self.hardware.flush(caller, address);
        }
    }

    /// What is around an address, whose table is the caller's as long as its call lasts.
    fn span(&self, caller: u16, address: u64) -> Option<Span<'a>> {
        let hardware = self.hardware;
        let nearby = self.nearby(caller, address)?;
        Some(Span {
            number: address >> 21,
            table: nearby.table,
            slots: hardware.words(nearby.table),
            links: hardware.words(nearby.record.read.load(Relaxed)),
        })
    }

    /// Does something for each of an array of requests in the caller's memory, until one fails.
    /// They are read some at a time: between reading and the last use of a page nothing may be
    /// waited for, and what is done may do so.
    #[inline(always)]
    fn many<const ALL: usize, const WORDS: usize>(
        &self,
        caller: u16,
        address: u64,
        count: u64,
        mut act: impl FnMut(&[u64; WORDS]) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        if count > MANY || address >= END || !address.is_multiple_of(8) {
            return Err(Error::Argument);
        }
        let mut buffer = [0; ALL];
        let mut done = 0;
        while done < count {
            let some = ((count - done) as usize).min(READ);
            let words = &mut buffer[..some * WORDS];
            match self.read_words(caller, address + done * WORDS as u64 * 8, words) {
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
                Ok(()) => {}
            }
            for request in words.as_chunks::<WORDS>().0 {
                if act(request).is_err() {
                    return Ok(done);
                }
                done += 1;
            }
        }
        Ok(done)
    }
}
