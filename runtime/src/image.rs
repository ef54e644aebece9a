//! Images: extension files, checked once, verified once, shared by all their domains.
//!
//! The bytes that the verifier judges are the bytes that run: see [`postern_gates::text`].

mod load;
mod spare;

pub(crate) use load::More;
pub(crate) use spare::{SpareWindow, SpareWindows};

use postern_gates::text::Text;
use postern_image::ImageTables;
use postern_image::debug::Kept;
use postern_verifier::Facts;
use postern_verifier::window::{THREAD_BLOCK, TLS_SHARE};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// A checked and verified extension file. Cloning shares it.
#[derive(Clone)]
pub struct Image(pub(crate) Arc<ImageInner>);

pub(crate) struct ImageInner {
    pub(crate) hash: blake3::Hash,
    pub(crate) name: String,
    /// Where symbols and lines are looked up, together with `text`.
    kept: Kept,
    pub(crate) tables: ImageTables,
    /// The number of each import, by its name.
    pub(crate) services: HashMap<Arc<str>, u32>,
    pub(crate) fact_bits: u32,
    pub(crate) stack_top: StackTop,
    pub(crate) text: Arc<Text>,
    /// Windows of domains that are gone, mapped and clean, for the next ones.
    pub(crate) spare: SpareWindows,
}

/// Whether any image with thread-local variables was ever loaded.
pub(crate) static THREAD_LOCALS_EXIST: AtomicBool = AtomicBool::new(false);

/// What lies at the top of each data stack before a thread enters.
pub(crate) struct StackTop {
    /// Bytes from the first stack pointer to the stack's end.
    pub(crate) reserved: u32,
    /// Their values; empty if all are zero.
    pub(crate) initial: Box<[u8]>,
}

type Cache = HashMap<blake3::Hash, Weak<ImageInner>>;
static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

/// Images in use, by the hash of their files.
pub(crate) fn cache() -> MutexGuard<'static, Option<Cache>> {
    CACHE.lock().unwrap_or_else(|e| e.into_inner())
}

/// The images of the cache that are in use.
pub(crate) fn cached() -> Vec<Arc<ImageInner>> {
    let cache = cache();
    let images = cache.iter().flat_map(HashMap::values);
    images.filter_map(Weak::upgrade).collect()
}

impl Image {
    /// The name of the file, or `image`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Names, offsets and signatures of imports and exports, and the memory layout.
    pub fn tables(&self) -> &ImageTables {
        &self.0.tables
    }

    /// What the verifier found out.
    pub fn facts(&self) -> &Facts {
        self.0.text.facts()
    }

    /// BLAKE3 hash of the file, the key of the cache.
    pub fn hash(&self) -> [u8; 32] {
        *self.0.hash.as_bytes()
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("name", &self.0.name)
            .field("hash", &self.0.hash.to_hex().as_str())
            .finish_non_exhaustive()
    }
}

impl ImageInner {
    /// The file that was loaded: what is loaded of it, and what names and lines are looked up in;
    /// the rest is zeros.
    pub(crate) fn file_bytes(&self) -> Vec<u8> {
        self.kept.file(|offset, to| {
            // What cannot be read has no names.
            let _ = self.text.read(offset, to);
        })
    }

    /// Whether it may have data stacks of so many bytes: why not.
    pub(crate) fn suits_stack(&self, size: u32) -> Result<(), String> {
        let (linked, reserved) = (self.tables.layout.stack_size, self.stack_top.reserved);
        if size == linked {
            return Ok(());
        }
        if !self.tables.header.any_stack {
            return Err(format!(
                "cannot be had: the image was linked with {linked} and knows no other; link it \
                 again, or with -fpostern-stack=SIZE"
            ));
        }
        match reserved - THREAD_BLOCK >= size / TLS_SHARE {
            true => Err("is too small for its thread-local variables".to_owned()),
            false => Ok(()),
        }
    }
}
