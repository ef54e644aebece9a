//! What the crates above may do with a domain, and hosts may not: `postern` does not name what is
//! here.

use super::{Domain, DomainInner, Supervisor};
use crate::code::AddedCode;
use crate::error::SymbolError;
use postern_gates::control::Control;
use postern_gates::entry::Entry;
use postern_gates::window::Pin;
use postern_image::Signature;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// What stands behind a domain.
pub fn inner(domain: &Domain) -> &DomainInner {
    &domain.0
}

impl DomainInner {
    /// Its control block.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// What its image, or what may be added to it, does with registers: bits of
    /// [`postern_gates::gate`].
    pub fn fact_bits(&self) -> u32 {
        self.image.fact_bits
    }

    /// Whether the text of its image may be entered at `offset`.
    pub fn is_image_start(&self, offset: u32) -> bool {
        self.image.text.is_start(offset)
    }

    /// The number of an import's gate slot, by its name.
    pub fn service_number(&self, name: &str) -> Option<u32> {
        self.image.services.get(name).copied()
    }

    /// The entry of an export of this type, for callers in Rust or in C.
    ///
    /// # Errors
    /// No such export, or the image says that its types are others.
    pub fn entry_of(
        &self,
        name: &str,
        signature: &Signature,
        c: bool,
    ) -> Result<Entry, SymbolError> {
        let offset = self.typed_export(name, signature)?;
        Ok(match c {
            true => self.c_entry(offset, signature),
            false => self.entry(offset, signature),
        })
    }

    /// Size of each of its data stacks in bytes, a power of two.
    pub fn stack_size(&self) -> u32 {
        self.instance.stack_size()
    }

    /// Its window, which is not moved while this is there.
    pub fn pin(&self) -> Pin<'_> {
        self.instance.pin()
    }

    /// Says who is told of faults. Only the first one counts. Its calls hold no reference to the
    /// domain.
    pub fn supervise(&self, by: Weak<dyn Supervisor>) {
        self.pointed_to.store(true, Ordering::SeqCst);
        let _ = self.supervisor.set(by);
    }

    /// Says what code was added. Only the first one counts.
    pub fn attach(&self, code: Arc<dyn AddedCode>) {
        let _ = self.code.set(code);
    }
}
