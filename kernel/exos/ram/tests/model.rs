//! Random operations beside maps of the standard library, and what is refused.

use std::collections::BTreeMap;

use postern_exos_abi::errno;
use postern_exos_abi::file::{Files, Kind};
use postern_exos_ram::{Memory, Owned, Pages};

fn names(files: &mut Memory<Owned>, folder: u64) -> Vec<String> {
    let mut all = Vec::new();
    let mut from = 0;
    // One at a time: a place to go on from must be as good as the whole.
    loop {
        let before = all.len();
        files
            .list(folder, from, &mut |entry| {
                all.push(String::from_utf8(entry.name.to_vec()).unwrap());
                from = entry.next;
                false
            })
            .unwrap();
        if all.len() == before {
            all.sort();
            return all;
        }
    }
}

#[test]
fn bytes_are_those_of_a_vector() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut files = Memory::new(Owned::new(64));
    let root = files.root();
    let file = files.create(root, b"a", Kind::File, 0o644, b"").unwrap();
    let mut model: Vec<u8> = Vec::new();
    for _ in 0..3000 {
        let at = random.usize(..60_000);
        let length = random.usize(..9000);
        match random.u8(..4) {
            0 | 1 => {
                let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                assert_eq!(files.write(file, at as u64, &bytes), Ok(length));
                if length > 0 {
                    model.resize(model.len().max(at + length), 0);
                    model[at..at + length].copy_from_slice(&bytes);
                }
            }
            2 => {
                files.set_length(file, at as u64).unwrap();
                model.resize(at, 0);
            }
            _ => {
                let mut bytes = vec![1; length];
                let done = files.read(file, at as u64, &mut bytes).unwrap();
                let end = model.len().min(at + length);
                assert_eq!(bytes[..done], model[at.min(end)..end]);
            }
        }
        assert_eq!(files.status(file).unwrap().size, model.len() as u64);
    }
    files.remove(root, b"a", false).unwrap();
    assert_eq!(files.pages().space(), (64, 64));
}

#[test]
fn names_are_those_of_a_map() {
    let mut random = fastrand::Rng::with_seed(8);
    let mut files = Memory::new(Owned::new(8));
    let root = files.root();
    let mut model = BTreeMap::new();
    for _ in 0..5000 {
        let [one, other] = [random.u8(..20), random.u8(..20)].map(|number| format!("n{number}"));
        match random.u8(..3) {
            0 => {
                let made = files.create(root, one.as_bytes(), Kind::File, 0o600, b"");
                match model.get(&one) {
                    Some(_) => assert_eq!(made, Err(errno::EXIST)),
                    None => _ = model.insert(one, made.unwrap()),
                }
            }
            1 => {
                let gone = files.remove(root, one.as_bytes(), false);
                let node = model.remove(&one);
                assert_eq!(gone.is_ok(), node.is_some());
                if let Some(node) = node {
                    assert_eq!(files.status(node), Err(errno::STALE));
                }
            }
            _ => {
                let moved = files.rename((root, one.as_bytes()), (root, other.as_bytes()));
                assert_eq!(moved.is_ok(), model.contains_key(&one));
                if moved.is_ok() {
                    let node = model.remove(&one).unwrap();
                    model.insert(other, node);
                }
            }
        }
    }
    assert_eq!(
        names(&mut files, root),
        model.keys().cloned().collect::<Vec<_>>()
    );
    for (name, node) in &model {
        assert_eq!(files.look_up(root, name.as_bytes()), Ok(*node));
    }
}

#[test]
fn what_is_held_lives_without_names() {
    let mut files = Memory::new(Owned::new(8));
    let root = files.root();
    let file = files.create(root, b"a", Kind::File, 0o644, b"").unwrap();
    files.write(file, 0, b"held").unwrap();
    files.hold(file).unwrap();
    files.remove(root, b"a", false).unwrap();
    let mut bytes = [0; 8];
    assert_eq!(files.read(file, 0, &mut bytes), Ok(4));
    assert_eq!(files.link(file, root, b"b"), Err(errno::NOENT));
    files.release(file);
    assert_eq!(files.read(file, 0, &mut bytes), Err(errno::STALE));
    assert_eq!(files.pages().space(), (8, 8));
}

#[test]
fn a_full_memory_takes_what_fits() {
    let mut files = Memory::new(Owned::new(2));
    let root = files.root();
    let file = files.create(root, b"a", Kind::File, 0o644, b"").unwrap();
    assert_eq!(files.write(file, 100, &[1; 9000]), Ok(2 * 4096 - 100));
    assert_eq!(files.write(file, 8192, &[1]), Err(errno::NOSPC));
    assert_eq!(files.write(file, u64::MAX, &[1]), Err(errno::FBIG));
    assert_eq!(files.set_length(file, u64::MAX), Err(errno::FBIG));
    assert_eq!(files.set_length(file, 0), Ok(()));
    assert_eq!(files.write(file, 8192, &[1]), Ok(1));
}

#[test]
fn names_that_are_none() {
    let mut files = Memory::new(Owned::new(2));
    let root = files.root();
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'a'; 256]] {
        assert!(files.create(root, name, Kind::File, 0o644, b"").is_err());
        assert!(files.rename((root, b"x"), (root, name)).is_err());
    }
    let link = files
        .create(root, b"l", Kind::Link, 0o777, b"over/there")
        .unwrap();
    let mut to = [0; 4];
    assert_eq!(files.target(link, &mut to), Ok(10));
    assert_eq!(&to, b"over");
    assert_eq!(files.read(link, 0, &mut to), Err(errno::INVAL));
}
