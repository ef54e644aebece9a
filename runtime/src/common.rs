//! Common domains: domains of several processes with one memory. Each process has a window of its
//! own, maps text that it has verified itself, and shares the file behind data and heap with the
//! others, at the same offsets. Data stacks are each process's own, at offsets that no other
//! process has, so that what points to one is no other's.
//!
//! | file | what |
//! |---|---|
//! | `header.rs` | what stands in front of the memory, for the runtimes only |
//! | `ledger.rs` | what each process has counted |
//! | `relay.rs` | how an event of one process gets to a thread of another |
//! | `memory.rs` | the file; a seat for each process |
//! | `poison.rs` | why it is closed |
//! | `follower.rs` | the threads that look at what others do |
//! | `view.rs` | what others see of it |
//! | `broker.rs` | who hands it out, by a name |

pub(crate) mod broker;
pub(crate) mod follower;
pub(crate) mod header;
pub(crate) mod ledger;
pub(crate) mod memory;
mod poison;
pub(crate) mod relay;
mod view;

pub use broker::{Admission, Broker, BrokerState, Visit, broker_state, brokers, socket_of};
pub use header::EndInside;
pub use ledger::CommonTally;
pub use poison::Poison;
pub use view::{CommonMember, CommonState, CommonView};

use crate::domain::{self, Limits};
use crate::error::{CommonError, InstantiateError};
use crate::image::Image;
use memory::Memory;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The memory of a common domain: data and heap, which domains of several processes have at the
/// same offsets ([`crate::DomainBuilder::common`]). It is a memory file that is handed on as a
/// descriptor; its contents go with the last process that has it. Cloning shares it.
///
/// Whoever has the descriptor can write all of it, at any time: what one process grants its domain,
/// all others can have it use.
#[derive(Clone, Debug)]
pub struct CommonMemory(pub(crate) Arc<Memory>);

impl CommonMemory {
    /// New memory for domains of `image`, with heap and stacks as the image wishes.
    ///
    /// # Errors
    /// As [`CommonMemory::with`].
    pub fn new(image: &Image) -> Result<CommonMemory, InstantiateError> {
        CommonMemory::with(image, &Limits::default())
    }

    /// New memory for domains of `image`. Of the limits those of heap and data stacks count.
    ///
    /// # Errors
    /// They do not fit a window, or the kernel refuses a memory file.
    pub fn with(image: &Image, limits: &Limits) -> Result<CommonMemory, InstantiateError> {
        let layout = domain::common_layout(image, limits)?;
        Ok(CommonMemory(Memory::create(&image.0, layout)?))
    }

    /// The memory that another process has made, by the descriptor that came from there.
    ///
    /// # Errors
    /// The file is none of a common domain's, or could get shorter; nothing of it is believed.
    pub fn join(descriptor: OwnedFd) -> Result<CommonMemory, InstantiateError> {
        Ok(CommonMemory::taken(descriptor)?)
    }

    fn taken(descriptor: OwnedFd) -> Result<CommonMemory, CommonError> {
        Ok(CommonMemory(Memory::join(descriptor)?))
    }

    /// Says what becomes of the domain when a process ends while one of its threads is inside: for
    /// whoever makes the memory, before others have it.
    #[must_use]
    pub fn end_inside(self, what: EndInside) -> CommonMemory {
        self.0.header.set_end_inside(what);
        self
    }

    /// How many ends of processes inside the domain has survived ([`EndInside::Survive`]).
    pub fn survived(&self) -> u32 {
        self.0.header.survived()
    }

    /// The descriptor that other processes [`CommonMemory::join`] by, once it was sent to them.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.descriptor()
    }
}
