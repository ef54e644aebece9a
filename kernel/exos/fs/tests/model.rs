//! Ordinary use: random operations beside the file system in memory, which is another one's work.

mod support;

use postern_exos_abi::errno;
use postern_exos_abi::file::{Files, Kind};
use postern_exos_fs::memory::{MemoryDisk, Ticks};
use postern_exos_fs::{Block, FRAMES, FileSystem, Format, Lru, TwoQueues, check, format};
use postern_exos_ram::{Memory, Owned};
use support::{Nodes, seen, step};

fn new_disk(blocks: usize) -> MemoryDisk {
    let mut disk = MemoryDisk::new(blocks);
    format(&mut disk, &Format::default()).unwrap();
    disk
}

fn no_problems(disk: &mut MemoryDisk) {
    let report = check(disk).unwrap();
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
}

#[test]
fn it_does_what_the_one_in_memory_does() {
    for seed in 0..8 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = new_disk(16_384);
        let mut memory = Memory::new(Owned::new(100_000));
        let mut frames = vec![Block::ZERO; FRAMES + random.usize(..200)];
        let mut nodes: Nodes = Vec::new();
        for _ in 0..4 {
            let mut files =
                FileSystem::mount(disk, &mut frames, TwoQueues::new(), Ticks::new()).unwrap();
            if nodes.is_empty() {
                nodes.push(vec![memory.root(), files.root()]);
            }
            let most = if seed % 2 == 0 { 40_000 } else { 12_000_000 };
            for _ in 0..400 {
                step(
                    &mut random,
                    &mut [&mut memory, &mut files],
                    &mut nodes,
                    most,
                );
            }
            let (ours, theirs) = (seen(&mut files), seen(&mut memory));
            assert!(ours.keys().eq(theirs.keys()));
            for (path, our) in &ours {
                let their = &theirs[path];
                assert_eq!(our.kind, their.kind, "{path}");
                // Whether a folder's own entries count as names, each says for itself.
                if our.kind != Kind::Folder {
                    assert_eq!(our.links, their.links, "{path}");
                }
                assert!(our.bytes == their.bytes, "bytes of {path}");
            }
            disk = files.unmount().unwrap();
            no_problems(&mut disk);
            // Who had something open is gone with the mount.
            for node in &nodes {
                for _ in 0..400 {
                    memory.release(node[0]);
                }
            }
        }
    }
}

#[test]
fn a_full_disk_takes_what_fits_and_gives_it_back() {
    let mut disk = new_disk(256);
    let mut frames = vec![Block::ZERO; FRAMES];
    for round in 0..3 {
        let mut files = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).unwrap();
        let root = files.root();
        let before = files.space().unwrap();
        let file = files.create(root, b"a", Kind::File, 0o644, b"").unwrap();
        let mut at = 0;
        while let Ok(done) = files.write(file, at, &[7; 10_000]) {
            at += done as u64;
        }
        assert_eq!(files.write(file, at, &[7; 4096]), Err(errno::NOSPC));
        assert_eq!(files.status(file).unwrap().size, at);
        let mut names = 0;
        while files
            .create(
                root,
                format!("file {names:200}").as_bytes(),
                Kind::File,
                0,
                b"",
            )
            .is_ok()
        {
            names += 1;
        }
        files.synchronise(None).unwrap();
        for name in 0..names {
            files
                .remove(root, format!("file {name:200}").as_bytes(), false)
                .unwrap();
        }
        files.remove(root, b"a", false).unwrap();
        let folder = files.status(root).unwrap().blocks;
        assert_eq!(
            files.space().unwrap().free + folder,
            before.free + if round == 0 { 0 } else { folder }
        );
        assert_eq!(files.space().unwrap().free_files, before.free_files);
        disk = files.unmount().unwrap();
        no_problems(&mut disk);
    }
}

#[test]
fn what_is_held_lives_until_it_is_released_or_the_power_goes() {
    for is_released in [false, true] {
        let mut frames = vec![Block::ZERO; FRAMES];
        let mut files =
            FileSystem::mount(new_disk(1024), &mut frames, Lru::new(), Ticks::new()).unwrap();
        let root = files.root();
        let file = files.create(root, b"a", Kind::File, 0o644, b"").unwrap();
        files.write(file, 5000, b"held").unwrap();
        files.hold(file).unwrap();
        files.remove(root, b"a", false).unwrap();
        // It is cut while it has no names: it stays an orphan.
        files.set_length(file, 5002).unwrap();
        let mut bytes = [0; 8];
        assert_eq!(files.read(file, 5000, &mut bytes), Ok(2));
        if is_released {
            files.release(file);
            assert_eq!(files.status(file), Err(errno::STALE));
        }
        files.synchronise(None).unwrap();
        let mut disk = files.abandon();
        let report = check(&mut disk).unwrap();
        assert_eq!(report.problems, [""; 0]);
        assert_eq!(report.orphans, u64::from(!is_released));
        let mut files = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).unwrap();
        assert_eq!(files.status(file), Err(errno::STALE));
        let mut disk = files.unmount().unwrap();
        assert_eq!(check(&mut disk).unwrap().orphans, 0);
        no_problems(&mut disk);
    }
}

/// What is refused of folders, by whichever file system.
fn refuse_what_makes_no_tree(files: &mut dyn Files) {
    let root = files.root();
    let above = files.create(root, b"a", Kind::Folder, 0o755, b"").unwrap();
    let below = files.create(above, b"b", Kind::Folder, 0o755, b"").unwrap();
    let file = files.create(root, b"f", Kind::File, 0o755, b"").unwrap();
    assert_eq!(files.rename((root, b"a"), (below, b"c")), Err(errno::INVAL));
    assert_eq!(files.rename((root, b"a"), (above, b"c")), Err(errno::INVAL));
    assert_eq!(files.rename((root, b"f"), (root, b"a")), Err(errno::ISDIR));
    assert_eq!(files.rename((root, b"a"), (root, b"f")), Err(errno::NOTDIR));
    assert_eq!(files.remove(root, b"a", true), Err(errno::NOTEMPTY));
    assert_eq!(files.remove(root, b"a", false), Err(errno::ISDIR));
    assert_eq!(files.remove(root, b"f", true), Err(errno::NOTDIR));
    assert_eq!(files.link(above, root, b"l"), Err(errno::PERM));
    assert_eq!(files.look_up(file, b"x"), Err(errno::NOTDIR));
    // Who has a folder open that was removed makes nothing in it any more.
    files.hold(below).unwrap();
    files.remove(above, b"b", true).unwrap();
    let made = files.create(below, b"x", Kind::File, 0o644, b"");
    assert_eq!(made, Err(errno::NOENT));
    files.release(below);
    assert_eq!(files.status(below), Err(errno::STALE));
}

#[test]
fn folders_are_a_tree() {
    let mut frames = vec![Block::ZERO; FRAMES];
    let mut files =
        FileSystem::mount(new_disk(1024), &mut frames, Lru::new(), Ticks::new()).unwrap();
    refuse_what_makes_no_tree(&mut files);
    refuse_what_makes_no_tree(&mut Memory::new(Owned::new(8)));
}
