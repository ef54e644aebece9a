//! The memory gate: memmove, memset, memcmp, memchr and strlen of long ranges, done by trusted code
//! for every domain (`bulk.s`).
//!
//! Invariant: it touches no byte that the extension could not touch with an operand of its own at
//! that moment, and it leaves nothing behind but its result and what it wrote in the window.
//!
//! - **Where.** Offsets are cut to 32 bits, and an offset and a length whose sum reaches 4 GiB are
//!   refused in one test, before the base is added. The base is that of the control block, which
//!   does not change while a call is inside. A search that is given more than the window has left
//!   gets what is left, and looks at whole vectors at multiples of their size, which lie in one
//!   page with a byte of the range. So addresses are in the window, and there the pages' own
//!   protection decides, as it does for the extension's operands: the same addresses, the same mode
//!   of the processor.
//! - **What a race can do.** Nothing is read twice and believed twice: lengths, ends and places are
//!   in registers, and a place that was found is computed from vectors that were loaded once.
//! - **How it ends.** Nothing is pushed, no word of the thread's state is written, and the call
//!   stays *Inside* with its frame recorded. So every instruction is one at which the call can be
//!   ended (`signal::abortable`), and a fault of it is the extension's. The control stack holds
//!   return addresses and nothing else, as while text runs, so the place of the call is what lies
//!   on top (`caller`).
//! - **What is left in registers.** Integer registers: the extension's own words, and addresses of
//!   its window, whose base it may read in its info page. Vector registers: bytes of the
//!   extension's own window, and upper halves are zero. An image whose text cannot read vectors has
//!   none cleared at its gates, and cannot read these either; whoever comes next is cleared by what
//!   *its* text can read. What the host left in upper halves goes with `vzeroupper`. After an end
//!   they are zeroed on the way out ([`zero_upper_halves`]).
//! - **Flags.** No accepted instruction sets the direction flag, so it is clear as the host left
//!   it.

use super::control::{Control, ServiceEntry};
use super::thread::{self, Thread};
use super::{machine, memory};
use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};
use postern_verifier::window::GATES;

/// From so many bytes on, the processor's own copy is used; as many as no window has where it is
/// slow.
static MOVE_BY_STRING: AtomicU64 = AtomicU64::new(u64::MAX);
/// The same for fills.
static FILL_BY_STRING: AtomicU64 = AtomicU64::new(u64::MAX);

global_asm!(
    include_str!("bulk.s"),
    T_CONTROL = const offset_of!(Thread, control),
    C_BASE = const offset_of!(Control, base),
    C_SERVICES = const offset_of!(Control, services),
    S_CALLS = const offset_of!(ServiceEntry, calls),
    MOVE_BY_STRING = sym MOVE_BY_STRING,
    FILL_BY_STRING = sym FILL_BY_STRING,
);

// The entry's size is a shift in bulk.s.
const _: () = assert!(size_of::<ServiceEntry>() == 64);

macro_rules! labels {
    ($($name:ident),* $(,)?) => {
        #[allow(dead_code)]
        mod at {
            unsafe extern "C" { $( pub(super) static $name: u8; )* }
        }
        use at::*;

        /// Names and addresses of the labels of `bulk.s`.
        #[cfg(feature = "testing")]
        pub fn labels() -> Vec<(&'static str, usize)> {
            vec![$( (stringify!($name), &raw const $name as usize) ),*]
        }
    };
}

labels! {
    postern_bulk,
    postern_move_sse, postern_fill_sse, postern_compare_sse, postern_length_sse, postern_find_sse,
    postern_move_avx, postern_fill_avx, postern_compare_avx, postern_length_avx, postern_find_avx,
    postern_bulk_out, postern_bulk_end,
}

/// What the gate does, by the names of the imports whose slots lead there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Copies a range that may overlap what it is copied to: `memmove`, and `memcpy`.
    Move,
    /// Sets a range to one byte: `memset`.
    Fill,
    /// Compares two ranges: `memcmp`.
    Compare,
    /// Finds the end of a string: `strlen`.
    Length,
    /// Finds a byte: `memchr`.
    Find,
}

impl Function {
    /// In the order of the words in a thread's state.
    pub const ALL: [Function; 5] = [
        Function::Move,
        Function::Fill,
        Function::Compare,
        Function::Length,
        Function::Find,
    ];

