//! What gates ask of the loader: memory, time, and what becomes of calls that do not return.

use super::{domain, places};
use crate::system::{self, map, number, protection};
use crate::thread::Block;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::ops::Range;
use postern_gates::above::{self, Above, Ended, Held};
use postern_gates::below::{self, Access, Below, NoPages};
use postern_gates::outcome::{self, Refusal};
use postern_gates::peer::PeerError;
use postern_gates::sync::Mutex;

static BELOW: Below = Below {
    reserve: places::reserve,
    open,
    promise,
    protect,
    close,
    stack,
    now,
    contended: core::hint::spin_loop,
    abandon: |words| system::give_up(125, &[words.as_bytes()]),
};

static ABOVE: Above = Above {
    watch: || Ok(()),
    wake: || {},
    give_data_stack: |control, thread| {
        let agent = domain::agent().ok_or(Refusal::Closed)?;
        control.give_data_stack(thread, agent.data_stack(Block::mine()));
        Ok(())
    },
    move_window: |_| {},
    instead: |_, refusal| Err(refusal),
    refused: |refusal| *last() = Some(format!("its call was refused: {refusal:?}")),
    hold: |_| {
        let domain: Arc<()> = Arc::new(());
        Some(Held { domain, life: 0 })
    },
    ended,
    failure: || above::Failure::Error(PeerError::Closed),
    renew_thread: |_| {},
    forgotten: || {},
    thread_exited: || {},
};

static LAST: Mutex<Option<String>> = Mutex::new(None);

fn last() -> postern_gates::sync::MutexGuard<'static, Option<String>> {
    LAST.lock().unwrap_or_else(|never| never.into_inner())
}

/// Before the first image.
pub fn start() {
    below::give(&BELOW);
    above::give(&ABOVE);
}

/// Why the last call did not return.
pub fn why() -> String {
    last().take().unwrap_or_default()
}

fn ended(_: Option<Held>, ended: Ended) {
    let words = match (ended.fault.kind, ended.message) {
        (outcome::EXIT, _) => format!("it exited with status {}", ended.detail as i32),
        (_, Some(words)) => words,
        (outcome::SIGNAL, None) => {
            let offset = ended.fault.registers[15].wrapping_sub(ended.fault.base);
            let address = ended.fault.address.wrapping_sub(ended.fault.base);
            format!(
                "exception {} at instruction {offset:#x}, address {address:#x}",
                ended.fault.trap
            )
        }
        (kind, None) => format!("ended ({kind})"),
    };
    *last() = Some(words);
}

fn change(range: &Range<u64>, rights: u64, flags: u64) -> Result<(), NoPages> {
    let bytes = range.end - range.start;
    let flags = map::PRIVATE | map::ANONYMOUS | map::FIXED | flags;
    // SAFETY: a range of the gates' own.
    let at = unsafe { system::mmap(range.start, bytes, rights, flags, -1, 0) };
    if at as u64 == range.start {
        Ok(())
    } else {
        Err(NoPages)
    }
}

fn open(range: Range<u64>) -> Result<(), NoPages> {
    change(&range, protection::READ | protection::WRITE, 0)
}

/// What an agent writes is everybody's.
fn promise(range: Range<u64>) -> Result<(), NoPages> {
    if places::map(range.start, range.end) {
        Ok(())
    } else {
        Err(NoPages)
    }
}

fn protect(range: Range<u64>, access: Access) -> Result<(), NoPages> {
    let rights = match access {
        Access::Read => protection::READ,
        Access::ReadWrite => protection::READ | protection::WRITE,
        Access::ReadExecute => protection::READ | protection::EXECUTE,
    };
    let bytes = range.end - range.start;
    // SAFETY: a range of the gates' own.
    match unsafe { system::call(number::MPROTECT, [range.start, bytes, rights, 0, 0, 0]) } {
        0 => Ok(()),
        _ => Err(NoPages),
    }
}

fn close(range: Range<u64>) {
    // Reserved as before.
    let _ = change(&range, 0, map::NORESERVE);
}

fn stack() -> (u64, u64) {
    let block = Block::mine();
    (block.stack_low(), block.stack())
}

fn now() -> u64 {
    const CLOCK_GETTIME: u64 = 228;
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes two words.
    unsafe { system::call(CLOCK_GETTIME, [1, &raw mut time as u64, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}
