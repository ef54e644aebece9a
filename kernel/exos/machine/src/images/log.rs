//! What QEMU's driver `blklogwrites` records of a disk, in the format of Linux's `dm-log-writes`
//! (Documentation/admin-guide/device-mapper/log-writes.rst): writes and flushes, in their order.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::ImageError;

/// Bytes of a sector.
pub const SECTOR: usize = 512;
const MAGIC: u64 = 0x006a_7366_7773_6872;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
/// Bytes before an entry's: its four words.
const WORDS: usize = 32;

/// Something that the disk was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes, from a sector on: which of the record's they are.
    Write(u64, Range<usize>),
    /// What was written is to be there for good.
    Flush,
}

/// A record.
#[derive(Clone, Debug)]
pub struct Log {
    /// All that was told, in order.
    pub events: Vec<Event>,
    bytes: Vec<u8>,
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

impl Log {
    /// Reads one. It ends where its head says, or before an entry that is not whole.
    pub fn read(path: &Path) -> Result<Log, ImageError> {
        let bytes = std::fs::read(path);
        let bytes = bytes.map_err(|error| ImageError::File(path.to_owned(), error))?;
        Log::of(bytes).map_err(|why| ImageError::Log(PathBuf::from(path), why))
    }

    /// The record that bytes are.
    pub fn of(bytes: Vec<u8>) -> Result<Log, &'static str> {
        if word(&bytes, 0) != Some(MAGIC) || word(&bytes, 8) != Some(1) {
            return Err("its first bytes are others");
        }
        let count = word(&bytes, 16).unwrap_or_default();
        let size = word(&bytes, 24).unwrap_or_default() as u32 as usize;
        if size != SECTOR {
            return Err("its sectors have other than 512 bytes");
        }
        let mut events = Vec::new();
        let mut at = SECTOR;
        for _ in 0..count {
            let entry = |index: usize| word(&bytes, at + 8 * index);
            let (Some(sector), Some(sectors), Some(flags)) = (entry(0), entry(1), entry(2)) else {
                break;
            };
            if at + WORDS > bytes.len() {
                break;
            }
            at += SECTOR;
            if flags & FLUSH != 0 {
                events.push(Event::Flush);
            }
            if flags & DISCARD != 0 {
                return Err("it has discards, which nothing here asks for");
            }
            if sectors != 0 {
                let end = usize::try_from(sectors)
                    .ok()
                    .and_then(|sectors| at.checked_add(sectors.checked_mul(SECTOR)?))
                    .filter(|end| *end <= bytes.len());
                let Some(end) = end else { break };
                events.push(Event::Write(sector, at..end));
                at = end;
            }
            if flags & FUA != 0 {
                events.push(Event::Flush);
            }
        }
        Ok(Log { events, bytes })
    }

    /// The sectors of a write, each with its number.
    pub fn sectors(&self, event: &Event) -> impl Iterator<Item = (u64, &[u8])> {
        let (first, range) = match event {
            Event::Write(first, range) => (*first, range.clone()),
            Event::Flush => (0, 0..0),
        };
        let bytes = self.bytes.get(range).unwrap_or_default();
        (first..).zip(bytes.chunks(SECTOR))
    }
}

/// What QEMU is told, so that an image's writes are recorded in a file that is there.
pub fn recorded(image: &Path, log: &Path) -> OsString {
    let file = |path: &Path| {
        let path = path.display().to_string().replace(['\\', '"'], "");
        format!(r#"{{"driver":"file","filename":"{path}"}}"#)
    };
    let words = format!(
        r#"json:{{"driver":"raw","file":{{"driver":"blklogwrites","file":{},"log":{}}}}}"#,
        file(image),
        file(log)
    );
    // A comma within an option's value.
    words.replace(',', ",,").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(entries: &[(u64, u64, u64)], said: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut sector = |words: &[u64]| {
            let end = bytes.len() + SECTOR;
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            bytes.resize(end, 0);
        };
        sector(&[MAGIC, 1, said, SECTOR as u64]);
        for (first, sectors, flags) in entries {
            sector(&[*first, *sectors, *flags, 0]);
            // Of what a test says that it cannot have.
            for number in 0..(*sectors).min(16) {
                sector(&[first + number; 8]);
            }
        }
        bytes
    }

    #[test]
    fn writes_and_flushes_are_read() {
        let log = Log::of(record(&[(8, 2, 0), (0, 0, FLUSH), (16, 1, 0)], 3)).unwrap();
        assert_eq!(log.events.len(), 3);
        assert_eq!(log.events[1], Event::Flush);
        let sectors: Vec<u64> = log.sectors(&log.events[0]).map(|(at, _)| at).collect();
        assert_eq!(sectors, [8, 9]);
        assert!(
            log.sectors(&log.events[0])
                .all(|(at, bytes)| bytes[0] == at as u8)
        );
    }

    #[test]
    fn it_ends_where_it_is_not_whole() {
        let whole = record(&[(8, 2, 0), (16, 1, 0)], u64::MAX);
        assert_eq!(Log::of(whole.clone()).unwrap().events.len(), 2);
        for length in 0..whole.len() {
            let events = Log::of(whole[..length].to_vec()).map(|log| log.events.len());
            assert!(events.is_err() || events <= Ok(2));
        }
        assert!(Log::of(vec![0; 4096]).is_err());
        assert!(Log::of(record(&[(0, u64::MAX, 0)], 1)).is_ok_and(|log| log.events.is_empty()));
    }
}
