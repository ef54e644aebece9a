//! Functions of domains: `pt_domain_sym`, `pt_domain_sym_at`; what files claim of their types:
//! `pt_domain_signature`.

use crate::boundary::{Text, TextTarget};
use crate::domain::DomainKind;
use crate::failure;
use crate::handle::Handle;
use postern::Offset;
use std::ffi::c_void;

/// `pt_domain_sym`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_sym(
    domain: Handle<DomainKind>,
    name: Text<'_>,
    signature: Text<'_>,
) -> *mut c_void {
    failure::or(0, || {
        let opened = domain.get()?;
        let make = |name: &str, signature: &_| opened.domain.function_pointer(name, signature);
        opened.pointers.by_name(name, signature, make)
    }) as *mut c_void
}

/// `pt_domain_signature`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_signature(
    domain: Handle<DomainKind>,
    name: Text<'_>,
    to: TextTarget<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let signature = domain
            .get()?
            .domain
            .signature(name.get("function's name")?)?;
        to.fill(size, &signature.to_string())
    })
}

/// `pt_domain_sym_at`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_sym_at(
    domain: Handle<DomainKind>,
    function: u32,
    signature: Text<'_>,
) -> *mut c_void {
    failure::or(0, || {
        let opened = domain.get()?;
        let make = |signature: &_| {
            let function = Offset(function);
            opened.domain.function_pointer_at(function, signature)
        };
        opened.pointers.at(function, signature, make)
    }) as *mut c_void
}
