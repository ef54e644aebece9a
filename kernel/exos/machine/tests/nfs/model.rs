//! Random operations through the client on one folder, and on its twin by the host's own means.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use postern_exos_abi::errno::Errno;
use postern_exos_abi::file::{Files, Kind};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "ein etwas längerer Name", "f.txt"];

/// A node by a path of names.
fn walk(files: &mut dyn Files, path: &[&str]) -> Result<u64, Errno> {
    let mut node = files.root();
    for name in path {
        node = files.look_up(node, name.as_bytes())?;
    }
    Ok(node)
}

/// Everything below a folder as text.
fn tree(folder: &Path, at: &Path, into: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let known = fs::symlink_metadata(&path).expect("known");
        let name = at.join(path.file_name().expect("a name"));
        let text = if known.is_dir() {
            tree(&path, &name, into);
            format!("folder {:o}", known.mode() & 0o777)
        } else if known.is_symlink() {
            format!("link {:?}", fs::read_link(&path).expect("a target"))
        } else {
            let bytes = fs::read(&path).expect("bytes");
            let sum = bytes.iter().fold(bytes.len() as u64, |sum, &byte| {
                sum.wrapping_mul(31).wrapping_add(byte.into())
            });
            let (mode, links) = (known.mode() & 0o777, known.nlink());
            format!(
                "file {mode:o} links {links} bytes {} sum {sum:x}",
                bytes.len()
            )
        };
        into.insert(name, text);
    }
}

/// The same through the client.
fn mounted(files: &mut dyn Files, folder: u64, at: &Path, into: &mut BTreeMap<PathBuf, String>) {
    let mut entries = Vec::new();
    files
        .list(folder, 0, &mut |entry| {
            entries.push((entry.name.to_vec(), entry.node, entry.kind));
            true
        })
        .expect("listed");
    for (name, node, kind) in entries {
        let name = at.join(std::ffi::OsStr::from_bytes(&name));
        let status = files.status(node).expect("known");
        assert_eq!(status.kind, kind);
        let text = match kind {
            Kind::Folder => {
                mounted(files, node, &name, into);
                format!("folder {:o}", status.mode)
            }
            Kind::Link => {
                let mut target = [0; 4096];
                let count = files.target(node, &mut target).expect("a target");
                format!("link {:?}", std::ffi::OsStr::from_bytes(&target[..count]))
            }
            Kind::File => {
                let mut bytes = vec![0; status.size as usize + 1];
                let count = files.read(node, 0, &mut bytes).expect("read");
                assert_eq!(count as u64, status.size);
                let sum = bytes[..count].iter().fold(count as u64, |sum, &byte| {
                    sum.wrapping_mul(31).wrapping_add(byte.into())
                });
                let (mode, links) = (status.mode, status.links);
                format!("file {mode:o} links {links} bytes {count} sum {sum:x}")
            }
        };
        into.insert(name, text);
    }
}

fn same(operation: &str, client: Result<(), Errno>, host: std::io::Result<()>) {
    let host = host.map_err(|error| Errno(error.raw_os_error().unwrap_or(-1)));
    // Where both refuse, the reasons may differ: paths end at links and files in different ways.
    assert_eq!(
        client.is_ok(),
        host.is_ok(),
        "{operation}: {client:?}, {host:?}"
    );
}

