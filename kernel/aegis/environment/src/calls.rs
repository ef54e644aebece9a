//! The calls, typed: one function each, in the order of [`postern_aegis_abi::call::TABLE`]. What
//! each does, needs and refuses stands there.
//!
//! These are safe functions, so none of them may change what Rust believes of memory: calls that
//! put pages into the caller's own space refuse addresses of the program itself
//! ([`crate::image::own`]) with [`Error::Argument`]; memory mapped elsewhere is reached by
//! [`crate::memory`] only. [`raw`] makes any call with any arguments.
//!
//! Transfers and yields, which come back at an entry, are in [`crate::entry`].

mod trusted;

use postern_aegis_abi::call::{ANY, SET_FROZEN, SET_SERVER};
use postern_aegis_abi::mapping::Request;
use postern_aegis_abi::{Call, Error, Mapping, device};

pub use trusted::raw;

/// What a call gives back: a number.
pub type Word = u64;

/// An environment that a call is about, and the capability that says that the caller may: 0, if it
/// is the caller or made by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Its number; 0: the caller.
    pub environment: u16,
    /// A capability with [`postern_aegis_abi::call::RIGHT_CONTROL`].
    pub control: u64,
}

impl Target {
    /// The caller.
    pub const SELF: Target = Target {
        environment: 0,
        control: 0,
    };

    /// An environment that the caller made.
    pub const fn child(environment: u16) -> Target {
        Target {
            environment,
            control: 0,
        }
    }

    fn number(self) -> u64 {
        u64::from(self.environment)
    }

    /// Whether a call changes the caller's own space here: then Rust's memory is in reach.
    fn touches_own(self, address: u64) -> bool {
        // The caller may be meant by its own number, too.
        (self.environment == 0 || crate::books::is_self(self.environment))
            && crate::image::own(address)
    }
}

/// Makes a call that does not touch this program's memory.
#[inline(always)]
fn call(call: Call, arguments: &[u64]) -> Result<Word, Error> {
    let mut all = [0; 6];
    for (to, from) in all.iter_mut().zip(arguments) {
        *to = *from;
    }
    // SAFETY: the functions below pass addresses of this program only for slices that they borrow
    // as the call needs, and no page is put over it: they ask `touches_own`.
    unsafe { raw(call as u64, all) }
}

/// Nothing.
#[inline(always)]
pub fn null() -> Result<Word, Error> {
    call(Call::Null, &[])
}

/// Nothing, on the path with a stack.
#[inline(always)]
pub fn null_stack() -> Result<Word, Error> {
    call(Call::NullStack, &[])
}

/// Switches the coprocessor on or off.
pub fn fpu(on: bool) -> Result<Word, Error> {
    call(Call::Fpu, &[u64::from(on)])
}

/// Forgets the translation of an address.
pub fn flush(address: u64) -> Result<Word, Error> {
    call(Call::Flush, &[address])
}

/// Forgets all translations.
pub fn flush_all() -> Result<Word, Error> {
    call(Call::FlushAll, &[])
}

/// The capability for own pages of a name, or with the right to control for an environment.
pub fn capability(name: u32, right: u64, environment: u16) -> Result<u64, Error> {
    // A capability is any word, also one that is an error's number elsewhere: it is stored.
    call(
        Call::Capability,
        &[u64::from(name), right, u64::from(environment)],
    )
}

/// Takes a free page by its number.
pub fn allocate_page(page: u32, read: u32, write: u32) -> Result<u32, Error> {
    call(
        Call::Allocate,
        &[u64::from(page), u64::from(read), u64::from(write)],
    )
    .map(|page| page as u32)
}

/// Takes any free page.
pub fn allocate(read: u32, write: u32) -> Result<u32, Error> {
    call(Call::Allocate, &[ANY, u64::from(read), u64::from(write)]).map(|page| page as u32)
}

/// Gives a page back.
pub fn free(page: u32) -> Result<Word, Error> {
    call(Call::Free, &[u64::from(page)])
}

/// Gives a page other names.
pub fn rename(page: u32, read: u32, write: u32) -> Result<Word, Error> {
    call(
        Call::Rename,
        &[u64::from(page), u64::from(read), u64::from(write)],
    )
}

/// Makes a page another's.
pub fn give(page: u32, environment: u16) -> Result<Word, Error> {
    call(Call::Give, &[u64::from(page), u64::from(environment)])
}

/// Breaks the bindings that others have to a page.
pub fn break_page(page: u32) -> Result<Word, Error> {
    call(Call::Break, &[u64::from(page)])
}

