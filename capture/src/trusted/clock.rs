//! The C library's calendar: what a clock on the wall shows here, and names of files by it.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::Once;

/// Bytes of a path, at most.
const LONGEST: usize = 4096;

/// The calendar's fields of a time in seconds since 1970, by the time zone of the process.
fn calendar(seconds: i64) -> Option<libc::tm> {
    static ZONE: Once = Once::new();
    ZONE.call_once(|| tzset());
    let mut fields = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: both pointers are to values that live through the call. The function fills the
    // second one if it returns it, and it is read only then; its `tm_zone` points into the
    // library's own names of zones, which stay.
    unsafe {
        let given = libc::localtime_r(&seconds, fields.as_mut_ptr());
        (!given.is_null()).then(|| fields.assume_init())
    }
}

unsafe extern "C" {
    /// Reads the time zone of the environment; `localtime_r` need not.
    safe fn tzset();
}

/// Seconds by which local time is ahead of UTC at a time, in seconds since 1970.
pub fn ahead_of_utc(seconds: i64) -> i64 {
    calendar(seconds).map_or(0, |fields| fields.tm_gmtoff)
}

/// A pattern of strftime(3) for a time in seconds since 1970, in local time. Nothing if the text
/// would be empty, longer than a path may be, or the pattern has a zero.
pub(crate) fn named_by_time(pattern: &[u8], seconds: i64) -> Option<Vec<u8>> {
    let pattern = CString::new(pattern).ok()?;
    let fields = calendar(seconds)?;
    let mut text = vec![0; LONGEST];
    // SAFETY: the buffer has as many bytes as the call is told, pattern and fields live through it,
    // and `calendar` filled the fields.
    let written = unsafe {
        libc::strftime(
            text.as_mut_ptr().cast(),
            text.len(),
            pattern.as_ptr(),
            &fields,
        )
    };
    let named = CStr::from_bytes_until_nul(&text).ok()?.to_bytes();
    (written > 0).then(|| named.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let ahead = ahead_of_utc(1_700_000_000);
        let named = |pattern: &[u8]| named_by_time(pattern, 1_700_000_000 - ahead);
        assert_eq!(named(b"a%Y-%m-%d_%H.pcap").unwrap(), b"a2023-11-14_22.pcap");
        assert_eq!(named(b"no pattern").unwrap(), b"no pattern");
        assert_eq!(named(b"\xff%%").unwrap(), b"\xff%");
        for wrong in [&b""[..], b"a\0b", &b"%c".repeat(4000), &[b'x'; 4096]] {
            assert_eq!(named(wrong), None);
        }
        // However odd, something or nothing, but no harm.
        for odd in [&b"%"[..], b"%!", b"%E", b"%99999999d", b"%_", b"%O%"] {
            let _ = named(odd);
        }
        assert_eq!(named_by_time(b"%Y", i64::MAX), None);
    }
}
