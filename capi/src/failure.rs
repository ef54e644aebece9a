//! Errors as C sees them: a code, and a sentence that belongs to the thread.
//!
//! Newest wins: a failing function forgets the last fault, and a call that did not return hides the
//! older error.

use crate::structures::CSourceError;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use postern::{
    AllocError, BindError, CallError, CommonError, InstantiateError, LoadError, MapError,
    MemoryError, RevokeError, ShareError, StartError, SymbolError,
};

macro_rules! codes {
    ($($name:ident $c:literal = $value:literal),* $(,)?) => {
        /// The error codes of `pt_code`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        #[allow(missing_docs)]
        pub enum Code { $($name = $value),* }

        /// Names in C and values, for the test that the header agrees.
        pub const CODES: &[(&str, i32)] = &[("PT_OK", 0), $(($c, $value)),*];
    };
}
codes! {
    Argument "PT_E_ARGUMENT" = -1,
    Handle "PT_E_HANDLE" = -2,
    Machine "PT_E_MACHINE" = -3,
    System "PT_E_SYSTEM" = -4,
    Configured "PT_E_CONFIGURED" = -5,
    File "PT_E_FILE" = -6,
    Image "PT_E_IMAGE" = -7,
    Refused "PT_E_REFUSED" = -8,
    Unresolved "PT_E_UNRESOLVED" = -9,
    Signature "PT_E_SIGNATURE" = -10,
    Limit "PT_E_LIMIT" = -11,
    Memory "PT_E_MEMORY" = -12,
    Missing "PT_E_MISSING" = -13,
    Untyped "PT_E_UNTYPED" = -14,
    Range "PT_E_RANGE" = -15,
    Busy "PT_E_BUSY" = -16,
    Outside "PT_E_OUTSIDE" = -17,
    Fault "PT_E_FAULT" = -18,
    Exited "PT_E_EXITED" = -19,
    Poisoned "PT_E_POISONED" = -20,
    Closed "PT_E_CLOSED" = -21,
    SignalBlocked "PT_E_SIGNAL_BLOCKED" = -22,
    HandlerReplaced "PT_E_HANDLER_REPLACED" = -23,
    Inside "PT_E_INSIDE" = -24,
    Panic "PT_E_PANIC" = -25,
    Resting "PT_E_RESTING" = -26,
    HandOver "PT_E_HAND_OVER" = -27,
    Source "PT_E_SOURCE" = -28,
    End "PT_E_END" = -29,
    HandlerStack "PT_E_HANDLER_STACK" = -35,
}

/// Why a function failed.
#[derive(Debug)]
pub struct Failure {
    /// What kind.
    pub code: Code,
    /// What is wrong and what to do, in a sentence.
    pub message: String,
    /// The call that did not return, for `pt_fault_last`.
    pub call: Option<CallError>,
    /// What is wrong with a source, for `pt_error_source`.
    pub places: Vec<Place>,
}

/// What is wrong at a place of a source.
#[derive(Debug)]
pub struct Place {
    /// Line and column, from 1, and how many bytes it is about.
    pub at: [u32; 3],
    /// The kind's name, the header that it is in, what is wrong, what to do, and the line's text.
    pub texts: [CString; 5],
}

impl Failure {
    /// A failure with its sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
            call: None,
            places: Vec::new(),
        }
    }
}

