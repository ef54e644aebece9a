//! The log: what transactions write into it, and what a mount finds there.
//!
//! A transaction is one record and the blocks behind it, written in one request. The record has the
//! home of each block and the sum under it: a transaction counts if its record is whole, has the
//! sequence number that is next, and each block behind it is the one that was meant. So the record
//! is the commit, whatever order the disk wrote them in.
//!
//! A record also has the blocks that were freed while the log had something for them (*revoked*):
//! they may belong to a file's bytes by now, which the log must not replace.
//!
//! Behind the head of a record, whose level is the number of blocks and whose owner is the sequence
//! number: the number of revoked blocks, a word that is 0, then 16 bytes for each block (home,
//! sum), then 4 bytes for each revoked one.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::disk::{Block, Disk};
use crate::error::Error;
use crate::layout::{BODY, Geometry, HEAD, LOG, Sort, Super, begin, set, word32, word64};

/// Blocks of a transaction at most.
pub const IMAGES: usize = 192;
/// Revoked blocks of a transaction at most.
pub const REVOKED: usize = 240;
const FIRST: usize = HEAD + 8;
/// Blocks that are read in one request.
const TOGETHER: usize = 64;
const _: () = assert!(8 + 16 * IMAGES + 4 * REVOKED <= BODY);

/// Makes a record.
pub fn record(
    geometry: &Geometry,
    home: u64,
    sequence: u64,
    images: &[(u64, u64)],
    revoked: &[u32],
) -> Block {
    let mut block = Block::ZERO;
    begin(
        &mut block,
        home,
        Sort::Record,
        sequence,
        images.len() as u32,
    );
    set(&mut block.0, HEAD, &(revoked.len() as u32).to_le_bytes());
    let mut at = FIRST;
    for (image, sum) in images {
        set(&mut block.0, at, &image.to_le_bytes());
        set(&mut block.0, at + 8, &sum.to_le_bytes());
        at += 16;
    }
    for block_revoked in revoked {
        set(&mut block.0, at, &block_revoked.to_le_bytes());
        at += 4;
    }
    geometry.seal(&mut block, home);
    block
}

/// What the log has for the blocks of the disk.
#[derive(Debug, Default)]
pub struct Replay {
    /// For each block, where in the log its last image is.
    pub images: BTreeMap<u64, u64>,
    /// The sequence number behind the last transaction.
    pub next: u64,
    /// Transactions.
    pub transactions: u64,
    /// A record that is of a later transaction than the first that is not whole: that one is no end
    /// of the log, but damage.
    pub damage: Option<u64>,
}

/// Reads the log, up to the first transaction that is not whole.
pub fn read<D: Disk>(disk: &mut D, superblock: &Super) -> Result<Replay, Error> {
    let geometry = &superblock.geometry;
    let mut replay = Replay {
        next: superblock.sequence,
        ..Replay::default()
    };
    let mut record = Box::new(Block::ZERO);
    let mut images: Vec<Block> = Vec::new();
    let mut at = 0;
    while at < geometry.log {
        let home = LOG + at;
        disk.read(&mut [(home, &mut record)])?;
        let count = word32(&record.0, 4);
        let revoked = word32(&record.0, HEAD) as usize;
        let fits = count as usize <= IMAGES
            && revoked <= REVOKED
            && at + 1 + u64::from(count) <= geometry.log
            && geometry.is(&record, home, Sort::Record, replay.next, count);
        if !fits {
            break;
        }
        let count = count as usize;
        if images.len() < count {
            images = vec![Block::ZERO; count];
        }
        let mut requests: Vec<(u64, &mut Block)> = images
            .iter_mut()
            .take(count)
            .zip(home + 1..)
            .map(|(image, place)| (place, image))
            .collect();
        disk.read(&mut requests)?;
        let said = |index: usize| word64(&record.0, FIRST + 16 * index);
        let is_whole = images.iter().take(count).enumerate().all(|(index, image)| {
            let (image_home, sum) = (said(index), word64(&record.0, FIRST + 16 * index + 8));
            (geometry.map..geometry.blocks).contains(&image_home)
                && word64(&image.0, 24) == sum
                && geometry.is_sealed(image, image_home)
        });
        if !is_whole {
            break;
        }
        for index in 0..revoked {
            let block = word32(&record.0, FIRST + 16 * count + 4 * index);
            replay.images.remove(&u64::from(block));
        }
        for index in 0..count {
            replay.images.insert(said(index), home + 1 + index as u64);
        }
        replay.next += 1;
        replay.transactions += 1;
        at += 1 + count as u64;
    }
    replay.damage = later_record(disk, geometry, at, replay.next)?;
    Ok(replay)
}

/// A record from a place of the log on that has a higher number than the one that is missing. Each
/// is written only when those before it are there for good, and numbers of former logs are lower.
fn later_record<D: Disk>(
    disk: &mut D,
    geometry: &Geometry,
    from: u64,
    missing: u64,
) -> Result<Option<u64>, Error> {
    let mut blocks = vec![Block::ZERO; TOGETHER.min((geometry.log - from) as usize)];
    let mut at = from;
    while at < geometry.log {
        let mut requests: Vec<(u64, &mut Block)> = (LOG + at..LOG + geometry.log)
            .zip(blocks.iter_mut())
            .collect();
        let count = requests.len() as u64;
        disk.read(&mut requests)?;
        let is_later = |home: u64, block: &Block| {
            let (sequence, count) = (word64(&block.0, 8), word32(&block.0, 4));
            sequence > missing && geometry.is(block, home, Sort::Record, sequence, count)
        };
        let mut read = (LOG + at..).zip(&blocks).take(count as usize);
        if let Some((home, _)) = read.find(|(home, block)| is_later(*home, block)) {
            return Ok(Some(home));
        }
        at += count;
    }
    Ok(None)
}

/// Brings what the log has to where it belongs.
pub fn replay<D: Disk>(disk: &mut D, replay: &Replay) -> Result<(), Error> {
    let images: Vec<(u64, u64)> = replay
        .images
        .iter()
        .map(|(home, at)| (*home, *at))
        .collect();
    for some in images.chunks(TOGETHER) {
        let mut blocks = vec![Block::ZERO; some.len()];
        let mut reads: Vec<(u64, &mut Block)> = some
            .iter()
            .zip(&mut blocks)
            .map(|((_, at), block)| (*at, block))
            .collect();
        disk.read(&mut reads)?;
        let writes: Vec<(u64, &Block)> = some
            .iter()
            .zip(&blocks)
            .map(|((home, _), block)| (*home, block))
            .collect();
        disk.write(&writes)?;
    }
    if !images.is_empty() {
        disk.flush()?;
    }
    Ok(())
}
