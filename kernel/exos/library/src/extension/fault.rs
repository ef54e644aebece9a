//! Faults: from the processor's facts to a kind and a place, as on Linux.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use postern_gates::outcome::{self, RawFault};
use postern_gates::window::{Right, Window};
use postern_verifier::window::{LIMIT, NULL_GUARD, WINDOW_SIZE};

use super::image::Image;

/// What went wrong. The numbers are those of `pt_fault_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[allow(missing_docs, reason = "as in the header")]
pub enum FaultKind {
    NullPointer = 1,
    Read = 2,
    Write = 3,
    ReadOnly = 4,
    BadJump = 5,
    Execute = 6,
    Trap = 7,
    IllegalInstruction = 8,
    Arithmetic = 9,
    Misaligned = 10,
    DataStackOverflow = 11,
    ControlStackOverflow = 12,
    HeapLimit = 13,
    Deadline = 14,
    Interrupted = 15,
    AnotherThread = 16,
    ServiceStack = 17,
    Aborted = 18,
    Killed = 19,
}

/// The kinds' names, for people, by number.
const NAMES: [&core::ffi::CStr; 20] = [
    c"none",
    c"null-pointer",
    c"read",
    c"write",
    c"read-only",
    c"bad-jump",
    c"execute",
    c"trap",
    c"illegal-instruction",
    c"arithmetic",
    c"misaligned",
    c"data-stack-overflow",
    c"control-stack-overflow",
    c"heap-limit",
    c"deadline",
    c"interrupted",
    c"another-thread",
    c"service-stack",
    c"aborted",
    c"killed",
];

impl FaultKind {
    /// The kind's name in kebab case.
    pub fn name(self) -> &'static str {
        FaultKind::c_name(self as i32).to_str().unwrap_or_default()
    }

    /// The name of a kind's number, for C.
    pub(crate) fn c_name(number: i32) -> &'static core::ffi::CStr {
        let name = usize::try_from(number)
            .ok()
            .and_then(|number| NAMES.get(number));
        name.copied().unwrap_or(c"other")
    }
}

/// Why a call did not return.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What it was.
    pub kind: FaultKind,
    /// The domain's name.
    pub domain: String,
    /// Offset of the instruction.
    pub offset: Option<u32>,
    /// Offset that was accessed or jumped to.
    pub address: Option<u32>,
    /// rax rbx rcx rdx rsi rdi rbp r8…r15, where they are known.
    pub registers: Option<[u64; 15]>,
    /// Calls that were inside each other.
    pub depth: u64,
    /// Return offsets, innermost first.
    pub backtrace: Vec<u32>,
    /// The processor's exception.
    pub vector: u64,
    /// Words of whoever ended the call.
    pub words: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.domain, self.kind.name())?;
        if let Some(words) = &self.words {
            write!(to, ": {words}")?;
        }
        if let Some(address) = self.address {
            write!(to, " at address {address:#x}")?;
        }
        match self.offset {
            Some(offset) => write!(to, ", instruction {offset:#x}"),
            None => Ok(()),
        }
    }
}

const UD2: &[u8] = &[0x0f, 0x0b];
/// `cmpq $0x20841f0f, %gs:(%r11d)`: the second instruction of a guarded sequence.
const TARGET_CHECK: &[u8] = &[0x65, 0x67, 0x49, 0x81, 0x3b, 0x0f, 0x1f, 0x84, 0x20];

