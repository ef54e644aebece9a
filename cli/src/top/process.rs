//! What the kernel says of the processes that have a domain.

use std::fs;
use std::os::fd::AsFd;

use postern::CommonMemory;

/// The name that a process has by the kernel, up to 15 bytes, without what a terminal would obey.
/// Not its command line: that is in the process's own memory, where reading it can wait for whoever
/// serves a page that is not there.
pub fn command(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(plain(String::from_utf8_lossy(&name).trim_end()))
}

/// A text of others, without control characters, and without those that change the order of others
/// or are not seen.
pub fn plain(text: &str) -> String {
    let unseen = |c: char| {
        matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    let shown = |c: char| if c.is_control() || unseen(c) { '?' } else { c };
    text.chars().map(shown).collect()
}

/// Whether the kernel says that a process has a seat: one of its descriptors has the lock. `None`
/// if this user may not ask.
pub fn has_seat(pid: u32, seat: u32, memory: &CommonMemory) -> Option<bool> {
    let file = memory.descriptor().as_fd().try_clone_to_owned().ok()?;
    let inode = {
        use std::os::unix::fs::MetadataExt;
        fs::File::from(file).metadata().ok()?.ino()
    };
    let mut entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).ok()?;
    let has = entries.any(|entry| {
        let text = entry.and_then(|entry| fs::read_to_string(entry.path()));
        text.is_ok_and(|text| text.lines().any(|line| is_lock(line, inode, seat)))
    });
    Some(has)
}

/// Whether a line of a descriptor's information is of a lock on this byte of the file:
/// `lock: 1: OFDLCK ADVISORY WRITE -1 00:01:1045 3 3`.
fn is_lock(line: &str, inode: u64, seat: u32) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["lock:", _, "OFDLCK", _, "WRITE", _, file, first, last] = words[..] else {
        return false;
    };
    let own = file.rsplit(':').next().and_then(|text| text.parse().ok());
    // Neighbouring bytes of one description are one lock: the last seat, and the turn.
    let range = (first.parse::<u32>(), last.parse::<u32>());
    own == Some(inode) && matches!(range, (Ok(first), Ok(last)) if (first..=last).contains(&seat))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_read() {
        let line = "lock:\t1: OFDLCK ADVISORY  WRITE -1 00:01:1045 3 3";
        assert!(is_lock(line, 1045, 3));
        assert!(!is_lock(line, 1045, 4) && !is_lock(line, 1046, 3));
        assert!(!is_lock("lock:\t1: OFDLCK", 1045, 3) && !is_lock("", 1045, 3));
        assert_eq!(plain("a\x1b[2Jb\n"), "a?[2Jb?");
        assert_eq!(plain("a\u{202e}b\u{2066}ü"), "a?b?ü");
    }
}