macro_rules! from {
    ($error:ty, |$e:ident| $code:expr) => {
        impl From<$error> for Failure {
            fn from($e: $error) -> Failure {
                Failure::new($code, $e.to_string())
            }
        }
    };
}
from!(StartError, |e| start(&e));
from!(LoadError, |e| match e.cause() {
    LoadError::Read { .. } => Code::File,
    LoadError::Refused { .. } | LoadError::Export { .. } => Code::Refused,
    LoadError::Machine(_) => Code::Machine,
    LoadError::Memory(_) | LoadError::Map(_) => Code::Memory,
    LoadError::Start(error) => start(error),
    _ => Code::Image,
});
from!(InstantiateError, |e| instantiate(&e));
from!(SymbolError, |e| symbol(&e));
from!(BindError, |e| match &e {
    BindError::Signature { .. } => Code::Signature,
    BindError::Untyped(_) => Code::Untyped,
    _ => Code::Unresolved,
});
from!(MemoryError, |e| match &e {
    MemoryError::NoRoom(_) => Code::Memory,
    _ => Code::Range,
});
impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Failure {
        let message = error.to_string();
        match error {
            AllocError::Memory(error) => error.into(),
            AllocError::Call(error) => Failure {
                message,
                ..error.into()
            },
        }
    }
}
impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let mut failure = Failure::new(call(&error), error.to_string());
        failure.call = Some(error);
        failure
    }
}
from!(RevokeError, |e| match &e {
    RevokeError::Kernel { .. } => Code::System,
    _ => Code::Missing,
});
from!(ShareError, |e| match &e {
    ShareError::Map(_) | ShareError::NoRoom(_) => Code::Memory,
    ShareError::System { .. } => Code::System,
    ShareError::Overlap { .. } => Code::Limit,
    ShareError::Beyond { .. } => Code::Range,
    ShareError::Start(error) => start(error),
    _ => Code::Argument,
});

/// The code of a domain that was not made.
pub fn instantiate(error: &InstantiateError) -> Code {
    match error.cause() {
        InstantiateError::Unresolved(_) => Code::Unresolved,
        InstantiateError::Signature { .. } => Code::Signature,
        InstantiateError::Untyped(_) => Code::Untyped,
        InstantiateError::Map(_) => Code::Memory,
        InstantiateError::Common(error) => common(error),
        InstantiateError::Initialisation(error) => call(error),
        _ => Code::Limit,
    }
}

/// The code of memory that is not common.
fn common(error: &CommonError) -> Code {
    match error {
        CommonError::Map(MapError::Unsealed)
        | CommonError::Foreign(_)
        | CommonError::Image { .. }
        | CommonError::Name(_)
        | CommonError::NotToAll(_) => Code::Argument,
        CommonError::Map(_) => Code::Memory,
        CommonError::Layout(_) | CommonError::Full(_) => Code::Limit,
        CommonError::Starting(..) | CommonError::Shared(_) => Code::Busy,
        _ => Code::System,
    }
}

/// The code of a function that was not found.
pub fn symbol(error: &SymbolError) -> Code {
    match error {
        SymbolError::Missing { .. } | SymbolError::NotAFunction(_) => Code::Missing,
        SymbolError::Signature { .. } => Code::Signature,
        SymbolError::Untyped(_) => Code::Untyped,
        SymbolError::Parameters(_) => Code::Argument,
        _ => Code::Memory,
    }
}

fn start(error: &StartError) -> Code {
    match error {
        StartError::Machine(_) => Code::Machine,
        StartError::Configured => Code::Configured,
        _ => Code::System,
    }
}

/// The code of a call that did not return.
pub fn call(error: &CallError) -> Code {
    match error {
        CallError::Fault(_) => Code::Fault,
        CallError::Exited(_) => Code::Exited,
        CallError::Poisoned => Code::Poisoned,
        CallError::Resting(_) => Code::Resting,
        CallError::Busy => Code::Busy,
        CallError::SignalBlocked(_) => Code::SignalBlocked,
        CallError::HandlerReplaced(_) => Code::HandlerReplaced,
        CallError::HandlerStack(_) => Code::HandlerStack,
        CallError::InsideExtension | CallError::OnSignalStack => Code::Inside,
        CallError::NoMemory | CallError::NoWatchdog => Code::Memory,
        CallError::NoMain => Code::Missing,
        CallError::Arguments(_) => Code::Limit,
        CallError::TooDeep
        | CallError::TooManyThreads
        | CallError::ThreadTable
        | CallError::NoDataStack => Code::Limit,
        _ => Code::Closed,
    }
}

/// What is known of a failure afterwards.
struct Known {
    code: Code,
    message: CString,
    places: Vec<Place>,
}

impl Known {
    fn new(code: Code, message: &str) -> Known {
        let (message, places) = (text(message), Vec::new());
        Known {
            code,
            message,
            places,
        }
    }
}

