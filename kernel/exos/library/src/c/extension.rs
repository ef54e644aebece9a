//! Extensions, as C has them: `<exos/extension.h>`.

mod trusted;

use alloc::ffi::CString;
use alloc::string::ToString;
use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use postern_gates::outcome::Refusal;
use postern_gates::sync::Mutex;

use crate::extension::{ExtensionError, Failure};

/// The last error: its code, and its sentence.
static CODE: AtomicI32 = AtomicI32::new(0);
static SENTENCE: Mutex<Option<CString>> = Mutex::new(None);

/// The numbers of `pt_code`.
mod code {
    pub const ARGUMENT: i32 = -1;
    pub const MACHINE: i32 = -3;
    pub const FILE: i32 = -6;
    pub const IMAGE: i32 = -7;
    pub const REFUSED: i32 = -8;
    pub const UNRESOLVED: i32 = -9;
    pub const SIGNATURE: i32 = -10;
    pub const LIMIT: i32 = -11;
    pub const MEMORY: i32 = -12;
    pub const MISSING: i32 = -13;
    pub const RANGE: i32 = -15;
    pub const BUSY: i32 = -16;
    pub const OUTSIDE: i32 = -17;
    pub const FAULT: i32 = -18;
    pub const EXITED: i32 = -19;
    pub const POISONED: i32 = -20;
    pub const CLOSED: i32 = -21;
    pub const INSIDE: i32 = -24;
}

/// Notes an error and gives its code.
fn fail(code: i32, sentence: &str) -> i32 {
    CODE.store(code, Relaxed);
    let mut kept = SENTENCE.lock().unwrap_or_else(|never| never.into_inner());
    *kept = CString::new(sentence).ok();
    code
}

fn wrong(error: &ExtensionError) -> i32 {
    let code = match error {
        ExtensionError::Image(_) | ExtensionError::Shape => code::IMAGE,
        ExtensionError::Refused(_) => code::REFUSED,
        ExtensionError::Machine(_) => code::MACHINE,
        ExtensionError::Memory(_) => code::MEMORY,
        ExtensionError::Unresolved(_) => code::UNRESOLVED,
        ExtensionError::Signature(_) => code::SIGNATURE,
        ExtensionError::Missing(_) => code::MISSING,
        ExtensionError::Limit => code::LIMIT,
        ExtensionError::Busy => code::BUSY,
        ExtensionError::Constructors => code::FAULT,
    };
    fail(code, &error.to_string())
}

/// A call that did not return, as an error: its code, and a sentence.
fn code_of(failure: &Failure) -> (i32, &'static CStr) {
    match failure {
        Failure::Fault(_) => (code::FAULT, c"the extension faulted"),
        Failure::Exited(_) => (code::EXITED, c"the extension exited"),
        Failure::Refused(refusal) => match refusal {
            Refusal::Poisoned | Refusal::Resting(_) => (
                code::POISONED,
                c"an earlier fault closed the domain; pt_domain_reset() opens it",
            ),
            Refusal::Busy | Refusal::Moving => (code::BUSY, c"somebody has the domain for itself"),
            Refusal::Closed => (code::CLOSED, c"the domain is closed"),
            Refusal::InsideExtension => (code::INSIDE, c"the process is inside an extension"),
            Refusal::TooDeep => (code::LIMIT, c"calls nest too deeply"),
            _ => (code::MEMORY, c"there is no room for the call's stacks"),
        },
    }
}
