//! Programs' files: what of one is mapped where.

/// A piece of the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// Where, before the program's place is added.
    pub at: u64,
    /// Bytes of memory.
    pub bytes: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Bytes that the file has.
    pub filled: u64,
    /// Bits of `PF_*`: 1 executes, 2 writes, 4 reads.
    pub flags: u32,
}

/// Segments at most.
const SEGMENTS: usize = 32;
/// Above, the loader has its own, and the agent its window.
const HIGHEST: u64 = 1 << 46;
/// Bytes of a file's beginning that are looked at, with the table of segments.
pub const HEAD: usize = 4096;

/// Why a file is no program that can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is no ELF file.
    Format,
    /// It is for another processor, or for 32 bits.
    Machine,
    /// Its tables are damaged, or larger than any linker makes them.
    Damaged,
    /// It is to lie where the loader has its own.
    Place,
}

impl Unfit {
    /// In words, behind the file's path.
    pub fn sentence(self) -> &'static [u8] {
        match self {
            Unfit::Format => b": neither a program nor a script that begins with #!",
            Unfit::Machine => b": a program for another processor, or for 32 bits, is not served",
            Unfit::Damaged => b": its tables of segments are damaged, or too large",
            Unfit::Place => b": it is to lie above 64 TiB, where the loader has its own",
        }
    }
}

/// A program, or its interpreter.
#[derive(Clone, Debug)]
pub struct Elf {
    /// Its first instruction.
    pub entry: u64,
    /// It may lie anywhere.
    pub movable: bool,
    /// Where in the file the table of segments is, and how many it has.
    pub table: (u64, u64),
    /// Where in the file the path of its interpreter is, and its bytes with the zero.
    pub interpreter: Option<(u64, u64)>,
    segments: [Segment; SEGMENTS],
    count: usize,
}

fn get<const N: usize>(head: &[u8], at: usize) -> Option<[u8; N]> {
    head.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn half(head: &[u8], at: usize) -> Option<u16> {
    get(head, at).map(u16::from_le_bytes)
}

fn long(head: &[u8], at: usize) -> Option<u32> {
    get(head, at).map(u32::from_le_bytes)
}

fn word(head: &[u8], at: usize) -> Option<u64> {
    get(head, at).map(u64::from_le_bytes)
}

impl Elf {
    /// Reads the beginning of a file, [`HEAD`] bytes or all of it.
    pub fn read(head: &[u8]) -> Result<Elf, Unfit> {
        if !head.starts_with(b"\x7fELF") {
            return Err(Unfit::Format);
        }
        if !head.starts_with(b"\x7fELF\x02\x01\x01") || half(head, 18) != Some(62) {
            return Err(Unfit::Machine);
        }
        let elf = Elf::of_this_machine(head).ok_or(Unfit::Damaged)?;
        match elf.span().1 > HIGHEST {
            true => Err(Unfit::Place),
            false => Ok(elf),
        }
    }

    fn of_this_machine(head: &[u8]) -> Option<Elf> {
        const EXECUTABLE: u16 = 2;
        const MOVABLE: u16 = 3;
        const LOAD: u32 = 1;
        const INTERPRETER: u32 = 3;
        const ENTRY: usize = 56;
        let kind = half(head, 16)?;
        let table = word(head, 32)?;
        let (size, count) = (half(head, 54)?, half(head, 56)?);
        if !matches!(kind, EXECUTABLE | MOVABLE) || usize::from(size) != ENTRY {
            return None;
        }
        let mut elf = Elf {
            entry: word(head, 24)?,
            movable: kind == MOVABLE,
            table: (table, count.into()),
            interpreter: None,
            segments: [Segment::default(); SEGMENTS],
            count: 0,
        };
        for index in 0..usize::from(count) {
            let at = usize::try_from(table).ok()?.checked_add(index * ENTRY)?;
            match long(head, at)? {
                LOAD => {
                    let segment = Segment {
                        at: word(head, at + 16)?,
                        bytes: word(head, at + 40)?,
                        offset: word(head, at + 8)?,
                        filled: word(head, at + 32)?,
                        flags: long(head, at + 4)?,
                    };
                    elf.add(segment)?;
                }
                INTERPRETER => {
                    elf.interpreter = Some((word(head, at + 8)?, word(head, at + 32)?));
                }
                _ => {}
            }
        }
        (elf.count > 0).then_some(elf)
    }

    /// Segments are in the order of their places, and nothing wraps.
    fn add(&mut self, segment: Segment) -> Option<()> {
        /// Processors have no more.
        const LARGEST: u64 = 1 << 47;
        let end = segment.at.checked_add(segment.bytes)?;
        let before = self.segments[..self.count].last();
        let ordered = before.is_none_or(|last| last.at + last.bytes <= segment.at);
        let whole = segment.at % 4096 == segment.offset % 4096;
        if !ordered || !whole || segment.filled > segment.bytes || end > LARGEST {
            return None;
        }
        if segment.bytes > 0 {
            *self.segments.get_mut(self.count)? = segment;
            self.count += 1;
        }
        Some(())
    }

    /// What is mapped.
    pub fn segments(&self) -> &[Segment] {
        &self.segments[..self.count]
    }

    /// The pages from the first segment's to the last one's.
    pub fn span(&self) -> (u64, u64) {
        let all = self.segments();
        let (first, last) = (&all[0], &all[all.len() - 1]);
        let end = last.at + last.bytes;
        (first.at & !4095, end.next_multiple_of(4096))
    }
}
