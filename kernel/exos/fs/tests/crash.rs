//! The power goes. A disk remembers what was written and when it was flushed; then it is made anew
//! as it could be after each of many moments: what was flushed is there, of what was written
//! afterwards any part, in any order that the disk may choose, down to sectors. Each such disk is
//! mounted and checked.

mod support;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use postern_exos_abi::file::{Files, Kind};
use postern_exos_fs::memory::{MemoryDisk, Ticks};
use postern_exos_fs::{
    Block, Disk, DiskError, FRAMES, FileSystem, Format, Lru, TwoQueues, check, format,
};
use support::{Nodes, Seen, seen, step, tag};

/// What the disk was told.
enum Event {
    Write(u64, Box<Block>),
    Flush,
}

/// A disk that remembers.
struct Recorder {
    disk: MemoryDisk,
    events: Rc<RefCell<Vec<Event>>>,
}

impl Disk for Recorder {
    fn blocks(&self) -> u64 {
        self.disk.blocks()
    }

    fn read(&mut self, blocks: &mut [(u64, &mut Block)]) -> Result<(), DiskError> {
        self.disk.read(blocks)
    }

    fn write(&mut self, blocks: &[(u64, &Block)]) -> Result<(), DiskError> {
        let mut events = self.events.borrow_mut();
        events.extend(
            blocks
                .iter()
                .map(|(home, block)| Event::Write(*home, Box::new(**block))),
        );
        self.disk.write(blocks)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        self.events.borrow_mut().push(Event::Flush);
        self.disk.flush()
    }
}

/// What a tree is without the bytes of files, which may be newer than it.
fn shape(tree: &BTreeMap<String, Seen>) -> BTreeMap<String, (u64, Kind, u32, usize)> {
    let of = |file: &Seen| (file.node, file.kind, file.links, file.bytes.len());
    tree.iter()
        .map(|(path, file)| (path.clone(), of(file)))
        .collect()
}

/// A moment of a run: how many events there were, and the tree.
struct Moment {
    events: usize,
    tree: BTreeMap<String, Seen>,
    /// All of it is on the disk for good.
    is_synchronised: bool,
}

/// A run: the disk as it began, what was written, and its moments.
struct Run {
    begin: MemoryDisk,
    events: Vec<Event>,
    moments: Vec<Moment>,
}

fn run(seed: u64, blocks: usize, operations: usize) -> Run {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut begin = MemoryDisk::new(blocks);
    format(&mut begin, &Format::default()).unwrap();
    let events = Rc::new(RefCell::new(Vec::new()));
    let disk = Recorder {
        disk: begin.clone(),
        events: events.clone(),
    };
    let mut frames = vec![Block::ZERO; FRAMES + random.usize(..64)];
    let mut files = FileSystem::mount(disk, &mut frames, TwoQueues::new(), Ticks::new()).unwrap();
    let mut nodes: Nodes = vec![vec![files.root()]];
    let mut moments = Vec::new();
    for operation in 0..operations {
        let is_synchronised = operation > 0 && random.u8(..6) == 0;
        if is_synchronised {
            files.synchronise(None).unwrap();
        } else {
            // Beyond 49,152 bytes there are indirect blocks.
            step(&mut random, &mut [&mut files], &mut nodes, 80_000);
        }
        let tree = seen(&mut files);
        let events = events.borrow().len();
        moments.push(Moment {
            events,
            tree,
            is_synchronised,
        });
    }
    drop(files.abandon());
    let events = Rc::into_inner(events).unwrap().into_inner();
    Run {
        begin,
        events,
        moments,
    }
}

/// The disk as it could be when the power went behind so many events.
fn cut(run: &Run, events: usize, random: &mut fastrand::Rng) -> MemoryDisk {
    let mut disk = run.begin.clone();
    let (told, _) = run.events.split_at(events);
    let flushed = told
        .iter()
        .rposition(|event| matches!(event, Event::Flush))
        .unwrap_or(0);
    // How likely what was not flushed is there: all, nothing, or some.
    let share = [0.0, 0.1, 0.5, 0.9, 1.0][random.usize(..5)];
    for (at, event) in told.iter().enumerate() {
        let Event::Write(home, block) = event else {
            continue;
        };
        let to = &mut disk.blocks[usize::try_from(*home).unwrap()].0;
        if at < flushed || random.f64() < share {
            to.copy_from_slice(&block.0);
        } else if random.u8(..4) == 0 {
            // Some of its sectors.
            for (to, from) in to.chunks_mut(512).zip(block.0.chunks(512)) {
                if random.bool() {
                    to.copy_from_slice(from);
                }
            }
        }
    }
    disk
}