type Last = Option<Box<Known>>;

thread_local! {
    // In a box, as `event::ATTACHED` is.
    static LAST: Cell<Last> = const { Cell::new(None) };
}

/// Looks at the thread's last error; a thread that ends has none.
fn last<T>(look: impl FnOnce(&Last) -> T) -> Option<T> {
    let found = LAST.try_with(|place| {
        let last = place.take();
        let found = look(&last);
        place.set(last);
        found
    });
    found.ok()
}

/// Text for C: bytes that would end it early are replaced.
pub fn text(message: &str) -> CString {
    CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Stands between the complaint about a NULL handle and the error before it, which is why the
/// handle is NULL.
pub const CAUSE: &str = "; the error before: ";

/// The sentence of the thread's last error, without complaints about NULL handles that came of it.
pub fn root() -> Option<String> {
    let found = last(|last| {
        let message = last.as_ref()?.message.to_string_lossy();
        let root = message
            .split_once(CAUSE)
            .map_or(&*message, |(_, root)| root);
        Some(root.to_owned())
    });
    found.flatten()
}

/// Forgets the thread's error and fault.
pub fn clear() {
    let _ = LAST.try_with(Cell::take);
    postern::clear_last_error();
}

fn remember(failure: Failure) -> c_int {
    match failure.call {
        Some(error) => postern::set_last_error(error),
        None => postern::clear_last_error(),
    }
    let mut known = Known::new(failure.code, &failure.message);
    known.places = failure.places;
    let _ = LAST.try_with(|last| last.set(Some(Box::new(known))));
    failure.code as c_int
}

fn contain<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic");
        Err(Failure::new(
            Code::Panic,
            format!("a bug in Postern: {what}"),
        ))
    })
}

/// Runs `work`: 0, or the code of its failure, which is remembered.
pub fn code(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match contain(work) {
        Ok(()) => 0,
        Err(failure) => remember(failure),
    }
}

/// Runs `work`: its value, or `otherwise` and the failure is remembered.
pub fn or<T>(otherwise: T, work: impl FnOnce() -> Result<T, Failure>) -> T {
    contain(work).unwrap_or_else(|failure| {
        remember(failure);
        otherwise
    })
}

/// Runs `work`: its value, or the code of its failure, which is remembered.
pub fn number(work: impl FnOnce() -> Result<i64, Failure>) -> i64 {
    contain(work).unwrap_or_else(|failure| i64::from(remember(failure)))
}

/// `pt_error_message`
#[unsafe(no_mangle)]
pub extern "C" fn pt_error_message() -> *const c_char {
    const NONE: &CStr = c"";
    let found = contain(|| {
        if let Some(error) = postern::last_error() {
            let known = Known::new(call(&error), &error.to_string());
            let _ = LAST.try_with(|last| last.set(Some(Box::new(known))));
        }
        Ok(last(|last| last.as_ref().map(|l| l.message.as_ptr())).flatten())
    });
    found.ok().flatten().unwrap_or(NONE.as_ptr())
}

/// `pt_error_code`
#[unsafe(no_mangle)]
pub extern "C" fn pt_error_code() -> c_int {
    let found = contain(|| {
        Ok(match postern::last_error() {
            Some(error) => call(&error) as c_int,
            None => last(|last| last.as_ref().map_or(0, |l| l.code as c_int)).unwrap_or(0),
        })
    });
    found.unwrap_or(Code::Panic as c_int)
}

/// What is wrong at a place of the source of which the thread's last error is.
pub fn place(number: u32) -> Option<CSourceError> {
    // A call that did not return since is the last error.
    if postern::last_error().is_some() {
        return None;
    }
    let found = last(|last| {
        let place = last.as_ref()?.places.get(number as usize)?;
        let [line, column, length] = place.at;
        let [kind, file, message, help, text] = place.texts.each_ref().map(|text| text.as_ptr());
        Some(CSourceError {
            size: 0,
            line,
            column,
            length,
            reserved: 0,
            kind,
            file,
            message,
            help,
            text,
        })
    });
    found.flatten()
}