impl Fault {
    pub(super) fn new(
        image: &Image,
        window: &Window,
        domain: &str,
        raw: &RawFault,
        words: Option<String>,
    ) -> Fault {
        let mut fault = Fault {
            kind: FaultKind::Aborted,
            domain: domain.into(),
            offset: None,
            address: None,
            registers: None,
            depth: raw.depth,
            backtrace: Vec::new(),
            vector: raw.trap,
            words,
        };
        if raw.located {
            let mut registers = [0; 15];
            registers.copy_from_slice(&raw.registers[..15]);
            fault.registers = Some(registers);
            let pc = raw.registers[15].wrapping_sub(raw.base);
            fault.offset = (pc < WINDOW_SIZE).then_some(pc as u32);
            let kept = (raw.depth as usize).min(raw.backtrace.len());
            fault.backtrace = raw.backtrace[..kept].into();
        }
        fault.kind = match raw.kind {
            outcome::SIGNAL => fault.classify(image, window, raw),
            outcome::DEADLINE => FaultKind::Deadline,
            outcome::INTERRUPT => FaultKind::Interrupted,
            outcome::ANOTHER => FaultKind::AnotherThread,
            outcome::SERVICE_STACK => FaultKind::ServiceStack,
            outcome::KILL => FaultKind::Killed,
            _ => FaultKind::Aborted,
        };
        fault
    }

    /// From the processor's facts to a kind. Where the access went decides, then what it was.
    fn classify(&mut self, image: &Image, window: &Window, raw: &RawFault) -> FaultKind {
        const PAGE_FAULT: u64 = 14;
        const WRITE: u64 = 2;
        const FETCH: u64 = 16;
        match raw.trap {
            0 | 4 | 16 | 19 => return FaultKind::Arithmetic,
            1 | 3 => {
                // The trap is reported after the int3, which stands where the check of a jump
                // target fails.
                self.offset = self.offset.map(|offset| offset.wrapping_sub(1));
                self.address = Some(raw.registers[10] as u32);
                return FaultKind::BadJump;
            }
            6 if self.text_is(image, UD2) => return FaultKind::Trap,
            6 | 7 => return FaultKind::IllegalInstruction,
            _ => {}
        }
        if self.text_is(image, TARGET_CHECK) {
            // The check of a jump target read it where nothing is mapped.
            self.address = Some(raw.registers[10] as u32);
            return FaultKind::BadJump;
        }
        if raw.trap != PAGE_FAULT {
            return FaultKind::Misaligned;
        }
        let rsp = raw.registers[16];
        if self.offset.is_none() || (raw.address < rsp && rsp - raw.address <= 64) {
            // Only a call's push goes there, in text or in a gate that the extension called.
            return FaultKind::ControlStackOverflow;
        }
        let relative = raw.address.wrapping_sub(raw.base);
        if relative >= WINDOW_SIZE + u64::from(NULL_GUARD) {
            return FaultKind::Execute;
        }
        let address = relative as u32;
        self.address = Some(address);
        if raw.error & FETCH != 0 {
            return FaultKind::Execute;
        }
        if relative < u64::from(NULL_GUARD) || relative >= WINDOW_SIZE {
            return FaultKind::NullPointer;
        }
        let layout = image.text.layout();
        let heap_end = window.heap_end();
        let r15 = raw.registers[14] as i64;
        let near = |bottom: u32| address.abs_diff(r15 as u32) < 1 << 20 && address < bottom;
        if r15 < i64::from(layout.stack)
            || near(layout.stack) && r15 < i64::from(layout.data - image.reserved)
        {
            return FaultKind::DataStackOverflow;
        }
        match raw.error & WRITE != 0 {
            // It has the right, and no page came.
            _ if window.right(address) == Right::Write => FaultKind::HeapLimit,
            true if window.right(address) != Right::None => FaultKind::ReadOnly,
            _ if (heap_end..heap_end.saturating_add(1 << 20).min(LIMIT)).contains(&address) => {
                FaultKind::HeapLimit
            }
            true => FaultKind::Write,
            false => FaultKind::Read,
        }
    }

    /// Whether the instruction at the fault's place begins with these bytes.
    fn text_is(&self, image: &Image, expected: &[u8]) -> bool {
        self.offset
            .is_some_and(|offset| image.text.is(offset, expected))
    }

    /// One sentence.
    pub fn message(&self) -> String {
        format!("{self}")
    }
}
