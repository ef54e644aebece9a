//! Why a file is not an image: the place, what is wrong there, and what to do about it.

use alloc::string::String;
use core::fmt;

use postern_verifier::window::{ABI_VERSION, LIMIT, STACK_LOG2, TLS_ALIGNMENT};
use thiserror::Error;

use crate::signature::SignatureError;

/// Why a file is not an image, with the place in the file.
///
/// Its text is one line: place, problem, remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {problem} ({})", problem.remedy())]
pub struct ImageError {
    /// Where in the file.
    pub place: FileLocation,
    /// What is wrong there.
    pub problem: Problem,
}

/// A place in an extension file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileLocation {
    /// The file as a whole.
    File,
    /// The ELF header.
    ElfHeader,
    /// The program header with this index.
    ProgramHeader(u32),
    /// The note that begins at this offset in the file.
    Note(u64),
    /// Entry `index` of the imports note, with the name if it could be read.
    Import(u32, Option<String>),
    /// Entry `index` of the exports note, with the name if it could be read.
    Export(u32, Option<String>),
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = |f: &mut fmt::Formatter<'_>, kind, index, name: &Option<String>| match name {
            Some(name) => write!(f, "{kind} {index} `{name}`"),
            None => write!(f, "{kind} {index}"),
        };
        match self {
            FileLocation::File => write!(f, "file"),
            FileLocation::ElfHeader => write!(f, "ELF header"),
            FileLocation::ProgramHeader(index) => write!(f, "program header {index}"),
            FileLocation::Note(offset) => write!(f, "note at file offset {offset:#x}"),
            FileLocation::Import(index, name) => entry(f, "import", index, name),
            FileLocation::Export(index, name) => entry(f, "export", index, name),
        }
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// It does not begin with the ELF magic number.
    #[error("not an ELF file")]
    NotElf,
    /// It is an ELF file of another class, byte order, machine or version.
    #[error("{field} is {found}, an extension has {wanted}")]
    WrongElf {
        /// The field's name in the ELF specification.
        field: &'static str,
        /// What the file has.
        found: u64,
        /// What an extension has.
        wanted: u64,
    },
    /// A structure reaches beyond the end of the file.
    #[error("{what} at {offset:#x} of {size:#x} bytes reaches beyond the file's {file:#x} bytes")]
    OutsideFile {
        /// What reaches beyond.
        what: &'static str,
        /// Its offset in the file.
        offset: u64,
        /// Its size in bytes.
        size: u64,
        /// Size of the file in bytes.
        file: u64,
    },
    /// A kind of program header that extensions do not have.
    #[error("type {0:#x} has no place in an extension")]
    ForeignSegment(u32),
    /// A protection that extensions do not have, for example writable and executable.
    #[error("protection {0} has no place in an extension")]
    ForeignProtection(Protection),
    /// A second program header or note of a kind that exists once.
    #[error("a second {0}; there is one at most")]
    Second(&'static str),
    /// Something that every extension has is missing.
    #[error("no {0}")]
    Missing(&'static str),
    /// More bytes in the file than in memory.
    #[error("p_filesz {file:#x} is larger than p_memsz {memory:#x}")]
    FileLargerThanMemory {
        /// Bytes in the file.
        file: u64,
        /// Bytes in memory.
        memory: u64,
    },
    /// Text or read-only data with memory that the file does not fill.
    #[error(
        "p_memsz {memory:#x} differs from p_filesz {file:#x}; only the writable segment may have bss"
    )]
    Unfilled {
        /// Bytes in the file.
        file: u64,
        /// Bytes in memory.
        memory: u64,
    },
    /// Text of no bytes.
    #[error("text is empty")]
    EmptyText,
    /// A field that must be a multiple of the page size is none.
    #[error("{field} {value:#x} is not page-aligned")]
    Unaligned {
        /// The field's name in the ELF specification.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// A segment does not begin where the layout puts it.
    #[error("{what} begins at {found:#x}, the layout puts it at {wanted:#x}")]
    Misplaced {
        /// Which segment.
        what: &'static str,
        /// Its `p_vaddr`.
        found: u64,
        /// Where it has to be.
        wanted: u64,
    },
    /// A segment stands before one that it has to follow, or shares file bytes with it.
    #[error("{0} does not follow what comes before it, in the order text, read-only data, data")]
    Order(&'static str),
    /// A segment ends beyond the window's last usable byte.
    #[error("ends at {0:#x}, beyond the window's limit {LIMIT:#x}")]
    BeyondWindow(u64),
    /// The notes are not inside the read-only segment.
    #[error("the notes do not lie inside the read-only segment")]
    NotesOutsideReadOnly,
    /// A thread-local variable's alignment that the top of a data stack does not have.
    #[error(
        "thread-local variables are aligned to {0}; a power of two of at most {TLS_ALIGNMENT} is possible"
    )]
    ThreadLocalAlignment(u64),
    /// The thread-local variables do not begin at a multiple of their alignment.
    #[error(
        "thread-local variables begin at {address:#x}, which is not a multiple of their alignment {alignment}"
    )]
    ThreadLocalsMisaligned {
        /// `p_vaddr`
        address: u64,
        /// `p_align`
        alignment: u64,
    },
    /// More thread-local variables than the top of a data stack may hold.
    #[error(
        "thread-local variables of {size} bytes; they must take less than {most}, a quarter of the data stack"
    )]
    ThreadLocalsTooLarge {
        /// Their size in bytes.
        size: u64,
        /// What they must be smaller than.
        most: u64,
    },
    /// Initial values that are not in the read-only segment.
    #[error("the initial values of thread-local variables do not lie inside the read-only segment")]
    ThreadLocalsOutsideReadOnly,
    /// A note's sizes do not fit into the note segment.
    #[error("truncated note")]
    TruncatedNote,
    /// A note of Postern's with a type that this version does not know.
    #[error("unknown note type {0}")]
    UnknownNote(u32),
    /// The header note does not have 24 bytes.
    #[error("the header note has {0} bytes, not 24")]
    HeaderSize(u64),
    /// Another version of the extension ABI.
    #[error("extension ABI {0}, this library knows {ABI_VERSION}")]
    Abi(u32),
    /// A segment register that is neither gs nor fs.
    #[error("segment register {0}; 0 is gs, 1 is fs")]
    SegmentRegister(u32),
    /// A data stack that is too small or too large.
    #[error("data stack of 2^{0} bytes; 2^{min} to 2^{max} are possible", min = STACK_LOG2.0, max = STACK_LOG2.2)]
    StackSize(u32),
    /// Flags that this version does not know.
    #[error("unknown flags {0:#x}")]
    Flags(u32),
    /// More imports or exports than there may be.
    #[error("more than {0} entries")]
    TooMany(u32),
    /// A table's entry ends before its last NUL.
    #[error("truncated entry")]
    TruncatedEntry,
    /// A name that is empty, too long, or not printable ASCII.
    #[error("the name is not 1 to 255 bytes of printable ASCII without spaces")]
    Name,
    /// A name that occurs twice in its table.
    #[error("the name occurs twice")]
    DuplicateName,
    /// A signature that cannot be read.
    #[error("signature: {0}")]
    Signature(#[from] SignatureError),
    /// An export outside text.
    #[error("offset {0:#x} lies outside text")]
    ExportOutsideText(u32),
    /// The file is larger than any extension can be.
    #[error("the file has {0} bytes; an extension has at most 4 GiB")]
    FileTooLarge(u64),
    /// There was no memory for its tables.
    #[error("no memory for the image's tables")]
    OutOfMemory,
}

