//! Images that somebody made to do harm: the sums are right, and what is under them is not. Nothing
//! panics, nothing goes on without end, and nothing outside of the disk is asked for.

extern crate std;

use std::println;
use std::vec::Vec;

use postern_exos_abi::file::{Files, Kind};

use crate::layout::{Sort, word32, word64};
use crate::memory::{MemoryDisk, Ticks};
use crate::mount::read_super;
use crate::{Block, FRAMES, FileSystem, Format, Lru, check, format};

const BLOCKS: u64 = 512;

/// A disk on which everything is that there can be: folders of several blocks, files with indirect
/// blocks, short links and long ones, a file without names, and a log that was not emptied.
fn populated() -> MemoryDisk {
    let mut disk = MemoryDisk::new(BLOCKS as usize);
    format(&mut disk, &Format::default()).unwrap();
    let mut frames = std::vec![Block::ZERO; FRAMES];
    let mut files = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).unwrap();
    let root = files.root();
    let folder = files.create(root, b"folder", Kind::Folder, 0o755, b"");
    let folder = folder.unwrap();
    for index in 0..60_u32 {
        let mut name = [b'n'; 100];
        name[..4].copy_from_slice(&index.to_le_bytes().map(|byte| byte | 64));
        let file = files.create(folder, &name, Kind::File, 0o644, b"");
        files.write(file.unwrap(), 0, &[1; 100]).unwrap();
    }
    let file = files.create(root, b"file", Kind::File, 0o644, b"").unwrap();
    files.write(file, 40_000, &[1; 30_000]).unwrap();
    files
        .create(root, b"short", Kind::Link, 0o777, b"file")
        .unwrap();
    files
        .create(root, b"long", Kind::Link, 0o777, &[b't'; 900])
        .unwrap();
    files.synchronise(None).unwrap();
    let gone = files.create(root, b"gone", Kind::File, 0o644, b"").unwrap();
    files.write(gone, 0, &[1; 9000]).unwrap();
    files.hold(gone).unwrap();
    files.remove(root, b"gone", false).unwrap();
    files.synchronise(None).unwrap();
    files.abandon()
}

/// Another number in the place of one.
fn other(random: &mut fastrand::Rng, was: u64) -> u64 {
    match random.u8(..8) {
        0 => 0,
        1 => u64::MAX,
        2 => u64::from(u32::MAX),
        3 => was ^ 1 << random.u8(..64),
        4 => was.wrapping_add(1),
        5 => random.u64(..BLOCKS),
        6 => random.u64(..BLOCKS) << 32 | random.u64(..BLOCKS),
        _ => random.u64(..),
    }
}

/// Changes words of blocks that have a sum, and makes the sum right again.
fn harm(random: &mut fastrand::Rng, disk: &mut MemoryDisk) {
    let geometry = read_super(disk).unwrap().geometry;
    let sealed: Vec<usize> = (0..BLOCKS as usize)
        .filter(|home| geometry.is_sealed(&disk.blocks[*home], *home as u64))
        .collect();
    for _ in 0..random.usize(1..4) {
        let home = sealed[random.usize(..sealed.len())];
        let block = &mut disk.blocks[home];
        // Most of a block is often empty: where something stands is tried more often.
        let words: Vec<usize> = (8..4096)
            .step_by(8)
            .filter(|at| !matches!(at, 16 | 24) && word64(&block.0, *at) != 0)
            .collect();
        let at = match words.get(random.usize(..=words.len())) {
            Some(at) => *at,
            None => 32 + 8 * random.usize(..508),
        };
        let to = other(random, word64(&block.0, at)).to_le_bytes();
        let part = [8, 4, 2, 1][random.usize(..4)];
        block.0[at..at + part].copy_from_slice(&to[..part]);
        geometry.seal(block, home as u64);
    }
}

/// Uses all that can be reached, whatever it says.
fn use_all(random: &mut fastrand::Rng, disk: MemoryDisk) {
    let mut frames = std::vec![Block::ZERO; FRAMES];
    let Ok(mut files) = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()) else {
        return;
    };
    let root = files.root();
    let mut nodes = std::vec![root];
    let mut names = std::vec![(root, b"file".to_vec())];
    let mut at = 0;
    while let Some(&node) = nodes.get(at) {
        at += 1;
        let mut entries = 0;
        _ = files.list(node, 0, &mut |entry| {
            entries += 1;
            if nodes.len() < 100 {
                nodes.push(entry.node);
                names.push((node, entry.name.to_vec()));
            }
            entries < 10_000
        });
        assert!(entries < 10_000, "a folder without end");
        let mut bytes = [0; 6000];
        if let Ok(status) = files.status(node) {
            _ = files.read(node, status.size.saturating_sub(3000), &mut bytes);
        }
        _ = files.read(node, random.u64(..100_000), &mut bytes);
        _ = files.target(node, &mut bytes);
    }
    for _ in 0..30 {
        let node = nodes[random.usize(..nodes.len())];
        let (folder, name) = names[random.usize(..names.len())].clone();
        match random.u8(..8) {
            0 => _ = files.write(node, random.u64(..200_000), &[2; 5000]),
            1 => _ = files.set_length(node, random.u64(..200_000)),
            2 => _ = files.remove(folder, &name, random.bool()),
            3 => _ = files.rename((folder, &name), (node, b"other")),
            4 => _ = files.link(node, folder, b"one more"),
            5 => _ = files.create(folder, b"new", Kind::File, 0o644, b""),
            6 => _ = files.look_up(folder, &name),
            _ => _ = files.synchronise(Some(node)),
        }
    }
    _ = files.space();
    _ = files.unmount();
}

