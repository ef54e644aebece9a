//! How a machine says that it has ended: the byte that the kernel writes to the emulator's exit
//! device (I/O port [`PORT`]). The emulator's own exit status is twice that plus 1, so 1, which is
//! its word for wrong options, must not be among them; a triple fault leaves no byte, and the
//! emulator ends with 0.

/// The emulator's `isa-debug-exit`.
pub const PORT: u16 = 0xf4;

/// [`Call::Stop`](crate::Call::Stop) with a status: this, and the status in the lower six bits.
pub const STOPPED: u8 = 0x40;
/// The kernel panicked, or met an exception of its own.
pub const PANIC: u8 = 1;
/// The machine, or what was given to boot, lacks something that the kernel needs.
pub const BOOT: u8 = 2;
/// The root environment ended without having stopped the machine.
pub const ROOT_ENDED: u8 = 3;

/// The greatest status of [`Call::Stop`](crate::Call::Stop).
pub const GREATEST: u8 = 63;
/// What programs stop the machine with when all went well.
pub const WELL: u8 = 0;
/// What they stop it with when a test failed.
pub const FAILED: u8 = 1;
