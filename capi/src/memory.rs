//! Memory of a domain: `pt_heap_alloc` to `pt_domain_read_string`.

use crate::boundary::{Source, Target, TextTarget};
use crate::domain::DomainKind;
use crate::failure::{self, Code, Failure};
use crate::handle::Handle;
use postern::Offset;
use std::ffi::c_int;

/// `pt_heap_alloc`
#[unsafe(no_mangle)]
pub extern "C" fn pt_heap_alloc(domain: Handle<DomainKind>, bytes: usize) -> u32 {
    failure::or(0, || Ok(domain.get()?.domain.alloc(bytes)?.0))
}

/// `pt_heap_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_heap_free(domain: Handle<DomainKind>, offset: u32) -> c_int {
    failure::code(|| Ok(domain.get()?.domain.free(Offset(offset))?))
}

/// `pt_domain_read`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_read(
    domain: Handle<DomainKind>,
    from: u32,
    to: Target<'_>,
    len: usize,
) -> c_int {
    failure::code(|| {
        let opened = domain.get()?;
        Ok(opened.domain.read(Offset(from), to.get(len, "buffer")?)?)
    })
}

/// `pt_domain_write`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_write(
    domain: Handle<DomainKind>,
    to: u32,
    from: Source<'_>,
    len: usize,
) -> c_int {
    failure::code(|| {
        let opened = domain.get()?;
        Ok(opened.domain.write(Offset(to), from.get(len, "buffer")?)?)
    })
}

/// `pt_domain_read_string`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_read_string(
    domain: Handle<DomainKind>,
    from: u32,
    to: TextTarget<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let opened = domain.get()?;
        if size == 0 {
            return Err(Failure::new(
                Code::Argument,
                "the buffer has no room for a NUL",
            ));
        }
        let bytes = opened.domain.read_c_bytes(Offset(from), size)?;
        to.put(&bytes)?;
        Ok(bytes.len() as i64)
    })
}