fn holds(run: &Run, events: usize, mut disk: MemoryDisk) {
    let report = check(&mut disk).unwrap();
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
    let mut frames = vec![Block::ZERO; FRAMES];
    let mut files = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).unwrap();
    let found = seen(&mut files);
    // The tree is that of a moment: the last that was synchronised by then, or a later one.
    let found_shape = shape(&found);
    let last = run
        .moments
        .iter()
        .rposition(|moment| moment.is_synchronised && moment.events <= events);
    let from = last.unwrap_or(0);
    let until = run
        .moments
        .partition_point(|moment| moment.events <= events);
    let later = run.moments.iter().take(until + 1).skip(from);
    let is_empty = last.is_none() && found.len() == 1;
    assert!(
        is_empty
            || later
                .clone()
                .any(|moment| shape(&moment.tree) == found_shape),
        "no moment from {from} to {until} had this tree: {found_shape:#?}\n{:#?}",
        shape(&run.moments[from].tree),
    );
    for (path, file) in &found {
        // No byte is another file's; and what nobody has touched since is as it was.
        let own = tag(file.node);
        assert!(
            file.kind != Kind::File || file.bytes.iter().all(|byte| [0, own].contains(byte)),
            "{path} has bytes of another file"
        );
        let was = last.map(|last| &run.moments[last].tree);
        let Some(was) = was.and_then(|tree| tree.get(path)) else {
            continue;
        };
        let untouched = later
            .clone()
            .all(|moment| moment.tree.get(path) == Some(was));
        assert!(!untouched || file.bytes == was.bytes, "bytes of {path}");
    }
    // It goes on, and ends well.
    let root = files.root();
    let name = b"behind the end of the world";
    let file = files.create(root, name, Kind::File, 0o644, b"").unwrap();
    files.write(file, 0, &[tag(file); 9000]).unwrap();
    let mut disk = files.unmount().unwrap();
    let report = check(&mut disk).unwrap();
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
}

#[test]
fn whenever_the_power_goes_nothing_synchronised_is_lost() {
    let seeds: u64 = std::env::var("SEEDS").map_or(12, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        println!("seed {seed}");
        let run = run(seed, 1024, 150);
        let mut random = fastrand::Rng::with_seed(seed);
        // Most can be lost before a flush; and in between.
        let flushes = run.events.iter().enumerate();
        let flushes = flushes.filter(|(_, event)| matches!(event, Event::Flush));
        let mut points: Vec<usize> = flushes.map(|(at, _)| at).collect();
        points.extend((0..50).map(|_| random.usize(..=run.events.len())));
        for events in points {
            for _ in 0..2 {
                let disk = cut(&run, events, &mut random);
                holds(&run, events, disk);
            }
        }
    }
}

/// The power goes while a mount finishes what another cut has left.
#[test]
fn a_mount_may_be_cut_too() {
    for seed in 100..103 {
        println!("seed {seed}");
        let first = run(seed, 1024, 100);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..20 {
            let events = random.usize(..=first.events.len());
            let begin = cut(&first, events, &mut random);
            let told = Rc::new(RefCell::new(Vec::new()));
            let disk = Recorder {
                disk: begin.clone(),
                events: told.clone(),
            };
            let mut frames = vec![Block::ZERO; FRAMES];
            let files = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).unwrap();
            files.unmount().unwrap();
            let again = Run {
                begin,
                events: Rc::into_inner(told).unwrap().into_inner(),
                moments: Vec::new(),
            };
            for _ in 0..4 {
                let at = random.usize(..=again.events.len());
                let disk = cut(&again, at, &mut random);
                holds(&first, events, disk);
            }
        }
    }
}
