//! The kernel's bookkeeping, readable by all at [`address::BOOKS`](crate::address::BOOKS): names,
//! owners, free lists, bindings. Nothing in it is secret; what proves a capability is a key that
//! stands elsewhere. Only the kernel stores here, with atomic stores, so readers see each word
//! whole; several words need not fit together.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use crate::{ENVIRONMENTS, FILTER, HOLDINGS, PROCESSORS, SLICES};

/// No page, no binding.
pub const NONE: u32 = u32::MAX;

/// What a page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Nobody's, in the free list.
    Free = 0,
    /// The kernel's, or no memory.
    Kernel = 1,
    /// Memory of its owner.
    Data = 2,
    /// Links of the bindings in a last-level table. Everybody may map it to read.
    Links = 3,
    /// A table of level 1, the last. Everybody may map tables to read.
    Table1 = 4,
    /// A table of level 2.
    Table2 = 5,
    /// A table of level 3.
    Table3 = 6,
    /// The first table of an environment.
    Table4 = 7,
    /// An environment's page of contexts.
    Context = 8,
    /// Memory on its way from its owner, which nobody binds any more.
    Leaving = 9,
    /// Slots and text of a handler.
    Text = 10,
    /// The last-level table of a handler's window. It and its links name each other as those of any
    /// table do ([`Page::read`]), and [`Page::write`] is the handler's number.
    Window = 11,
}

impl Kind {
    /// The kind of a number.
    pub const fn of(number: u8) -> Option<Kind> {
        Some(match number {
            0 => Kind::Free,
            1 => Kind::Kernel,
            2 => Kind::Data,
            3 => Kind::Links,
            4 => Kind::Table1,
            5 => Kind::Table2,
            6 => Kind::Table3,
            7 => Kind::Table4,
            8 => Kind::Context,
            9 => Kind::Leaving,
            10 => Kind::Text,
            11 => Kind::Window,
            _ => return None,
        })
    }
}

/// A physical page: 32 bytes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Page {
    /// Who changes the bindings of this page now: 0, or a processor's number plus 1.
    pub lock: AtomicU8,
    /// A [`Kind`].
    pub kind: AtomicU8,
    /// The owner's number.
    pub owner: AtomicU16,
    /// The name whose capability lets others read: 0 none, 1 everybody. Of a last-level table its
    /// page of links, and of that one the table.
    pub read: AtomicU32,
    /// The name whose capability lets others write. Of a last-level table which 2 MiB it is for:
    /// their address divided by that.
    pub write: AtomicU32,
    /// The first of the bindings; [`NONE`].
    pub first: AtomicU32,
    /// How many bindings there are.
    pub bindings: AtomicU32,
    /// The next page in the free list or in the owner's list; [`NONE`] after the last.
    pub next: AtomicU32,
    /// The previous page there, of the first the last. An owner's pages that are tables, links and
    /// contexts stand behind its others.
    pub previous: AtomicU32,
    /// The owner's birth when it got the page: a stale page number is told by it.
    pub birth: AtomicU32,
}

/// A binding is an entry of a last-level table: the table's page number times 512 and the index.
/// Its links stand in the page of links that belongs to the table, in the word of the same index:
/// the previous binding of the same page in the upper half, of the first the last, and the next in
/// the lower, [`NONE`] after the last. Bindings in tables of the page's owner stand behind others.
pub const fn binding(table: u32, index: usize) -> u32 {
    table << 9 | index as u32
}

