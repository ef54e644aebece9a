//! What a file system is for those who use it, whoever keeps it: the disk's, or one of another
//! machine's. A process that has one serves it to all others.

use crate::errno::{self, Errno};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Bytes.
    File = 1,
    /// Names.
    Folder = 2,
    /// Another name.
    Link = 3,
}

/// What is known of a file besides its bytes. Times are nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its number, which no other file of this file system has at the same time.
    pub node: u64,
    /// What it is.
    pub kind: Kind,
    /// Its permissions: the lower nine bits of C's.
    pub mode: u32,
    /// Names that it has.
    pub links: u32,
    /// Bytes.
    pub size: u64,
    /// Blocks of 4,096 bytes that it takes.
    pub blocks: u64,
    /// When its bytes were changed last.
    pub modified: u64,
    /// When anything of it was.
    pub changed: u64,
    /// Grows whenever its bytes change.
    pub version: u64,
}

/// What there is, in blocks of 4,096 bytes and in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Blocks.
    pub blocks: u64,
    /// Of those, free.
    pub free: u64,
    /// Files that there can be.
    pub files: u64,
    /// Of those, free.
    pub free_files: u64,
}

/// Bytes of a name at most.
pub const NAME: usize = 255;

/// An entry of a folder.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The name: no `/`, no zero, never `.` or `..`.
    pub name: &'a [u8],
    /// What it stands for.
    pub node: u64,
    /// What that is.
    pub kind: Kind,
    /// Where to go on behind it.
    pub next: u64,
}

/// A file system. Files are named by numbers; one that does not stand for a file any more is
/// [`errno::STALE`]. What fails has changed nothing.
pub trait Files {
    /// The folder in which all paths begin.
    fn root(&self) -> u64;

    /// What a name in a folder stands for. Not asked for `.` and `..`.
    fn look_up(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno>;

    /// What is known of a file.
    fn status(&mut self, node: u64) -> Result<Status, Errno>;

    /// Reads bytes from an offset on; fewer only at the end.
    fn read(&mut self, node: u64, offset: u64, to: &mut [u8]) -> Result<usize, Errno>;

    /// Writes bytes at an offset; between the former end and that are zeros. Fewer only where there
    /// is no room for all.
    fn write(&mut self, node: u64, offset: u64, from: &[u8]) -> Result<usize, Errno>;

    /// A new file of a name that is not there yet; `target` is what a link stands for.
    fn create(
        &mut self,
        folder: u64,
        name: &[u8],
        kind: Kind,
        mode: u32,
        target: &[u8],
    ) -> Result<u64, Errno>;

    /// One more name of a file, which is no folder.
    fn link(&mut self, node: u64, folder: u64, name: &[u8]) -> Result<(), Errno>;

    /// Takes a name away: of an empty folder, or of anything else.
    fn remove(&mut self, folder: u64, name: &[u8], is_folder: bool) -> Result<(), Errno>;

    /// Another name, in one step; what had it is as if it had been removed.
    fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8])) -> Result<(), Errno>;

    /// Cuts a file, or lengthens it by zeros.
    fn set_length(&mut self, node: u64, length: u64) -> Result<(), Errno>;

    /// Other permissions.
    fn set_mode(&mut self, node: u64, mode: u32) -> Result<(), Errno>;

    /// Another time of the last change of its bytes.
    fn set_modified(&mut self, node: u64, time: u64) -> Result<(), Errno>;

    /// What a link stands for; its length.
    fn target(&mut self, node: u64, to: &mut [u8]) -> Result<usize, Errno>;

    /// A folder's entries behind a place (0: all), as long as `each` wants more.
    fn list(
        &mut self,
        folder: u64,
        from: u64,
        each: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), Errno>;

    /// When this returns, a file, or all of them, are on the disk for good.
    fn synchronise(&mut self, node: Option<u64>) -> Result<(), Errno>;

    /// What there is.
    fn space(&mut self) -> Result<Space, Errno>;

    /// Somebody has the file open: it lives without names, until it is released as often.
    fn hold(&mut self, node: u64) -> Result<(), Errno>;

    /// Somebody more has a file open that is held already: nothing is looked at anew for that.
    fn share(&mut self, node: u64) -> Result<(), Errno> {
        self.hold(node)
    }

    /// The opposite of [`Files::hold`] and [`Files::share`].
    fn release(&mut self, node: u64);

    /// The page of memory in which bytes of a file stand, from `index` · 4,096 on, and the
    /// capability to read it: whoever binds it or sends it has no copy. It shows these bytes as
    /// long as the capability holds; when they change, the bytes stand in another page.
    fn page(&mut self, node: u64, index: u64) -> Result<(u32, u64), Errno> {
        let _ = (node, index);
        Err(errno::NOTSUP)
    }
}
