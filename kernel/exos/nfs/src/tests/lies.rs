//! Lies: answers that are nearly right.

use std::vec;
use std::vec::Vec;

/// What comes instead of an answer.
pub fn changed(random: &mut fastrand::Rng, answer: &[u8], before: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let mut bytes = answer.to_vec();
    let words = bytes.len() / 4;
    let mut word = |random: &mut fastrand::Rng, value: u32| {
        // Behind the number and the reply's own words, mostly: those are soon found out.
        let first = if random.u8(..8) == 0 {
            0
        } else {
            6.min(words - 1)
        };
        let at = 4 * random.usize(first..words);
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    };
    match random.u8(..10) {
        0 => word(random, u32::MAX),
        1 => {
            let value = random.u32(..);
            word(random, value);
        }
        2 => {
            let value = random.u32(..4);
            word(random, value);
        }
        3 => {
            let value = 1 << random.u32(..32);
            word(random, value);
        }
        4 => {
            let at = random.usize(..bytes.len());
            bytes[at] ^= 1 << random.u8(..8);
        }
        5 => {
            let at = random.usize(20.min(bytes.len() - 1)..bytes.len());
            bytes[at] = [0, b'/', b'.'][random.usize(..3)];
        }
        6 => bytes.truncate(random.usize(..bytes.len())),
        7 => bytes.extend((0..random.usize(..200)).map(|_| random.u8(..))),
        8 if random.bool() => return vec![],
        8 => return vec![before.clone(), bytes.clone(), bytes],
        // An earlier answer under this one's number.
        _ if before.len() > 4 => {
            before[..4].copy_from_slice(&answer[..4]);
            bytes = before.clone();
        }
        _ => {}
    }
    *before = answer.to_vec();
    vec![bytes]
}
