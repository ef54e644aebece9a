//! How files of a server are asked for: by calls of procedures, with an area of memory that both
//! have.
//!
//! A call has four words: an operation, with a small argument above it, and three more. What comes
//! back is a number that is not below zero, or below it an error of C. Names and bytes stand in the
//! area, longer answers in its last page. A client brings its area along once, before all else
//! ([`Operation::Attach`]); until then, and after it has become another program, everything is
//! [`errno::NOTCONN`](crate::errno::NOTCONN).
//!
//! Neither believes the other: the server reads names once, and a client that says nonsense has
//! nonsense.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Pages of bytes of an area.
pub const PAGES: usize = 4;
/// Bytes that a request moves at most.
pub const DATA: usize = PAGES * 4096;
/// Bytes of a path at most, its zero among them: newlib's `PATH_MAX`.
pub const PATH: usize = 1024;
/// Where the second string of a request stands: the target of a link that is made, or was met.
pub const SECOND: usize = PATH;

/// What is asked. `node` is a file's number; words that are not named are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// An area: the page of answers, and the capability to write all pages; the numbers of the
    /// others stand in that page, and the nodes that the client has open. → the root's number.
    Attach = 1,
    /// Follows a path from a folder (0: the root) on, as [`walk`] says: folder, bytes of the path,
    /// permissions of what is made → [`FOUND`] and the status, or [`LINK`]: a link is in the way,
    /// whose path's bytes up to it are in the answer and whose target is the second string.
    Walk = 2,
    /// The client has the node open no more.
    Close = 3,
    /// Reads: node, offset, bytes → bytes.
    Read = 4,
    /// Writes: node, offset, bytes → bytes; the answer has where they end. Argument 1: at the end.
    Write = 5,
    /// What is known of a node.
    Status = 6,
    /// Makes a file, a folder or a link: folder, bytes of the name, permissions, argument the kind.
    /// The second string is a link's target, ended by a zero.
    Make = 7,
    /// Takes a name away: folder, bytes of the name; argument 1: of a folder.
    Remove = 8,
    /// Renames: folder, the other folder, bytes of both names (the second's in the upper half).
    Rename = 9,
    /// Another name: node, folder, bytes of the name.
    Link = 10,
    /// Cuts or lengthens: node, length.
    SetLength = 11,
    /// Other permissions: node, mode.
    SetMode = 12,
    /// Another time: node, nanoseconds since 1970.
    SetModified = 13,
    /// What a link stands for: node → bytes.
    Target = 14,
    /// A folder's entries: node, place, bytes that there is room for → bytes of [`Entry`]s.
    List = 15,
    /// Has a node, or all (0), be on the disk for good.
    Synchronise = 16,
    /// How full it is.
    Space = 17,
    /// A page of the cache: node, number of the page → in the answer its number, the capability to
    /// read it, and the file's version.
    Page = 18,
    /// A child that this process has made, and which has not begun, has open what it has: pid.
    Child = 19,
    /// A lock: node, first byte, bytes (0: all to the end), argument [`lock`]. With
    /// [`lock::ASKS`] → the answer is who is in the way.
    Lock = 20,
    /// The server ends, if nobody has files of it open ([`errno::BUSY`](crate::errno::BUSY)).
    /// Argument [`UNMOUNTS`]; of processes with limits of their own it is refused.
    Unmount = 21,
}

impl Operation {
    /// The operation of a request's first word.
    pub fn of(word: u64) -> Option<Operation> {
        use Operation::*;
        const ALL: [Operation; 21] = [
            Attach,
            Walk,
            Close,
            Read,
            Write,
            Status,
            Make,
            Remove,
            Rename,
            Link,
            SetLength,
            SetMode,
            SetModified,
            Target,
            List,
            Synchronise,
            Space,
            Page,
            Child,
            Lock,
            Unmount,
        ];
        ALL.get((word as u32).checked_sub(1)? as usize).copied()
    }

    /// A request's first word.
    pub const fn with(self, argument: u32) -> u64 {
        self as u64 | (argument as u64) << 32
    }
}

/// Says that [`Operation::Unmount`] is meant: others lose what they have by it.
pub const UNMOUNTS: u32 = 0x756d_6e74;

