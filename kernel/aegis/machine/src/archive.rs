//! Files as one file, in cpio's form `newc`, which is read by walking over it: programs of Aegis
//! find each other in one, and Linux takes its first file system so.

use postern_aegis_abi::PAGE;

/// An archive that is being written.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

/// Bytes of a header: a magic number and 13 numbers of eight digits.
const HEADER: usize = 6 + 13 * 8;
const FILE: u32 = 0o100_755;
const FOLDER: u32 = 0o040_755;
const DEVICE: u32 = 0o020_600;

impl Archive {
    /// Adds a file that everybody may execute.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, FILE, (0, 0), content);
    }

    /// Adds a file whose content begins with a page of the archive, so that it can be mapped: its
    /// name is followed by as many zeros as that takes.
    pub fn page_aligned(&mut self, name: &str, content: &[u8]) {
        let begins = self.bytes.len() + HEADER + name.len() + 1;
        let zeros = begins.next_multiple_of(PAGE) - begins;
        self.entry(
            &(name.to_owned() + &"\0".repeat(zeros)),
            FILE,
            (0, 0),
            content,
        );
    }

    /// Adds a folder, which must stand before what lies in it.
    pub fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, (0, 0), &[]);
    }

    /// Adds a character device by its two numbers.
    pub fn device(&mut self, name: &str, numbers: (u32, u32)) {
        self.entry(name, DEVICE, numbers, &[]);
    }

    /// The archive's bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        // Inode, mode, user, group, links, time, size, device, special device, name, checksum.
        let (size, name_size) = (content.len() as u32, name.len() as u32 + 1);
        let inode = self.entries;
        let (major, minor) = device;
        let mut head = String::from("070701");
        for field in [
            inode, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name_size, 0,
        ] {
            head += &format!("{field:08x}");
        }
        self.bytes.extend(head.bytes());
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    /// Names and contents begin at multiples of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and contents of an archive, as a reader finds them.
    fn read(mut bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        loop {
            let field = |number: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * number..][..8]).unwrap();
                usize::from_str_radix(text, 16).unwrap()
            };
            assert_eq!(&bytes[..6], b"070701");
            let (size, name_size) = (field(6), field(11));
            let name = String::from_utf8(bytes[110..110 + name_size - 1].to_vec()).unwrap();
            let start = (110 + name_size).next_multiple_of(4);
            if name == "TRAILER!!!" {
                assert_eq!(bytes.len(), start);
                return found;
            }
            let name = name.trim_end_matches('\0').to_owned();
            found.push((name, bytes[start..start + size].to_vec()));
            bytes = &bytes[(start + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn contents_begin_with_pages() {
        let mut archive = Archive::default();
        archive.file("before", b"17");
        for name in ["one", "two"] {
            archive.page_aligned(name, name.as_bytes());
        }
        archive.file("after", b"18");
        let bytes = archive.finish();
        assert_eq!(bytes[PAGE..PAGE + 3], *b"one");
        assert_eq!(bytes[2 * PAGE..2 * PAGE + 3], *b"two");
        let found: Vec<_> = read(&bytes).into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, ["before", "one", "two", "after"]);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut archive = Archive::default();
        archive.folder("a");
        archive.file("a/seed", b"17");
        archive.file("empty", b"");
        archive.device("console", (5, 1));
        let wanted = [
            ("a", "" as &str),
            ("a/seed", "17"),
            ("empty", ""),
            ("console", ""),
        ];
        let found = read(&archive.finish());
        let wanted = wanted.map(|(name, content)| (name.to_owned(), content.into()));
        assert_eq!(found, wanted);
    }
}
