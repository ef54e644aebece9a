//! Questions for the addresses of names (RFC 1035), and answers, which are believed only if they
//! answer what was asked.

use core::net::Ipv4Addr;

use crate::frame::{address, half};

/// Addresses of a name that are taken, at most.
pub const MOST: usize = 8;
/// Bytes of a question at most.
pub const QUESTION: usize = 12 + 256 + 4;
/// The port of servers.
pub const PORT: u16 = 53;

/// Why there are no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// This is no answer to the question.
    Other,
    /// There is no such name, or it has no address.
    NoName,
    /// The server could not say; another one, or the same later, may.
    Later,
}

/// A question for a name's addresses, by a number that nobody guesses; its length. `None`: this is
/// no name.
pub fn question(number: u16, name: &[u8], to: &mut [u8; QUESTION]) -> Option<usize> {
    *to = [0; QUESTION];
    to[..2].copy_from_slice(&number.to_be_bytes());
    // Recursion is wanted; one question.
    (to[2], to[5]) = (1, 1);
    let name = name.strip_suffix(b".").unwrap_or(name);
    if name.is_empty() || name.len() > 253 {
        return None;
    }
    let mut at = 12;
    for label in name.split(|byte| *byte == b'.') {
        let length = u8::try_from(label.len())
            .ok()
            .filter(|length| (1..64).contains(length))?;
        *to.get_mut(at)? = length;
        to.get_mut(at + 1..=at + label.len())?
            .copy_from_slice(label);
        at += 1 + label.len();
    }
    // The root, then addresses of the Internet.
    to.get_mut(at..at + 5)?.copy_from_slice(&[0, 0, 1, 0, 1]);
    Some(at + 5)
}

/// Where a name ends that begins at an offset. Pointers are not followed.
fn behind(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            length if length < 64 => at += 1 + usize::from(length),
            length if length >= 0xc0 => return Some(at + 2),
            _ => return None,
        }
    }
}

/// The addresses in the answer to a question.
pub fn answer(asked: &[u8], bytes: &[u8]) -> Result<([Ipv4Addr; MOST], usize), Refused> {
    let other = Refused::Other;
    let flags = half(bytes, 2).ok_or(other)?;
    let same = bytes.get(..2) == asked.get(..2) && flags & 0xf800 == 0x8000;
    let (questions, behind_head) = (asked.get(12..).ok_or(other)?, bytes.get(12..).ok_or(other)?);
    let again = behind_head.get(..questions.len()).ok_or(other)?;
    if !same || half(bytes, 4) != Some(1) || !again.eq_ignore_ascii_case(questions) {
        return Err(other);
    }
    match flags & 15 {
        0 if flags & 0x200 == 0 => {}
        3 => return Err(Refused::NoName),
        _ => return Err(Refused::Later),
    }
    let mut found = [Ipv4Addr::UNSPECIFIED; MOST];
    let mut count = 0;
    let mut at = asked.len();
    for _ in 0..half(bytes, 6).ok_or(other)? {
        let Some((next, address)) = record(bytes, at) else {
            break;
        };
        if let (Some(address), Some(place)) = (address, found.get_mut(count)) {
            *place = address;
            count += 1;
        }
        at = next;
    }
    match count {
        0 => Err(Refused::NoName),
        count => Ok((found, count)),
    }
}

/// A record: where it ends, and the address that it has, if it has one.
fn record(bytes: &[u8], at: usize) -> Option<(usize, Option<Ipv4Addr>)> {
    let at = behind(bytes, at)?;
    let (kind, class, length) = (half(bytes, at)?, half(bytes, at + 2)?, half(bytes, at + 8)?);
    let end = at + 10 + usize::from(length);
    bytes.get(..end)?;
    let is = (kind, class, length) == (1, 1, 4);
    Some((end, address(bytes, at + 10).filter(|_| is)))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn asked(number: u16) -> Vec<u8> {
        let mut to = [0; QUESTION];
        let length = question(number, b"www.example.org", &mut to).expect("a question");
        to[..length].to_vec()
    }

    fn answered(number: u16) -> Vec<u8> {
        let mut bytes = asked(number);
        bytes[2] = 0x81;
        bytes[7] = 2;
        // An alias, then an address.
        bytes.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 3, 1, b'a', 0]);
        bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 1, 2, 3]);
        bytes
    }

    #[test]
    fn an_answer_has_addresses() {
        let (found, count) = answer(&asked(7), &answered(7)).expect("addresses");
        assert_eq!((count, found[0]), (1, Ipv4Addr::new(10, 1, 2, 3)));
        assert_eq!(answer(&asked(8), &answered(7)), Err(Refused::Other));
        let mut none = answered(7);
        none[3] = 3;
        assert_eq!(answer(&asked(7), &none), Err(Refused::NoName));
    }

    #[test]
    fn names_are_names() {
        let mut to = [0; QUESTION];
        for bad in [&b""[..], b".", b"a..b", &[b'a'; 64], &[b'.'; 300]] {
            assert_eq!(question(1, bad, &mut to), None);
        }
    }

    #[test]
    fn no_bytes_are_too_bad() {
        let (asked, good) = (asked(7), answered(7));
        let mut seed = 1u64;
        for _ in 0..50_000 {
            let mut bytes = good.clone();
            for _ in 0..3 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (seed >> 33) as usize % bytes.len();
                bytes[at] = (seed >> 20) as u8;
            }
            bytes.truncate((seed >> 40) as usize % (bytes.len() + 1));
            let _ = answer(&asked, &bytes);
        }
    }
}
