//! Shared memory: `pt_shared_…`, `pt_domain_expose`, `pt_domain_protect`, and the table of who may
//! do what, `pt_memory_table`.

use crate::boundary::{self, Descriptor, HostMemory, Source, Target, Text, TextTarget};
use crate::domain::DomainKind;
use crate::failure::{self, Code, Failure};
use crate::fault;
use crate::handle::{Handle, kind};
use postern::{AreaBuilder, Offset, Prot, Shared};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

/// An area with its name as C gets it.
#[derive(Clone)]
pub struct Named {
    /// The engine's.
    pub shared: Shared,
    name: std::sync::Arc<CString>,
}

kind!(SharedKind: Named, b'S', "pt_shared");

/// Names in C and values, for the test that the header agrees.
pub const ACCESS: [(&str, i32); 3] = [
    ("PT_NO_ACCESS", 0),
    ("PT_READ_ONLY", 1),
    ("PT_READ_WRITE", 3),
];

fn protection(access: c_int) -> Result<Prot, Failure> {
    let all = [Prot::None, Prot::Read, Prot::ReadWrite];
    all.into_iter()
        .find(|p| fault::access(*p) == access)
        .ok_or_else(|| {
            Failure::new(
                Code::Argument,
                format!("{access} is no access; PT_NO_ACCESS, PT_READ_ONLY and PT_READ_WRITE are"),
            )
        })
}

/// A name and a place, neither of which must be given.
fn builder(name: Text<'_>, place: u32) -> Result<AreaBuilder, Failure> {
    let mut builder = Shared::builder();
    if let Some(name) = name.optional("area's name")? {
        builder = builder.name(name);
    }
    if place != 0 {
        builder = builder.offset(Offset(place));
    }
    Ok(builder)
}

fn make(build: impl FnOnce() -> Result<Shared, Failure>) -> Handle<SharedKind> {
    failure::or(Handle::NULL, || {
        let shared = build()?;
        let name = failure::text(shared.name()).into();
        Ok(Handle::make(Named { shared, name }))
    })
}

/// `pt_shared_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_new(len: usize) -> Handle<SharedKind> {
    make(|| Ok(Shared::new(len)?))
}

/// `pt_shared_new_as`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_new_as(name: Text<'_>, place: u32, len: usize) -> Handle<SharedKind> {
    make(|| Ok(builder(name, place)?.zeroed(len)?))
}

/// `pt_shared_from_fd`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_from_fd(fd: Descriptor, at: u64, len: usize) -> Handle<SharedKind> {
    make(|| Ok(Shared::from_file(fd.duplicate()?, at, len)?))
}

/// `pt_shared_from_fd_as`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_from_fd_as(
    name: Text<'_>,
    place: u32,
    fd: Descriptor,
    at: u64,
    len: usize,
) -> Handle<SharedKind> {
    make(|| Ok(builder(name, place)?.file(fd.duplicate()?, at, len)?))
}

/// `pt_shared_from_memory`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_from_memory(
    name: Text<'_>,
    place: u32,
    memory: HostMemory,
    len: usize,
) -> Handle<SharedKind> {
    make(|| Ok(boundary::expose(builder(name, place)?, memory, len)?))
}

/// `pt_shared_name`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_name(shared: Handle<SharedKind>) -> *const c_char {
    failure::or(c"".as_ptr(), || Ok(shared.get()?.name.as_ptr()))
}

/// `pt_shared_address`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_address(shared: Handle<SharedKind>) -> *mut c_void {
    failure::or(0, || Ok(shared.get()?.shared.as_ptr() as usize)) as *mut c_void
}

/// `pt_shared_at`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_at(
    shared: Handle<SharedKind>,
    pointer: *const c_void,
    len: usize,
) -> *mut c_void {
    failure::or(ptr::null_mut(), || {
        let area = shared.get()?.shared;
        match area.at(pointer as u64, len) {
            Some(found) => Ok(found.cast()),
            None => Err(Failure::new(
                Code::Range,
                format!(
                    "{len} bytes at {pointer:p} are not all in area `{}`",
                    area.name()
                ),
            )),
        }
    })
}

/// `pt_shared_read`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_read(
    shared: Handle<SharedKind>,
    at: usize,
    to: Target<'_>,
    len: usize,
) -> c_int {
    failure::code(|| Ok(shared.get()?.shared.read(at, to.get(len, "buffer")?)?))
}

/// `pt_shared_write`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_write(
    shared: Handle<SharedKind>,
    at: usize,
    from: Source<'_>,
    len: usize,
) -> c_int {
    failure::code(|| Ok(shared.get()?.shared.write(at, from.get(len, "buffer")?)?))
}

/// `pt_shared_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_shared_free(shared: Handle<SharedKind>) -> c_int {
    failure::code(|| shared.take().map(drop))
}

/// `pt_domain_expose`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_expose(
    domain: Handle<DomainKind>,
    shared: Handle<SharedKind>,
    access: c_int,
) -> u32 {
    failure::or(0, || {
        let protection = protection(access)?;
        let offset = domain
            .get()?
            .domain
            .share(&shared.get()?.shared, protection)?;
        Ok(offset.0)
    })
}

/// `pt_domain_protect`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_protect(
    domain: Handle<DomainKind>,
    shared: Handle<SharedKind>,
    from: usize,
    len: usize,
    access: c_int,
) -> c_int {
    failure::code(|| {
        let range = from..from.saturating_add(len);
        let area = shared.get()?.shared;
        Ok(area.protect(&domain.get()?.domain, range, protection(access)?)?)
    })
}

/// `pt_domain_protection`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_protection(
    domain: Handle<DomainKind>,
    shared: Handle<SharedKind>,
    at: usize,
) -> c_int {
    let found = failure::number(|| {
        let found = shared.get()?.shared.protection(&domain.get()?.domain, at);
        Ok(fault::access(found).into())
    });
    found as c_int
}

/// `pt_domain_withdraw`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_withdraw(
    domain: Handle<DomainKind>,
    shared: Handle<SharedKind>,
) -> c_int {
    failure::code(|| Ok(domain.get()?.domain.unshare(&shared.get()?.shared)?))
}

/// `pt_memory_table`
#[unsafe(no_mangle)]
pub extern "C" fn pt_memory_table(to: TextTarget<'_>, size: usize) -> i64 {
    failure::number(|| {
        let table =
            postern::memory_table().map_err(|e| Failure::new(Code::System, e.to_string()))?;
        to.fill(size, &table.to_string())
    })
}
