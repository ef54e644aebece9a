//! Faults as C sees them: `pt_fault_last`, `pt_fault_report`, `pt_fault_kind_name`,
//! `pt_fault_clear`.

use crate::failure;
use crate::structures::CFault;
use postern::{CallError, Fault, FaultKind, Prot};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::{Arc, OnceLock};

/// Kinds with their names in C and numbers.
pub const KINDS: [(FaultKind, &str, i32); 21] = [
    (FaultKind::NullPointer, "PT_FAULT_NULL_POINTER", 1),
    (FaultKind::Read, "PT_FAULT_READ", 2),
    (FaultKind::Write, "PT_FAULT_WRITE", 3),
    (FaultKind::ReadOnly, "PT_FAULT_READ_ONLY", 4),
    (FaultKind::BadJump, "PT_FAULT_BAD_JUMP", 5),
    (FaultKind::Execute, "PT_FAULT_EXECUTE", 6),
    (FaultKind::Trap, "PT_FAULT_TRAP", 7),
    (
        FaultKind::IllegalInstruction,
        "PT_FAULT_ILLEGAL_INSTRUCTION",
        8,
    ),
    (FaultKind::Arithmetic, "PT_FAULT_ARITHMETIC", 9),
    (FaultKind::Misaligned, "PT_FAULT_MISALIGNED", 10),
    (
        FaultKind::DataStackOverflow,
        "PT_FAULT_DATA_STACK_OVERFLOW",
        11,
    ),
    (
        FaultKind::ControlStackOverflow,
        "PT_FAULT_CONTROL_STACK_OVERFLOW",
        12,
    ),
    (FaultKind::HeapLimit, "PT_FAULT_HEAP_LIMIT", 13),
    (FaultKind::Deadline, "PT_FAULT_DEADLINE", 14),
    (FaultKind::Interrupted, "PT_FAULT_INTERRUPTED", 15),
    (FaultKind::AnotherThread, "PT_FAULT_ANOTHER_THREAD", 16),
    (FaultKind::ServiceStack, "PT_FAULT_SERVICE_STACK", 17),
    (FaultKind::Aborted, "PT_FAULT_ABORTED", 18),
    (FaultKind::Killed, "PT_FAULT_KILLED", 19),
    (FaultKind::Deleted, "PT_FAULT_DELETED", 21),
    (FaultKind::Bus, "PT_FAULT_BUS", 20),
];
/// Numbers that are no [`FaultKind`], with their names for logs.
pub const OTHERS: [(&str, i32, &CStr); 4] = [
    ("PT_FAULT_NONE", 0, c"none"),
    ("PT_FAULT_EXITED", EXITED, c"exited"),
    ("PT_FAULT_REFUSED", REFUSED, c"refused"),
    ("PT_FAULT_OTHER", OTHER, c"other"),
];
const EXITED: i32 = 64;
const REFUSED: i32 = 65;
const OTHER: i32 = 66;

/// Bits of [`CFault::has`].
pub const HAS: [(&str, i32); 4] = [
    ("PT_HAS_OFFSET", 1),
    ("PT_HAS_ADDRESS", 2),
    ("PT_HAS_REGISTERS", 4),
    ("PT_HAS_AREA", 8),
];

/// A right to memory as C has it: `PT_NO_ACCESS` and so on.
pub fn access(protection: Prot) -> i32 {
    match protection {
        Prot::None => 0,
        Prot::Read => 1,
        Prot::ReadWrite => 3,
    }
}

/// A fault with the texts that it points to.
pub struct Shown {
    /// What C gets a pointer to.
    pub c: CFault,
    fault: Option<Arc<Fault>>,
    report: Option<CString>,
    _message: CString,
    _place: CString,
    _domain: CString,
    _area: CString,
}

impl Shown {
    fn new(kind: i32, message: &str, place: &str, domain: &str) -> Box<Shown> {
        let [message, place, domain] = [message, place, domain].map(failure::text);
        let c = CFault {
            size: size_of::<CFault>(),
            kind,
            has: 0,
            offset: 0,
            address: 0,
            status: 0,
            signal: 0,
            registers: [0; 15],
            depth: 0,
            frames: 0,
            backtrace: [0; 32],
            message: message.as_ptr(),
            place: place.as_ptr(),
            domain: domain.as_ptr(),
            area: c"".as_ptr(),
            area_start: 0,
            page: 0,
            access: 0,
        };
        Box::new(Shown {
            c,
            fault: None,
            report: None,
            _message: message,
            _place: place,
            _domain: domain,
            _area: CString::default(),
        })
    }

