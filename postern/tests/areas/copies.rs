//! The host's copies move what was asked for, nothing beside it, and survive a page that is gone
//! whatever their length.

use super::expose::memory_file;
use super::*;
use postern::MemoryError;
use std::os::fd::OwnedFd;

/// Beyond every length that has a way of its own.
const LONGEST: usize = 1300;

/// An area of two pages, the second of which its file has lost.
fn cut() -> Shared {
    let file = memory_file(2 * P);
    let own = OwnedFd::from(file.try_clone().unwrap());
    let area = Shared::from_file(own, 0, 2 * P).unwrap();
    file.set_len(P as u64).unwrap();
    area
}

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|n| (seed * 31 + n * 7 + n / 256) as u8 | 1)
        .collect()
}

#[test]
fn every_length() {
    let area = Shared::new(P).unwrap();
    for len in 0..=LONGEST {
        let at = 64 + len % 67;
        let bytes = pattern(len, len);
        area.write(0, &[0; P]).unwrap();
        area.write(at, &bytes).unwrap();
        let mut all = vec![9; P];
        area.read(0, &mut all).unwrap();
        assert_eq!(all[at..at + len], bytes, "{len}");
        let rest = all[..at].iter().chain(&all[at + len..]);
        assert!(rest.copied().all(|byte| byte == 0), "{len}");
        // The same the other way round, with the host's bytes around it.
        let mut around = vec![7; len + 64];
        area.read(at, &mut around[32..32 + len]).unwrap();
        assert_eq!(around[32..32 + len], bytes, "{len}");
        let rest = around[..32].iter().chain(&around[32 + len..]);
        assert!(rest.copied().all(|byte| byte == 7), "{len}");
    }
}

#[test]
fn every_length_at_a_page_that_is_gone() {
    let area = cut();
    let gone = |result| matches!(result, Err(MemoryError::Gone { .. }));
    for len in 1..=LONGEST {
        let bytes = pattern(len, len);
        let mut back = vec![0; len];
        // Up to the last byte before it.
        area.write(P - len, &bytes).unwrap();
        area.read(P - len, &mut back).unwrap();
        assert_eq!(back, bytes);
        // With one byte, half of them, or all of them on it.
        for beyond in [1, len.div_ceil(2), len] {
            assert!(
                gone(area.read(P + beyond - len, &mut back)),
                "{len}, {beyond}"
            );
            assert!(
                gone(area.write(P + beyond - len, &bytes)),
                "{len}, {beyond}"
            );
        }
    }
}
