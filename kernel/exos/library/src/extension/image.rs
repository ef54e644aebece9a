//! Images: extension files, checked and verified.

use alloc::borrow::ToOwned;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use postern_gates::gate::FACT_XMM;
use postern_gates::machine;
use postern_gates::text::{Text, TextError};
use postern_image::{ImageFile, ImageTables, Signature, Type};
use postern_verifier::Facts;
use postern_verifier::window::THREAD_BLOCK;

use super::{ExtensionError, engine, trusted};

/// An extension file, checked and verified.
pub struct Image {
    pub(super) text: Arc<Text>,
    pub(super) tables: ImageTables,
    /// Bytes at the top of its data stack that are not for frames.
    pub(super) reserved: u32,
    /// Facts besides those of its text.
    pub(super) facts: u32,
}

/// Whether vector registers may carry something between an image and others though no instruction
/// of it touches them.
fn passes_vectors(tables: &ImageTables) -> bool {
    let floats = |s: &Signature| {
        let mut types = s.parameters().iter().copied().chain(s.result());
        types.any(Type::is_float)
    };
    let imports = tables
        .imports
        .iter()
        .filter(|i| !i.name.starts_with("__postern_"));
    imports
        .map(|i| i.signature.as_ref())
        .any(|s| s.is_none_or(floats))
        || tables
            .exports
            .iter()
            .filter_map(|e| e.signature.as_ref())
            .any(floats)
}

impl Image {
    /// What the verifier found.
    pub fn facts(&self) -> &Facts {
        self.text.facts()
    }

    /// Checks and verifies an extension.
    ///
    /// # Errors
    /// It is not well-formed, its code is refused, or the processor lacks what it needs.
    pub fn load(bytes: &[u8]) -> Result<Arc<Image>, ExtensionError> {
        engine::start();
        let file = ImageFile::parse(bytes).map_err(ExtensionError::Image)?;
        if file.header().segment != postern_image::Segment::Gs {
            return Err(ExtensionError::Machine("such segment".to_owned()));
        }
        let (reserved, initial) = match file.thread_locals() {
            None => (THREAD_BLOCK, Vec::new()),
            // As elsewhere, one byte is 0, so that no string copy writes the word.
            Some(variables) => (
                variables.reserved(),
                variables.initial(trusted::random() & !0xff),
            ),
        };
        let text = Text::verify(&file, &initial).map_err(|error| match error {
            TextError::Shape => ExtensionError::Shape,
            TextError::Refused(why) => ExtensionError::Refused(why),
        })?;
        let mut missing = vec![];
        if text.facts().ymm && !machine::has_avx2() {
            missing.push("avx2");
        }
        let needs = file.needs().iter().copied();
        missing.extend(needs.filter(|name| !machine::has(name)));
        if !missing.is_empty() {
            return Err(ExtensionError::Machine(missing.join(", ")));
        }
        if let Some(export) = file.exports().iter().find(|e| !text.is_start(e.offset)) {
            return Err(ExtensionError::Missing(export.name.to_string()));
        }
        let tables = ImageTables::from(&file);
        let facts = if passes_vectors(&tables) { FACT_XMM } else { 0 };
        Ok(Arc::new(Image {
            text: Arc::new(text),
            tables,
            reserved,
            facts,
        }))
    }
}
