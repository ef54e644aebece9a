//! Heads that were written before: of what is asked for again within the second there is nothing to
//! be written.

use alloc::vec::Vec;

use super::head::{self, DATE, Head, Text};

/// Heads that are kept: of each version of a file there is one place.
const KEPT: usize = 16;

/// What a kept head says: the second, the media type, the length, the version, whether the
/// connection ends.
type Says = (u64, &'static str, u64, u64, bool);

/// Heads of answers.
#[derive(Debug)]
pub struct Heads {
    date: (u64, [u8; DATE]),
    kept: Vec<(Says, Text)>,
    /// Of what is not kept.
    other: Text,
}

impl Default for Heads {
    fn default() -> Heads {
        Heads {
            date: (u64::MAX, [0; DATE]),
            kept: (0..KEPT)
                .map(|_| ((u64::MAX, "", 0, 0, false), Text::default()))
                .collect(),
            other: Text::default(),
        }
    }
}

impl Heads {
    /// The head of an answer in a second since 1970, and some words behind it.
    pub fn bytes(&mut self, head: &Head<'_>, words: &str, seconds: u64) -> &[u8] {
        if self.date.0 != seconds {
            self.date = (seconds, head::date(seconds));
        }
        let plain = head.status == 200 && head.version != 0 && head.more.is_empty();
        let plain = plain && head.allows.is_empty() && head.range.is_none() && words.is_empty();
        let says = (seconds, head.kind, head.length, head.version, head.closes);
        let place = match self.kept.get_mut(head.version as usize % KEPT) {
            Some((said, text)) if plain => {
                if *said == says {
                    return text.bytes();
                }
                *said = says;
                text
            }
            _ => &mut self.other,
        };
        place.clear();
        head::write(place, head, &self.date.1);
        place.add(words.as_bytes());
        place.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever was written before, a head is what it would be if it were the first.
    #[test]
    fn nothing_is_kept_that_is_another() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut heads = Heads::default();
        let kinds = ["text/plain", "text/html", ""];
        for _ in 0..20_000 {
            let head = Head {
                status: [200, 200, 200, 206, 304, 404][random.usize(..6)],
                kind: kinds[random.usize(..3)],
                length: random.u64(..3),
                version: random.u64(..3) * 16,
                range: (random.u8(..8) == 0).then_some((1, 9)),
                allows: ["", "", "GET"][random.usize(..3)],
                more: [&b""[..], b"", b"X: y\r\n"][random.usize(..3)],
                closes: random.u8(..8) == 0,
            };
            let seconds = random.u64(..2);
            let words = ["", "", "words"][random.usize(..3)];
            let mut text = Text::default();
            head::write(&mut text, &head, &head::date(seconds));
            text.add(words.as_bytes());
            assert_eq!(heads.bytes(&head, words, seconds), text.bytes(), "{head:?}");
        }
    }
}
