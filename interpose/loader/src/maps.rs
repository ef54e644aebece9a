//! What the kernel says of the process's memory.

use crate::system::{self, number};

/// Whether a range is of one private mapping of a file, that is read and executed and not written:
/// what linkers make of programs, and no generator of code.
pub fn is_text(start: u64, end: u64) -> bool {
    // SAFETY: the kernel reads the path.
    let file = unsafe {
        let path = c"/proc/self/maps".as_ptr() as u64;
        system::call(number::OPEN, [path, CLOSES, 0, 0, 0, 0])
    };
    if file < 0 {
        return false;
    }
    let (mut buffer, mut filled, mut found) = ([0; 1024], 0, None);
    while found.is_none() {
        match read(file as i32, &mut buffer[filled..]) {
            0 => break,
            count => filled += count,
        }
        while let Some(length) = buffer[..filled].iter().position(|byte| *byte == b'\n') {
            found = found.or_else(|| judge(&buffer[..length], start, end));
            buffer.copy_within(length + 1..filled, 0);
            filled -= length + 1;
        }
        if filled == buffer.len() {
            // A path that is longer: what is known of its line is enough.
            found = found.or_else(|| judge(&buffer, start, end));
            break;
        }
    }
    system::close(file as i32);
    found.unwrap_or(false)
}

/// `O_CLOEXEC`.
const CLOSES: u64 = 0o2_000_000;

fn read(file: i32, to: &mut [u8]) -> usize {
    const READ: u64 = 0;
    let to = (to.as_mut_ptr() as u64, to.len() as u64);
    // SAFETY: the kernel writes into the slice.
    unsafe { system::call(READ, [file as u64, to.0, to.1, 0, 0, 0]) }.max(0) as usize
}

/// What a line says, if it is of the mapping in which the range begins: addresses, rights, offset,
/// device, the file's number and path.
fn judge(line: &[u8], start: u64, end: u64) -> Option<bool> {
    let line = core::str::from_utf8(line).unwrap_or_default();
    let mut words = line.split_ascii_whitespace();
    let (low, high) = words.next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let (low, high) = (address(low)?, address(high)?);
    if !(low..high).contains(&start) {
        return None;
    }
    let rights = words.next()?;
    let (number, path) = (words.nth(2)?, words.next().unwrap_or_default());
    // Files without a place, which generators of code map twice.
    let named = !path.starts_with("/memfd:") && !path.starts_with("/dev/");
    Some(end <= high && rights == "r-xp" && number != "0" && named)
}
