//! The files that came with the root's package: a cpio archive of the form `newc`, whose headers
//! are text of fixed width.

mod trusted;

/// Bytes of a header: a magic number and 13 numbers of eight hexadecimal digits.
const HEADER: usize = 6 + 13 * 8;
/// Which of the numbers are the file's length and that of its name.
const LENGTH: usize = 6;
const NAME_LENGTH: usize = 11;

/// The root's own archive; other environments have none.
pub fn own() -> Archive<'static> {
    Archive {
        bytes: trusted::package_archive(),
    }
}

/// An archive in memory.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
}

/// A file of it.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it has.
    pub bytes: &'a [u8],
}

impl<'a> Archive<'a> {
    /// Reads an archive.
    pub fn new(bytes: &'a [u8]) -> Archive<'a> {
        Archive { bytes }
    }

    /// Its files, up to the first header that is none.
    pub fn files(self) -> impl Iterator<Item = File<'a>> {
        let mut offset = 0;
        core::iter::from_fn(move || {
            let (file, next) = self.file_at(offset)?;
            offset = next;
            (file.name != "TRAILER!!!").then_some(file)
        })
    }

    /// The file of a name.
    pub fn file(self, name: &str) -> Option<&'a [u8]> {
        self.files()
            .find(|file| file.name == name)
            .map(|file| file.bytes)
    }

    /// A file that is a number in decimal digits.
    pub fn number(self, name: &str) -> Option<u64> {
        core::str::from_utf8(self.file(name)?)
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// The file whose header stands at an offset, and the next header's.
    fn file_at(self, offset: usize) -> Option<(File<'a>, usize)> {
        let header = self.bytes.get(offset..offset.checked_add(HEADER)?)?;
        let numbers = header.strip_prefix(b"070701")?;
        let number = |index: usize| {
            let digits = core::str::from_utf8(&numbers[8 * index..][..8]).ok()?;
            Some(u32::from_str_radix(digits, 16).ok()? as usize)
        };
        let start = offset + HEADER;
        let name = self.bytes.get(start..)?.get(..number(NAME_LENGTH)?)?;
        let name = core::str::from_utf8(name.strip_suffix(&[0])?).ok()?;
        let start = (start + name.len() + 1).next_multiple_of(4);
        let bytes = self.bytes.get(start..)?.get(..number(LENGTH)?)?;
        // A name that is followed by more zeros makes the content begin with a page.
        let name = name.trim_end_matches('\0');
        Some((
            File { name, bytes },
            (start + bytes.len()).next_multiple_of(4),
        ))
    }
}
