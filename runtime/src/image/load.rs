//! Loading: from a file to a memory file that is sealed and verified, once for all that load the
//! same.

use super::{Image, ImageInner, SpareWindows, StackTop, THREAD_LOCALS_EXIST, cache};
use crate::engine;
use crate::error::LoadError;
use postern_gates::gate::{self, FACT_XMM};
use postern_gates::machine;
use postern_gates::text::{Text, TextError};
use postern_image::debug::Kept;
use postern_image::input::{self, MAX_FILE};
use postern_image::{ImageFile, ImageTables, ImportOwned, Signature, Type};
use postern_verifier::window::{SLOT_SIZE, THREAD_BLOCK};
use postern_verifier::{Bounds, Facts};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl StackTop {
    /// Thread-local variables and the stack protector's word, which every loading of an image draws
    /// anew, for images that have a header for them; else the thread block, all zero.
    fn new(image: &ImageFile<'_>) -> std::io::Result<StackTop> {
        let Some(variables) = image.thread_locals() else {
            return Ok(StackTop {
                reserved: THREAD_BLOCK,
                initial: Box::default(),
            });
        };
        THREAD_LOCALS_EXIST.store(true, Ordering::SeqCst);
        // As elsewhere, one byte is 0, so that no string copy writes the word.
        let canary = u64::from_le_bytes(machine::random()?) & !0xff;
        Ok(StackTop {
            reserved: variables.reserved(),
            initial: variables.initial(canary).into(),
        })
    }
}

/// What a namespace adds to its image.
#[derive(Default)]
pub(crate) struct More {
    /// Imports behind the image's own.
    pub(crate) imports: Vec<ImportOwned>,
    /// Registers that text which comes later may touch.
    pub(crate) fact_bits: u32,
}

impl More {
    /// What tells an image with this from any other.
    fn key(&self, image: &blake3::Hash) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(image.as_bytes());
        hasher.update(&self.fact_bits.to_le_bytes());
        for import in &self.imports {
            // Lengths first, so that no two lists are the same bytes.
            let types = import.signature.map_or_else(String::new, |s| s.to_string());
            for part in [&*import.name, &*types] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part.as_bytes());
            }
        }
        hasher.finalize()
    }
}

/// Lets later loads find the image.
fn remember(key: blake3::Hash, inner: &Arc<ImageInner>) {
    let mut cache = cache();
    let cache = cache.get_or_insert_with(HashMap::new);
    cache.retain(|_, image| image.strong_count() != 0);
    cache.insert(key, Arc::downgrade(inner));
}

/// Why no text came of an image's file, whose bytes these are.
fn refused(error: TextError, bytes: &[u8]) -> LoadError {
    match error {
        TextError::File(error) => LoadError::Memory(error),
        TextError::MemoryGate => LoadError::MemoryGate,
        TextError::Map(error) => LoadError::Map(error),
        TextError::Refused(violation) => LoadError::Refused {
            offset: violation.offset,
            place: postern_image::debug::describe(bytes, violation.offset),
            violation,
        },
    }
}

/// Whether vector registers may carry something between an image and others though no instruction
/// of it touches them: a function that passes its caller's argument on to an import does. Gates
/// clear them of the host's values then, so that whoever believes an image's types, or gets an
/// argument from it, never gets those. What every domain is granted takes and gives none.
fn passes_vectors(tables: &ImageTables) -> bool {
    let floats = |s: &Signature| {
        s.parameters()
            .iter()
            .copied()
            .chain(s.result())
            .any(Type::is_float)
    };
    let granted = |name: &str| name == "sys" || name.starts_with("__postern_");
    let imports = tables
        .imports
        .iter()
        .filter(|import| !granted(&import.name));
    imports
        .map(|import| import.signature.as_ref())
        .any(|s| s.is_none_or(floats))
        || tables
            .exports
            .iter()
            .filter_map(|export| export.signature.as_ref())
            .any(floats)
}

impl Image {
    /// Loads an extension file (`.px`): a regular one of at most 256 MiB ([`MAX_FILE`]).
    ///
    /// # Errors
    /// The file cannot be read or is too long, is not a well-formed image, or its code is refused
    /// by the verifier; each says where.
    pub fn load(path: impl AsRef<Path>) -> Result<Image, LoadError> {
        Self::load_limited(path, MAX_FILE)
    }

