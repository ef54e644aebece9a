//! Where things lie in a window: the numbers of the extension ABI.
//!
//! This is the only place that holds them; `docs/src/internals/abi.md` explains them.

/// Version of the extension ABI.
pub const ABI_VERSION: u32 = 1;
/// Most calls inside each other, those of gate slots among them, that [`crate::Profile::Kernel`]
/// accepts: each puts eight bytes on the kernel's own stack, of which an image takes a kilobyte at
/// most.
pub const KERNEL_CALLS: u32 = 128;
/// Size of a window in bytes.
pub const WINDOW_SIZE: u64 = 1 << 32;
/// Size of a page in bytes.
pub const PAGE: u32 = 4096;
/// Bytes at offset 0 of a window, and above its end, that are never mapped.
pub const NULL_GUARD: u32 = 0x1_0000;
/// Highest end (exclusive) that any mapped range of a window may have.
pub const LIMIT: u32 = 0xffff_0000;
/// Offset of the info page, whose first eight bytes are the window's base.
pub const INFO: u32 = 0x1_0000;
/// Offset of the ABI version in the info page.
pub const INFO_ABI: u32 = INFO + 8;
/// Offset of the heap's first offset in the info page.
pub const INFO_HEAP_START: u32 = INFO + 16;
/// Offset of the heap's end (exclusive) in the info page.
pub const INFO_HEAP_END: u32 = INFO + 20;
/// Offset of the data stacks' size less 1 in the info page: code finds the end of its thread's
/// stack by it. A multiple of 16, so that a vector can be loaded from there.
pub const INFO_STACK_MASK: u32 = INFO + 32;
/// Offset of gate slot 0, in an image that does not say that its slots begin some pages higher
/// ([`MAX_SHIFT`]).
pub const GATES: u32 = 0x1_1000;
/// Most pages that an image's slots, and with them everything that follows, may begin above
/// [`GATES`].
pub const MAX_SHIFT: u32 = 127;
/// Where that number begins in the flags of an image's header note: bits 8 to 14.
pub const SHIFT_FLAGS: u32 = 8;
/// Bit of the same flags: code finds its stack's size by [`INFO_STACK_MASK`], so whoever makes a
/// domain may choose it.
pub const FLAG_ANY_STACK: u32 = 2;
/// Size of a gate slot in bytes.
pub const SLOT_SIZE: u32 = 32;
/// Most imports that an image may have.
pub const MAX_IMPORTS: u32 = 4096;
/// Most link slots that a layout may have.
pub const MAX_LINKS: u32 = 65536;
/// Most exports that an image may have.
pub const MAX_EXPORTS: u32 = 65536;
/// The landing pad: an eight-byte NOP that marks where an indirect branch may go.
pub const PAD: [u8; 8] = [0x0f, 0x1f, 0x84, 0x20, 0, 0, 0, 0];
/// The byte that fills text and gate pages: `int3`.
pub const FILL: u8 = 0xcc;
/// Size of the thread block at the top of each data stack, in bytes.
pub const THREAD_BLOCK: u32 = 256;
/// Where in the thread block the stack protector finds its word.
pub const CANARY: u32 = 40;
/// Largest alignment of a thread-local variable: that of the thread pointer.
pub const TLS_ALIGNMENT: u32 = THREAD_BLOCK;
/// Thread-local variables take less than this part (a quarter) of the data stack.
pub const TLS_SHARE: u32 = 4;
/// Symbol of an image whose address is [`INFO_STACK_MASK`].
pub const STACK_MASK_WORD: &str = "__postern_info_stack_mask";
/// Symbol of an image whose value is the data stack's size less 1. The stack of an image that uses
/// it has the size that was linked: nobody can choose another one.
pub const STACK_MASK: &str = "__postern_stack_mask";
/// Smallest, default and largest binary logarithm of the data stack's size.
pub const STACK_LOG2: (u32, u32, u32) = (12, 18, 26);

/// Offset of the first byte of text in an image with `imports` gate slots that begin at [`GATES`].
pub const fn text_start(imports: u32) -> u32 {
    GATES + page_up(imports * SLOT_SIZE)
}

/// `offset` rounded up to a page. The caller keeps it below [`LIMIT`].
pub const fn page_up(offset: u32) -> u32 {
    (offset + (PAGE - 1)) & !(PAGE - 1)
}

/// Offset of gate slot `k`, where the first one is at [`GATES`].
pub const fn slot(k: u32) -> u32 {
    GATES + k * SLOT_SIZE
}
