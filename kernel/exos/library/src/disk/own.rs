//! This process's driver: it is made when the first block is asked for, and a copy of the process
//! makes its own.

use postern_exos_abi::errno::{self, Errno};
use postern_exos_fs::disk::DiskError;

use crate::disk::driver::{Driver, Range};
use crate::disk::trusted;
use crate::net::own::birth;

/// An error of the disk, for C.
pub fn number(error: DiskError) -> Errno {
    match error {
        DiskError::Beyond => errno::INVAL,
        DiskError::Device => errno::IO,
    }
}

/// Does something with blocks of a range that is this process's own.
pub fn with(
    range: usize,
    act: impl FnOnce(&mut Driver) -> Result<(), DiskError>,
) -> Result<(), Errno> {
    let range = Range {
        number: range,
        read: 0,
        write: 0,
    };
    let done = trusted::with(|own| {
        if own.as_ref().is_none_or(|(whose, _)| *whose != birth()) {
            // A copy's driver is its parent's: its ring is not there.
            *own = Some((birth(), Driver::new(range)?));
        }
        let (_, driver) = own.as_mut().ok_or(errno::NODEV)?;
        driver.of(range)?;
        act(driver).map_err(number)
    });
    done.unwrap_or(Err(errno::AGAIN))
}

/// Blocks of a range.
pub fn blocks(range: usize) -> Result<u64, Errno> {
    let range = Range {
        number: range,
        read: 0,
        write: 0,
    };
    range.blocks().ok_or(errno::NODEV)
}

/// Reads blocks, one behind the other, to pages.
pub fn read(range: usize, first: u64, to: u64, count: usize) -> Result<(), Errno> {
    each(range, first, to, count, Driver::read_to)
}

/// Writes pages to blocks.
pub fn write(range: usize, first: u64, from: u64, count: usize) -> Result<(), Errno> {
    each(range, first, from, count, Driver::write_from)
}

/// Has all that was written be there for good.
pub fn flush(range: usize) -> Result<(), Errno> {
    with(range, Driver::flush_all)
}

const MANY: usize = 64;

fn each(
    range: usize,
    first: u64,
    at: u64,
    count: usize,
    act: impl Fn(&mut Driver, &[(u64, u64)]) -> Result<(), DiskError>,
) -> Result<(), Errno> {
    if !at.is_multiple_of(4096) {
        return Err(errno::INVAL);
    }
    with(range, |driver| {
        for from in (0..count as u64).step_by(MANY) {
            let some = (count as u64 - from).min(MANY as u64) as usize;
            let mut places = [(0, 0); MANY];
            for (place, index) in places.iter_mut().zip(from..) {
                *place = (first.saturating_add(index), at + 4096 * index);
            }
            act(driver, &places[..some])?;
        }
        Ok(())
    })
}
