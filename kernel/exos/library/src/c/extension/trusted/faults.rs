//! Why a call did not return, as C asks for it.

use alloc::boxed::Box;
use alloc::ffi::CString;
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};
use core::ptr::null;
use core::sync::atomic::Ordering::Relaxed;

use crate::c::extension::{CODE, code_of, fail};
use crate::extension::{self, Failure, FaultKind};

/// `pt_fault` of the header.
#[repr(C)]
struct Fault {
    size: usize,
    kind: i32,
    has: u32,
    offset: u32,
    address: u32,
    status: i32,
    vector: i32,
    registers: [u64; 15],
    depth: u64,
    frames: u32,
    backtrace: [u32; 32],
    message: *const c_char,
    domain: *const c_char,
}

/// The last one that was asked for, with its text.
struct Shown {
    fault: Fault,
    _message: CString,
    _domain: CString,
}

/// Where it is.
struct Place(UnsafeCell<Option<Box<Shown>>>);

// SAFETY: a process has one thread, and what interrupts it asks for no faults.
unsafe impl Sync for Place {}

static SHOWN: Place = Place(UnsafeCell::new(None));

const REFUSED: i32 = 65;
const EXITED: i32 = 64;
const HAS_OFFSET: u32 = 1;
const HAS_ADDRESS: u32 = 2;
const HAS_REGISTERS: u32 = 4;

/// As the header says.
#[unsafe(no_mangle)]
extern "C" fn pt_fault_last() -> *const Fault {
    let shown = extension::with_failure(|failure| Some(show(failure?)));
    // SAFETY: nobody has a reference; the caller's pointer is valid until this is asked again.
    let place = unsafe { &mut *SHOWN.0.get() };
    *place = shown.map(Box::new);
    place
        .as_ref()
        .map_or(null(), |shown| &raw const shown.fault)
}

fn show(failure: &Failure) -> Shown {
    let (code, sentence) = code_of(failure);
    let sentence = sentence.to_str().unwrap_or_default();
    fail(code, sentence);
    let mut fault = Fault {
        size: size_of::<Fault>(),
        kind: REFUSED,
        has: 0,
        offset: 0,
        address: 0,
        status: 0,
        vector: 0,
        registers: [0; 15],
        depth: 0,
        frames: 0,
        backtrace: [0; 32],
        message: null(),
        domain: null(),
    };
    let (mut words, mut name) = (alloc::string::String::from(sentence), "");
    match failure {
        Failure::Refused(_) => {}
        Failure::Exited(status) => (fault.kind, fault.status) = (EXITED, *status),
        Failure::Fault(known) => {
            fault.kind = known.kind as i32;
            fault.vector = known.vector as i32;
            let flag = |has: bool, bit: u32| if has { bit } else { 0 };
            fault.has = flag(known.offset.is_some(), HAS_OFFSET)
                | flag(known.address.is_some(), HAS_ADDRESS)
                | flag(known.registers.is_some(), HAS_REGISTERS);
            fault.offset = known.offset.unwrap_or(0);
            fault.address = known.address.unwrap_or(0);
            fault.registers = known.registers.unwrap_or([0; 15]);
            fault.depth = known.depth;
            fault.frames = known.backtrace.len() as u32;
            for (to, from) in fault.backtrace.iter_mut().zip(&known.backtrace) {
                *to = *from;
            }
            (words, name) = (known.message(), &known.domain);
        }
    }
    let message = CString::new(words).unwrap_or_default();
    let domain = CString::new(name).unwrap_or_default();
    (fault.message, fault.domain) = (message.as_ptr(), domain.as_ptr());
    Shown {
        fault,
        _message: message,
        _domain: domain,
    }
}

/// As the header says.
#[unsafe(no_mangle)]
extern "C" fn pt_fault_clear() {
    extension::clear_failure();
    CODE.store(0, Relaxed);
}

/// As the header says.
#[unsafe(no_mangle)]
extern "C" fn pt_fault_kind_name(kind: c_int) -> *const c_char {
    match kind {
        EXITED => c"exited".as_ptr(),
        REFUSED => c"refused".as_ptr(),
        kind => FaultKind::c_name(kind).as_ptr(),
    }
}
