//! The disk at each moment of a record, as it could be if the power had gone then: what was flushed
//! is there, of what was written afterwards any part, down to sectors. Each is checked, mounted,
//! and compared with what was promised by then.

use std::time::Instant;

use postern_exos_abi::disk::{BLOCK, of_files};
use postern_exos_fs::memory::Ticks;
use postern_exos_fs::{Block, Disk, DiskError, FRAMES, FileSystem, Lru, check};

use super::log::{Event, Log, SECTOR};
use super::overlay::Overlay;
use super::promise::Promise;

/// Sectors of a block.
const SECTORS: u64 = BLOCK / SECTOR as u64;

/// Which moments, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Each so-many-th moment; 1: all.
    pub step: usize,
    /// The first of them.
    pub first: usize,
    /// Disks that are made of each: all writes there, and others by chance.
    pub disks: usize,
    /// What chance begins with.
    pub seed: u64,
    /// No more after this.
    pub until: Option<Instant>,
}

/// What was looked at.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Writes and flushes of the record.
    pub events: usize,
    /// Moments.
    pub moments: usize,
    /// Disks that were made, mounted and checked.
    pub disks: usize,
    /// Promises that were heard, part by part.
    pub promises: usize,
    /// What is wrong: sentences, with moment and seed.
    pub problems: Vec<String>,
}

/// A disk's bytes that are for good.
struct Stable<'b>(&'b [u8]);

impl Disk for Stable<'_> {
    fn blocks(&self) -> u64 {
        of_files(self.0.len() as u64 / BLOCK)
    }

    fn read(&mut self, blocks: &mut [(u64, &mut Block)]) -> Result<(), DiskError> {
        for (block, to) in blocks {
            let at = usize::try_from(*block * BLOCK).map_err(|_| DiskError::Beyond)?;
            let from = self.0.get(at..at + BLOCK as usize);
            to.0.copy_from_slice(from.ok_or(DiskError::Beyond)?);
        }
        Ok(())
    }

    fn write(&mut self, _: &[(u64, &Block)]) -> Result<(), DiskError> {
        Err(DiskError::Device)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}

/// A number that follows from another (xorshift).
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// Looks at a record of a disk that began as `disk` says.
pub fn replay(mut disk: Vec<u8>, log: &Log, plan: &Plan) -> Report {
    let mut report = Report {
        events: log.events.len(),
        ..Report::default()
    };
    let own = of_files(disk.len() as u64 / BLOCK);
    let mut promise = Promise::default();
    // Events since the last flush.
    let mut since = 0;
    for at in 0..=log.events.len() {
        let is_chosen = at >= plan.first && (at - plan.first).is_multiple_of(plan.step.max(1));
        if plan.until.is_some_and(|until| Instant::now() >= until) || report.problems.len() > 20 {
            break;
        }
        if is_chosen {
            report.moments += 1;
            for which in 0..plan.disks.max(1) {
                let mut random = (plan.seed ^ (at as u64) << 20 ^ which as u64) | 1;
                // None of what is under way, all of it, or some.
                let share = [0, 100, 50, 90, 10][which % 5];
                let cut = cut(&disk, log, since..at, share, &mut random);
                let broken = match cut {
                    Ok(mut cut) => looked_at(&mut cut, &promise),
                    Err(error) => vec![format!("{error:?}")],
                };
                let told = broken.into_iter().take(5);
                let told = told.map(|why| format!("moment {at}, disk {which}: {why}"));
                report.problems.extend(told);
                report.disks += 1;
            }
        }
        match log.events.get(at) {
            Some(Event::Flush) => {
                for event in &log.events[since..at] {
                    apply(&mut disk, log, event);
                }
                since = at + 1;
            }
            Some(event @ Event::Write(first, _)) if *first / SECTORS >= own => {
                let bytes: Vec<u8> = log
                    .sectors(event)
                    .flat_map(|(_, bytes)| bytes)
                    .copied()
                    .collect();
                for block in bytes.chunks(BLOCK as usize) {
                    report.promises += usize::from(promise.hear(block));
                }
            }
            _ => {}
        }
    }
    report
}

/// Writes what an event says.
fn apply(disk: &mut [u8], log: &Log, event: &Event) {
    for (sector, bytes) in log.sectors(event) {
        let at = usize::try_from(sector).unwrap_or(usize::MAX / SECTOR) * SECTOR;
        if let Some(to) = disk.get_mut(at..at + SECTOR) {
            to.copy_from_slice(bytes);
        }
    }
}

/// The disk, with so many of a hundred writes that were under way, and of some of the others some
/// sectors.
fn cut<'b>(
    disk: &'b [u8],
    log: &Log,
    under_way: std::ops::Range<usize>,
    share: u64,
    random: &mut u64,
) -> Result<Overlay<Stable<'b>>, DiskError> {
    let stable = Stable(disk);
    let own = stable.blocks();
    let mut cut = Overlay::new(stable);
    for event in &log.events[under_way] {
        let (mut block, mut is_there, mut torn) = (u64::MAX, false, false);
        for (sector, bytes) in log.sectors(event) {
            // A request may be of several blocks.
            if sector / SECTORS != block {
                block = sector / SECTORS;
                is_there = next(random) % 100 < share;
                torn = !is_there && share != 0 && next(random).is_multiple_of(4);
            }
            if block < own && (is_there || torn && next(random).is_multiple_of(2)) {
                let at = (sector % SECTORS) as usize * SECTOR;
                let to = cut.block(block)?.0.get_mut(at..at + SECTOR);
                to.ok_or(DiskError::Beyond)?.copy_from_slice(bytes);
            }
        }
    }
    Ok(cut)
}

/// What is wrong with a disk.
fn looked_at(disk: &mut Overlay<Stable<'_>>, promise: &Promise) -> Vec<String> {
    match check(disk) {
        Err(error) => return vec![error.to_string()],
        Ok(report) if !report.problems.is_empty() => return report.problems,
        Ok(_) => {}
    }
    let mut frames = vec![Block::ZERO; FRAMES * 4];
    let mounted = FileSystem::mount(&mut *disk, &mut frames, Lru::new(), Ticks::new());
    let mut files = match mounted {
        Ok(files) => files,
        Err(error) => return vec![error.to_string()],
    };
    let mut problems = promise.broken(&mut files);
    // It ends well, too.
    if let Err(error) = files.unmount() {
        problems.push(error.to_string());
        return problems;
    }
    match check(disk) {
        Err(error) => problems.push(error.to_string()),
        Ok(report) => problems.extend(report.problems),
    }
    problems
}
