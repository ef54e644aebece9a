//! An environment's page of contexts (section 5.1.2): where the kernel delivers events, and where
//! it leaves what a handler needs to go on. The page is the environment's own memory: handlers are
//! set by storing to it, and the kernel believes nothing that stands there. Addresses lose the
//! bits of the upper half when they are used.
//!
//! A delivery takes rax, rcx and r11, as the instruction `syscall` takes the last two, and saves
//! them before. No other register changes, the stack pointer neither: a handler that needs a stack
//! takes its own.

/// Registers beside those of [`Saved`], in this order: rbx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10,
/// r12, r13, r14, r15.
pub type Others = [u64; 13];

/// What was interrupted: enough to go on without the kernel. Offsets are part of the interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Saved {
    /// The three registers that a delivery takes.
    pub rax: u64,
    /// As `rax`.
    pub rcx: u64,
    /// As `rax`.
    pub r11: u64,
    /// The instruction to go on at.
    pub rip: u64,
    /// The flags then.
    pub rflags: u64,
    /// Of a page fault: which address. Otherwise what it was at the last one.
    pub address: u64,
    /// The processor's error code, 0 for exceptions without one.
    pub code: u64,
    /// The exception's vector, 0 to 31.
    pub vector: u64,
}

/// A mapping that the kernel itself restores at a miss, if it lies in the second segment.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Guaranteed {
    /// Where, a multiple of a page.
    pub address: u64,
    /// A [`Mapping`](crate::Mapping) of an own page; 0: none. The page is not taken by force.
    pub mapping: u64,
}

/// Where the contents of a page go that is taken by force.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// [`Place::NOWHERE`], [`Place::PAGE`] or [`Place::SERVER`].
    pub kind: u32,
    /// A page's number, or a swap server's: an environment.
    pub number: u32,
    /// The write capability for a page of others.
    pub capability: u64,
}

impl Place {
    /// The contents are lost.
    pub const NOWHERE: u32 = 0;
    /// They are copied to a page. The place is used once.
    pub const PAGE: u32 = 1;
    /// The page itself becomes the server's, who is asked for a page in turn. It is the
    /// environment's own swap server.
    pub const SERVER: u32 = 2;
    /// The place was used.
    pub const USED: u32 = 3;
}

/// An entry of the repossession vector: a thing that is gone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Repossession {
    /// [`Repossession::PAGE`] or [`Repossession::SLICE`].
    pub kind: u32,
    /// The page's number; a slice's processor times 256 and position.
    pub number: u32,
    /// What became of the contents: as in [`Place`].
    pub place: Place,
}

impl Repossession {
    /// A page.
    pub const PAGE: u32 = 1;
    /// A slice.
    pub const SLICE: u32 = 2;
}

/// Guaranteed mappings of an environment, places and entries of its repossession vector.
pub const GUARANTEES: usize = 16;

/// Vectors of exceptions.
pub const EXCEPTIONS: usize = 32;

/// The page of contexts.
#[repr(C, align(4096))]
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Exception context: a handler for each vector; 0: there is none, and the environment ends.
    pub exception: [u64; EXCEPTIONS],
    /// What an exception interrupted.
    pub excepted: Saved,
    /// Interrupt context: where a slice begins.
    pub begin: u64,
    /// Where it ends: the handler saves what it needs and yields. 0: nothing is saved.
    pub end: u64,
    /// Where a slice begins if [`Context::events`] were raised. 0: as `begin`.
    pub notify: u64,
    /// What the end of a slice interrupted.
    pub interrupted: Saved,
    /// Protected entry context: where synchronous transfers arrive. 0: refused.
    pub synchronous: u64,
    /// Where asynchronous transfers arrive. 0: refused.
    pub asynchronous: u64,
    /// Addressing context: the base of fs. The kernel sets both bases whenever the environment is
    /// entered.
    pub fs: u64,
    /// The base of gs.
    pub gs: u64,
    /// Whether the coprocessor (x87, SSE, AVX) is on when the environment is entered: 1 or 0. Its
    /// registers are clear at a begin; after a transfer they are the caller's message, modes and
    /// pending exceptions among them.
    pub fpu: u64,
    /// Where to go when the page of an exception's handler is missing and not guaranteed. 0: the
    /// environment is given to its swap server, or ends.
    pub emergency: u64,
    /// What emergency it was.
    pub emerged: Saved,
    /// Events since the environment was told of them, as bits; it clears them itself.
    pub events: u64,
    /// Pages that it is asked to give back.
    pub asked_pages: u64,
    /// Slices that it is asked to give back.
    pub asked_slices: u64,
    /// The tick (`records::Processor::ticks`) after which they are taken by force.
    pub deadline: u64,
    /// The processor whose ticks those are.
    pub clock: u64,
    /// Mappings that the kernel restores, and pages that it does not take by force.
    pub guaranteed: [Guaranteed; GUARANTEES],
    /// Where contents go that are taken by force; used in this order.
    pub places: [Place; GUARANTEES],
    /// Things that were taken: entry `n % 16` is the n-th.
    pub repossessed: [Repossession; GUARANTEES],
    /// How many things were taken so far.
    pub repossessions: u64,
    /// The other registers of what `emerged` interrupted, if the environment was submitted: it does
    /// not go on by itself then. (What the coprocessor had is lost.)
    pub emerged_others: Others,
    /// The number of an own page with the [`Ring`](crate::device::Ring) in which the disk's
    /// completions are told; 0: they are not.
    pub completions: u64,
    /// Frames of the environment's that the network is done with, so far.
    pub sent: u64,
    /// Where an event of a device is told at once, if the environment runs then. The kernel stores
    /// 0 here when it goes there; 0: it is told at the next begin.
    pub upcall: u64,
    /// What an upcall interrupted.
    pub upcalled: Saved,
    /// Events that nobody here waits for, as bits: they are not raised, and end no sleep. What is
    /// counted besides ([`Context::sent`]) is so all the same.
    pub ignored: u64,
}

impl Context {
    /// Something is asked back: `asked_pages`, `asked_slices`, `deadline`.
    pub const EVENT_REVOKE: u64 = 1 << 0;
    /// Something was taken by force: `repossessed`.
    pub const EVENT_REPOSSESSED: u64 = 1 << 1;
    /// Slices were forfeited for time in excess.
    pub const EVENT_FORFEITED: u64 = 1 << 2;
    /// An environment or a page was handed to this one as swap server.
    pub const EVENT_SERVER: u64 = 1 << 3;
    /// A child ended.
    pub const EVENT_CHILD: u64 = 1 << 4;
    /// A frame came: an endpoint's ring.
    pub const EVENT_NETWORK: u64 = 1 << 5;
    /// The network is done with a frame: `sent`.
    pub const EVENT_SENT: u64 = 1 << 6;
    /// The disk is done with a request: the ring that `completions` names.
    pub const EVENT_DISK: u64 = 1 << 7;
    /// The alarm's time has come.
    pub const EVENT_ALARM: u64 = 1 << 8;
    /// Bytes came from the console.
    pub const EVENT_CONSOLE: u64 = 1 << 9;
    /// A handler raised it, or was ended.
    pub const EVENT_HANDLER: u64 = 1 << 10;
    /// Events of devices: those that [`Context::upcall`] tells at once.
    pub const DEVICES: u64 = Self::EVENT_NETWORK
        | Self::EVENT_SENT
        | Self::EVENT_DISK
        | Self::EVENT_ALARM
        | Self::EVENT_CONSOLE
        | Self::EVENT_HANDLER;
}

const _: () = assert!(core::mem::size_of::<Context>() == crate::PAGE);