/// An environment: 256 bytes.
#[repr(C, align(256))]
#[derive(Debug, Default)]
pub struct Environment {
    /// [`claim`]: who runs it. First in the record: transfers claim it by one instruction.
    pub claim: AtomicU32,
    /// Its number, the same for the life of the kernel.
    pub number: AtomicU16,
    /// Who made it; its authority over it is the maker's.
    pub parent: AtomicU16,
    /// The physical address of its first page table.
    pub root_table: AtomicU64,
    /// The physical address of its page of contexts.
    pub context: AtomicU64,
    /// The how many-th environment of this machine it is: a number used anew has another one.
    pub birth: AtomicU32,
    /// Its swap server; 0 none.
    pub server: AtomicU16,
    /// Environments that it has made and that live.
    pub children: AtomicU16,
    /// Who changes its list of pages and its quotas now.
    pub lock: AtomicU32,
    /// The first of its pages.
    pub first: AtomicU32,
    /// Pages that it has.
    pub pages: AtomicU32,
    /// Pages that it keeps in any case.
    pub pages_reserved: AtomicU32,
    /// Pages that it may have at most.
    pub pages_limit: AtomicU32,
    /// Slices that it has.
    pub slices: AtomicU32,
    /// Slices that it keeps in any case.
    pub slices_reserved: AtomicU32,
    /// Slices that it may have at most.
    pub slices_limit: AtomicU32,
    /// Environments that it may make, those of its children among them.
    pub environments_limit: AtomicU32,
    /// Slices exceeded one after the other.
    pub excess: AtomicU32,
    /// Slices still to be forfeited.
    pub forfeits: AtomicU32,
    /// Pages asked of it.
    pub asked_pages: AtomicU32,
    /// Slices asked of it.
    pub asked_slices: AtomicU32,
    /// The processor whose ticks the deadline counts: one in whose vector it has a slice.
    pub clock: AtomicU32,
    /// The tick after which they are taken by force.
    pub deadline: AtomicU64,
    /// Slices that it has had.
    pub ran: AtomicU64,
    /// Why it ended ([`end`]) and where: an instruction's address. Kept until the number is used
    /// anew.
    pub ended: AtomicU32,
    /// What becomes of it when it is left ([`stopping`]). From [`stopping::SUBMIT`] on, a
    /// processor that runs it leaves it at once.
    pub stopping: AtomicU32,
    /// The address of the instruction at which it ended.
    pub ended_at: AtomicU64,
    /// It found no free page below its reservation: until this tick of processor 0 a page that
    /// becomes free is kept for it.
    pub waits: AtomicU64,
    /// Holdings that it has.
    pub holdings: AtomicU32,
    /// Holdings that it may have at most, those of its children among them.
    pub holdings_limit: AtomicU32,
    /// Frames of it that the network is not done with.
    pub frames: AtomicU32,
    /// Requests of it that the disk is not done with.
    pub requests: AtomicU32,
    /// When its alarm is due, in cycles; 0: never.
    pub alarm: AtomicU64,
    /// What runs of its handlers took together, of a slice's clock: those that have ended among
    /// them.
    pub spent: AtomicU64,
    /// Slices that were over while it ran: each is the time of one, and what it yielded none.
    pub whole: AtomicU64,
}

const _: () = assert!(core::mem::size_of::<Page>() == 32);
const _: () = assert!(core::mem::size_of::<Environment>() == 256);

/// What a holding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HoldingKind {
    /// Nothing: the number is free.
    Free = 0,
    /// The console. Its number is [`CONSOLE`].
    Console = 1,
    /// The time of day. Its number is [`CLOCK`].
    Clock = 2,
    /// A range of the disk's blocks.
    Blocks = 3,
    /// Arriving frames that a filter accepts.
    Endpoint = 4,
    /// Code that runs when a message arrives.
    Handler = 5,
}

impl HoldingKind {
    /// The kind of a number.
    pub const fn of(number: u32) -> Option<HoldingKind> {
        Some(match number {
            0 => HoldingKind::Free,
            1 => HoldingKind::Console,
            2 => HoldingKind::Clock,
            3 => HoldingKind::Blocks,
            4 => HoldingKind::Endpoint,
            5 => HoldingKind::Handler,
            _ => return None,
        })
    }
}

/// The console's number.
pub const CONSOLE: usize = 1;
/// The clock's number.
pub const CLOCK: usize = 2;
/// The number of the whole disk, at the start.
pub const DISK: usize = 3;