    /// A fault in C's form.
    pub fn of_fault(fault: &Fault) -> Box<Shown> {
        let number = KINDS
            .iter()
            .find(|k| k.0 == fault.kind)
            .map_or(OTHER, |k| k.2);
        let mut shown = Shown::new(number, &fault.to_string(), &fault.place(), &fault.domain);
        let c = &mut shown.c;
        if let Some(offset) = fault.offset {
            (c.offset, c.has) = (offset.0, c.has | 1);
        }
        if let Some(address) = fault.address {
            (c.address, c.has) = (address.0, c.has | 2);
        }
        if let Some(registers) = fault.registers {
            (c.registers, c.has) = (registers.0, c.has | 4);
        }
        if let Some(shared) = &fault.shared {
            shown._area = failure::text(&shared.area);
            (c.area, c.has) = (shown._area.as_ptr(), c.has | 8);
            (c.area_start, c.page) = (shared.start.0, shared.page);
            c.access = access(shared.protection);
        }
        c.signal = fault.signal.unwrap_or(0);
        c.depth = fault.depth;
        for (place, offset) in c.backtrace.iter_mut().zip(&fault.backtrace) {
            *place = offset.0;
            c.frames += 1;
        }
        shown
    }

    /// Why a call did not return, in C's form; of the domain with this name, if the error does not
    /// say of which.
    pub fn of_call(error: &CallError, domain: &str) -> Box<Shown> {
        match error {
            CallError::Fault(fault) => {
                let mut shown = Shown::of_fault(fault);
                shown.fault = Some(fault.clone());
                shown
            }
            CallError::Exited(status) => {
                let mut shown = Shown::new(EXITED, &error.to_string(), "", domain);
                shown.c.status = *status;
                shown
            }
            _ => Shown::new(REFUSED, &error.to_string(), "", domain),
        }
    }

    /// Whether this shows `error` already: the same fault, that is.
    fn shows(&self, error: &CallError) -> bool {
        matches!((error, &self.fault), (CallError::Fault(a), Some(b)) if Arc::ptr_eq(a, b))
    }
}

thread_local! {
    static SHOWN: RefCell<Option<Box<Shown>>> = const { RefCell::new(None) };
}

/// Shows the thread's last fault to `look`, if there is one.
fn last<T>(look: impl FnOnce(&mut Shown) -> T) -> Option<T> {
    let error = postern::last_error()?;
    // A thread that ends has no place for it any more, and one that is in here already (a signal
    // handler's) is not given two.
    let shown = SHOWN.try_with(|place| {
        let mut place = place.try_borrow_mut().ok()?;
        let shown = match place.take() {
            Some(shown) if shown.shows(&error) => shown,
            _ => Shown::of_call(&error, ""),
        };
        Some(look(place.insert(shown)))
    });
    shown.ok().flatten()
}

/// `pt_fault_last`
#[unsafe(no_mangle)]
pub extern "C" fn pt_fault_last() -> *const CFault {
    failure::or(ptr::null(), || {
        Ok(last(|shown| &raw const shown.c).unwrap_or(ptr::null()))
    })
}

/// `pt_fault_report`
#[unsafe(no_mangle)]
pub extern "C" fn pt_fault_report() -> *const c_char {
    failure::or(c"".as_ptr(), || {
        let report = last(|shown| match &shown.fault {
            Some(fault) => {
                let text = || failure::text(&fault.report());
                shown.report.get_or_insert_with(text).as_ptr()
            }
            None => shown.c.message,
        });
        Ok(report.unwrap_or(c"".as_ptr()))
    })
}

/// `pt_fault_clear`
#[unsafe(no_mangle)]
pub extern "C" fn pt_fault_clear() {
    failure::or((), || {
        failure::clear();
        Ok(())
    });
}

/// `pt_fault_kind_name`
#[unsafe(no_mangle)]
pub extern "C" fn pt_fault_kind_name(kind: c_int) -> *const c_char {
    static NAMES: OnceLock<Vec<(i32, CString)>> = OnceLock::new();
    failure::or(c"".as_ptr(), || {
        let names = NAMES.get_or_init(|| {
            let known = KINDS.iter().map(|k| (k.2, failure::text(k.0.name())));
            let others = OTHERS.iter().map(|o| (o.1, o.2.to_owned()));
            known.chain(others).collect()
        });
        let name = names.iter().find(|n| n.0 == kind);
        Ok(name.map_or(c"unknown".as_ptr(), |n| n.1.as_ptr()))
    })
}
