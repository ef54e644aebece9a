//! Physical pages: the free list, the owners' lists, and how a page goes from one to another.

use postern_aegis_abi::Error;

use crate::{Books, Hardware};

impl<H: Hardware> Books<'_, H> {
    /// Writes all records of pages, at the start: the usable ones are free, the others are the
    /// kernel's. No environment has any then ([`Environment::first`] is set, too).
    ///
    /// [`Environment::first`]: postern_aegis_abi::records::Environment::first
    pub fn start_pages(&self, _usable: impl Fn(u32) -> bool) {
        todo!()
    }

    /// A page's number, if there is one of this number ([`Error::Argument`]).
    pub fn number(&self, _page: u64) -> Result<u32, Error> {
        todo!()
    }

    /// The call. [`Error::Exhausted`] if no page is free: asking others for one is the caller's.
    pub fn allocate(
        &self,
        _caller: u16,
        _page: Option<u32>,
        _read: u32,
        _write: u32,
    ) -> Result<u32, Error> {
        todo!()
    }

    /// The call.
    pub fn free(&self, _caller: u16, _page: u32) -> Result<(), Error> {
        todo!()
    }

    /// The call.
    pub fn rename(&self, _caller: u16, _page: u32, _read: u32, _write: u32) -> Result<(), Error> {
        todo!()
    }

    /// The call. Names are nobody's afterwards; no more than 64 bindings may be there.
    pub fn give(&self, _caller: u16, _page: u32, _to: u16) -> Result<(), Error> {
        todo!()
    }

    /// The page that would be taken by force from an environment: memory, not guaranteed; one that
    /// is already on its way before others.
    pub fn victim(&self, _environment: u16) -> Option<u32> {
        todo!()
    }

    /// By force, first: nobody binds this page of the environment any more. [`Error::Again`]: some
    /// bindings are left; [`Books::victim`] names it again.
    pub fn take(&self, _environment: u16, _page: u32) -> Result<(), Error> {
        todo!()
    }

    /// By force, second: copies a taken page to one that its owner may store to, by ownership or
    /// capability.
    pub fn save(
        &self,
        _environment: u16,
        _page: u32,
        _place: u32,
        _capability: u64,
    ) -> Result<(), Error> {
        todo!()
    }

    /// By force, last: a taken page is free.
    pub fn drop_taken(&self, _environment: u16, _page: u32) -> Result<(), Error> {
        todo!()
    }

    /// By force, last: a taken page is another's, with its contents, if that one lives and has
    /// room for it ([`Error::NoEnvironment`], [`Error::Quota`]).
    pub fn hand_taken(&self, _environment: u16, _page: u32, _to: u16) -> Result<(), Error> {
        todo!()
    }

    /// For [`Call::Submit`](postern_aegis_abi::Call::Submit): memory of an environment that stands
    /// still becomes another's, and stays bound where it is. Tables, links and the context stay.
    /// In pieces ([`Error::Again`]).
    pub fn hand_over(&self, _from: u16, _to: u16) -> Result<(), Error> {
        todo!()
    }
}
