//! Heads of answers.

use core::fmt::Write;

use super::phrase;
use super::request::Range;
use crate::objects::HEAD;

/// Text of a head's size at most; what is behind that is lost.
#[derive(Debug)]
pub struct Text {
    bytes: [u8; HEAD],
    length: usize,
}

impl Default for Text {
    fn default() -> Text {
        Text {
            bytes: [0; HEAD],
            length: 0,
        }
    }
}

impl Text {
    /// Nothing is written any more.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// More bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = self.bytes.get_mut(self.length..self.length + bytes.len());
        if let Some(room) = room {
            room.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    /// A number in decimal digits.
    pub fn number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        while let Some(before) = at.checked_sub(1) {
            at = before;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.add(digits.get(at..).unwrap_or_default());
    }

    /// A tag (RFC 9110, section 8.8.3): a number's digits to the base of 16.
    fn tag(&mut self, version: u64) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut tag = [b'"'; 18];
        let count = (version.max(1).ilog2() / 4 + 1) as usize;
        let mut rest = version;
        for digit in tag.iter_mut().skip(1).take(count).rev() {
            *digit = DIGITS[(rest & 15) as usize];
            rest >>= 4;
        }
        self.add(tag.get(..count + 2).unwrap_or_default());
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

/// Bytes of lines that a site adds, at most: the rest of a head is less than what is left.
pub const MORE: usize = 144;

/// Bytes of a date (RFC 9110, section 5.6.7).
pub const DATE: usize = 29;

/// The date of seconds since 1970, which are not before.
pub fn date(seconds: u64) -> [u8; DATE] {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    // Up to the year 9999.
    let seconds = seconds.min(253_402_300_799);
    let days = seconds / 86_400;
    // Years begin in March, and 400 of them are 146,097 days.
    let from_march = days + 719_468;
    let (era, day) = (from_march / 146_097, from_march % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year + u64::from(month >= 10);
    let month = (month + 2) % 12;
    let mut text = Text::default();
    let _ = write!(
        text,
        "{}, {day_of_month:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    );
    *text.bytes.first_chunk().unwrap_or(&[b' '; DATE])
}

/// What a head says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// The status.
    pub status: u16,
    /// The media type; empty: nothing follows.
    pub kind: &'static str,
    /// Bytes that follow.
    pub length: u64,
    /// A tag of what follows; 0: none.
    pub version: u64,
    /// The range that follows, and of how many bytes.
    pub range: Option<(u64, u64)>,
    /// Methods that are allowed; empty: nothing is said.
    pub allows: &'a str,
    /// More lines, each with its end; at most [`MORE`] bytes, or they are lost.
    pub more: &'a [u8],
    /// Whether the connection ends.
    pub closes: bool,
}

/// Whether a client that has these tags has this version (RFC 9110, section 13.1.2).
pub fn has(tags: &[u8], version: u64) -> bool {
    let mut own = Text::default();
    own.tag(version);
    let mut tags = tags.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    version != 0
        && tags.any(|tag| tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == own.bytes())
}

/// Writes a head behind what is there.
pub fn write(text: &mut Text, head: &Head<'_>, date: &[u8; DATE]) {
    text.add(b"HTTP/1.1 ");
    text.number(head.status.into());
    text.add(b" ");
    text.add(phrase(head.status).as_bytes());
    text.add(b"\r\nDate: ");
    text.add(date);
    text.add(b"\r\nServer: ExOS\r\n");
    if !head.kind.is_empty() {
        text.add(b"Content-Type: ");
        text.add(head.kind.as_bytes());
        text.add(b"\r\n");
    }
    // Neither may have a body, and so neither says its length (RFC 9110, section 8.6).
    if !matches!(head.status, 204 | 304) {
        text.add(b"Content-Length: ");
        text.number(head.length);
        text.add(b"\r\n");
    }
    if head.version != 0 {
        text.add(b"ETag: ");
        text.tag(head.version);
        text.add(b"\r\n");
    }
    if let Some((from, whole)) = head.range {
        text.add(b"Content-Range: bytes ");
        if head.status == 416 {
            text.add(b"*");
        } else {
            text.number(from);
            text.add(b"-");
            text.number((from + head.length).saturating_sub(1));
        }
        text.add(b"/");
        text.number(whole);
        text.add(b"\r\n");
    }
    if !head.allows.is_empty() {
        text.add(b"Allow: ");
        text.add(head.allows.as_bytes());
        text.add(b"\r\n");
    }
    if head.more.len() <= MORE {
        text.add(head.more);
    }
    if head.closes {
        text.add(b"Connection: close\r\n");
    }
    text.add(b"\r\n");
}

/// A range of an object, or all of it: the first byte, how many, and the status.
pub fn part(range: Option<Range>, length: u64) -> (u64, u64, u16) {
    match range.map(|range| range.of(length)) {
        None => (0, length, 200),
        Some(Some((from, count))) => (from, count, 206),
        Some(None) => (0, 0, 416),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::str::from_utf8;

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
            (u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(from_utf8(&date(seconds)), Ok(text));
        }
    }

    #[test]
    fn a_head_says_what_follows() {
        let head = Head {
            status: 206,
            kind: "text/plain",
            length: 5,
            version: 0x2a,
            range: Some((3, 100)),
            closes: true,
            ..Head::default()
        };
        let mut text = Text::default();
        write(&mut text, &head, &date(0));
        let words = from_utf8(text.bytes()).expect("text");
        assert!(
            words.starts_with("HTTP/1.1 206 Partial Content\r\nDate: Thu, 01"),
            "{words}"
        );
        assert!(words.contains("ETag: \"2a\"\r\nContent-Range: bytes 3-7/100\r\n"));
        assert!(words.ends_with("\r\nConnection: close\r\n\r\n"));
        // The longest head there can be has all of its bytes.
        let most = Head {
            status: 416,
            kind: "application/problem+json; charset=utf-8",
            length: u64::MAX / 4,
            version: u64::MAX,
            range: Some((u64::MAX / 4, u64::MAX / 2)),
            allows: "GET, HEAD, POST, PUT, DELETE",
            more: &[b'x'; MORE],
            closes: true,
        };
        for status in [206, 416, 431] {
            let head = Head { status, ..most };
            text.clear();
            write(&mut text, &head, &date(0));
            assert!(text.bytes().ends_with(b"close\r\n\r\n"));
        }
        for (version, tag) in [
            (0x10, "\"10\""),
            (u64::MAX, "\"ffffffffffffffff\""),
            (9, "\"9\""),
        ] {
            text.clear();
            text.tag(version);
            assert_eq!(from_utf8(text.bytes()), Ok(tag));
        }
        assert!(has(b"\"1\", W/\"2a\"", 42) && !has(b"\"2\"", 42) && !has(b"*", 0));
    }
}
