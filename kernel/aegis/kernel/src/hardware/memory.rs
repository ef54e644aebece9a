//! Memory as the kernel sees it: all of it at [`PHYSICAL`], read and written by words, and the
//! kernel itself in the highest 2 GiB.
//!
//! The kernel's own tables are made once, before there is an environment, and never change: text is
//! executed and not written, constants neither, everything else is not executed. The view of all
//! memory keeps to that, too: the frames of text and constants are read-only in it.

use core::arch::asm;
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use postern_aegis_abi::records::{Machine, Page};
use postern_aegis_abi::{PAGE, address};

use super::loader::Range;
use super::{arena, local, registers};

/// Where the kernel sees physical address 0.
pub const PHYSICAL: u64 = 0xffff_8000_0000_0000;
/// Where the kernel's own addresses are, beyond their physical ones.
const BASE: u64 = 0xffff_ffff_8000_0000;
/// The interrupt controller's registers: a page of every processor's own.
pub const CONTROLLER: u64 = 0xfee0_0000;

pub(super) const PRESENT: u64 = 1;
pub(super) const WRITE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const UNCACHED: u64 = 1 << 4;
pub(super) const GLOBAL: u64 = 1 << 8;
pub(super) const NO_EXECUTE: u64 = 1 << 63;
const FRAME: u64 = 0x000f_ffff_ffff_f000;

unsafe extern "C" {
    static first_guard: u8;
    static kernel_text: u8;
    static kernel_constants: u8;
    static kernel_data: u8;
    static kernel_end: u8;
}

/// An address of the kernel's text, of its constants, and of its data.
pub fn samples() -> [u64; 3] {
    // SAFETY: addresses of symbols of the linker; nothing is read.
    unsafe {
        [
            symbol(&kernel_text),
            symbol(&kernel_constants),
            symbol(&kernel_data),
        ]
    }
}

/// Where the kernel sees one of its own addresses in the map of all memory.
pub fn elsewhere(address: u64) -> u64 {
    address - BASE + PHYSICAL
}

/// The words of a page.
pub type Words = [AtomicU64; PAGE / 8];

/// Pages of memory: their numbers are below this. Set once.
static PAGES: AtomicUsize = AtomicUsize::new(0);
/// The kernel's own root table.
static ROOT: AtomicU64 = AtomicU64::new(0);

fn symbol(symbol: &'static u8) -> u64 {
    symbol as *const u8 as u64
}

/// The first physical address behind the kernel.
pub fn kernel_ends() -> u64 {
    // SAFETY: the address of a symbol of the linker; nothing is read.
    symbol(unsafe { &kernel_end }) - BASE
}

/// The first physical address of the kernel.
pub fn kernel_starts() -> u64 {
    1 << 20
}

/// Whether an address is of the kernel's text: for backtraces.
pub fn is_text(address: u64) -> bool {
    // SAFETY: as above.
    let (from, to) = unsafe { (symbol(&kernel_text), symbol(&kernel_constants)) };
    (from..to).contains(&address)
}

/// Says how many pages there are.
pub fn set_pages(pages: usize) {
    PAGES.store(pages, Ordering::Relaxed);
}

/// The physical address behind all memory.
pub fn end() -> u64 {
    (PAGES.load(Ordering::Relaxed) * PAGE) as u64
}

/// The words of a page of memory.
///
/// # Panics
/// If there is no such page: who calls has compared numbers with the books'.
pub fn words(page: u32) -> &'static Words {
    if page as usize >= PAGES.load(Ordering::Relaxed) {
        no_page(page);
    }
    // SAFETY: memory is mapped at PHYSICAL as far as PAGES says. As words of atomics it can be read
    // and written by everybody at any time; what the kernel keeps in Rust's own objects lies in
    // pages that the books never hand out, and these are not asked for here.
    unsafe { &*((PHYSICAL + ((page as u64) << 12)) as *const Words) }
}

#[cold]
#[inline(never)]
fn no_page(page: u32) -> ! {
    panic!("page {page}");
}

/// The books in memory, all zeros: the machine's record, those of pages, and a byte for each page. They lie behind the
/// kernel; once, at the start, when memory below [`MAPPED`] is mapped.
pub fn open_books(
    bytes: u64,
    pages: usize,
) -> (&'static Machine, &'static [Page], &'static [AtomicU8]) {
    let physical = kernel_ends();
    assert!(physical + bytes <= MAPPED && bytes as usize >= Machine::PAGES + pages * 33);
    clear(physical, bytes);
    let at = PHYSICAL + physical;
    // SAFETY: the range is mapped memory behind the kernel that was just cleared and that nobody
    // else is given: `Taken` begins behind it. Records are atomics, for which zeros are values.
    unsafe {
        (
            &*(at as *const Machine),
            core::slice::from_raw_parts((at + Machine::PAGES as u64) as *const Page, pages),
            core::slice::from_raw_parts(
                (at + (Machine::PAGES + pages * 32) as u64) as *const AtomicU8,
                pages,
            ),
        )
    }
}

