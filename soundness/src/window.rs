//! The window of the executing child: a few ranges at fixed offsets, nothing else.

/// Gate slots that generated code may call. Here a slot is a landing pad and a return.
pub const IMPORTS: u32 = 8;
/// First offset of the large writable range.
pub const DATA: u32 = 0x1000_0000;
/// End (exclusive) of it.
pub const DATA_END: u32 = 0x1800_0000;
/// First offset of the last, writable page. Images never have one; here it lets accesses reach over
/// the end of the window.
pub const LAST: u32 = 0xffff_f000;
/// Eight bytes of data that look like a landing pad. A jump there passes the guard, and faults,
/// since data is never executable.
pub const FORGED: u32 = DATA_END - 4096;
