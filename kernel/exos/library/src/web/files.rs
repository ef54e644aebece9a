//! What a path stands for. What was found once is kept with its object, whose sums are there then.

use alloc::boxed::Box;
use alloc::vec::Vec;

use postern_exos_load::archive;
use postern_exos_web::http::kind;
use postern_exos_web::http::request::{self, TARGET};
use postern_exos_web::objects::Objects;

use crate::web::memory::Memories;

/// Files that are kept at most: each path has one place.
const KEPT: usize = 1024;

/// A file that can be sent.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its object, of which who sends it becomes a user.
    pub object: u32,
    /// Where its bytes stand.
    pub source: u64,
    /// Bytes.
    pub length: u64,
    /// A tag of them.
    pub version: u64,
    /// What they are.
    pub kind: &'static str,
}

#[derive(Debug)]
struct Kept {
    path: Box<[u8]>,
    found: Found,
}

/// Files below a folder.
#[derive(Debug)]
pub struct Files {
    folder: Vec<u8>,
    kept: Vec<Option<Kept>>,
    /// Tags are another boot's with another one.
    boot: u64,
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

impl Files {
    /// Files of the archive whose names begin with a folder's; `boot` is a word of this boot's.
    pub fn new(folder: &[u8], boot: u64) -> Files {
        let mut folder = folder.trim_ascii_end().to_vec();
        while folder.first() == Some(&b'/') {
            folder.remove(0);
        }
        if folder.last().is_some_and(|last| *last != b'/') {
            folder.push(b'/');
        }
        Files {
            folder,
            kept: (0..KEPT).map(|_| None).collect(),
            boot,
        }
    }

    /// The folder, with a slash behind it.
    pub fn folder(&self) -> &[u8] {
        &self.folder
    }

    /// The file of a request's path.
    pub fn find(&mut self, path: &[u8], objects: &mut Objects<Memories>) -> Option<Found> {
        let place = hash(path) as usize % KEPT;
        if let Some(Some(kept)) = self.kept.get(place)
            && *kept.path == *path
        {
            return Some(kept.found.clone());
        }
        let found = self.look_up(path, objects)?;
        let kept = Kept {
            path: path.into(),
            found: found.clone(),
        };
        if let Some(place) = self.kept.get_mut(place)
            && let Some(before) = place.replace(kept)
        {
            objects.release(before.found.object);
        }
        Some(found)
    }

    fn look_up(&self, path: &[u8], objects: &mut Objects<Memories>) -> Option<Found> {
        let mut room = [0; TARGET];
        let path = request::decoded(path, &mut room)?;
        let mut name = self.folder.clone();
        let parts = path.split(|byte| *byte == b'/');
        for part in parts.filter(|part| !matches!(*part, b"" | b".")) {
            // Names that begin with a dot are nobody's business.
            if part.first() == Some(&b'.') {
                return None;
            }
            name.extend_from_slice(part);
            name.push(b'/');
        }
        match path.last() {
            Some(b'/') => name.extend_from_slice(b"index.html"),
            _ => _ = name.pop(),
        }
        let index = archive::index_of(&name)?;
        let file = archive::nth(index)?;
        let source = objects.memory.archive(file);
        let object = objects.add(source, file.length)?;
        Some(Found {
            object,
            source,
            length: file.length,
            version: (self.boot ^ file.offset ^ file.length << 32).max(1),
            kind: kind::of(&name),
        })
    }
}