    /// The import.
    pub fn name(self) -> &'static str {
        match self {
            Function::Move => "__postern_memmove",
            Function::Fill => "__postern_memset",
            Function::Compare => "__postern_memcmp",
            Function::Length => "__postern_strlen",
            Function::Find => "__postern_memchr",
        }
    }

    /// The function that an import of this name is.
    pub fn of(name: &str) -> Option<Function> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Where in a thread's state the address lies that slots of this function jump to.
    pub(super) fn word(self) -> usize {
        thread::MEMORY_GATES + size_of::<AtomicU64>() * self as usize
    }
}

/// The vectors that the gate works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// 16 bytes.
    Sse2,
    /// 32 bytes.
    Avx2,
}

impl Vectors {
    /// The best that this processor has.
    pub fn best() -> Vectors {
        match machine::has_avx2() {
            true => Vectors::Avx2,
            false => Vectors::Sse2,
        }
    }

    fn addresses(self) -> [usize; Function::ALL.len()] {
        match self {
            Vectors::Sse2 => [
                &raw const postern_move_sse as usize,
                &raw const postern_fill_sse as usize,
                &raw const postern_compare_sse as usize,
                &raw const postern_length_sse as usize,
                &raw const postern_find_sse as usize,
            ],
            Vectors::Avx2 => [
                &raw const postern_move_avx as usize,
                &raw const postern_fill_avx as usize,
                &raw const postern_compare_avx as usize,
                &raw const postern_length_avx as usize,
                &raw const postern_find_avx as usize,
            ],
        }
    }
}

/// Bytes from which the processor's own copies and fills were measured to be as fast as vectors,
/// where it has fast ones (ERMS).
const BY_STRING: (u64, u64) = (16 << 10, 16 << 10);

/// Gives a thread that registers the addresses that its slots jump to.
pub(super) fn give(thread: &Thread) {
    // The processor says that its string instructions are fast.
    if machine::has_fast_strings() {
        MOVE_BY_STRING.store(BY_STRING.0, Ordering::Relaxed);
        FILL_BY_STRING.store(BY_STRING.1, Ordering::Relaxed);
    }
    set(thread, Vectors::best());
}

fn set(thread: &Thread, vectors: Vectors) {
    for (word, address) in thread.memory_gates.iter().zip(vectors.addresses()) {
        word.store(address as u64, Ordering::Relaxed);
    }
}

/// For tests: the calling thread's slots lead to these vectors, and the processor's own copies are
/// used from so many bytes on.
#[cfg(feature = "testing")]
pub fn choose(vectors: Vectors, bytes: u64) {
    MOVE_BY_STRING.store(bytes, Ordering::Relaxed);
    FILL_BY_STRING.store(bytes, Ordering::Relaxed);
    set(thread::current(), vectors);
}

/// Whether an interrupted instruction is one of the memory gate.
pub fn contains(pc: usize) -> bool {
    (&raw const postern_bulk as usize..&raw const postern_bulk_end as usize).contains(&pc)
}

/// Bytes from the call of a slot to its return address: a direct call. In a guarded sequence it is
/// the instruction before.
const CALL: u64 = 5;

/// Where the extension called the gate, by the word on top of its control stack: as an address in
/// the window. A function that the host entered may have gone on to the slot by a jump: then there
/// is no call, and the place is that of the slots.
///
/// # Safety
/// The calling thread was interrupted in the gate with this stack pointer, which points at a return
/// address, then.
pub(super) unsafe fn caller(control: &Control, rsp: u64) -> u64 {
    // SAFETY: the caller's promise.
    let back = unsafe { memory::host_word(rsp) };
    let base = control.address(0) as u64;
    if back.wrapping_sub(base) >> 32 == 0 {
        back - CALL
    } else {
        base + u64::from(GATES)
    }
}

/// After a call was ended, perhaps in the gate: upper halves of vector registers are dead between
/// functions, and slow SSE code down.
pub(super) fn zero_upper_halves() {
    if machine::has_avx() {
        // SAFETY: the processor has AVX, and no caller of a function keeps anything there.
        unsafe { core::arch::asm!("vzeroupper", options(nostack, nomem, preserves_flags)) };
    }
}
