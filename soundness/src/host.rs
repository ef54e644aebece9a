//! Calls through plain C function pointers by a host that notices every register that comes back
//! wrong.

use std::arch::{asm, global_asm};
use std::mem::offset_of;

/// A call: what registers hold before, and what they hold after.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub struct HostCall {
    /// Address of the function.
    function: u64,
    /// Argument registers, with whatever a caller may leave in them.
    integers: [u64; 6],
    /// All vector registers. Arguments are the low lanes of the first eight.
    vectors: [[u64; 4]; 16],
    /// In every register that holds no argument, and around the frame.
    secret: u64,
    /// rbp r12 r13 r14 r15 (rbx holds the address of this structure).
    kept: [u64; 5],
    after: [u64; 5],
    rsp: u64,
    rax: u64,
    xmm: u64,
    flags: u64,
    mxcsr: u32,
    mxcsr_after: u32,
    x87: u16,
    trampled: u8,
    x87_after: [u16; 14],
}

/// Bytes of known words above the call's frame.
const GUARD: usize = 512;
/// Rounding up, all exceptions masked.
const MXCSR: u32 = 0x5f80;
/// Double precision, rounding down, all exceptions masked.
const X87: u16 = 0x067f;

/// Sixteen registers of four words: no word is zero, none is like another.
static SECRETS: [[u64; 4]; 16] = {
    let mut all = [[0; 4]; 16];
    let mut i = 0;
    while i < 64 {
        all[i / 4][i % 4] = 0x5ec2_e700_0000_0000 | (i as u64) << 16 | 0xbeef;
        i += 1;
    }
    all
};

global_asm!(
    include_str!("host.s"),
    GUARD = const GUARD,
    H_FUNCTION = const offset_of!(HostCall, function),
    H_INTEGERS = const offset_of!(HostCall, integers),
    H_VECTORS = const offset_of!(HostCall, vectors),
    H_SECRET = const offset_of!(HostCall, secret),
    H_KEPT = const offset_of!(HostCall, kept),
    H_AFTER = const offset_of!(HostCall, after),
    H_RSP = const offset_of!(HostCall, rsp),
    H_RAX = const offset_of!(HostCall, rax),
    H_XMM = const offset_of!(HostCall, xmm),
    H_FLAGS = const offset_of!(HostCall, flags),
    H_MXCSR = const offset_of!(HostCall, mxcsr),
    H_MXCSR_AFTER = const offset_of!(HostCall, mxcsr_after),
    H_X87 = const offset_of!(HostCall, x87),
    H_TRAMPLED = const offset_of!(HostCall, trampled),
    SECRETS = sym SECRETS,
    H_X87_AFTER = const offset_of!(HostCall, x87_after),
);

unsafe extern "C" {
    fn postern_host_call(call: *mut HostCall);
    fn postern_stepped_call(call: *mut HostCall);
    fn postern_scribble();
    static postern_stepped_call_begins: u8;
    static postern_stepped_call_ended: u8;
}

impl HostCall {
    /// A call of `function` with these integers and doubles; the rest of the registers is full of
    /// secrets.
    pub fn new(function: *const (), integers: &[u64], floats: &[f64]) -> HostCall {
        let secret = 0x5ec2_e7aa_aaaa_aaaa;
        let mut call = HostCall {
            function: function as u64,
            integers: [secret; 6],
            vectors: SECRETS,
            secret,
            kept: [0x1b1b, 0x1212, 0x1313, 0x1414, 0x1515].map(|k| k << 32 | 0x0ddb_a11a),
            after: [0; 5],
            rsp: 0,
            rax: 0,
            xmm: 0,
            flags: 0,
            mxcsr: MXCSR,
            mxcsr_after: 0,
            x87: X87,
            trampled: 0,
            x87_after: [0; 14],
        };
        call.integers[..integers.len()].copy_from_slice(integers);
        for (place, value) in call.vectors.iter_mut().zip(floats) {
            place[0] = value.to_bits();
        }
        call
    }

    /// All of MXCSR's flags are raised before the call: for calls whose services compute, and so
    /// raise some of their own.
    #[must_use]
    pub fn with_flags(mut self) -> HostCall {
        self.mxcsr |= 0x3f;
        self
    }

    /// Calls.
    ///
    /// # Safety
    /// `function` must be callable as a C function with these arguments; the processor must have
    /// AVX.
    pub unsafe fn run(&mut self) {
        // SAFETY: the caller's promise; the assembly keeps the C convention itself.
        unsafe { postern_host_call(self) };
    }

    /// Calls, with a breakpoint trap right before and right after.
    ///
    /// # Safety
    /// As [`HostCall::run`]; somebody must be there to take the traps.
    pub unsafe fn run_stepped(&mut self) {
        // SAFETY: as above.
        unsafe { postern_stepped_call(self) };
    }

    /// rax after the call.
    pub fn integer(&self) -> u64 {
        self.rax
    }

    /// The low half of xmm0 after the call.
    pub fn float(&self) -> f64 {
        f64::from_bits(self.xmm)
    }

    /// What of the host's state did not come back as it was.
    ///
    /// # Errors
    /// Says which.
    pub fn intact(&self) -> Result<(), String> {
        const DF_AC_NT_TF: u64 = 1 << 10 | 1 << 18 | 1 << 14 | 1 << 8;
        let (control, tags) = (self.x87_after[0], self.x87_after[4]);
        let wrong = [
            (self.after != self.kept, "a callee-saved register"),
            (self.rsp != 0, "rsp"),
            (self.flags & DF_AC_NT_TF != 0, "the flags"),
            (self.mxcsr != self.mxcsr_after, "MXCSR"),
            (control != self.x87, "the x87 control word"),
            (self.x87_after[2] & 0xff != 0, "the x87 flags"),
            (tags != 0xffff, "the x87 tags"),
            (self.trampled != 0, "the host's stack"),
        ];
        match wrong.iter().find(|w| w.0) {
            Some((_, what)) => Err(format!("{what} changed: {self:x?}")),
            None => Ok(()),
        }
    }
}

/// The low half of what [`scribbler`] leaves in xmm0, and all of what it leaves in rax.
pub const SCRIBBLED: u64 = 0x5ec2_e700_0000_beef;

/// A C function that leaves secrets in every register that a C function may change.
pub fn scribbler() -> *const () {
    postern_scribble as *const ()
}

/// Whether a word is one of the secrets.
pub fn is_secret(word: u64) -> bool {
    word >> 40 == 0x5e_c2e7 || word as u32 >> 8 == 0xaa_aaaa
}

/// Addresses right behind the two traps of [`HostCall::run_stepped`].
pub fn stops() -> (u64, u64) {
    (
        &raw const postern_stepped_call_begins as u64,
        &raw const postern_stepped_call_ended as u64,
    )
}

/// A breakpoint trap.
///
/// # Safety
/// Somebody must be there to take it.
pub unsafe fn breakpoint() {
    // SAFETY: the caller's promise.
    unsafe { asm!("int3") };
}
