//! A set's machine code for who has a window of its own, as a kernel has: with its tables, but
//! without a domain. It is made once and for all; another set is another code.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Set;
pub use super::cuckoo::TableError;
use super::dispatch::Dispatch;
use crate::Code;
use crate::encode::Site;

/// Machine code of a set, and what it reads.
#[derive(Clone, Debug)]
pub struct KernelSet {
    /// A function of [`crate::KERNEL_SIGNATURE`]: it returns the number of the filter that gets a
    /// packet, counted from 1 on, or 0.
    pub code: Code,
    /// The words at the place in the window for which the code was made.
    pub tables: Vec<u64>,
}

impl Set {
    /// Machine code of the set for a window in which its tables will begin at an offset. `random`
    /// is for keys of hash tables: who chooses filters must not know them.
    ///
    /// # Errors
    /// The tables are too large, or `random` is not.
    pub fn kernel_code(
        &self,
        tables: u32,
        random: impl FnMut() -> u64 + Send + Sync + 'static,
    ) -> Result<KernelSet, TableError> {
        let mut dispatch = Dispatch::new(Site::Kernel, Box::new(random));
        let text = dispatch.compile(self, tables)?.text;
        Ok(KernelSet {
            code: Code::new(Site::Kernel, text),
            tables: dispatch.memory.into_words(),
        })
    }
}
