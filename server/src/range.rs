//! Parts of files: the header `Range` (RFC 9110, section 14).
//!
//! One part at a time. Who asks for several, or for what nobody understands, gets the whole, as the
//! RFC allows.

use http::header::{HeaderMap, IF_RANGE, RANGE};
use std::ops::Range;

/// What of a file is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// All of it.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes behind its end.
    Beyond,
}

/// What a GET asks for of a file of `size` bytes that has this tag and was modified at this time,
/// as `Last-Modified` says it.
pub fn asked(headers: &HeaderMap, size: u64, tag: &str, modified: &str) -> Asked {
    // Parts of different files do not fit together. Weak tags, which begin with `W/`, are never the
    // same here.
    let same = headers.get(IF_RANGE).is_none_or(|found| {
        let found = found.as_bytes().trim_ascii();
        found == tag.as_bytes() || found == modified.as_bytes()
    });
    let mut ranges = headers.get_all(RANGE).iter();
    match (ranges.next(), ranges.next()) {
        (Some(range), None) if same => range
            .to_str()
            .ok()
            .and_then(|range| part(range, size))
            .unwrap_or(Asked::Whole),
        _ => Asked::Whole,
    }
}

/// `None` if it is not a range of bytes.
fn part(range: &str, size: u64) -> Option<Asked> {
    let (unit, range) = range.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let found = match (number(first)?, number(last)?) {
        (None, None) => return None,
        (None, Some(last)) => size.saturating_sub(last)..size,
        (Some(first), None) => first..size,
        (Some(first), Some(last)) if first <= last => first..size.min(last.saturating_add(1)),
        _ => return None,
    };
    Some(match found.is_empty() {
        true => Asked::Beyond,
        false => Asked::Part(found),
    })
}

/// Digits as a number, the largest one if it is larger still; or nothing where there are none.
/// `None` if it is something else.
fn number(text: &str) -> Option<Option<u64>> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| (!text.is_empty()).then(|| text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(range: &'static str, size: u64) -> Asked {
        let headers = [(RANGE, HeaderValue::from_static(range))];
        asked(&headers.into_iter().collect(), size, "\"a\"", "then")
    }

    #[test]
    fn parts() {
        for (range, expected) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=2-5", Asked::Part(2..6)),
            ("Bytes = 2-5", Asked::Part(2..6)),
            ("bytes=7-", Asked::Part(7..10)),
            ("bytes=7-99", Asked::Part(7..10)),
            ("bytes=0-18446744073709551615", Asked::Part(0..10)),
            ("bytes=9-99999999999999999999999", Asked::Part(9..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-30", Asked::Part(0..10)),
            ("bytes=-0", Asked::Beyond),
            ("bytes=10-", Asked::Beyond),
            ("bytes=10-12", Asked::Beyond),
            ("bytes=99999999999999999999999-", Asked::Beyond),
            ("bytes=5-2", Asked::Whole),
            ("bytes=0-1,3-4", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
            ("lines=1-2", Asked::Whole),
            ("1-2", Asked::Whole),
        ] {
            assert_eq!(of(range, 10), expected, "{range}");
        }
        for range in ["bytes=0-", "bytes=-5", "bytes=0-0"] {
            assert_eq!(of(range, 0), Asked::Beyond, "{range}");
        }
    }

    #[test]
    fn parts_of_the_same_file_only() {
        for (condition, expected) in [
            ("\"a\"", Asked::Part(1..3)),
            ("then", Asked::Part(1..3)),
            ("\"b\"", Asked::Whole),
            ("W/\"a\"", Asked::Whole),
            ("now", Asked::Whole),
        ] {
            let headers = [
                (RANGE, HeaderValue::from_static("bytes=1-2")),
                (IF_RANGE, HeaderValue::from_static(condition)),
            ];
            let found = asked(&headers.into_iter().collect(), 10, "\"a\"", "then");
            assert_eq!(found, expected, "{condition}");
        }
    }

    #[test]
    fn two_headers_are_no_range() {
        let mut headers = HeaderMap::new();
        for range in ["bytes=1-2", "bytes=4-5"] {
            headers.append(RANGE, HeaderValue::from_static(range));
        }
        assert_eq!(asked(&headers, 10, "", ""), Asked::Whole);
    }
}
