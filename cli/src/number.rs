//! Numbers, sizes and times as people write them on a command line.

use std::time::Duration;

/// An integer in decimal, `0x` hexadecimal, `0o` octal or `0b` binary, with a sign, and `_` between
/// digits. The value is that of a signed or unsigned 64-bit number.
pub fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, digits),
    };
    // from_str_radix would take a second sign.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let value = i128::from(u64::from_str_radix(&digits.replace('_', ""), radix).ok()?);
    let value = if negative { -value } else { value };
    (value >= i128::from(i64::MIN)).then_some(value)
}

/// A 32-bit window offset.
pub fn offset(text: &str) -> Result<u32, String> {
    let value = integer(text).and_then(|v| u32::try_from(v).ok());
    value.ok_or_else(|| "not a 32-bit offset, such as 0x11000".to_owned())
}

/// A size in bytes, with `K`, `M` or `G` for powers of 1024.
pub fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let value = integer(digits).and_then(|v| u64::try_from(v).ok());
    let value = value.and_then(|v| v.checked_mul(1 << shift));
    value.ok_or_else(|| "not a size in bytes, such as 4096, 64K or 16M".to_owned())
}

/// The longest time that something may take; `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit(pub Option<Duration>);

/// A limit of time, with its unit: `250us`, `100ms`, `2s`, or `none` for no limit.
pub fn time(text: &str) -> Result<TimeLimit, String> {
    if text == "none" {
        return Ok(TimeLimit(None));
    }
    let wrong = || "not a time, such as 250us, 100ms, 2s or none".to_owned();
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or_else(wrong)?;
    let (digits, unit) = text.split_at(split);
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        _ => return Err(wrong()),
    };
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(value * seconds);
    time.map(|time| TimeLimit(Some(time))).map_err(|_| wrong())
}

/// A number of bytes for people.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let unit = (count.max(1).ilog2() / 10).min(3);
    let value = count as f64 / (1u64 << (10 * unit)) as f64;
    if value.fract() == 0.0 || unit == 0 {
        format!("{value:.0} {}", UNITS[unit as usize])
    } else {
        format!("{value:.1} {}", UNITS[unit as usize])
    }
}

/// A time in seconds for people, with three figures.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "us"),
        s => (s * 1e9, "ns"),
    };
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_in_all_bases() {
        for (text, value) in [
            ("0", 0),
            ("-3", -3),
            ("+7", 7),
            ("0x1F", 31),
            ("-0x10", -16),
            ("0b101", 5),
            ("0o17", 15),
            ("1_000_000", 1_000_000),
            ("18446744073709551615", i128::from(u64::MAX)),
            ("-9223372036854775808", i128::from(i64::MIN)),
        ] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "x",
            "0x",
            "1.5",
            "--3",
            "-+3",
            "0x-3",
            "18446744073709551616",
            "-9223372036854775809",
            "_1",
        ] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("0x10M"), Ok(16 << 20));
        assert_eq!(size("4096"), Ok(4096));
        for text in ["", "K", "-1", "1T", "18446744073709551615K", "é"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(
            time("100ms"),
            Ok(TimeLimit(Some(Duration::from_millis(100))))
        );
        assert_eq!(
            time("1.5s"),
            Ok(TimeLimit(Some(Duration::from_millis(1500))))
        );
        assert_eq!(time("none"), Ok(TimeLimit(None)));
        for text in ["", "5", "ms", "-1s", "1e99s", "nans", "5 s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quantities_for_people() {
        assert_eq!(
            (bytes(0), bytes(1023), bytes(4096)),
            ("0 B".into(), "1023 B".into(), "4 KiB".into())
        );
        assert_eq!(
            (bytes(1536), bytes(3 << 30)),
            ("1.5 KiB".into(), "3 GiB".into())
        );
        assert_eq!(duration(1.234e-6), "1.23 us");
        assert_eq!(duration(0.25), "250 ms");
    }
}