/// Fills memory behind the kernel with zeros, at the start.
fn clear(physical: u64, bytes: u64) {
    assert!(physical >= kernel_ends() && physical + bytes <= MAPPED);
    // SAFETY: mapped from the start, and behind the kernel, so no object of Rust lies there yet.
    unsafe { core::ptr::write_bytes((PHYSICAL + physical) as *mut u8, 0, bytes as usize) }
}

/// The loader's memory that the tables of `start.s` map, from 0 on.
const MAPPED: u64 = 1 << 30;

/// Takes pages for the kernel's tables while it starts.
pub struct Taken {
    /// The next physical address that nobody has.
    pub next: u64,
}

impl Taken {
    /// A page of zeros: its physical address.
    pub fn page(&mut self) -> u64 {
        let page = self.next;
        self.next += PAGE as u64;
        clear(page, PAGE as u64);
        page
    }

    /// So many pages of zeros, one behind the other.
    pub fn pages(&mut self, pages: u32) {
        (0..pages).for_each(|_| {
            self.page();
        });
    }
}

pub(super) fn entry(table: u64, index: usize) -> &'static AtomicU64 {
    // SAFETY: `table` is a page that `Taken` gave, mapped from the start.
    unsafe { &*((PHYSICAL + table + 8 * index as u64) as *const AtomicU64) }
}

/// The table of a level for an address, in tables that are being made. Those above it are the
/// user's to pass if the flags say so.
pub(super) fn table(root: u64, taken: &mut Taken, at: u64, level: u32, flags: u64) -> u64 {
    let mut table = root;
    for above in (level + 1..=4).rev() {
        let entry = entry(table, address::index(at, above));
        let mut value = entry.load(Ordering::Relaxed);
        if value & PRESENT == 0 {
            value = taken.page() | PRESENT | WRITE | flags & USER;
            entry.store(value, Ordering::Relaxed);
        }
        table = value & FRAME;
    }
    table
}

/// Maps a page in tables that are being made.
pub(super) fn map(root: u64, taken: &mut Taken, at: u64, physical: u64, flags: u64) {
    let table = table(root, taken, at, 1, flags);
    entry(table, address::index(at, 1)).store(physical | flags | PRESENT, Ordering::Relaxed);
}

/// Makes the kernel's tables: itself, all memory (`pages`), the interrupt controller, and the books
/// (`books`: first physical address, bytes) for everybody to read. Devices' registers are mapped
/// where they are in the map of all memory. Everything taken for it lies behind `taken`.
pub fn make_tables(
    taken: &mut Taken,
    pages: usize,
    books: (u64, u64),
    devices: impl Iterator<Item = Range>,
) {
    let root = taken.page();
    let data = NO_EXECUTE | WRITE | GLOBAL;
    // SAFETY: addresses of the linker's symbols.
    let (text, constants, writable, end, guard) = unsafe {
        (
            symbol(&kernel_text),
            symbol(&kernel_constants),
            symbol(&kernel_data),
            symbol(&kernel_end),
            symbol(&first_guard),
        )
    };
    for at in (text..end)
        .step_by(PAGE)
        .filter(|&at| at != guard && !local::is_guard(at) && !arena::is_guard(at))
    {
        let flags = match at {
            _ if at < constants => GLOBAL,
            _ if at < writable => NO_EXECUTE | GLOBAL,
            _ => data,
        };
        map(root, taken, at, at - BASE, flags);
    }
    for page in 0..pages as u64 {
        let physical = page * PAGE as u64;
        let constant = (text - BASE..writable - BASE).contains(&physical);
        let flags = if constant { NO_EXECUTE | GLOBAL } else { data };
        map(root, taken, PHYSICAL + physical, physical, flags);
    }
    map(
        root,
        taken,
        PHYSICAL + CONTROLLER,
        CONTROLLER,
        data | UNCACHED,
    );
    for range in devices {
        for at in (range.from & !0xfff..range.to).step_by(PAGE) {
            map(root, taken, PHYSICAL + at, at, data | UNCACHED);
        }
    }
    for offset in (0..books.1).step_by(PAGE) {
        map(
            root,
            taken,
            address::BOOKS + offset,
            books.0 + offset,
            NO_EXECUTE | USER,
        );
    }
    ROOT.store(root, Ordering::Release);
}

