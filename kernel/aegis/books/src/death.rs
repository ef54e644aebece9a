//! What is left of an environment that has ended: its pages, given back in pieces.
//!
//! Invariant: its tables are nobody's. No processor has them loaded, nobody fills entries of them,
//! and one processor at a time empties them here, under the environment's lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use postern_aegis_abi::records::{Kind, NONE, claim};

use crate::kind::is;
use crate::{Books, Hardware};

/// Pages that are freed in one piece.
const AT_ONCE: usize = 64;

impl<H: Hardware> Books<'_, H> {
    /// Frees some pages of an environment that has ended; bindings to them are broken. Whether all
    /// are gone. Whoever calls this has its claim, or knows that nobody else makes its number
    /// another's.
    pub fn free_some_pages(&self, environment: u16) -> bool {
        let Some(_list) = self.try_lock_environment(environment) else {
            return false;
        };
        let claim = self.environment(environment).claim.load(Acquire);
        if !matches!(claim, claim::ENDING | claim::CHANGING) {
            return false;
        }
        for _ in 0..AT_ONCE {
            let page = self.environment(environment).first.load(Relaxed);
            if page == NONE {
                return true;
            }
            let record = self.record(page);
            // The links of a table are needed until it is empty.
            let other = record.read.load(Relaxed);
            if is(record, Kind::Table1) {
                self.dissolve(page, other);
                return false;
            }
            if is(record, Kind::Links) {
                self.dissolve(other, page);
                return false;
            }
            let _lock = self.lock_page(page);
            if !self.break_all(page) {
                return false;
            }
            self.retire(environment, page);
        }
        false
    }

    /// Empties a last-level table: it and its links are pages like others then.
    fn dissolve(&self, table: u32, links: u32) {
        self.empty(table);
        for page in [table, links] {
            let record = self.record(page);
            let _lock = self.lock_page(page);
            self.forget_names(record);
            record.kind.store(Kind::Leaving as u8, Relaxed);
        }
    }
}
