//! Bytes at offsets, and in several pieces: `pread` and its like, <sys/uio.h>.

use core::ffi::c_int;
use core::slice;

use postern_exos_abi::errno::{self, Errno};

use crate::c::trusted::answer;
use crate::files::descriptors;

/// A piece, as the header says it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Piece {
    from: *mut u8,
    length: usize,
}

/// Pieces at most.
const PIECES: usize = 1024;

fn offset(at: i64) -> Result<u64, Errno> {
    u64::try_from(at).map_err(|_| errno::INVAL)
}

/// # Safety
/// The memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread(number: c_int, to: *mut u8, length: usize, at: i64) -> isize {
    // SAFETY: the caller says so.
    let to = unsafe { bytes_mut(Piece { from: to, length }) };
    let done = offset(at).and_then(|at| descriptors::read_at(number, to, at));
    answer(done.map(|done| done as isize))
}

/// # Safety
/// The bytes are the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(number: c_int, from: *mut u8, length: usize, at: i64) -> isize {
    // SAFETY: the caller says so.
    let bytes = unsafe { bytes_mut(Piece { from, length }) };
    let done = offset(at).and_then(|at| descriptors::write_at(number, bytes, at));
    answer(done.map(|done| done as isize))
}

/// # Safety
/// Pieces, whose memory is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(number: c_int, pieces: *const Piece, count: c_int) -> isize {
    let each = |piece, _| {
        // SAFETY: the caller says so.
        descriptors::read(number, unsafe { bytes_mut(piece) })
    };
    // SAFETY: as above.
    unsafe { all(pieces, count, each) }
}

/// # Safety
/// As [`readv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(number: c_int, pieces: *const Piece, count: c_int) -> isize {
    let each = |piece, _| {
        // SAFETY: the caller says so.
        descriptors::write(number, unsafe { bytes_mut(piece) })
    };
    // SAFETY: as above.
    unsafe { all(pieces, count, each) }
}

/// # Safety
/// As [`readv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv(
    number: c_int,
    pieces: *const Piece,
    count: c_int,
    at: i64,
) -> isize {
    let each = |piece, done| {
        // SAFETY: the caller says so.
        let to = unsafe { bytes_mut(piece) };
        offset(at).and_then(|at| descriptors::read_at(number, to, at.saturating_add(done)))
    };
    // SAFETY: as above.
    unsafe { all(pieces, count, each) }
}

/// # Safety
/// As [`readv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(
    number: c_int,
    pieces: *const Piece,
    count: c_int,
    at: i64,
) -> isize {
    let each = |piece, done| {
        // SAFETY: the caller says so.
        let from = unsafe { bytes_mut(piece) };
        offset(at).and_then(|at| descriptors::write_at(number, from, at.saturating_add(done)))
    };
    // SAFETY: as above.
    unsafe { all(pieces, count, each) }
}

/// # Safety
/// The memory is the caller's, or there are no bytes.
unsafe fn bytes_mut<'a>(piece: Piece) -> &'a mut [u8] {
    match piece.length {
        0 => &mut [],
        // SAFETY: the caller says so.
        length => unsafe { slice::from_raw_parts_mut(piece.from, length) },
    }
}

/// Calls with each piece that has bytes, and how many bytes were done before it, until one was not done whole.
///
/// # Safety
/// So many pieces.
unsafe fn all(
    pieces: *const Piece,
    count: c_int,
    mut each: impl FnMut(Piece, u64) -> Result<usize, Errno>,
) -> isize {
    let count = match usize::try_from(count) {
        Ok(count @ 0..=PIECES) => count,
        _ => return answer(Err(errno::INVAL)),
    };
    let mut done: usize = 0;
    for index in 0..count {
        // SAFETY: the caller says so.
        let piece = unsafe { *pieces.add(index) };
        if piece.length == 0 {
            continue;
        }
        match each(piece, done as u64) {
            Ok(some) => {
                done += some;
                if some < piece.length {
                    break;
                }
            }
            Err(error) if done == 0 => return answer(Err(error)),
            Err(_) => break,
        }
    }
    done as isize
}
