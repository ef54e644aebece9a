//! The console: the serial line, for who may read or write it.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::records::{CONSOLE, HoldingKind};
use postern_aegis_abi::{Context, Error, call};
use postern_aegis_books::Hardware;

use crate::hardware::serial::{self, Console};
use crate::machine::{Here, books};

/// Bytes that are moved at a time.
const PIECE: usize = 256;

/// The birth of the owner who was told that bytes have come, and has not read since; 0: nobody.
static TOLD: AtomicU32 = AtomicU32::new(0);

/// Whether somebody may write, or read.
fn may(caller: u16, write: bool, capability: u64) -> Result<(), Error> {
    let _holdings = books().lock_holdings();
    let console = (CONSOLE as u64, HoldingKind::Console);
    books()
        .may_use(caller, console, write, capability)
        .map(drop)
        .map_err(|_| Error::Denied)
}

/// The call: how many bytes were written.
pub fn write(caller: u16, address: u64, length: u64, capability: u64) -> Result<u64, Error> {
    may(caller, true, capability)?;
    let length = length.min(call::MANY * 8) as usize;
    let mut piece = [0; PIECE];
    let mut console = Console::hold(|| Here.poll());
    let mut done = 0;
    while done < length {
        let piece = &mut piece[..PIECE.min(length - done)];
        let at = address.checked_add(done as u64).ok_or(Error::Argument)?;
        books().read_bytes(caller, at, piece)?;
        piece.iter().for_each(|&byte| console.put(byte));
        done += piece.len();
    }
    Ok(done as u64)
}

/// The call: a byte.
pub fn read(caller: u16, capability: u64) -> Result<u64, Error> {
    may(caller, false, capability)?;
    // Before the byte is looked for: one that comes now is told.
    TOLD.store(0, Relaxed);
    let _console = Console::hold(|| Here.poll());
    serial::read().map(u64::from).ok_or(Error::Again)
}

/// Tells the owner once that bytes have come. Called at ticks of processor 0.
pub fn look() {
    if !serial::has_come() {
        return;
    }
    let console = books().holding(CONSOLE);
    let birth = console.birth.load(Relaxed);
    if TOLD.swap(birth, Relaxed) != birth {
        books().raise(console.owner.load(Relaxed), Context::EVENT_CONSOLE);
    }
}
