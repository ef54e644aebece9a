//! Who is in the stack: one thread at a time, of all processes.
//!
//! Invariant: whoever has the stack has put its thread's number into the word before, and takes it
//! out behind. Who waits for long looks whether that thread is still there; if it was killed,
//! nobody knows what it left half changed, and the stack is *lost* for good.

use crate::host;
use crate::stack::Stack;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The stack is lost: what programs find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

struct Place {
    word: AtomicU32,
    stack: UnsafeCell<Option<Stack>>,
}

// SAFETY: the stack is reached by `with` alone, by one thread at a time.
unsafe impl Sync for Place {}

static PLACE: Place = Place {
    word: AtomicU32::new(0),
    stack: UnsafeCell::new(None),
};

/// Others wait.
const WAITED_FOR: u32 = 1 << 31;
/// No thread has this number.
const LOST: u32 = u32::MAX;
/// After so long, who waits looks whom it waits for.
const PATIENCE: i64 = 100_000_000;

/// Puts a stack there, before anybody asks for it.
pub fn begin(stack: Stack) {
    // SAFETY: the tree's first call has not been made.
    unsafe { *PLACE.stack.get() = Some(stack) };
}

/// Whether the stack is lost.
pub fn is_lost() -> bool {
    PLACE.word.load(SeqCst) == LOST
}

/// Does something with the stack.
pub fn with<R>(what: impl FnOnce(&mut Stack) -> R) -> Result<R, Lost> {
    take()?;
    // SAFETY: the word is this thread's.
    let stack = unsafe { &mut *PLACE.stack.get() };
    let result = stack.as_mut().map(what).ok_or(Lost);
    let before = PLACE.word.swap(0, SeqCst);
    if before & WAITED_FOR != 0 {
        host::wake(&PLACE.word);
    }
    result
}

fn take() -> Result<(), Lost> {
    let (word, mine) = (&PLACE.word, host::thread());
    let mut wanted = mine;
    loop {
        let holder = match word.compare_exchange(0, wanted, SeqCst, SeqCst) {
            Ok(_) => return Ok(()),
            Err(LOST) => return Err(Lost),
            Err(holder) => holder,
        };
        // From now on others may wait, too: whoever has it last wakes one for nothing.
        wanted = mine | WAITED_FOR;
        let marked = holder | WAITED_FOR;
        if holder != marked
            && word
                .compare_exchange(holder, marked, SeqCst, SeqCst)
                .is_err()
        {
            continue;
        }
        let begun = host::clock();
        host::sleep(word, marked, PATIENCE);
        if word.load(SeqCst) == marked
            && host::clock() - begun >= PATIENCE as u64 / 2
            && has_ended(marked & !WAITED_FOR)
            && word.compare_exchange(marked, LOST, SeqCst, SeqCst).is_ok()
        {
            host::print("netstack: a process was killed inside the stack: its sockets are lost\n");
            host::wake(word);
            return Err(Lost);
        }
    }
}

/// Whether a thread is not there, or has ended and nobody has asked for its status.
fn has_ended(thread: u32) -> bool {
    const OPEN: u64 = 2;
    const READ: u64 = 0;
    const CLOSE: u64 = 3;
    let path = path(thread);
    let file = host::now(OPEN, [host::address(&path), 0, 0, 0, 0, 0]);
    let Ok(file) = u64::try_from(file) else {
        return true;
    };
    let mut text = [0u8; 128];
    let at = host::place(text.as_mut_ptr() as usize);
    let length = host::now(READ, [file, at, text.len() as u64, 0, 0, 0]);
    host::now(CLOSE, [file, 0, 0, 0, 0, 0]);
    let text = &text[..usize::try_from(length).unwrap_or(0).min(text.len())];
    // Behind the name, which may have anything in it.
    let name = text.iter().rposition(|byte| *byte == b')');
    let state = name.and_then(|end| text.get(end + 2));
    state.is_none_or(|state| matches!(state, b'Z' | b'X'))
}

/// The path of a thread's status, with zeros behind it. Nothing is allocated outside of the lock.
fn path(mut thread: u32) -> [u8; 24] {
    let mut path = [0; 24];
    path[..6].copy_from_slice(b"/proc/");
    let digits = thread.checked_ilog10().unwrap_or(0) as usize + 1;
    for place in (6..6 + digits).rev() {
        path[place] = b'0' + (thread % 10) as u8;
        thread /= 10;
    }
    path[6 + digits..][..5].copy_from_slice(b"/stat");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_threads() {
        assert_eq!(&path(1)[..12], b"/proc/1/stat");
        assert_eq!(&path(4194304)[..19], b"/proc/4194304/stat\0");
        assert!(!has_ended(std::process::id()));
    }
}