/// What [`Operation::Walk`] does: bits of its argument.
pub mod walk {
    /// A link at the path's end is followed, too.
    pub const FOLLOW: u32 = 1;
    /// The client has it open from now on.
    pub const OPEN: u32 = 2;
    /// It is made if it is not there.
    pub const CREATE: u32 = 4;
    /// It must not be there.
    pub const EXCLUSIVE: u32 = 8;
    /// It is cut to nothing.
    pub const TRUNCATE: u32 = 16;
    /// It must be a folder.
    pub const FOLDER: u32 = 32;
    /// It must not be a folder.
    pub const WRITES: u32 = 64;
    /// Only the folder of the last name is looked for; the answer's offset says where that begins.
    pub const PARENT: u32 = 128;
}

/// What [`Operation::Lock`] does.
pub mod lock {
    /// Gives the bytes free.
    pub const FREE: u32 = 0;
    /// Others may have such a lock, too.
    pub const READ: u32 = 1;
    /// Nobody else has one.
    pub const WRITE: u32 = 2;
    /// Only asks who is in the way.
    pub const ASKS: u32 = 4;
}

/// What [`Operation::Walk`] says.
pub const FOUND: u64 = 0;
/// A link is in the way.
pub const LINK: u64 = 1;

/// Files that a client has open at most.
pub const HELD: usize = 64;

/// The page of answers; before the area is attached the numbers of its other pages.
#[repr(C)]
#[derive(Debug)]
pub struct Answers {
    /// Numbers of the pages of bytes.
    pub numbers: [AtomicU32; PAGES],
    /// [`Status`](crate::file::Status), or what the operation says.
    pub words: [AtomicU64; WORDS],
    /// Numbers of files that the client has open when it brings its area along; 0: none.
    pub held: [AtomicU64; HELD],
}

/// Words of an answer.
pub const WORDS: usize = 10;

/// Which word of an answer is which part of a file's status.
pub mod status {
    #![allow(missing_docs, reason = "fields of Status")]
    pub const NODE: usize = 0;
    pub const KIND: usize = 1;
    pub const MODE: usize = 2;
    pub const LINKS: usize = 3;
    pub const SIZE: usize = 4;
    pub const BLOCKS: usize = 5;
    pub const MODIFIED: usize = 6;
    pub const CHANGED: usize = 7;
    pub const VERSION: usize = 8;
    /// Of a walk: bytes of the path up to the link, or to the last name.
    pub const OFFSET: usize = 9;
}

/// What stands before the name of an entry of a folder, and how it goes on: bytes of the whole in
/// eights.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// What the name stands for.
    pub node: u64,
    /// Where to go on behind it.
    pub next: u64,
    /// What that is: a [`Kind`](crate::file::Kind).
    pub kind: u32,
    /// Bytes of the name.
    pub length: u32,
}

/// Bytes of an entry with a name of so many.
pub const fn entry_size(name: usize) -> usize {
    (core::mem::size_of::<Entry>() + name).next_multiple_of(8)
}

/// Words of a service that has files.
pub mod word {
    /// The number of the page of [`Counters`](super::Counters).
    pub const COUNTERS: usize = 0;
    /// The capability to read it.
    pub const CAPABILITY: usize = 1;
    /// The version of this protocol.
    pub const VERSION: usize = 2;
    /// Not 0: the files change without this server's doing, so nothing that a client has seen
    /// holds.
    pub const VOLATILE: usize = 3;
}

/// The version of this protocol.
pub const VERSION: u64 = 1;

/// A page that everybody reads: a count of changes of names and permissions, and counts of changes
/// of files, by their numbers. Who has seen something of a file, and finds the counts as they were,
/// need not ask again.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Counters {
    /// Changes of what names stand for, and of who may do what.
    pub names: AtomicU64,
    /// Those of the files whose numbers leave the same rest.
    pub files: [AtomicU64; COUNTERS],
}

/// Counts of files.
pub const COUNTERS: usize = 511;

impl Counters {
    /// The count of a file.
    pub fn of(&self, node: u64) -> &AtomicU64 {
        // Numbers may have what tells them apart in either half.
        let mixed = (node ^ node >> 32) % COUNTERS as u64;
        &self.files[mixed as usize]
    }
}

const _: () = assert!(core::mem::size_of::<Counters>() == 4096);
const _: () = assert!(core::mem::size_of::<Answers>() <= 4096);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_operations() {
        for number in 0..30u64 {
            match Operation::of(number | 7 << 32) {
                Some(operation) => assert_eq!(operation.with(7), number | 7 << 32),
                None => assert!(number == 0 || number > 21),
            }
        }
    }

    #[test]
    fn entries_are_words() {
        assert_eq!(entry_size(0), 24);
        assert_eq!(entry_size(1), 32);
        assert_eq!(entry_size(255), 280);
    }
}
