//! The calls, as one table: what the kernel dispatches by, what environments call, and what the
//! book shows.
//!
//! A call is the instruction `syscall`: its number in al, the other bits of eax 0 (transfers have
//! an environment's number in ah), arguments in rdi, rsi, rdx, r10, r8. The result is in rax: not
//! below zero, or an [`Error`]. The instruction itself takes rcx and r11; every other
//! register, vector registers among them, is as it was.
//!
//! Where a call has an argument `environment`, 0 is the caller. Another one may be named by its
//! maker, by its swap server while it is submitted, and by whoever presents its capability
//! ([`Call::Capability`] with the right [`RIGHT_CONTROL`]).

use crate::Error;

/// Rights of capabilities.
pub const RIGHT_READ: u64 = 1;
/// To store to a page; it lets read, too.
pub const RIGHT_WRITE: u64 = 2;
/// To act for an environment.
pub const RIGHT_CONTROL: u64 = 4;

/// Names that capabilities are made for. A page whose read or write name is one of the first two
/// needs none.
pub const NAME_NOBODY: u32 = 0;
/// Everybody: the well-known capability.
pub const NAME_EVERYBODY: u32 = 1;

/// A page, a slice, a quota of no special number.
pub const ANY: u64 = u64::MAX;

/// Resources with quotas.
pub const PAGES: u64 = 1;
/// Slices of time, of all processors together.
pub const SLICES: u64 = 2;
/// Environments that may be made.
pub const ENVIRONMENTS: u64 = 3;
/// Holdings: ranges of blocks, endpoints, handlers.
pub const HOLDINGS: u64 = 4;

/// Entries that a call on many takes at most.
pub const MANY: u64 = 512;

/// What [`Call::Set`] sets.
pub const SET_SERVER: u64 = 1;
/// 1: stands still; 0: may be entered.
pub const SET_FROZEN: u64 = 2;

/// A call as the table has it.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Its number.
    pub call: Call,
    /// Its name, as `Call` has it.
    pub name: &'static str,
    /// Arguments in the order of their registers.
    pub arguments: &'static [&'static str],
    /// Whether the kernel takes a stack for it.
    pub stack: bool,
    /// What it does.
    pub what: &'static str,
    /// What the caller must own or present.
    pub needs: &'static str,
    /// What it answers when it is not done.
    pub errors: &'static [Error],
}