#[test]
fn what_is_sealed_is_not_believed() {
    let seeds: u64 = std::env::var("SEEDS").map_or(400, |seeds| seeds.parse().unwrap());
    let populated = populated();
    let (mut found, mut replayed) = (0, 0);
    for seed in 0..seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = populated.clone();
        println!("seed {seed}");
        harm(&mut random, &mut disk);
        found += usize::from(check(&mut disk).is_ok_and(|report| !report.problems.is_empty()));
        replayed += usize::from(word32(&disk.blocks[2].0, 0) == Sort::Record as u32);
        use_all(&mut random, disk);
    }
    // Otherwise nothing of this was tried.
    assert!(
        found > seeds as usize / 10 && replayed > 0,
        "{found}, {replayed}"
    );
}

#[test]
fn flipped_bits_are_found() {
    let populated = populated();
    let mut clean = populated.clone();
    assert!(check(&mut clean).unwrap().problems.is_empty());
    for seed in 0..300 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = populated.clone();
        for _ in 0..random.usize(1..5) {
            let block = random.usize(..BLOCKS as usize);
            disk.blocks[block].0[random.usize(..4096)] ^= 1 << random.u8(..8);
        }
        _ = check(&mut disk);
        use_all(&mut random, disk);
    }
}

/// A disk whose log has several transactions, and where each record stands.
fn logged() -> (MemoryDisk, Vec<usize>) {
    let mut disk = MemoryDisk::new(4096);
    format(&mut disk, &Format::default()).unwrap();
    let mut frames = std::vec![Block::ZERO; FRAMES];
    let mut files = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).unwrap();
    let root = files.root();
    for name in [b"a", b"b", b"c"] {
        files.create(root, name, Kind::File, 0o644, b"").unwrap();
        files.synchronise(None).unwrap();
    }
    let disk = files.abandon();
    let is_record = |block: &usize| word32(&disk.blocks[*block].0, 0) == Sort::Record as u32;
    let records: Vec<usize> = (2..258).filter(is_record).collect();
    assert_eq!(records.len(), 3);
    (disk, records)
}

/// A record that is damaged in the middle of the log is not taken for its end: what was
/// synchronised would be lost without a word.
#[test]
fn damage_in_the_log_is_said() {
    let (disk, records) = logged();
    for (at, record) in records.iter().enumerate() {
        for place in [*record, record + 1] {
            let mut harmed = disk.clone();
            harmed.blocks[place].0[77] ^= 4;
            let report = check(&mut harmed).unwrap();
            // The last one may as well be one that was being written when the power went.
            let is_last = at + 1 == records.len();
            assert_eq!(report.problems.is_empty(), is_last, "{report:#?}");
            let mut frames = std::vec![Block::ZERO; FRAMES];
            let mounted =
                FileSystem::mount_or_read(&mut harmed, &mut frames, Lru::new(), Ticks::new());
            let (mut files, damage) = mounted.unwrap();
            assert_eq!(damage.is_none(), is_last);
            let root = files.root();
            let made = files.create(root, b"new", Kind::File, 0o644, b"");
            assert_eq!(made.is_ok(), is_last);
            assert_eq!(files.look_up(root, b"a").is_ok(), at > 0);
        }
    }
}

/// Blocks behind a file's end are found, also where another file is being cut.
#[test]
fn orphans_hide_nothing() {
    let mut disk = populated();
    let geometry = read_super(&mut disk).unwrap().geometry;
    let mut frames = std::vec![Block::ZERO; FRAMES];
    let mut files = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).unwrap();
    let root = files.root();
    let file = files.look_up(root, b"file").unwrap();
    let gone = files.create(root, b"gone", Kind::File, 0o644, b"").unwrap();
    files.hold(gone).unwrap();
    files.remove(root, b"gone", false).unwrap();
    let mut disk = files.unmount().unwrap();
    let report = check(&mut disk).unwrap();
    assert!(
        report.orphans == 1 && report.problems.is_empty(),
        "{report:#?}"
    );
    let (block, _, place) = geometry.node(file as u32);
    let bytes = &mut disk.blocks[block as usize];
    bytes.0[place + 16..place + 24].copy_from_slice(&100_u64.to_le_bytes());
    geometry.seal(bytes, block);
    let problems = check(&mut disk).unwrap().problems;
    assert!(
        problems.iter().any(|what| what.contains("behind its end")),
        "{problems:#?}"
    );
}

/// Whoever ends in good order leaves nothing in the log, however small that is.
#[test]
fn the_log_is_empty_in_the_end() {
    for blocks in [256, 1792, 4096] {
        let mut disk = MemoryDisk::new(blocks);
        format(&mut disk, &Format::default()).unwrap();
        for name in [b"a", b"b"] {
            let mut frames = std::vec![Block::ZERO; 1024];
            let mut files = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).unwrap();
            let root = files.root();
            files.create(root, name, Kind::File, 0o644, b"").unwrap();
            disk = files.unmount().unwrap();
            assert_eq!(check(&mut disk).unwrap().transactions, 0);
        }
    }
}
