//! Virtual memory: what stands at each page of this process, decided here. Pages come at their
//! first touch; what may be done to each is what the program says, as often as it says.
//!
//! | module | what |
//! |---|---|
//! | [`room`] | pages, and more of them from the registry |
//! | [`walk`] | the processor's tables |
//! | [`table`] | the page table: a piece that programs choose |
//! | [`regions`] | ranges of pages that come at the first touch |
//! | [`file`] | files of the archive that are mapped |
//! | [`space`] | what is at a page: faults, protection, copies |
//! | [`mapping`] | what is asked for by range |
//! | [`chosen`] | pages that the program chooses: aliases, numbers, colours |
//! | [`fault`] | the exception |
//! | [`reason`] | why nobody has served one |
//! | [`fork`] | what a copy of the process needs |
//! | [`c`] | functions of C |

pub mod c;
pub mod chosen;
pub mod fault;
pub mod file;
pub mod fork;
pub mod mapping;
pub mod reason;
pub mod regions;
pub mod room;
pub mod space;
pub mod table;
mod trusted;
pub mod walk;

pub use fork::{constants, each_unknown, eager, in_copy, share, stored_since};
pub use reason::Reason;
pub use trusted::{busy, on_stack, set_otherwise as on_refused, with};

/// Begins: a table, the stack, faults.
pub fn begin() -> Result<(), postern_aegis::Error> {
    let begun = with(space::Space::begin);
    fault::install();
    begun.unwrap_or(Ok(()))
}
