//! Function pointers: `pt_domain_sym`, `pt_domain_sym_at`, and where those of modules are kept; what files claim of types: `pt_domain_signature`.
//!
//! The engine's stubs live for good, so each is made once: the same question gives the same pointer.

use crate::boundary::{Text, TextTarget};
use crate::domain::DomainKind;
use crate::failure::{self, Failure};
use crate::handle::Handle;
use crate::options;
use postern::{Offset, Signature, SymbolError};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Name(String, Signature),
    At(u32, Signature),
}

/// The function pointers of a domain, or a module, by what they were asked for.
#[derive(Default)]
pub struct Pointers(Mutex<HashMap<Key, usize>>);

impl Pointers {
    fn get(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<*const (), SymbolError>,
    ) -> Result<usize, Failure> {
        let mut pointers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&pointer) = pointers.get(&key) {
            return Ok(pointer);
        }
        let pointer = make()? as usize;
        pointers.insert(key, pointer);
        Ok(pointer)
    }

    /// The pointer to a function with this name, made by `make` if it is the first one.
    pub fn by_name(
        &self,
        name: Text,
        signature: Text,
        make: impl FnOnce(&str, &Signature) -> Result<*const (), SymbolError>,
    ) -> Result<usize, Failure> {
        let name = name.get("function's name")?;
        let signature = options::signature(signature)?;
        let key = Key::Name(name.to_owned(), signature);
        self.get(key, || make(name, &signature))
    }
}

/// `pt_domain_sym`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_sym(
    domain: Handle<DomainKind>,
    name: Text,
    signature: Text,
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
    name: Text,
    to: TextTarget,
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
    signature: Text,
) -> *mut c_void {
    failure::or(0, || {
        let opened = domain.get()?;
        let signature = options::signature(signature)?;
        opened.pointers.get(Key::At(function, signature), || {
            opened
                .domain
                .function_pointer_at(Offset(function), &signature)
        })
    }) as *mut c_void
}
