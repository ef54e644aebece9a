//! What the process's memory consists of, as the kernel tells it (`/proc/self/smaps` and others).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;

/// Sizes in KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Address space.
    pub reserved: u64,
    /// Pages in use, each counted once however often it is mapped here.
    pub physical: u64,
    /// Page tables.
    pub tables: u64,
    /// What memory files hold, mapped or not.
    pub files: u64,
    /// The parts of `physical`, by name.
    pub parts: BTreeMap<String, u64>,
}

/// What a line of `/proc/self/maps` is part of. `windows` are the first addresses of domains'
/// windows.
fn part(line: &str, windows: &[u64]) -> Option<&'static str> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let protection = words.next()?;
    let path = words.nth(3).unwrap_or("");
    let writable = protection.contains('w');
    let inside = windows
        .iter()
        .any(|&base| start.wrapping_sub(base) < 1 << 32);
    Some(match path {
        _ if path.contains("postern-image") && protection.contains('x') => "modules: code",
        _ if path.contains("postern-image") && !writable => "modules: constants",
        _ if path.contains("postern-shared") => "shared areas",
        _ if path.contains("postern-table") => "table of domains for `postern inspect`",
        _ if inside && !writable => "modules: info pages",
        _ if inside => "modules: stacks and data",
        _ if path.ends_with(".so") && protection.contains('x') => "modules: code",
        _ if path.ends_with(".so") && !writable => "modules: constants",
        _ if path.ends_with(".so") => "modules: stacks and data",
        _ if path.contains(".so") && !writable => "C library's file",
        _ if path.starts_with('/') && !writable => "program's file",
        // Only the table of control blocks is so large and accessible.
        "" if writable && end - start >= 1 << 30 => "control blocks",
        _ => "the server's own data: heap, stacks",
    })
}

/// KiB of the memory files that this process has open.
fn memory_files() -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let path = entry?.path();
        let name = std::fs::read_link(&path).unwrap_or_default();
        if name.to_string_lossy().starts_with("/memfd:postern") {
            sum += std::fs::metadata(&path)?.blocks() / 2;
        }
    }
    Ok(sum)
}

impl Memory {
    /// Of this process, some of whose memory is that of domains in these windows.
    pub fn read(windows: &[u64]) -> std::io::Result<Memory> {
        let file = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}"));
        let (status, rollup) = (file("status")?, file("smaps_rollup")?);
        let number = |text: &str, name: &str| -> u64 {
            let line = text.lines().find(|line| line.starts_with(name));
            let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            number.unwrap_or(0)
        };
        // Memory files are mapped by this process only, so their proportional size is what they
        // take.
        let twice = number(&status, "RssShmem:") - number(&rollup, "Pss_Shmem:");
        let mut parts: BTreeMap<String, u64> = BTreeMap::new();
        let mut now = None;
        // Line by line: all of it would itself be a part worth mentioning.
        for line in BufReader::new(std::fs::File::open("/proc/self/smaps")?).lines() {
            let line = line?;
            match line.strip_prefix("Rss:") {
                Some(rest) => {
                    let size = rest.split_whitespace().next().and_then(|n| n.parse().ok());
                    *parts.entry(now.unwrap_or("?").to_owned()).or_default() += size.unwrap_or(0);
                }
                // Fields have a name and a colon first, mappings their addresses.
                None if line.split(' ').next().is_some_and(|w| w.contains('-')) => {
                    now = part(&line, windows);
                }
                None => {}
            }
        }
        // Nothing else is mapped more than once.
        if let Some(shared) = parts.get_mut("shared areas") {
            *shared = shared.saturating_sub(twice);
        }
        parts.retain(|_, size| *size != 0);
        Ok(Memory {
            reserved: number(&status, "VmSize:"),
            physical: number(&rollup, "Rss:") - twice,
            tables: number(&status, "VmPTE:"),
            files: memory_files()?,
            parts,
        })
    }

    /// What is physical but for the program and its libraries, of which no module has its own copy.
    pub fn own(&self) -> u64 {
        let files = ["program's file", "C library's file"];
        let files = files.iter().filter_map(|name| self.parts.get(*name));
        self.physical - files.sum::<u64>()
    }

    /// As text for another process.
    pub fn print(&self) -> String {
        let (tables, files) = (self.tables, self.files);
        let mut text = format!("{} {} {tables} {files}\n", self.reserved, self.physical);
        for (name, size) in &self.parts {
            let _ = writeln!(text, "{size} {name}");
        }
        text
    }

    /// What [`Memory::print`] made; `None` if it is something else.
    pub fn parse(text: &str) -> Option<Memory> {
        let mut lines = text.lines();
        let first: Vec<u64> = lines
            .next()?
            .split(' ')
            .map(|word| word.parse().ok())
            .collect::<Option<_>>()?;
        let &[reserved, physical, tables, files] = &first[..] else {
            return None;
        };
        let parts = lines.map(|line| {
            let (size, name) = line.split_once(' ')?;
            Some((name.to_owned(), size.parse().ok()?))
        });
        Some(Memory {
            reserved,
            physical,
            tables,
            files,
            parts: parts.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_whole() {
        let memory = Memory::read(&[]).unwrap();
        let sum: u64 = memory.parts.values().sum();
        // The kernel's two files are not of the same moment.
        assert!(
            sum.abs_diff(memory.physical) < memory.physical / 10,
            "{memory:?}"
        );
        assert_eq!(Memory::parse(&memory.print()), Some(memory));
        assert_eq!(Memory::parse("modules: no such file"), None);
    }

    #[test]
    fn mappings_are_told_apart() {
        let base = 0x7000_0000_0000u64;
        for (line, expected) in [
            (
                "700000010000-700000011000 r--p 00000000 00:00 0 ",
                "modules: info pages",
            ),
            (
                "700000020000-700000023000 rw-p 00000000 00:00 0 ",
                "modules: stacks and data",
            ),
            (
                "700000011000-700000013000 r-xp 00000000 00:01 9 /memfd:postern-image (deleted)",
                "modules: code",
            ),
            (
                "7f0000000000-7f0000001000 r--p 00000000 08:01 9 /x/build/alike/auth.so",
                "modules: constants",
            ),
            (
                "7f0000000000-7f0000001000 r-xp 00000000 08:01 9 /usr/lib/libc.so.6",
                "C library's file",
            ),
            (
                "7e0000000000-7e0080000000 rw-p 00000000 00:00 0 ",
                "control blocks",
            ),
            (
                "55d000000000-55d000001000 rw-p 00000000 00:00 0 [heap]",
                "the server's own data: heap, stacks",
            ),
        ] {
            assert_eq!(part(line, &[base]), Some(expected), "{line}");
        }
    }
}
