//! Files of an image: by paths, and all of them.

use std::collections::BTreeMap;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::{Files, Kind, Status};

/// Links that a path goes over at most.
const LINKS: usize = 16;

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What is known of it.
    pub status: Status,
    /// What a link stands for.
    pub target: Vec<u8>,
}

/// What a path stands for. `..` takes the name before it away, as in the machine.
pub fn follow(files: &mut dyn Files, path: &[u8]) -> Result<u64, Errno> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut left = split(path);
    let mut links = 0;
    'again: loop {
        let mut at = files.root();
        for name in &names {
            at = files.look_up(at, name)?;
        }
        while let Some(name) = left.pop() {
            if name == b".." {
                names.pop();
                continue 'again;
            }
            let found = files.look_up(at, &name)?;
            if files.status(found)?.kind == Kind::Link {
                links += 1;
                if links > LINKS {
                    return Err(errno::LOOP);
                }
                let target = target(files, found)?;
                if target.first() == Some(&b'/') {
                    names.clear();
                }
                left.extend(split(&target));
                continue 'again;
            }
            names.push(name);
            at = found;
        }
        return Ok(at);
    }
}

/// A path's names, the last one first.
fn split(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/').rev();
    let names = names.filter(|name| !matches!(*name, b"" | b"."));
    names.map(<[u8]>::to_vec).collect()
}

/// What a link stands for.
pub fn target(files: &mut dyn Files, node: u64) -> Result<Vec<u8>, Errno> {
    let mut target = vec![0; 4096];
    let length = files.target(node, &mut target)?;
    target.truncate(length);
    Ok(target)
}

/// The bytes of a file.
pub fn bytes(files: &mut dyn Files, node: u64) -> Result<Vec<u8>, Errno> {
    let size = files.status(node)?.size;
    let mut all = Vec::new();
    // An image that is wrong may say any size.
    let mut piece = vec![0; 1 << 20];
    while (all.len() as u64) < size {
        match files.read(node, all.len() as u64, &mut piece)? {
            0 => break,
            done => all.extend(&piece[..done]),
        }
    }
    Ok(all)
}

/// Names of a folder, and what they stand for.
pub fn entries(files: &mut dyn Files, folder: u64) -> Result<Vec<(Vec<u8>, u64)>, Errno> {
    let mut found = Vec::new();
    files.list(folder, 0, &mut |entry| {
        found.push((entry.name.to_vec(), entry.node));
        true
    })?;
    found.sort();
    Ok(found)
}

/// All that is below a folder, by paths from there on; and errors, where something cannot be read.
pub fn all(files: &mut dyn Files, from: u64) -> BTreeMap<String, Result<Found, Errno>> {
    let mut all = BTreeMap::new();
    let mut left = vec![(String::new(), from)];
    let mut seen = std::collections::BTreeSet::from([from]);
    while let Some((path, folder)) = left.pop() {
        let names = match entries(files, folder) {
            Ok(names) => names,
            Err(error) => {
                all.insert(path, Err(error));
                continue;
            }
        };
        for (name, node) in names {
            let path = format!("{path}/{}", String::from_utf8_lossy(&name));
            let found = files.status(node).and_then(|status| {
                let target = match status.kind {
                    Kind::Link => target(files, node)?,
                    _ => Vec::new(),
                };
                Ok(Found { status, target })
            });
            let is_folder = matches!(&found, Ok(found) if found.status.kind == Kind::Folder);
            // Folders are a tree, unless the image is wrong.
            if is_folder && seen.insert(node) {
                left.push((path.clone(), node));
            }
            all.insert(path, found);
        }
    }
    all
}
