//! How an address space is divided. The lower half is the environment's, but for its two last
//! slots of 512 GiB, which the kernel fills; the upper half is the kernel's.

/// Addresses from here on are the second segment of section 5.4: a miss is looked up among the
/// context's guaranteed mappings first. Handlers, their stacks and the context belong here.
pub const GUARANTEED: u64 = 0x7e00_0000_0000;

/// The environment's own page tables, to be read: the last-level entry of address `a` is the word
/// `a >> 12` here.
pub const TABLES: u64 = 0x7f00_0000_0000;

/// The kernel's bookkeeping, to be read: a [`Machine`](crate::records::Machine).
pub const BOOKS: u64 = 0x7f80_0000_0000;

/// No environment maps anything from here on.
pub const END: u64 = TABLES;

/// Where the kernel maps the root environment's program, readable, writable and executable.
pub const ROOT_PROGRAM: u64 = 0x40_0000;

/// The lowest address that can be mapped: null pointers fault.
pub const START: u64 = 0x1000;

/// Bytes of a handler's window that can be used, from its beginning: what its table spans.
pub const WINDOW: u64 = 512 * crate::PAGE as u64;

/// Where in its window a handler finds the page with the message, as long as it runs. Nothing else
/// is bound from here on.
pub const MESSAGE: u64 = WINDOW - 2 * crate::PAGE as u64;

/// Whether an environment may map a page at this address.
pub const fn mappable(address: u64) -> bool {
    address >= START && address < END && address.is_multiple_of(crate::PAGE as u64)
}

/// The index of an address in the table of a level: 1, which has pages, to 4.
pub const fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * (level - 1))) as usize & 511
}
