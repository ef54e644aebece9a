//! Requests, decoded.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::status::GREATEST;
use postern_aegis::entry::{self, Message};
use postern_aegis::{ROOT, books, calls, slices};
use postern_exos_abi::VERSION;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::request::{Operation, STOP};
use postern_exos_abi::signal;

use crate::registry::{Registry, refusal};
use crate::tree::What;
use crate::{DEATHS, LOOKS, REGISTRY, trusted};

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
            LOOKS.store(true, Relaxed);
        }
        let slot = registry.slot_of_environment(caller).ok_or(errno::SRCH)?;
        match answer(registry, slot, words) {
            Err(errno::NOMEM) => {
                // What nobody binds any more is free first.
                registry.sweep();
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
    if (first >> 32) as u32 != VERSION {
        return Err(errno::PROTO);
    }
    let operation = Operation::of(first).ok_or(errno::NOSYS)?;
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
            registry.kill(slot, [a, b, c])?;
            nothing
        }
        Operation::Group => {
            registry.set_group(slot, a, b)?;
            nothing
        }
        Operation::Typed => {
            let byte = registry.typed(slot, a)?;
            Ok(([byte, 0, 0], None))
        }
        Operation::Serve => registry.serve(slot, [a, b, c, d]).map(|told| (told, None)),
        Operation::Blocks => {
            let range = registry.blocks(slot, a)?;
            Ok(([range, 0, 0], None))
        }
        Operation::Holdings => {
            let count = registry.holdings(slot, a)?;
            Ok(([count.into(), 0, 0], None))
        }
        Operation::Stop if a != STOP || b > u64::from(GREATEST) => Err(errno::INVAL),
        Operation::Stop if registry.is_limited(slot) => Err(errno::PERM),
        Operation::Stop => crate::stop(signal::status(b << 8)),
        Operation::Slice => {
            let of = registry.slot_of(a)?;
            if !registry.descends(of, slot) {
                return Err(errno::PERM);
            }
            match b as i64 {
                1 => registry.add_slice(of)?,
                -1 => registry.remove_slice(of)?,
                _ => return Err(errno::INVAL),
            }
            nothing
        }
    }
}
