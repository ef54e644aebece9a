//! Requests, decoded.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::entry::{self, Message};
use postern_aegis::{ROOT, books, calls, slices};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::request::Operation;
use postern_exos_abi::signal::{self, COUNT};
use postern_exos_abi::table::{PROCESSES, state};

use crate::registry::{Registry, refusal};
use crate::tree::What;
use crate::{DEATHS, REGISTRY, trusted};

/// An answer: words behind the first, and who goes on instead of the caller.
type Answer = ([u64; 3], Option<u16>);

/// Serves a request.
pub fn request(message: &mut Message) {
    trusted::on_stack(serve, message);
}

extern "C" fn serve(message: &mut Message) {
    take_own_slice_back();
    if message.kind != Message::SYNCHRONOUS {
        return;
    }
    let (caller, words) = (message.caller as u16, message.words);
    let answer = REGISTRY.attempt(|registry| {
        if DEATHS.swap(false, Relaxed) {
            registry.find_dead();
            registry.keeper.look();
        }
        let slot = registry.slot_of_environment(caller).ok_or(errno::SRCH)?;
        match answer(registry, slot, words) {
            Err(errno::NOMEM) => {
                // What nobody binds any more is free first.
                registry.keeper.look();
                registry.keeper.sweep();
                registry.settle();
                answer(registry, slot, words)
            }
            answer => answer,
        }
    });
    message.words = [0; entry::WORDS];
    match answer.unwrap_or(Err(errno::BUSY)) {
        Ok((results, next)) => {
            message.words[1..4].copy_from_slice(&results);
            if let Some(next) = next {
                let _ = entry::yield_to(next);
            }
        }
        Err(error) => message.words[0] = error.word(),
    }
}

/// An answer that is made in the registry's own slice gives that away with its future. A process gives
/// it back; from one that does not it is taken when the registry runs next.
fn take_own_slice_back() {
    for slice in slices::of(ROOT).take(1) {
        let record = &books::machine().slices[slice.processor][slice.position];
        if record.runs.load(Relaxed) != ROOT {
            let _ = calls::give_slice(slice.processor, slice.position, ROOT);
        }
    }
}

fn answer(
    registry: &mut Registry,
    slot: usize,
    words: [u64; entry::WORDS],
) -> Result<Answer, Errno> {
    let [first, a, b, c, d] = words;
    let (operation, _) = Operation::of(first).ok_or(errno::NOSYS)?;
    let nothing = Ok(([0; 3], None));
    match operation {
        Operation::Create => {
            let (new, made) = registry.create(Some(slot), (a, b), [c, d])?;
            let control = made.control().map_err(refusal)?;
            let pid = u64::from(registry.pid(new));
            Ok(([pid, made.environment.into(), control], None))
        }
        Operation::Start => {
            registry.start(Some(slot), a, b == 0)?;
            nothing
        }
        Operation::Replace => {
            let made = registry.replace(slot, (a, b), [c, d])?;
            let control = made.control().map_err(refusal)?;
            Ok(([0, made.environment.into(), control], None))
        }
        Operation::Commit => {
            let made = registry.commit(slot, [a, b])?;
            Ok(([0; 3], Some(made.environment)))
        }
        Operation::Keep => {
            if a == 0 {
                // Nothing is given: something may be bound no more.
                registry.keeper.look();
            }
            let [read, write] = registry.keep(slot, a, b != 0)?;
            Ok(([read, write, 0], None))
        }
        Operation::Room => {
            let room = registry.room(slot, a)?;
            Ok(([room.into(), 0, 0], None))
        }
        Operation::Limit => {
            let what = What::of(a).ok_or(errno::INVAL)?;
            registry.limit(slot, what, b)?;
            nothing
        }
        Operation::Exit => {
            let parent = registry.parent_of(slot);
            registry.end(slot, signal::status(a));
            Ok(([0; 3], parent))
        }
        Operation::Reap => {
            let [status, ran] = registry.reap(slot, a)?;
            Ok(([status, ran, 0], None))
        }
        Operation::Kill => {
            kill(registry, slot, a, b)?;
            nothing
        }
        Operation::Slice => {
            let of = registry.slot_of(a)?;
            if !registry.descends(of, slot) || b != 1 {
                return Err(errno::PERM);
            }
            registry.environment(of).ok_or(errno::SRCH)?;
            registry.add_slice(of)?;
            nothing
        }
    }
}

/// A signal for a process; for number 0, for the caller and all below it.
fn kill(registry: &mut Registry, from: usize, pid: u64, number: u64) -> Result<(), Errno> {
    let number = u32::try_from(number).map_err(|_| errno::INVAL)?;
    if number >= COUNT {
        return Err(errno::INVAL);
    }
    if pid != 0 {
        let to = registry.slot_of(pid)?;
        return registry.signal(from, to, number);
    }
    // Who descends is asked before anybody ends: then children are others'.
    let mut below = [false; PROCESSES];
    for (slot, below) in below.iter_mut().enumerate() {
        *below = slot != from && registry.is(slot) && registry.descends(slot, from);
    }
    for (slot, _) in below.iter().enumerate().filter(|(_, below)| **below) {
        let _ = registry.signal(from, slot, number);
    }
    registry.signal(from, from, number)
}

impl Registry {
    /// Whether there is a process.
    fn is(&self, slot: usize) -> bool {
        self.environment(slot).is_some() && self.pid(slot) != 0
    }

    /// The environment of a process's parent.
    fn parent_of(&self, slot: usize) -> Option<u16> {
        let parent = self.slot_of(self.parent(slot).into()).ok()?;
        let lives = self.state(parent) == state::LIVES;
        self.environment(parent)
            .filter(|_| lives)
            .map(|made| made.environment)
    }
}