/// A part of a device that somebody owns: 128 bytes. Its number is its place.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Holding {
    /// A [`HoldingKind`].
    pub kind: AtomicU32,
    /// The owner's number.
    pub owner: AtomicU16,
    /// The owner's birth when it got this.
    pub birth: AtomicU32,
    /// The name whose capability lets others read.
    pub read: AtomicU32,
    /// The name whose capability lets others write.
    pub write: AtomicU32,
    /// Of an endpoint: the page with its ring; 0 none.
    pub ring: AtomicU32,
    /// Of an endpoint: its handler; 0 none.
    pub handler: AtomicU32,
    /// Of an endpoint: its filter's priority.
    pub priority: AtomicU32,
    /// Of blocks: the first. Of an endpoint: how many endpoints were bound before it.
    pub first: AtomicU64,
    /// Of blocks: how many. Of an endpoint: bytes of its filter's text.
    pub count: AtomicU64,
    /// Of a handler: its window's table, whose page of links names it and is named by it as that of
    /// any table. Pages of slots and text stand in the table, and what
    /// [`Call::Window`](crate::Call::Window) has bound.
    pub table: AtomicU32,
    /// Of a handler: how its last run ended ([`run`]).
    pub ended: AtomicU32,
    /// Of a handler: the instruction at which it ended, in the window.
    pub ended_at: AtomicU64,
    /// Of an endpoint: frames that arrived for it. Of a handler: its runs.
    pub arrived: AtomicU64,
    /// Of an endpoint: those for which there was no place.
    pub lost: AtomicU64,
    /// Of a handler: cycles of the slices' clock that it took.
    pub spent: AtomicU64,
    /// Of a handler: where it is entered, an offset in its window.
    pub entry: AtomicU32,
    /// Of a handler: the end of its data stack.
    pub stack: AtomicU32,
    /// Of a handler: instructions on its longest path; 0: there are loops.
    pub path: AtomicU32,
}

const _: () = assert!(core::mem::size_of::<Holding>() == 128);

/// Values of [`Holding::ended`].
pub mod run {
    /// It has returned, or never run.
    pub const WELL: u32 = 0;
    /// It took longer than a run may take. It is called no more.
    pub const LONG: u32 = 1;
    /// A service refused an argument. It is called no more.
    pub const SERVICE: u32 = 2;
    /// An exception of this vector (0 to 31), plus this. It is called no more.
    pub const EXCEPTION: u32 = 0x200;
}

/// The network's device.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Network {
    /// 1: there is one.
    pub there: AtomicU64,
    /// Its address, the first byte lowest.
    pub address: AtomicU64,
    /// Frames that arrived.
    pub arrived: AtomicU64,
    /// Those that no endpoint wanted.
    pub unclaimed: AtomicU64,
    /// Frames that were sent.
    pub sent: AtomicU64,
    /// Answers of the device that make no sense: it is not believed, and goes on if it can.
    pub nonsense: AtomicU64,
}

/// The disk.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Disk {
    /// Blocks of [`PAGE`](crate::PAGE) bytes; 0: there is none.
    pub blocks: AtomicU64,
    /// Requests that were done.
    pub done: AtomicU64,
    /// Answers of the device that make no sense.
    pub nonsense: AtomicU64,
}

/// What the time of day follows from.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Clock {
    /// Cycles of the processors' counter in a second.
    pub frequency: AtomicU64,
    /// Seconds since 1970 when the counter was 0.
    pub epoch: AtomicU64,
}

/// Values of [`Environment::claim`].
pub mod claim {
    /// It can be entered.
    pub const IDLE: u32 = 0;
    /// It runs on processor `n - 1`.
    pub const RUNNING: core::ops::RangeInclusive<u32> = 1..=64;
    /// Its maker has it stand still, or it is not ready.
    pub const FROZEN: u32 = 0x80;
    /// It was handed to its swap server.
    pub const SUBMITTED: u32 = 0x81;
    /// Its number is being given to a new environment, or taken from one that has ended.
    pub const CHANGING: u32 = 0xfd;
    /// It has ended, and its pages are being freed.
    pub const ENDING: u32 = 0xfe;
    /// There is none.
    pub const FREE: u32 = 0xff;
}

/// Values of [`Environment::stopping`].
pub mod stopping {
    /// It stays [`claim::IDLE`](super::claim::IDLE).
    pub const NOT: u32 = 0;
    /// It becomes [`claim::FROZEN`](super::claim::FROZEN).
    pub const FREEZE: u32 = 1;
    /// It becomes [`claim::SUBMITTED`](super::claim::SUBMITTED).
    pub const SUBMIT: u32 = 2;
    /// It becomes [`claim::ENDING`](super::claim::ENDING). There is no way back.
    pub const END: u32 = 3;
}

