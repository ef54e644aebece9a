//! The structures of the headers, field by field. A test compares sizes and offsets with what a C
//! compiler makes of the headers.

use std::ffi::{c_char, c_int, c_void};

/// `pt_config`. All zero is the default.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CConfig {
    /// Bytes of the structure as the host knows it.
    pub size: usize,
    /// `PT_NO_HOT_WINDOW`, `PT_NO_HANDLERS`, `PT_ADOPT_HANDLERS`, `PT_RESTORE_GS`, `PT_DUMP`.
    pub flags: u32,
    /// The watchdog's tick in microseconds.
    pub tick_us: u32,
    /// The abort signal.
    pub signal: i32,
    /// 0.
    pub reserved: u32,
    /// Most bytes of control stack.
    pub control_stack: u64,
}

/// `pt_fault`
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct CFault {
    pub size: usize,
    pub kind: i32,
    pub has: u32,
    pub offset: u32,
    pub address: u32,
    pub status: i32,
    pub signal: i32,
    pub registers: [u64; 15],
    pub depth: u64,
    pub frames: u32,
    pub backtrace: [u32; 32],
    pub message: *const c_char,
    pub place: *const c_char,
    pub domain: *const c_char,
    pub area: *const c_char,
    pub area_start: u32,
    pub page: u32,
    pub access: i32,
}

/// `pt_source_error`
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct CSourceError {
    /// Bytes of the structure as the host knows it.
    pub size: usize,
    pub line: u32,
    pub column: u32,
    pub length: u32,
    pub reserved: u32,
    pub kind: *const c_char,
    pub file: *const c_char,
    pub message: *const c_char,
    pub help: *const c_char,
    pub text: *const c_char,
}

/// `pt_counters`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CCounters {
    /// Bytes of the structure as the host knows it.
    pub size: usize,
    /// Calls that entered.
    pub calls: u64,
    /// Calls that ended in a fault.
    pub faults: u64,
    /// Time inside in nanoseconds, sampled.
    pub inside_ns: u64,
    /// How much of it was in the hot window.
    pub hot_ns: u64,
    /// Times the domain was moved.
    pub moves: u64,
    /// Calls of services.
    pub services: u64,
    /// Calls of services that were denied.
    pub denied: u64,
    /// System calls that the policy granted.
    pub system_calls: u64,
    /// System calls that it refused.
    pub refused: u64,
    /// Handlers that had to wait.
    pub promoted: u64,
    /// Functions that the extension spawned.
    pub spawned: u64,
    /// Handlers with which a thread went on.
    pub resumed: u64,
    /// Functions that a reset or the domain's end made void.
    pub skipped: u64,
    /// Handlers and functions for which there was no place.
    pub full: u64,
    /// Sandbox threads that are in one now.
    pub busy: u64,
    /// Most that ever waited at once.
    pub longest: u64,
    /// Handlers with which no thread went on.
    pub ended: u64,
}

/// `pt_call`.
#[repr(C)]
#[allow(missing_docs, reason = "the header says it")]
pub struct CCall {
    pub size: usize,
    pub number: i64,
    pub words: [u64; 5],
    pub path: *const c_char,
    pub second_path: *const c_char,
    pub bytes: *const c_void,
    pub length: usize,
    pub answer: *mut c_void,
    pub room: usize,
    pub answered: usize,
    pub result: i64,
    pub reason: Reason,
}

/// `pt_question`.
#[repr(C)]
#[allow(missing_docs, reason = "the header says it")]
pub struct CQuestion {
    pub size: usize,
    pub domain: *const c_char,
    pub service: *const c_char,
    pub call: *mut CCall,
    pub integers: u32,
    pub floats: u32,
    pub integer: [u64; 6],
    pub floating: [u64; 8],
    pub result: i64,
    pub reason: Reason,
}

/// `pt_repossession`.
#[repr(C)]
#[allow(missing_docs, reason = "the header says it")]
pub struct CRepossession {
    pub size: usize,
    pub kind: c_int,
    pub name: [c_char; 256],
    pub why: [c_char; 256],
}

/// `pt_tally`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header says it")]
pub struct CTally {
    pub name: *const c_char,
    pub packets: u64,
    pub bytes: u64,
    pub dropped: u64,
    pub answers: u64,
    pub faults: u64,
    pub reserved: [u64; 2],
}

/// `pt_packet`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the header says it")]
pub struct CPacket {
    pub time: u64,
    pub at: u32,
    pub length: u32,
    pub wire_length: u32,
    pub interface: u32,
    pub direction: u32,
    pub link: u32,
    pub reserved: [u32; 8],
}

/// `pt_kernel_statistics`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header says it")]
pub struct CKernelStatistics {
    pub extension: u32,
    pub rights: u32,
    pub policy: u32,
    pub segment: u32,
    pub image: u64,
    pub memory: u64,
    pub ended: [u64; 10],
    pub queued: u64,
    pub lost: u64,
    pub restarts: u64,
    pub hooks: u32,
    pub instructions: u32,
    pub depth: u32,
    pub longest_path: u32,
    pub shared: u32,
    pub reserved: [u32; 7],
}

/// `pt_kernel_attachment`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header says it")]
pub struct CKernelAttachment {
    pub attachment: u32,
    pub extension: u32,
    pub calls: u64,
    pub passed: u64,
    pub function: [c_char; 64],
    pub hook: [c_char; 128],
}

/// `const char *` in a structure through which a function of the host answers: NULL, or a text that
/// stays until it is read.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Reason(*const c_char);

impl Reason {
    /// No reason.
    pub const NONE: Reason = Reason(std::ptr::null());

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.0.is_null()
    }

    /// Where the text is. Only the host has made it anything but NULL.
    pub fn pointer(self) -> *const c_char {
        self.0
    }
}
