//! Shared memory: `pt_shared_…`, `pt_expose`.

use crate::boundary::Descriptor;
use crate::domain::DomainKind;
use crate::failure::{self, Code, Failure};
use crate::handle::{Handle, Kind, Table};
use postern::{Access, Shared};
use std::ffi::{c_int, c_void};

/// The kind `pt_shared`.
pub struct SharedKind;

impl Kind for SharedKind {
    type Value = Shared;
    const LETTER: u8 = b'S';
    const NAME: &'static str = "pt_shared";
    fn table() -> &'static Table<Shared> {
        static TABLE: Table<Shared> = Table::new();
        &TABLE
    }
}

/// Names in C and values, for the test that the header agrees.
pub const ACCESS: [(&str, i32); 2] = [("PT_READ_ONLY", 1), ("PT_READ_WRITE", 3)];

/// `pt_shared_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_new(len: usize) -> Handle<SharedKind> {
    failure::or(Handle::NULL, || Ok(Handle::make(Shared::new(len)?)))
}

/// `pt_shared_from_fd`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_from_fd(fd: Descriptor, at: u64, len: usize) -> Handle<SharedKind> {
    failure::or(Handle::NULL, || {
        Ok(Handle::make(Shared::from_file(fd.duplicate()?, at, len)?))
    })
}

/// `pt_shared_address`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_address(shared: Handle<SharedKind>) -> *mut c_void {
    failure::or(0, || Ok(shared.get()?.as_ptr() as usize)) as *mut c_void
}

/// `pt_shared_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_free(shared: Handle<SharedKind>) -> c_int {
    failure::code(|| shared.take().map(drop))
}

/// `pt_expose`
#[unsafe(no_mangle)]
pub extern "C" fn pt_expose(
    domain: Handle<DomainKind>,
    shared: Handle<SharedKind>,
    access: c_int,
) -> u32 {
    failure::or(0, || {
        let access = match access {
            1 => Access::Read,
            3 => Access::ReadWrite,
            _ => {
                return Err(Failure::new(
                    Code::Argument,
                    format!("{access} is no access; PT_READ_ONLY and PT_READ_WRITE are"),
                ));
            }
        };
        Ok(domain.get()?.domain.share(&shared.get()?, access)?.0)
    })
}