/// Values of [`Environment::ended`].
pub mod end {
    /// It lives, or has never been.
    pub const NOT: u32 = 0;
    /// It ended itself, or its maker did; or the maker ended.
    pub const DESTROYED: u32 = 0x100;
    /// Too much time in excess.
    pub const EXCESS: u32 = 0x101;
    /// An emergency that nobody handled.
    pub const EMERGENCY: u32 = 0x102;
    /// It did not give back what it was asked for, and has nothing that can be taken.
    pub const REFUSED: u32 = 0x103;
    /// An exception of this vector (0 to 31), without a handler, plus this.
    pub const EXCEPTION: u32 = 0x200;
}

/// A position of a processor's vector.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Slice {
    /// Whose it is; 0: free.
    pub owner: AtomicU16,
    /// Who runs in it: the owner, or to whom synchronous transfers gave it.
    pub runs: AtomicU16,
}

/// A processor.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Processor {
    /// Slices that ended on it since the start, by its clock or because who ran yielded.
    pub ticks: AtomicU64,
    /// The position whose slice runs.
    pub position: AtomicU32,
    /// Who runs; 0: nobody.
    pub current: AtomicU32,
    /// Ticks in which nobody ran.
    pub idle: AtomicU64,
    /// Who was told that the slice has ended, and has not yielded since; 0: nobody.
    pub told: AtomicU32,
    /// Whose the running slice was when it began.
    pub lender: AtomicU32,
    /// Positions that somebody owns, as bits.
    pub owned: AtomicU64,
}

/// What stands at [`BOOKS`](crate::address::BOOKS).
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Machine {
    /// [`Machine::MAGIC`].
    pub magic: AtomicU64,
    /// How many processors run.
    pub processors: AtomicU32,
    /// How many pages there are; their numbers are below this.
    pub pages: AtomicU32,
    /// Pages in the free list.
    pub free: AtomicU32,
    /// The first page of the free list; [`NONE`].
    pub first_free: AtomicU32,
    /// Who changes the free list now.
    pub free_lock: AtomicU32,
    /// Nanoseconds (under an emulator that counts: instructions) of a slice.
    pub slice: AtomicU64,
    /// Births of environments so far.
    pub births: AtomicU32,
    /// Environments that are to end or have ended, and whose numbers are not free yet.
    pub dying: AtomicU32,
    /// Bytes of the boot package behind the root environment's program.
    pub package: AtomicU32,
    /// 0: nobody is asked to give anything back.
    pub asked: AtomicU32,
    /// Processors, by number.
    pub processor: [Processor; PROCESSORS],
    /// Vectors of slices, by processor and position.
    pub slices: [[Slice; SLICES]; PROCESSORS],
    /// Environments, by number; number 0 is nobody.
    pub environments: [Environment; ENVIRONMENTS],
    /// Who changes holdings now.
    pub holdings_lock: AtomicU32,
    /// Endpoints that were bound so far.
    pub binds: AtomicU64,
    /// No alarm is due before, in cycles.
    pub next_alarm: AtomicU64,
    /// The network's device.
    pub network: Network,
    /// The disk.
    pub disk: Disk,
    /// The time of day.
    pub clock: Clock,
    /// Parts of devices that somebody owns; number 0 is nothing.
    pub holdings: [Holding; HOLDINGS],
    /// Texts of endpoints' filters, by the endpoint's number.
    pub filters: [[AtomicU64; FILTER / 8]; HOLDINGS],
}

impl Machine {
    /// The word that this begins with, and the interface's version.
    pub const MAGIC: u64 = 0x0002_5349_4745_4100;
    /// Where the records of pages are from the start of this, in bytes: an array of [`Page`].
    /// Behind them is a byte for each page: for how many transfers of devices it stays where it is.
    pub const PAGES: usize = core::mem::size_of::<Machine>();
}

const _: () = assert!(Machine::PAGES.is_multiple_of(crate::PAGE));