/// Makes pages the table of a level for an address.
pub fn table(address: u64, level: u32, page: u32, links: u32, of: Target) -> Result<Word, Error> {
    call(
        Call::Table,
        &[
            address,
            u64::from(level),
            u64::from(page),
            u64::from(links),
            of.number(),
            of.control,
        ],
    )
}

/// Takes a table away.
pub fn untable(address: u64, level: u32, of: Target) -> Result<Word, Error> {
    call(
        Call::Untable,
        &[address, u64::from(level), of.number(), of.control],
    )
}

/// Binds a page to an address.
pub fn map(address: u64, mapping: Mapping, capability: u64, of: Target) -> Result<Word, Error> {
    if of.touches_own(address) {
        return Err(Error::Argument);
    }
    call(
        Call::Map,
        &[address, mapping.0, capability, of.number(), of.control],
    )
}

/// Takes a binding away.
pub fn unmap(address: u64, of: Target) -> Result<Word, Error> {
    call(Call::Unmap, &[address, of.number(), of.control])
}

/// Changes what may be done to a bound page of the caller's space.
pub fn protect(address: u64, flags: u64) -> Result<Word, Error> {
    call(Call::Protect, &[address, flags])
}

/// Maps and unmaps in order; how many were done.
pub fn map_many(requests: &[Request]) -> Result<Word, Error> {
    if requests
        .iter()
        .any(|request| Target::SELF.touches_own(request.address))
    {
        return Err(Error::Argument);
    }
    call(
        Call::MapMany,
        &[requests.as_ptr() as u64, requests.len() as u64],
    )
}

/// Protects in order; how many were done.
pub fn protect_many(addresses: &[u64], flags: u64) -> Result<Word, Error> {
    call(
        Call::ProtectMany,
        &[addresses.as_ptr() as u64, addresses.len() as u64, flags],
    )
}

/// Makes an environment of two own pages.
pub fn create(context: u32, table: u32) -> Result<u16, Error> {
    call(Call::Create, &[u64::from(context), u64::from(table)]).map(|number| number as u16)
}

/// Ends an environment.
pub fn destroy(which: Target) -> Result<Word, Error> {
    call(Call::Destroy, &[which.number(), which.control])
}

/// Sets an environment's swap server.
pub fn set_server(which: Target, server: u16) -> Result<Word, Error> {
    call(
        Call::Set,
        &[which.number(), SET_SERVER, u64::from(server), which.control],
    )
}

/// Has an environment stand still, or lets it be entered.
pub fn set_frozen(which: Target, frozen: bool) -> Result<Word, Error> {
    call(
        Call::Set,
        &[which.number(), SET_FROZEN, u64::from(frozen), which.control],
    )
}

/// Gives a child what it keeps in any case and what it may have at most.
pub fn quota(child: u16, resource: u64, reserved: u32, limit: u32) -> Result<Word, Error> {
    call(
        Call::Quota,
        &[
            u64::from(child),
            resource,
            u64::from(reserved),
            u64::from(limit),
        ],
    )
}

/// Takes a free slice by its position.
pub fn take_slice(processor: usize, position: usize) -> Result<Word, Error> {
    call(Call::TakeSlice, &[processor as u64, position as u64])
}

/// Gives a slice back.
pub fn free_slice(processor: usize, position: usize) -> Result<Word, Error> {
    call(Call::FreeSlice, &[processor as u64, position as u64])
}

/// Makes a slice another's.
pub fn give_slice(processor: usize, position: usize, environment: u16) -> Result<Word, Error> {
    call(
        Call::GiveSlice,
        &[processor as u64, position as u64, u64::from(environment)],
    )
}

/// Asks an environment for pages or slices.
pub fn revoke(which: Target, resource: u64, count: u32) -> Result<Word, Error> {
    call(
        Call::Revoke,
        &[which.number(), resource, u64::from(count), which.control],
    )
}

/// Hands an environment to its swap server.
pub fn submit(which: Target) -> Result<Word, Error> {
    call(Call::Submit, &[which.number(), which.control])
}

/// Writes to the console that is the caller's or everybody's; how many bytes.
pub fn write(bytes: &[u8]) -> Result<Word, Error> {
    write_with(bytes, 0)
}

/// Writes to the console by its capability; how many bytes.
pub fn write_with(bytes: &[u8], capability: u64) -> Result<Word, Error> {
    call(
        Call::Write,
        &[bytes.as_ptr() as u64, bytes.len() as u64, capability],
    )
}

