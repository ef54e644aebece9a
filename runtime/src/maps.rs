//! The kernel's list of a process's mappings, `/proc/PID/maps`: the truth about protections.

use std::io;

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) execute: bool,
    /// Whether writes are seen by others who map the same pages.
    pub(crate) shared: bool,
    /// Where in the file it begins.
    pub(crate) at: u64,
    /// Device and inode; an inode of 0 is no file.
    pub(crate) file: (u64, u64),
}

/// The mappings of a process (`self` or a number), in ascending order.
pub(crate) fn list(process: &str) -> io::Result<Vec<Mapping>> {
    let text = std::fs::read(format!("/proc/{process}/maps"))?;
    let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    let parsed = lines.map(|line| {
        parse(line).ok_or_else(|| {
            let line = String::from_utf8_lossy(line);
            io::Error::other(format!("a line of another form: {line}"))
        })
    });
    parsed.collect()
}

/// `start-end rwxs offset major:minor inode path`; only the path may be other than ASCII.
fn parse(line: &[u8]) -> Option<Mapping> {
    let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = word()?.split_once('-')?;
    let rights = word()?.as_bytes();
    let at = hex(word()?)?;
    let (major, minor) = word()?.split_once(':')?;
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        read: rights.first()? == &b'r',
        write: rights.get(1)? == &b'w',
        execute: rights.get(2)? == &b'x',
        shared: rights.get(3)? == &b's',
        at,
        file: (hex(major)? << 32 | hex(minor)?, word()?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_kind() {
        let line = b"7f01000-7f03000 rw-s 00001000 fd:0a 40362    /memfd:a \xff b (deleted)";
        let expected = Mapping {
            start: 0x7f0_1000,
            end: 0x7f0_3000,
            read: true,
            write: true,
            execute: false,
            shared: true,
            at: 0x1000,
            file: (0xfd << 32 | 0xa, 40362),
        };
        assert_eq!(parse(line), Some(expected));
        assert!(parse(b"7f01000-7f03000 ---p 00000000 00:00 0").is_some());
        for broken in [
            &b""[..],
            b"x",
            b"1-2",
            b"1-2 rw",
            b"1-2 rwxp 0 0 0",
            b"1-z rwxp 0 0:0 0",
        ] {
            assert_eq!(parse(broken), None);
        }
        let own = list("self").unwrap();
        let here = own
            .iter()
            .find(|m| (m.start..m.end).contains(&(parse as *const () as u64)));
        assert!(here.is_some_and(|m| m.read && m.execute && !m.write));
        assert!(own.is_sorted_by_key(|m| m.start));
    }
}
