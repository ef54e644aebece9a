//! Functions of a domain, for callers in Rust and in C.

use super::Domain;
use crate::call::{Func, FuncType};
use crate::error::SymbolError;
use crate::signature;
use crate::value::Offset;
use postern_image::Signature;

impl Domain {
    /// A typed entry: `domain.func::<fn(i32, i32) -> i64>("add")`.
    ///
    /// # Errors
    /// No such export, or the image's signature is another or unknown.
    pub fn func<F: FuncType>(&self, name: &str) -> Result<Func<F>, SymbolError> {
        let export = self.export(name)?;
        let wanted = F::signature();
        signature::alleged(name, export.signature)?;
        signature::agrees(name, export.signature, &wanted)?;
        Ok(Func::new(self, export.offset, &wanted))
    }

    /// As [`Domain::func`] for functions whose types the image does not say. A wrong type makes the
    /// call meaningless, never unsafe.
    ///
    /// # Errors
    /// No such export.
    pub fn func_unchecked<F: FuncType>(&self, name: &str) -> Result<Func<F>, SymbolError> {
        let export = self.export(name)?;
        Ok(Func::new(self, export.offset, &F::signature()))
    }

    /// A typed entry for a function pointer that came from the extension.
    ///
    /// # Errors
    /// The offset is not a verified instruction start.
    pub fn func_at<F: FuncType>(&self, offset: Offset) -> Result<Func<F>, SymbolError> {
        if !self.0.is_start(offset.0) {
            return Err(SymbolError::NotAFunction(offset.0));
        }
        Ok(Func::new(self, offset.0, &F::signature()))
    }

    /// A plain C function pointer to an export. `signature` must be the type by which the host
    /// calls it: registers and words of the caller's stack are copied by it. What the image says is
    /// only compared. The same function has the same pointer. It ends with the domain: calls return
    /// 0 from then on. Only once a thousand more pointers of the same C type have ended can its
    /// place be another domain's function, of that type.
    ///
    /// # Errors
    /// No such export, or the image says that its types are others.
    pub fn function_pointer(
        &self,
        name: &str,
        signature: &Signature,
    ) -> Result<*const (), SymbolError> {
        let offset = self.typed_export(name, signature)?;
        self.c_pointer(offset, signature)
    }

    /// What the image says of an export's types. It is an allegation of the file: for people, and
    /// for hosts that choose their own types after looking at it, argument by argument; never to be
    /// handed to [`Domain::function_pointer`] unseen.
    ///
    /// # Errors
    /// No such export, or the image does not say.
    pub fn signature(&self, name: &str) -> Result<Signature, SymbolError> {
        signature::alleged(name, self.export(name)?.signature)
    }

    /// As [`Domain::function_pointer`] for a function pointer that came from the extension.
    ///
    /// # Errors
    /// The offset is not a verified instruction start.
    pub fn function_pointer_at(
        &self,
        offset: Offset,
        signature: &Signature,
    ) -> Result<*const (), SymbolError> {
        if !self.0.is_start(offset.0) {
            return Err(SymbolError::NotAFunction(offset.0));
        }
        self.c_pointer(offset.0, signature)
    }

    fn c_pointer(&self, offset: u32, signature: &Signature) -> Result<*const (), SymbolError> {
        self.0.pointer_to(self.entry(offset, signature), signature)
    }
}