/// A byte from the console that is the caller's.
pub fn read() -> Result<u8, Error> {
    read_with(0)
}

/// A byte from the console by its capability.
pub fn read_with(capability: u64) -> Result<u8, Error> {
    call(Call::Read, &[capability]).map(|byte| byte as u8)
}

/// Judges an image; whether it is accepted. The verdict's words are the kernel's.
pub fn judge(image: &[u8], verdict: &mut [u64; 4]) -> Result<bool, Error> {
    call(
        Call::Judge,
        &[
            image.as_ptr() as u64,
            image.len() as u64,
            verdict.as_mut_ptr() as u64,
        ],
    )
    .map(|refused| refused == 0)
}

/// Stops the machine.
pub fn stop(status: u8) -> Result<Word, Error> {
    call(Call::Stop, &[u64::from(status)])
}

/// Makes a holding another's.
pub fn give_holding(holding: usize, environment: u16) -> Result<Word, Error> {
    call(Call::GiveHolding, &[holding as u64, u64::from(environment)])
}

/// Gives a holding other names.
pub fn rename_holding(holding: usize, read: u32, write: u32) -> Result<Word, Error> {
    call(
        Call::RenameHolding,
        &[holding as u64, u64::from(read), u64::from(write)],
    )
}

/// Ends an endpoint or a handler, or gives another holding to the maker.
pub fn drop_holding(holding: usize, control: u64) -> Result<Word, Error> {
    call(Call::Drop, &[holding as u64, control])
}

/// Cuts a range of blocks in two; the number of the rest.
pub fn split(holding: usize, blocks: u64) -> Result<usize, Error> {
    call(Call::Split, &[holding as u64, blocks]).map(|number| number as usize)
}

/// Makes one range of two.
pub fn join(holding: usize, behind: usize) -> Result<Word, Error> {
    call(Call::Join, &[holding as u64, behind as u64])
}

/// Asks the disk; how many requests were taken. Pages that it writes to must not be this program's own.
pub fn blocks(requests: &[device::Request]) -> Result<Word, Error> {
    call(
        Call::Blocks,
        &[requests.as_ptr() as u64, requests.len() as u64],
    )
}

/// An endpoint for what a filter accepts, whose frames go to the ring in an own page; 0: none yet.
pub fn bind(filter: &str, priority: u32, ring: u32) -> Result<usize, Error> {
    call(
        Call::Bind,
        &[
            filter.as_ptr() as u64,
            filter.len() as u64,
            u64::from(priority),
            u64::from(ring),
        ],
    )
    .map(|number| number as usize)
}

/// Where an endpoint's frames go: to a handler first, then to a ring; 0: none.
pub fn direct(holding: usize, ring: u32, handler: usize) -> Result<Word, Error> {
    call(
        Call::Direct,
        &[holding as u64, u64::from(ring), handler as u64],
    )
}

/// Which endpoints' filters accept a frame, the one that gets it first; how many there are.
pub fn matches(frame: &[u8], holdings: &mut [u64]) -> Result<Word, Error> {
    call(
        Call::Matches,
        &[
            frame.as_ptr() as u64,
            frame.len() as u64,
            holdings.as_mut_ptr() as u64,
            holdings.len() as u64,
        ],
    )
}

/// Sends a frame that is gathered from pages.
pub fn send(pieces: &[device::Piece]) -> Result<Word, Error> {
    call(Call::Send, &[pieces.as_ptr() as u64, pieces.len() as u64])
}

/// A handler of an image, in own pages: its window's table, its links, and one for each page of slots and text.
pub fn handler(image: &[u8], pages: &[u64]) -> Result<usize, Error> {
    call(
        Call::Handler,
        &[
            image.as_ptr() as u64,
            image.len() as u64,
            pages.as_ptr() as u64,
            pages.len() as u64,
        ],
    )
    .map(|number| number as usize)
}

/// Binds a page in a handler's window.
pub fn window(
    holding: usize,
    offset: u32,
    mapping: Mapping,
    capability: u64,
) -> Result<Word, Error> {
    call(
        Call::Window,
        &[holding as u64, u64::from(offset), mapping.0, capability],
    )
}

/// Has the alarm's event raised when the processor's counter has reached a value; 0: never.
pub fn alarm(time: u64) -> Result<Word, Error> {
    call(Call::Alarm, &[time])
}

/// Sets the time of day.
pub fn set_clock(seconds: u64, capability: u64) -> Result<Word, Error> {
    call(Call::SetClock, &[seconds, capability])
}
