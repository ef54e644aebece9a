//! Function pointers: `pt_sym`, `pt_sym_as`, `pt_sym_at`, and where those of modules are kept.
//!
//! The engine's stubs live for good, so each is made once: the same question gives the same pointer.

use crate::boundary::Text;
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
    Name(String, Option<Signature>),
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
        signature: Option<Signature>,
        make: impl FnOnce(&str, Option<&Signature>) -> Result<*const (), SymbolError>,
    ) -> Result<usize, Failure> {
        let name = name.get("function's name")?;
        let key = Key::Name(name.to_owned(), signature);
        self.get(key, || make(name, signature.as_ref()))
    }
}

fn by_name(
    domain: Handle<DomainKind>,
    name: Text,
    signature: Option<Signature>,
) -> Result<usize, Failure> {
    let opened = domain.get()?;
    let make =
        |name: &str, signature: Option<&Signature>| opened.domain.function_pointer(name, signature);
    opened.pointers.by_name(name, signature, make)
}

/// `pt_sym`
#[unsafe(no_mangle)]
pub extern "C" fn pt_sym(domain: Handle<DomainKind>, name: Text) -> *mut c_void {
    failure::or(0, || by_name(domain, name, None)) as *mut c_void
}

/// `pt_sym_as`
#[unsafe(no_mangle)]
pub extern "C" fn pt_sym_as(
    domain: Handle<DomainKind>,
    name: Text,
    signature: Text,
) -> *mut c_void {
    failure::or(0, || {
        by_name(domain, name, Some(options::signature(signature)?))
    }) as *mut c_void
}

/// `pt_sym_at`
#[unsafe(no_mangle)]
pub extern "C" fn pt_sym_at(
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
