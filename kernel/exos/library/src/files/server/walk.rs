//! Paths: names one behind the other, without `..`, which is the client's affair, since folders do
//! not say what they are in.

use postern_exos_abi::errno;
use postern_exos_abi::file::{Files, Kind, NAME};
use postern_exos_abi::protocol::{FOUND, LINK, PATH, SECOND, status, walk};

use super::{Answer, Server, trusted};

/// A path's names, and where each begins.
fn names(path: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    let parts = path.split(|byte| *byte == b'/').map(move |part| {
        let from = at;
        at += part.len() + 1;
        (from, part)
    });
    parts.filter(|(_, part)| !matches!(*part, b"" | b"."))
}

impl<F: Files> Server<'_, F> {
    /// Follows a path, and does at its end what is asked.
    pub(super) fn walk(
        &mut self,
        client: usize,
        folder: u64,
        length: u64,
        mode: u32,
        flags: u32,
    ) -> Answer {
        let length = usize::try_from(length).map_err(|_| errno::INVAL)?;
        let mut path = [0; PATH];
        let path = path.get_mut(..length).ok_or(errno::NAMETOOLONG)?;
        trusted::copy_out(client, 0, path);
        let has = |flag: u32| flags & flag != 0;
        let mut left = names(path).count();
        let mut node = match folder {
            0 => self.files.root(),
            folder => folder,
        };
        let mut made = false;
        for (at, name) in names(path) {
            left -= 1;
            let last = left == 0;
            if name == b".." || name.contains(&0) {
                return Err(errno::INVAL);
            }
            if name.len() > NAME {
                return Err(errno::NAMETOOLONG);
            }
            if last && has(walk::PARENT) {
                let found = self.files.status(node)?;
                if found.kind != Kind::Folder {
                    return Err(errno::NOTDIR);
                }
                self.tell(&found);
                // Not 0, as it is where the path has no name.
                self.words[status::OFFSET] = at as u64 + 1;
                return Ok(FOUND);
            }
            node = match self.files.look_up(node, name) {
                Err(errno::NOENT) if last && has(walk::CREATE) => {
                    if has(walk::FOLDER) {
                        return Err(errno::ISDIR);
                    }
                    made = true;
                    let made = self
                        .files
                        .create(node, name, Kind::File, mode & 0o777, b"")?;
                    self.renamed(&[node])?;
                    made
                }
                found => found?,
            };
            if made {
                break;
            }
            if last && has(walk::CREATE) && has(walk::EXCLUSIVE) {
                return Err(errno::EXIST);
            }
            if last && !has(walk::FOLLOW) {
                break;
            }
            if self.files.status(node)?.kind == Kind::Link {
                return self.link(client, node, at);
            }
        }
        self.arrive(client, node, flags, made)
    }

    /// A link is in the way.
    fn link(&mut self, client: usize, node: u64, at: usize) -> Answer {
        let mut target = [0; PATH];
        let length = self.files.target(node, &mut target)?;
        let target = target.get(..length).ok_or(errno::NAMETOOLONG)?;
        trusted::copy_in(client, SECOND, target);
        self.words[status::SIZE] = length as u64;
        self.words[status::OFFSET] = at as u64;
        Ok(LINK)
    }

    fn arrive(&mut self, client: usize, node: u64, flags: u32, made: bool) -> Answer {
        let has = |flag: u32| flags & flag != 0;
        let mut found = self.files.status(node)?;
        let refused = match found.kind {
            Kind::Folder if has(walk::WRITES) || has(walk::CREATE) => Some(errno::ISDIR),
            Kind::Link if has(walk::OPEN) => Some(errno::LOOP),
            Kind::File | Kind::Link if has(walk::FOLDER) => Some(errno::NOTDIR),
            _ => None,
        };
        if let Some(error) = refused {
            return Err(error);
        }
        if has(walk::TRUNCATE) && found.kind == Kind::File && found.size != 0 {
            self.files.set_length(node, 0)?;
            self.changed(&[node])?;
            found = self.files.status(node)?;
        }
        if has(walk::OPEN) {
            self.open(client, node, false)
                .map_err(|error| match error {
                    // Somebody else has removed it meanwhile.
                    errno::STALE => errno::NOENT,
                    error => error,
                })?;
        }
        self.tell(&found);
        self.words[status::OFFSET] = made.into();
        Ok(FOUND)
    }
}