    /// As [`Image::load`], of at most `most` bytes. Loading takes time and memory by the length of
    /// the file, so a limit is what a stranger's file can cost.
    ///
    /// # Errors
    /// As [`Image::load`].
    pub fn load_limited(path: impl AsRef<Path>, most: u64) -> Result<Image, LoadError> {
        let path = path.as_ref();
        let bytes = input::read(path, most).map_err(|source| LoadError::Read {
            path: path.to_owned(),
            source,
        })?;
        let name = path
            .file_name()
            .map_or_else(|| "image".into(), |n| n.to_string_lossy().into_owned());
        Self::build(bytes.into(), name).map_err(|source| LoadError::File {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }

    /// Loads an extension from bytes, with the name that tables and default names of domains show.
    /// Bytes that are loaded already, by whatever name, are one image with the first name.
    ///
    /// # Errors
    /// As [`Image::load`], with the name.
    pub fn from_named_bytes(name: &str, bytes: &[u8]) -> Result<Image, LoadError> {
        Self::build(bytes.into(), name.to_owned()).map_err(|source| LoadError::File {
            path: name.into(),
            source: Box::new(source),
        })
    }

    /// Loads an extension from bytes. Its name is `image`.
    ///
    /// # Errors
    /// As [`Image::load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Image, LoadError> {
        Self::build(bytes.into(), "image".into())
    }

    /// The same image with more gate slots than it imports, and for gates that leave to it what
    /// `more` says. `None` if the slots do not fit before its text.
    pub(crate) fn with_more(&self, more: &More) -> Result<Option<Image>, LoadError> {
        let ImageInner { name, hash, .. } = &*self.0;
        let tables = &self.0.tables;
        let slots = tables.imports.len() + more.imports.len();
        let room = (tables.layout.text - tables.layout.gates) / SLOT_SIZE;
        if slots > room as usize {
            return Ok(None);
        }
        // Namespaces that are alike share it, and its descriptor.
        let key = more.key(hash);
        let cached = cache().as_ref().and_then(|c| c.get(&key)?.upgrade());
        if let Some(inner) = cached {
            return Ok(Some(Image(inner)));
        }
        let bytes = self.0.file_bytes().into();
        let inner = Arc::new(Self::verify(bytes, name.clone(), *hash, more)?);
        remember(key, &inner);
        Ok(Some(Image(inner)))
    }

    /// Judges the text once more, in the verifier's profile without loops and indirect branches:
    /// every call of it ends by itself, after at most so many instructions, with calls at most so
    /// deep in each other; services count as none. Returns what it found, `longest_path` and
    /// `call_depth` among it.
    ///
    /// # Errors
    /// The text has a loop or an indirect branch, or is above `bounds`; with the place. Or it can
    /// call the memory gate, whose time is not one of instructions. The image stays what it was.
    pub fn bounded(&self, bounds: Bounds) -> Result<Facts, LoadError> {
        let inner = &*self.0;
        let judged = inner.text.bounded(bounds);
        judged.map_err(|error| refused(error, &inner.file_bytes()))
    }

    fn build(bytes: Box<[u8]>, name: String) -> Result<Image, LoadError> {
        engine::start()?;
        let hash = blake3::hash(&bytes);
        let cached = cache().as_ref().and_then(|c| c.get(&hash)?.upgrade());
        if let Some(inner) = cached {
            return Ok(Image(inner));
        }
        let span = tracing::info_span!("postern.load", image = %name, bytes = bytes.len());
        let _entered = span.enter();
        let inner = Arc::new(Self::verify(bytes, name, hash, &More::default())?);
        remember(hash, &inner);
        Ok(Image(inner))
    }

    fn verify(
        bytes: Box<[u8]>,
        name: String,
        hash: blake3::Hash,
        more: &More,
    ) -> Result<ImageInner, LoadError> {
        let parsed = ImageFile::parse(&bytes)?;
        if parsed.header().segment != postern_image::Segment::Gs {
            return Err(LoadError::Segment);
        }
        let stack_top = StackTop::new(&parsed).map_err(LoadError::Memory)?;
        let names: Vec<&str> = more.imports.iter().map(|import| &*import.name).collect();
        let text = Text::verify(&parsed, &names, &stack_top.initial)
            .map_err(|error| refused(error, &bytes))?;
        let facts = text.facts();
        if facts.ymm && !machine::has_avx2() {
            return Err(LoadError::Machine("AVX2".into()));
        }
        let missing: Vec<&str> = parsed
            .needs()
            .iter()
            .copied()
            .filter(|name| !machine::has(name))
            .collect();
        if !missing.is_empty() {
            return Err(LoadError::Machine(missing.join(", ")));
        }
        for export in parsed.exports() {
            if !text.is_start(export.offset) {
                return Err(LoadError::Export {
                    name: export.name.to_owned(),
                    offset: export.offset,
                });
            }
        }
        let mut tables = ImageTables::from(&parsed);
        tables.imports.extend_from_slice(&more.imports);
        let names = tables.imports.iter().map(|i| Arc::clone(&i.name));
        // Of two of one name the first is meant.
        let services = names.zip(0..tables.imports.len() as u32).rev().collect();
        let passed = if passes_vectors(&tables) { FACT_XMM } else { 0 };
        let fact_bits = gate::fact_bits(facts) | passed | more.fact_bits;
        let loaded = [Some(parsed.text()), parsed.rodata(), parsed.data()];
        let kept = Kept::new(&bytes, loaded.into_iter().flatten());
        Ok(ImageInner {
            hash,
            name,
            tables,
            services,
            fact_bits,
            stack_top,
            text: Arc::new(text),
            spare: SpareWindows::default(),
            kept,
        })
    }
}
