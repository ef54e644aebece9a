//! What of a program's file is loaded where.

use postern_aegis::{Error, Mapping, PAGE, address};

use crate::source::Source;

/// A piece of a file that is to be in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// Where, in whole pages.
    pub at: u64,
    /// Bytes of memory.
    pub size: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Bytes that the file has; zeros follow.
    pub filled: u64,
    /// What may be done to it: flags of [`Mapping`].
    pub flags: u64,
    /// The program copies the file's pages itself before it stores there, and makes zeros when it
    /// touches them.
    pub lazy: bool,
}

/// A flag of segments, among those that are a system's: [`Segment::lazy`].
const LAZY: u32 = 1 << 20;

/// Segments at most.
pub const SEGMENTS: usize = 12;

/// A program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Where it begins.
    pub entry: u64,
    /// The version of the start page that it reads; 0: it does not say so.
    pub version: u32,
    segments: [Segment; SEGMENTS],
    count: usize,
}

const HEADER: usize = 64;
const ENTRY: usize = 56;

fn half(bytes: &[u8], at: usize) -> u64 {
    word(bytes, at) & 0xffff
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let from = bytes.get(at..).unwrap_or_default();
    let count = from.len().min(8);
    word[..count].copy_from_slice(&from[..count]);
    u64::from_le_bytes(word)
}

impl Program {
    /// Reads a file. [`Error::Kind`]: it is no static program for this processor, or a segment lies
    /// where none can be.
    pub fn read(file: &dyn Source) -> Result<Program, Error> {
        let mut head = [0; HEADER + SEGMENTS * ENTRY];
        let got = file.read(0, &mut head)?;
        let (kind, machine) = (half(&head, 16), half(&head, 18));
        let (table, size, count) = (word(&head, 32), half(&head, 54), half(&head, 56));
        let is = head.starts_with(b"\x7fELF\x02\x01\x01") && (kind, machine) == (2, 62);
        if got < HEADER
            || !is
            || table != HEADER as u64
            || size != ENTRY as u64
            || count as usize > SEGMENTS
        {
            return Err(Error::Kind);
        }
        let mut program = Program {
            entry: word(&head, 24),
            version: 0,
            segments: [Segment::default(); SEGMENTS],
            count: 0,
        };
        for index in 0..count as usize {
            let entry = &head[HEADER + index * ENTRY..][..ENTRY];
            let (kind, flags) = (word(entry, 0) as u32, (word(entry, 0) >> 32) as u32);
            let flag = |has: u32, flag: u64| if flags & has != 0 { flag } else { 0 };
            let segment = Segment {
                at: word(entry, 16),
                size: word(entry, 40),
                offset: word(entry, 8),
                filled: word(entry, 32),
                flags: flag(2, Mapping::WRITE) | flag(1, Mapping::EXECUTE),
                lazy: flags & LAZY != 0,
            };
            if kind == postern_exos_abi::HEADER {
                program.version = flags;
            }
            if kind != 1 || segment.size == 0 {
                continue;
            }
            if !segment.fits(file) {
                return Err(Error::Kind);
            }
            program.segments[program.count] = segment;
            program.count += 1;
        }
        Ok(program)
    }

    /// What is loaded.
    pub fn segments(&self) -> &[Segment] {
        &self.segments[..self.count]
    }
}

impl Segment {
    fn fits(&self, file: &dyn Source) -> bool {
        let end = self.at.checked_add(self.size);
        let bytes = self.offset.checked_add(self.filled);
        address::mappable(self.at)
            && end.is_some_and(|end| end <= address::END)
            && bytes.is_some_and(|bytes| bytes <= file.length())
            && self.filled <= self.size
    }

    /// Its pages: how far each is from the segment's beginning.
    pub fn pages(&self) -> impl Iterator<Item = u64> + use<> {
        (0..self.size).step_by(PAGE)
    }

    /// The page of the file itself that can stand at an offset of the segment, to be read: if it is
    /// never written and all of it is the file's, or nothing behind it is the program's; or if the
    /// program copies it before it stores there, and all of it is the file's.
    pub fn shared(&self, file: &dyn Source, offset: u64) -> Option<u32> {
        let reads = self.flags & Mapping::WRITE == 0 && self.filled == self.size;
        let copies = self.lazy && offset + PAGE as u64 <= self.filled;
        (reads || copies)
            .then(|| file.page(self.offset + offset))
            .flatten()
    }
}