/// The kernel's own root table.
pub fn root_table() -> u64 {
    ROOT.load(Ordering::Acquire)
}

/// Uses a root table from now on, and forgets all translations of the last one.
///
/// # Safety
/// The table has the kernel's upper half.
pub unsafe fn use_table(table: u64) {
    // SAFETY: the caller's promise: the kernel goes on where it is.
    unsafe { asm!("mov cr3, {}", in(reg) table, options(nostack, preserves_flags)) }
}

/// Forgets all translations but the kernel's.
pub fn forget_all() {
    // SAFETY: the same table again.
    unsafe { asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _, options(nostack, preserves_flags)) }
}

/// Forgets all translations, the kernel's own, too.
pub fn forget_everything() {
    registers::toggle_global();
}

/// Makes a page one that is not written in the view of all memory, or one that is. Other
/// processors may know better until they forget everything.
pub fn set_constant(page: u32, constant: bool) {
    if page as usize >= PAGES.load(Ordering::Relaxed) {
        no_page(page);
    }
    let at = PHYSICAL + ((page as u64) << 12);
    let mut table = root_table();
    for level in [4, 3, 2] {
        table = entry(table, address::index(at, level)).load(Ordering::Relaxed) & FRAME;
    }
    let entry = entry(table, address::index(at, 1));
    match constant {
        true => entry.fetch_and(!WRITE, Ordering::Relaxed),
        false => entry.fetch_or(WRITE, Ordering::Relaxed),
    };
    forget(at);
}

/// Forgets the translation of an address.
pub fn forget(address: u64) {
    // SAFETY: what is forgotten is looked up again.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// Fills the slots of a new root table that are the kernel's: the table itself, the books, and the
/// upper half.
pub fn kernel_slots(table: u32) {
    let words = words(table);
    let kernel = entry(root_table(), 0) as *const AtomicU64 as *const Words;
    // SAFETY: the kernel's root table, a page.
    let kernel = unsafe { &*kernel };
    for (word, own) in words.iter().zip(kernel).skip(255) {
        word.store(own.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    let itself = (table as u64) << 12 | PRESENT | USER | NO_EXECUTE;
    words[254].store(itself, Ordering::Relaxed);
}

/// The boot package, before anything else is made of memory. The books leave its pages out.
pub fn package(from: u64, to: u64) -> &'static [u8] {
    assert!(
        from >= kernel_starts() && from <= to && to <= MAPPED,
        "no boot package"
    );
    // SAFETY: mapped from the start, as the loader filled it; nobody stores to it.
    unsafe { bytes(from, (to - from) as usize) }
}

/// Leaves the tables of the loader for the kernel's own.
pub fn leave_loader() {
    // SAFETY: the kernel's own tables are made.
    unsafe { use_table(root_table()) }
}

/// A register of this processor's interrupt controller.
pub fn controller(register: u64) -> &'static core::sync::atomic::AtomicU32 {
    // SAFETY: the page is mapped uncached in the kernel's tables; its registers are words.
    unsafe { &*((PHYSICAL + CONTROLLER + (register & 0xff0)) as *const _) }
}

/// Bytes of memory that the loader filled.
///
/// # Safety
/// The range is memory, nobody writes to it, and the bytes may be of any value.
pub unsafe fn bytes(physical: u64, length: usize) -> &'static [u8] {
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts((PHYSICAL + physical) as *const u8, length) }
}

/// The frame pointer of the caller's caller.
#[inline(always)]
pub fn frame_pointer() -> u64 {
    let frame;
    // SAFETY: reading has no effect.
    unsafe { asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) }
    frame
}

/// What a frame pointer leads to: the caller's, and where the function returns to. `None` beyond
/// the kernel's own data.
pub fn frame(pointer: u64) -> Option<(u64, u64)> {
    // SAFETY: addresses of the linker's symbols.
    let (from, to) = unsafe { (symbol(&kernel_data), symbol(&kernel_end)) };
    if !(from..to - 16).contains(&pointer) || !pointer.is_multiple_of(8) {
        return None;
    }
    // SAFETY: within the kernel's data, where its stacks lie.
    let (caller, back) = unsafe { (*(pointer as *const u64), *((pointer + 8) as *const u64)) };
    is_text(back).then_some((caller, back))
}