/// Works for some seconds. The folder is emptied before and after.
pub fn compare(files: &mut dyn Files, export: &Path, seed: u64, seconds: u64) {
    let twin = tempfile::tempdir().expect("a folder");
    let twin = twin.path();
    let mut random = fastrand::Rng::with_seed(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut held: Vec<u64> = Vec::new();
    let mut count = 0u32;
    while Instant::now() < end {
        let path = |random: &mut fastrand::Rng| -> Vec<&'static str> {
            (0..random.usize(1..4))
                .map(|_| NAMES[random.usize(..NAMES.len())])
                .collect()
        };
        let (one, two) = (path(&mut random), path(&mut random));
        let on_twin = |path: &[&str]| path.iter().fold(twin.to_owned(), |at, name| at.join(name));
        // What leads over a link is the library's to follow, not the client's.
        let leads =
            |path: &[&str]| (1..path.len()).any(|until| on_twin(&path[..until]).is_symlink());
        if leads(&one) || leads(&two) {
            continue;
        }
        let (host_one, host_two) = (on_twin(&one), on_twin(&two));
        let (name, parent) = one.split_last().expect("a name");
        let (other, others) = two.split_last().expect("a name");
        let (name, other) = (name.as_bytes(), other.as_bytes());
        let operation;
        match random.u8(..13) {
            0 | 1 => {
                operation = format!("create {one:?}");
                let made = walk(files, parent)
                    .and_then(|node| files.create(node, name, Kind::File, 0o644, &[]))
                    .map(drop);
                let host = fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(&host_one);
                let host = host.and_then(|file| file.set_permissions(mode(0o644)));
                same(&operation, made, host);
            }
            2 => {
                operation = format!("folder {one:?}");
                let made = walk(files, parent)
                    .and_then(|node| files.create(node, name, Kind::Folder, 0o755, &[]))
                    .map(drop);
                same(&operation, made, fs::create_dir(&host_one));
            }
            3 => {
                operation = format!("link {one:?}");
                let made = walk(files, parent)
                    .and_then(|node| files.create(node, name, Kind::Link, 0o777, b"some/where"))
                    .map(drop);
                same(&operation, made, symlink("some/where", &host_one));
            }
            4..=6 => {
                let offset = random.u64(..90_000);
                let bytes: Vec<u8> = (0..random.usize(1..70_000))
                    .map(|_| random.u8(..))
                    .collect();
                operation = format!("write {one:?} {offset} {}", bytes.len());
                if host_one.is_symlink() {
                    continue;
                }
                let hold = random.bool();
                let written = walk(files, &one).and_then(|node| {
                    if hold {
                        files.hold(node)?;
                    }
                    let written = files.write(node, offset, &bytes);
                    if hold && held.len() < 20 && random.bool() && written.is_ok() {
                        held.push(node);
                    } else if hold {
                        files.release(node);
                    }
                    written.map(|count| assert_eq!(count, bytes.len()))
                });
                let host = fs::OpenOptions::new().write(true).open(&host_one);
                same(
                    &operation,
                    written,
                    host.and_then(|file| file.write_all_at(&bytes, offset)),
                );
            }
            7 => {
                let length = random.u64(..150_000);
                operation = format!("length {one:?} {length}");
                if host_one.is_symlink() {
                    continue;
                }
                let cut = walk(files, &one).and_then(|node| files.set_length(node, length));
                let host = fs::OpenOptions::new().write(true).open(&host_one);
                same(&operation, cut, host.and_then(|file| file.set_len(length)));
            }
            8 => {
                operation = format!("rename {one:?} {two:?}");
                if others.starts_with(&one) || parent.starts_with(&two) {
                    continue;
                }
                let renamed = walk(files, parent).and_then(|from| {
                    let to = walk(files, others)?;
                    files.rename((from, name), (to, other))
                });
                same(&operation, renamed, fs::rename(&host_one, &host_two));
            }
            9 => {
                operation = format!("one more name {one:?} {two:?}");
                let linked = walk(files, &one).and_then(|node| {
                    let to = walk(files, others)?;
                    files.link(node, to, other)
                });
                same(&operation, linked, fs::hard_link(&host_one, &host_two));
            }
            10 => {
                let is_folder = random.bool();
                operation = format!("remove {one:?} {is_folder}");
                let removed =
                    walk(files, parent).and_then(|node| files.remove(node, name, is_folder));
                let host = if is_folder {
                    fs::remove_dir(&host_one)
                } else {
                    fs::remove_file(&host_one)
                };
                same(&operation, removed, host);
            }
            11 => {
                let bits = 0o600 | random.u32(..0o200);
                operation = format!("mode {one:?} {bits:o}");
                if host_one.is_symlink() || host_one.is_dir() {
                    continue;
                }
                let set = walk(files, &one).and_then(|node| files.set_mode(node, bits));
                same(&operation, set, fs::set_permissions(&host_one, mode(bits)));
            }
            _ => {
                operation = format!("read {one:?}");
                if host_one.is_symlink() {
                    continue;
                }
                let (offset, length) = (random.u64(..150_000), random.usize(..100_000));
                let mut bytes = vec![0; length];
                let read = walk(files, &one).and_then(|node| files.read(node, offset, &mut bytes));
                let host = fs::read(&host_one);
                if let (Ok(count), Ok(all)) = (&read, &host) {
                    let from = (offset as usize).min(all.len());
                    let to = (from + length).min(all.len());
                    assert!(
                        bytes[..*count] == all[from..to],
                        "{operation} {offset} {length}"
                    );
                }
                same(&operation, read.map(drop), host.map(drop));
            }
        }
        if random.u8(..16) == 0 && !held.is_empty() {
            files.release(held.swap_remove(random.usize(..held.len())));
        }
        count += 1;
        if count.is_multiple_of(64) {
            held.drain(..).for_each(|node| files.release(node));
            check(files, twin, export, &operation);
        }
    }
    held.drain(..).for_each(|node| files.release(node));
    check(files, twin, export, "the end");
    println!("{count} operations");
    for entry in fs::read_dir(export).expect("a folder") {
        let path = entry.expect("an entry").path();
        let removed = match path.is_dir() && !path.is_symlink() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.unwrap_or_else(|error| assert_eq!(error.kind(), ErrorKind::NotFound));
    }
}

fn mode(bits: u32) -> fs::Permissions {
    fs::Permissions::from_mode(bits)
}

/// The twin, the exported folder and what the client sees of it are the same.
fn check(files: &mut dyn Files, twin: &Path, export: &Path, after: &str) {
    let [mut first, mut second, mut third] = [const { BTreeMap::new() }; 3];
    tree(twin, Path::new(""), &mut first);
    tree(export, Path::new(""), &mut second);
    assert_eq!(first, second, "the exported folder after {after}");
    let root = files.root();
    mounted(files, root, Path::new(""), &mut third);
    assert_eq!(first, third, "the mounted folder after {after}");
}
