//! Inside a service: `pt_service_caller`, `pt_service_abort`, `pt_service_exit`.

use crate::boundary::Text;
use crate::domain::{self, DomainKind};
use crate::failure::{self, Code, Failure};
use crate::handle::Handle;
use postern::Caller;
use std::ffi::c_int;

fn caller<T>(work: impl FnOnce(&Caller<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
    Caller::with_current(work).unwrap_or_else(|| {
        Err(Failure::new(
            Code::Outside,
            "this thread is not in a service that an extension called",
        ))
    })
}

/// `pt_service_caller`
#[unsafe(no_mangle)]
pub extern "C" fn pt_service_caller() -> Handle<DomainKind> {
    failure::or(Handle::NULL, || {
        caller(|caller| {
            domain::handle_of(&caller.domain())
                .ok_or_else(|| Failure::new(Code::Closed, "the calling domain was closed"))
        })
    })
}

/// `pt_thread_nesting`
#[unsafe(no_mangle)]
pub extern "C" fn pt_thread_nesting() -> u32 {
    failure::or(0, || Ok(postern::nesting() as u32))
}

/// `pt_service_abort`
#[unsafe(no_mangle)]
pub extern "C" fn pt_service_abort(message: Text<'_>) -> c_int {
    failure::code(|| {
        let message = String::from_utf8_lossy(message.bytes("message")?).into_owned();
        caller(|caller| {
            caller.abort(message);
            Ok(())
        })
    })
}

/// `pt_service_exit`
#[unsafe(no_mangle)]
pub extern "C" fn pt_service_exit(status: c_int) -> c_int {
    failure::code(|| {
        caller(|caller| {
            caller.exit(status);
            Ok(())
        })
    })
}
