//! Random operations on one or two file systems at once.

use postern_exos_abi::errno::Errno;
use postern_exos_abi::file::{Files, Kind};

/// Files that were made: the same one in each of the file systems.
pub type Nodes = Vec<Vec<u64>>;

/// The byte that a file's bytes are, so that those of another would be seen.
pub fn tag(node: u64) -> u8 {
    (node.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1
}

/// Does one operation. The first two nodes are the root and nothing; numbers of the last file
/// system are those of `tag`.
pub fn step(random: &mut fastrand::Rng, all: &mut [&mut dyn Files], nodes: &mut Nodes, most: u64) {
    let which = random.usize(..nodes.len());
    let other = random.usize(..nodes.len());
    let (node, into) = (nodes[which].clone(), nodes[other].clone());
    let name = format!("{}{}", "n".repeat(random.usize(1..60)), random.u8(..4));
    let to = format!("{}{}", "n".repeat(random.usize(1..60)), random.u8(..4));
    let each = |all: &mut [&mut dyn Files],
                what: &mut dyn FnMut(&mut dyn Files, usize) -> Result<u64, Errno>| {
        let made = all
            .iter_mut()
            .enumerate()
            .map(|(at, files)| what(*files, at));
        let made: Vec<Result<u64, Errno>> = made.collect();
        // Of several reasons to refuse something, each may name another one.
        let done: Option<Vec<u64>> = made.iter().map(|made| made.ok()).collect();
        assert!(
            done.is_some() || made.iter().all(|made| made.is_err()),
            "{made:?}"
        );
        done
    };
    match random.u8(..20) {
        0..=4 => {
            let kind = [Kind::File, Kind::File, Kind::Folder, Kind::Link][random.usize(..4)];
            let target = "t".repeat(random.usize(1..200));
            let target = if kind == Kind::Link { &target[..] } else { "" };
            let made = each(all, &mut |files, at| {
                files.create(node[at], name.as_bytes(), kind, 0o640, target.as_bytes())
            });
            nodes.extend(made);
        }
        5..=9 => {
            let offset = random.u64(..most);
            let bytes = vec![tag(*node.last().unwrap()); random.usize(1..9000)];
            each(all, &mut |files, at| {
                files
                    .write(node[at], offset, &bytes)
                    .map(|done| done as u64)
            });
        }
        10 | 11 => {
            let length = random.u64(..most) & !(4095 * random.u64(..2));
            each(all, &mut |files, at| {
                files.set_length(node[at], length).map(|()| 0)
            });
        }
        12 | 13 => {
            let is_folder = random.bool();
            each(all, &mut |files, at| {
                files
                    .remove(node[at], name.as_bytes(), is_folder)
                    .map(|()| 0)
            });
        }
        14 | 15 => {
            each(all, &mut |files, at| {
                files
                    .rename((node[at], name.as_bytes()), (into[at], to.as_bytes()))
                    .map(|()| 0)
            });
        }
        16 => {
            each(all, &mut |files, at| {
                files.link(node[at], into[at], to.as_bytes()).map(|()| 0)
            });
        }
        17 => {
            let is_held = each(all, &mut |files, at| files.hold(node[at]).map(|()| 0)).is_some();
            if is_held && random.bool() {
                each(all, &mut |files, at| {
                    files.release(node[at]);
                    Ok(0)
                });
            }
        }
        18 => {
            each(all, &mut |files, at| {
                files.release(node[at]);
                Ok(0)
            });
        }
        _ => {
            let mut bytes = vec![vec![1; 5000]; all.len()];
            let offset = random.u64(..most);
            each(all, &mut |files, at| {
                files
                    .read(node[at], offset, &mut bytes[at])
                    .map(|done| done as u64)
            });
            assert!(bytes.iter().all(|some| *some == bytes[0]));
        }
    }
    // Those that are gone are asked for sometimes.
    if nodes.len() > 60 {
        nodes.swap_remove(random.usize(1..60));
    }
}

/// A file as it is seen: what it is, its size, its names, its bytes or target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub node: u64,
    pub kind: Kind,
    pub version: u64,
    pub links: u32,
    pub bytes: Vec<u8>,
}

/// All files, by their paths.
pub fn seen(files: &mut dyn Files) -> std::collections::BTreeMap<String, Seen> {
    let mut all = std::collections::BTreeMap::new();
    let mut left = vec![(String::new(), files.root())];
    while let Some((path, node)) = left.pop() {
        let status = files.status(node).unwrap();
        let mut bytes = Vec::new();
        match status.kind {
            Kind::File => {
                bytes = vec![0; status.size as usize];
                assert_eq!(files.read(node, 0, &mut bytes), Ok(bytes.len()));
            }
            Kind::Link => {
                bytes = vec![0; 4096];
                let length = files.target(node, &mut bytes).unwrap();
                bytes.truncate(length);
            }
            Kind::Folder => files
                .list(node, 0, &mut |entry| {
                    let name = String::from_utf8(entry.name.to_vec()).unwrap();
                    left.push((format!("{path}/{name}"), entry.node));
                    true
                })
                .unwrap(),
        }
        let file = Seen {
            node,
            kind: status.kind,
            version: status.version,
            links: status.links,
            bytes,
        };
        assert!(all.insert(path, file).is_none());
    }
    all
}