macro_rules! calls {
    ($($number:literal $name:ident($($argument:ident),*) $stack:ident
       $(#[doc = $what:literal])+ needs $needs:literal errors [$($error:ident),*];)+) => {
        /// A call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Call { $($(#[doc = $what])+ $name = $number),+ }

        /// All calls, in the order of their numbers.
        pub const TABLE: &[Description] = &[$(Description {
            call: Call::$name,
            name: stringify!($name),
            arguments: &[$(stringify!($argument)),*],
            stack: calls!(@ $stack),
            what: concat!($($what),+),
            needs: $needs,
            errors: &[$(Error::$error),*],
        }),+];

        impl Call {
            /// The call of a number.
            pub const fn of(number: u8) -> Option<Call> {
                match number { $($number => Some(Call::$name),)+ _ => None }
            }
        }
    };
    (@ stack) => { true };
    (@ stackless) => { false };
}

calls! {
    0 Null() stackless
        /// Nothing: what it costs to enter the kernel and leave.
        needs "nothing" errors [];
    1 Fpu(on) stackless
        /// Switches the coprocessor on (1) or off (0) until the environment is entered again. Off,
        /// its instructions raise exception 7.
        needs "nothing" errors [];
    2 Flush(address) stackless
        /// Forgets the translation of an address.
        needs "nothing" errors [];
    3 FlushAll() stackless
        /// Forgets all translations.
        needs "nothing" errors [];
    4 Yield(environment) stackless
        /// In ah: gives the rest of the slice to an environment, which begins as at a slice's
        /// begin. 0: ends the slice; the next one of the vector begins.
        needs "nothing" errors [NoEnvironment, Busy];
    5 CallSynchronous(environment) stackless
        /// In ah: protected control transfer. The callee gets this slice and its future, and starts
        /// at its synchronous entry with the caller's number in rax.
        needs "nothing" errors [NoEnvironment, Busy];
    6 CallAsynchronous(environment) stackless
        /// In ah: protected control transfer. The callee gets the rest of this slice, and starts at
        /// its asynchronous entry with the caller's number in rax.
        needs "nothing" errors [NoEnvironment, Busy];
    7 NullStack() stack
        /// Nothing, on the path of the calls that take a stack.
        needs "nothing" errors [];

    8 Capability(name, rights, environment) stack
        /// The capability for the caller's pages and holdings whose read or write name this is, or,
        /// with the right to control, for an environment. The word proves itself: a keyed hash of
        /// owner, birth, name and right. One right at a time.
        needs "ownership; control of the environment" errors [Argument, NoEnvironment, Denied];
    9 Allocate(page, read, write) stack
        /// Takes a free page, filled with zeros, by its number or ANY; its number is the result.
        needs "quota of pages" errors [Argument, Taken, Quota, Again, Exhausted];
    10 Free(page) stack
        /// Gives a page back. Bindings to it are broken, 64 a call.
        needs "ownership" errors [Argument, Denied, Kind, Again];
    11 Rename(page, read, write) stack
        /// Gives a page other names, so that other capabilities are needed from now on.
        needs "ownership" errors [Argument, Denied, Kind];
    12 Give(page, environment) stack
        /// Makes a page another's, who must have room in its quota. The giver's bindings stay,
        /// those of others are broken, 64 a call; its names are nobody's.
        needs "ownership" errors [Argument, Denied, Kind, NoEnvironment, Quota, Again];
    13 Break(page) stack
        /// Breaks the bindings that others have to a page, on every processor, 64 a call.
        needs "ownership" errors [Argument, Denied, Again];

    14 Table(address, level, page, links, environment, capability) stack
        /// Makes pages the table of a level (1 to 3) for an address, and for level 1 the page of
        /// its links. They become the environment's. The capability is in r9.
        needs "ownership of the pages, without bindings; control of the environment" errors [Argument, Denied, Kind, InUse, NoEnvironment, Busy, NoTable, Mapped, Quota];
    15 Untable(address, level, environment, capability) stack
        /// Takes a table away: what it bound is bound no more, and its pages are the environment's
        /// memory again; one that more than 64 bindings of others look at can only be freed. Tables
        /// of levels 2 and 3 must be empty.
        needs "control of the environment" errors [Argument, Denied, NoEnvironment, Busy, NoTable, InUse];
    16 Map(address, mapping, capability, environment, control) stack
        /// Binds a page to an address; what was bound there is bound no more.
        needs "ownership of the page, or its capability; control of the environment" errors [Argument, Denied, Kind, NoEnvironment, Busy, NoTable];
    17 Unmap(address, environment, control) stack
        /// Takes a binding away.
        needs "control of the environment" errors [Argument, Denied, NoEnvironment, Busy, Unmapped];
    18 Protect(address, flags) stack
        /// Changes what may be done to a bound page of the caller's space. More rights than the
        /// binding has need ownership, or are asked by Map.
        needs "ownership of the page, if rights are added" errors [Argument, Denied, Unmapped];
    19 MapMany(requests, count) stack
        /// Map and Unmap for an array of requests in the caller's memory, in order; the result is
        /// how many were done before one failed.
        needs "as Map" errors [Argument, Unmapped];
    20 ProtectMany(addresses, count, flags) stack
        /// Protect for an array of addresses in the caller's memory; the result is how many were
        /// done before one failed.
        needs "as Protect" errors [Argument, Unmapped];

    21 Create(context, table) stack
        /// Makes an environment of two own pages: its contexts and its first table. Both become the
        /// new environment's; the first one's contents stay. It is frozen, and two pages are
        /// reserved for it, of those reserved for the caller. Its number is the result.
        needs "ownership of the pages, without bindings; quota of environments" errors [Argument, Denied, Kind, InUse, Quota, Exhausted];
    22 Destroy(environment, control) stack
        /// Ends an environment: all that it has is freed, and bindings to its pages are broken.
        needs "control of the environment, or to be it" errors [NoEnvironment, Denied];
    23 Set(environment, what, value, control) stack
        /// Sets an environment's swap server, or whether it stands still. One that runs stands
        /// still when it yields; called again then, this succeeds.
        needs "control of the environment" errors [Argument, NoEnvironment, Denied, Again];
    24 Quota(environment, resource, reserved, limit) stack
        /// Gives an environment what it keeps in any case and what it may have at most of a
        /// resource. What is reserved, and every environment that may be made (its limit), comes
        /// from the maker's own. Two pages at least stay reserved for everybody.
        needs "to be its maker" errors [Argument, NoEnvironment, Denied, Quota];
    25 TakeSlice(processor, position) stack
        /// Takes a free slice by its position or ANY, which is the result.
        needs "quota of slices" errors [Argument, Taken, Quota];
    26 FreeSlice(processor, position) stack
        /// Gives a slice back.
        needs "ownership" errors [Argument, Denied];
    27 GiveSlice(processor, position, environment) stack
        /// Makes a slice another's. Given to its owner, it runs in it again. Who has slices to
        /// forfeit gives none to others.
        needs "ownership" errors [Argument, Denied, NoEnvironment, Quota, Again];
    28 Revoke(environment, resource, count, control) stack
        /// Asks an environment for pages or slices beyond what is reserved for it. What it has not
        /// given back by the deadline is taken by force.
        needs "control of the environment" errors [Argument, NoEnvironment, Denied, Quota];
    29 Submit(environment, control) stack
        /// Hands a whole environment to its swap server: it stands still, and its memory is the
        /// server's.
        needs "control of the environment" errors [NoEnvironment, Denied, Busy, Quota, Again];

    30 Write(address, length, capability) stack
        /// Writes bytes of the caller's memory to the console; the result is how many.
        needs "the console, or its capability to write" errors [Argument, Unmapped, Denied];
    31 Read(capability) stack
        /// A byte from the console; -13 (Again) if none has come.
        needs "the console, or its capability to read" errors [Denied, Again];
    32 Judge(address, length, verdict) stack
        /// Judges an image in the caller's memory (64 KiB at most) by the verifier's kernel
        /// profile; the verdict's words are stored at the last argument. The result is 0 if it is
        /// accepted, otherwise 1.
        needs "nothing" errors [Argument, Unmapped, Exhausted];
    33 Stop(status) stack
        /// Stops the machine with a status from 0 to 63.
        needs "to be the root" errors [Denied];

    34 GiveHolding(holding, environment) stack
        /// Makes a holding another's, who must have room in its quota. Its names are nobody's; an
        /// endpoint has neither ring nor handler then, a handler is not given.
        needs "ownership" errors [Argument, Denied, Kind, NoEnvironment, Quota];
    35 RenameHolding(holding, read, write) stack
        /// Gives the console, the clock or a range of blocks other names, so that other
        /// capabilities are needed from now on.
        needs "ownership" errors [Argument, Denied, Kind];
    36 Drop(holding, control) stack
        /// Ends an endpoint or a handler. Blocks, the console and the clock become the maker's of
        /// their owner, or its maker's, up to the root, whose quota is not asked. What the disk is
        /// asked goes on.
        needs "control of its owner" errors [Argument, Denied, Kind, InUse];
    37 Split(holding, blocks) stack
        /// Cuts a range of blocks in two: the first so many, and the others, whose new number is
        /// the result. Names are nobody's in the new one.
        needs "ownership; quota of holdings" errors [Argument, Denied, Kind, Quota, Exhausted];
    38 Join(holding, behind) stack
        /// Makes one range of blocks of two that follow each other. The second number is free.
        needs "ownership of both" errors [Argument, Denied, Kind];
    39 Blocks(requests, count) stack
        /// Asks the disk for an array of requests in the caller's memory, in order; the result is
        /// how many were taken before one was not. Pages stay where they are until the disk is done
        /// with them, which is told in the ring that the context names. Two requests of which one
        /// writes are not under way for one block at a time, and a flush is taken when nothing of
        /// the caller's is under way, nothing behind it until it is done (Again).
        needs "the range of blocks, or its capability; the page, or its capability" errors [Argument, Unmapped, Denied, Kind, Again, Exhausted, NoDevice];

    40 Bind(filter, length, priority, ring) stack
        /// An endpoint: arriving frames that a filter accepts (an expression of at most 512 bytes)
        /// go to the pages that a ring names, unless a filter of a higher priority, or of the same
        /// and older, accepts them. The greatest priority stands for one behind all others, from
        /// which everybody may take frames. Its number is the result. The root may take others'
        /// frames. It is compiled together with all others, in time that the caller pays for in
        /// slices.
        needs "quota of holdings; that no other environment's filter loses frames by it" errors [Argument, Unmapped, Denied, Kind, Taken, Quota, Exhausted];
    41 Direct(holding, ring, handler) stack
        /// Where frames of an endpoint go from now on: to an own handler first (0: none), then to
        /// the ring that stands in an own page (0: none).
        needs "ownership of endpoint and handler" errors [Argument, Denied, Kind];
    42 Matches(frame, length, holdings, count) stack
        /// Which endpoints' filters accept a frame in the caller's memory, the one that gets it
        /// first: their numbers are stored as words. The result is how many there are. For one
        /// alone the compiled filters are asked, and 0 is stored if there is none.
        needs "nothing" errors [Argument, Unmapped, Exhausted];
    43 Send(pieces, count) stack
        /// Sends a frame that is gathered from an array of pieces in the caller's memory. Their
        /// pages stay where they are until the device is done with them, which the context counts.
        /// A frame for this machine's own address goes to the ring of who wants it at once, and may
        /// have a page's bytes.
        needs "the pages, or their capabilities; room among the frames under way" errors [Argument, Unmapped, Denied, Kind, Again, NoDevice];
    44 Handler(image, length, pages, count) stack
        /// A handler of messages: an image that the judge accepts, which has a window of its own.
        /// The pages become its: the window's table, its links, and one for each page of slots and
        /// text. Its number is the result.
        needs "ownership of the pages, without bindings; quota of holdings" errors [Argument, Unmapped, Denied, Kind, InUse, Quota, Exhausted];
    45 Window(holding, offset, mapping, capability) stack
        /// Binds a page in a handler's window, or takes a binding away (mapping all ones).
        needs "ownership of the handler; the page, or its capability" errors [Argument, Denied, Kind, Unmapped];

    46 Alarm(time) stack
        /// Has the event of the alarm raised when the processor's counter of cycles has reached a
        /// value; 0: never. An environment has one alarm.
        needs "nothing" errors [];
    47 SetClock(seconds, capability) stack
        /// Sets the time of day: seconds since 1970, now.
        needs "the clock, or its capability to write" errors [Denied];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_indices_and_transfers_take_no_stack() {
        for (index, description) in TABLE.iter().enumerate() {
            assert_eq!(description.call as usize, index);
            assert_eq!(Call::of(index as u8), Some(description.call));
            assert!(description.arguments.len() <= 6, "{}", description.name);
        }
        assert_eq!(Call::of(TABLE.len() as u8), None);
    }
}
