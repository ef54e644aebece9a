//! Function pointers that were given out: the engine makes a stub for each question, so the same
//! question gives the same pointer.

use crate::boundary::Text;
use crate::failure::Failure;
use crate::object::Object;
use crate::options;
use postern::{Signature, SymbolError};
use std::collections::HashMap;

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Name(String, Signature),
    At(u32, Signature),
}

/// The function pointers of a domain, or a module, by what they were asked for.
#[derive(Default)]
pub struct Pointers(Object<HashMap<Key, usize>>);

impl Pointers {
    fn get(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<*const (), SymbolError>,
    ) -> Result<usize, Failure> {
        let Ok(mut pointers) = self.0.lock() else {
            // In a forked child that nobody told which there are. The engine knows most of them.
            return Ok(make()? as usize);
        };
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
        name: Text<'_>,
        signature: Text<'_>,
        make: impl FnOnce(&str, &Signature) -> Result<*const (), SymbolError>,
    ) -> Result<usize, Failure> {
        let name = name.get("function's name")?;
        let signature = options::signature(signature)?;
        let key = Key::Name(name.to_owned(), signature);
        self.get(key, || make(name, &signature))
    }

    /// The pointer to the function at an offset, made by `make` if it is the first one.
    pub fn at(
        &self,
        function: u32,
        signature: Text<'_>,
        make: impl FnOnce(&Signature) -> Result<*const (), SymbolError>,
    ) -> Result<usize, Failure> {
        let signature = options::signature(signature)?;
        self.get(Key::At(function, signature), || make(&signature))
    }
}