impl Problem {
    /// What whoever has the file can do about it, as a clause.
    pub fn remedy(&self) -> &'static str {
        match self {
            Problem::NotElf | Problem::WrongElf { .. } | Problem::FileTooLarge(_) => {
                "give a linked extension, as `postern cc -o name.px` makes it"
            }
            Problem::OutsideFile { .. } | Problem::TruncatedNote | Problem::TruncatedEntry => {
                "the file is damaged or was cut off; make or copy it again"
            }
            Problem::Abi(_) | Problem::Flags(_) | Problem::UnknownNote(_) => {
                "build the extension with the `postern cc` that belongs to this library"
            }
            Problem::ThreadLocalsTooLarge { .. } => {
                "make the data stack larger with `-fpostern-stack=`, or large variables plain ones"
            }
            Problem::ThreadLocalAlignment(_) => "ask for less alignment",
            Problem::StackSize(_) => "choose another size with `-fpostern-stack=`",
            Problem::TooMany(_) => "export and import fewer functions, or split the extension",
            Problem::BeyondWindow(_) => "make data or the data stack smaller",
            Problem::OutOfMemory => "the file may be good; try again when there is more memory",
            Problem::Name | Problem::DuplicateName | Problem::ExportOutsideText(_) => {
                "export functions only, each under one plain name"
            }
            _ => {
                "link it with `postern cc`, which lays segments and notes out as the extension ABI says"
            }
        }
    }

    /// The problem's number, where interfaces in C tell it: always the same, and never 0.
    pub const fn number(&self) -> u32 {
        match self {
            Problem::NotElf => 1,
            Problem::WrongElf { .. } => 2,
            Problem::OutsideFile { .. } => 3,
            Problem::ForeignSegment(_) => 4,
            Problem::ForeignProtection(_) => 5,
            Problem::Second(_) => 6,
            Problem::Missing(_) => 7,
            Problem::FileLargerThanMemory { .. } => 8,
            Problem::Unfilled { .. } => 9,
            Problem::EmptyText => 10,
            Problem::Unaligned { .. } => 11,
            Problem::Misplaced { .. } => 12,
            Problem::Order(_) => 13,
            Problem::BeyondWindow(_) => 14,
            Problem::NotesOutsideReadOnly => 15,
            Problem::ThreadLocalAlignment(_) => 16,
            Problem::ThreadLocalsMisaligned { .. } => 17,
            Problem::ThreadLocalsTooLarge { .. } => 18,
            Problem::ThreadLocalsOutsideReadOnly => 19,
            Problem::TruncatedNote => 20,
            Problem::UnknownNote(_) => 21,
            Problem::HeaderSize(_) => 22,
            Problem::Abi(_) => 23,
            Problem::SegmentRegister(_) => 24,
            Problem::StackSize(_) => 25,
            Problem::Flags(_) => 26,
            Problem::TooMany(_) => 27,
            Problem::TruncatedEntry => 28,
            Problem::Name => 29,
            Problem::DuplicateName => 30,
            Problem::Signature(_) => 31,
            Problem::ExportOutsideText(_) => 32,
            Problem::FileTooLarge(_) => 33,
            Problem::OutOfMemory => 34,
        }
    }

    /// The problem at a place.
    pub(crate) fn at(self, place: FileLocation) -> ImageError {
        ImageError {
            place,
            problem: self,
        }
    }
}

/// Protection flags of a program header, shown as `rwx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection(pub u32);

impl Protection {
    /// `p_flags` bit: executable.
    pub const X: u32 = 1;
    /// `p_flags` bit: writable.
    pub const W: u32 = 2;
    /// `p_flags` bit: readable.
    pub const R: u32 = 4;
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bit, letter) in [(Self::R, 'r'), (Self::W, 'w'), (Self::X, 'x')] {
            write!(f, "{}", if self.0 & bit != 0 { letter } else { '-' })?;
        }
        match self.0 & !7 {
            0 => Ok(()),
            other => write!(f, "+{other:#x}"),
        }
    }
}
