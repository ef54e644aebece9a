//! What a path stands for: a file of the archive, or one that another process serves. What was found
//! once is kept with its object, whose sums are there then; a file that may change is looked at for each
//! request, and is another object when it has changed.

use alloc::boxed::Box;
use alloc::vec::Vec;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Kind;
use postern_exos_abi::protocol::{WORDS, status};
use postern_exos_load::archive;
use postern_exos_web::http::kind;
use postern_exos_web::http::request::{self, TARGET};
use postern_exos_web::objects::{Memory, Objects};

use crate::files::mounts::Server;
use crate::files::served;
use crate::web::memory::Memories;

/// Files that are kept at most: each path has one place. Those of other processes are held for as long,
/// and a process has few of them.
const KEPT: [usize; 2] = [1024, 32];

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
    /// Of a served file: its server, its number, its version.
    state: [u64; 3],
}

/// Files below a folder.
#[derive(Debug)]
pub struct Files {
    folder: Vec<u8>,
    /// It is a path of the system's, not a name of the archive's.
    is_served: bool,
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
    /// Files of the archive whose names begin with a folder's, or, if that begins with `/`, files below
    /// that path; `boot` is a word of this boot's.
    pub fn new(folder: &[u8], boot: u64) -> Files {
        let mut folder = folder.trim_ascii_end().to_vec();
        let is_served = folder.first() == Some(&b'/');
        if folder.last().is_some_and(|last| *last != b'/') {
            folder.push(b'/');
        }
        Files {
            folder,
            is_served,
            kept: (0..KEPT[usize::from(is_served)]).map(|_| None).collect(),
            boot,
        }
    }

    /// The folder, with a slash behind it.
    pub fn folder(&self) -> &[u8] {
        &self.folder
    }

    /// The file of a request's path, or the status of an answer.
    pub fn find(&mut self, path: &[u8], objects: &mut Objects<Memories>) -> Result<Found, u16> {
        let place = hash(path) as usize % self.kept.len().max(1);
        let kept = self.kept.get(place).and_then(Option::as_ref);
        let kept = kept.filter(|kept| *kept.path == *path);
        if let Some(kept) = kept
            && !self.is_served
        {
            return Ok(kept.found.clone());
        }
        let name = self.name(path).ok_or(404u16)?;
        let (found, state) = match self.is_served {
            true => {
                let (server, words) = served::look(&name).map_err(refused)?;
                let state = state(server, &words);
                if let Some(kept) = kept
                    && kept.state == state
                {
                    return Ok(kept.found.clone());
                }
                self.served(&name, objects)?
            }
            false => (self.archive(&name, objects).ok_or(404u16)?, [0; 3]),
        };
        let kept = Kept {
            path: path.into(),
            found: found.clone(),
            state,
        };
        if let Some(place) = self.kept.get_mut(place)
            && let Some(before) = place.replace(kept)
        {
            objects.release(before.found.object);
        }
        Ok(found)
    }

    /// The name of the file that a request's path asks for.
    fn name(&self, path: &[u8]) -> Option<Vec<u8>> {
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
        Some(name)
    }

    fn archive(&self, name: &[u8], objects: &mut Objects<Memories>) -> Option<Found> {
        let index = archive::index_of(name)?;
        let file = archive::nth(index)?;
        let source = objects.memory.archive(file);
        let object = objects.add(source, file.length)?;
        Some(Found {
            object,
            source,
            length: file.length,
            version: (self.boot ^ file.offset ^ file.length << 32).max(1),
            kind: kind::of(name),
        })
    }

    /// A file of another process's, which is held as long as its object is.
    fn served(
        &self,
        name: &[u8],
        objects: &mut Objects<Memories>,
    ) -> Result<(Found, [u64; 3]), u16> {
        let (file, words) = served::hold(name).map_err(refused)?;
        if words[status::KIND] != Kind::File as u64 {
            file.close();
            return Err(404);
        }
        let state = state(file.server(), &words);
        let length = words[status::SIZE];
        let source = objects.memory.served(file, words[status::VERSION]);
        let Some(object) = objects.add(source, length) else {
            objects.memory.forget(source);
            return Err(503);
        };
        let tag = [self.boot, state[0], state[1], state[2], length].map(u64::to_le_bytes);
        let found = Found {
            object,
            source,
            length,
            version: hash(tag.as_flattened()).max(1),
            kind: kind::of(name),
        };
        Ok((found, state))
    }
}

/// What another object is made for if it changes.
fn state(server: Server, words: &[u64; WORDS]) -> [u64; 3] {
    [server.word(), words[status::NODE], words[status::VERSION]]
}

/// The status of an answer without a file.
fn refused(error: Errno) -> u16 {
    match error {
        errno::NOMEM | errno::MFILE | errno::NFILE | errno::TIMEDOUT | errno::IO => 503,
        errno::ACCES => 403,
        _ => 404,
    }
}
