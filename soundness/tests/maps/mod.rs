//! The mappings of this process, as the kernel lists them.

use std::fs;

/// A line of /proc/self/maps.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub protection: String,
    pub name: String,
}

pub fn mappings() -> Vec<Mapping> {
    let text = fs::read_to_string("/proc/self/maps").unwrap();
    text.lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next().unwrap().split_once('-').unwrap();
            let hex = |s| u64::from_str_radix(s, 16).unwrap();
            Mapping {
                start: hex(start),
                end: hex(end),
                protection: words.next().unwrap().into(),
                name: words.nth(3).unwrap_or("").into(),
            }
        })
        .collect()
}

/// Protections of `[start, end)`, in order; `unmapped` where nothing is.
pub fn protections(all: &[Mapping], start: u64, end: u64) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = start;
    for mapping in all.iter().filter(|m| m.end > start && m.start < end) {
        if mapping.start > at {
            found.push("unmapped".into());
        }
        found.push(mapping.protection.clone());
        at = mapping.end;
    }
    if at < end {
        found.push("unmapped".into());
    }
    found.dedup();
    found
}
