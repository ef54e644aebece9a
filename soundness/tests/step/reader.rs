//! What the watchdog may read of a thread that goes on meanwhile: number and domain of one call, or
//! nothing.
//!
//! The states that a thread goes through in a call are few. All ways to read them one word after
//! the other are tried.

use postern::testing::{self, CallWord, ThreadAddresses, one_call};
use postern_soundness::debugger::Debugger;
use std::collections::BTreeSet;

/// The call state outside.
const OUTSIDE: u64 = testing::OUTSIDE as u64;
/// The call state while a gate writes the state of a new call.
pub const ENTERING: u64 = testing::ENTERING as u64;
/// How many words `one_call` reads at most.
const READS: usize = 6;

/// The words of a thread's state that the watchdog reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    nested: u64,
    sequence: u64,
    pub call_state: u64,
    control: u64,
}

impl Words {
    /// Those of a stopped thread.
    pub fn read(child: &Debugger, at: &ThreadAddresses) -> Words {
        Words {
            nested: child.read(at.nested),
            sequence: child.read(at.sequence),
            call_state: u64::from(child.read(at.call_state) as u32),
            control: child.read(at.control),
        }
    }

    /// The same where upcalls come, of which so many have begun or ended.
    #[allow(dead_code)]
    pub fn with_upcalls(self, upcalls: u64) -> Words {
        let nested = self.nested.wrapping_add(upcalls << 32);
        Words { nested, ..self }
    }

    fn get(&self, word: CallWord) -> u64 {
        match word {
            CallWord::Nested => self.nested,
            CallWord::Sequence => self.sequence,
            CallWord::State => self.call_state,
            CallWord::Control => self.control,
        }
    }

    /// Number and domain of the innermost call, unless they are just being written.
    fn settled(&self) -> Option<(u64, u64)> {
        let settled = self.call_state != OUTSIDE && self.call_state != ENTERING;
        settled.then_some((self.sequence, self.control))
    }
}

/// Tries every reading of these states, which followed one another.
pub fn check(name: &str, states: &[Words]) {
    let calls: BTreeSet<_> = states.iter().filter_map(Words::settled).collect();
    for state in states {
        let read = one_call(|word| state.get(word));
        assert_eq!(read, state.settled(), "{name}: {state:?} does not change");
    }
    // When each word is read, as indices that never fall.
    let mut times = vec![0; READS];
    loop {
        let mut reads = 0;
        let read = one_call(|word| {
            reads += 1;
            states[times[reads - 1]].get(word)
        });
        if let Some(call) = read {
            assert!(
                calls.contains(&call),
                "{name}: {call:x?} was no call, but can be read at {times:?} of {states:x?}"
            );
        }
        // The next way that differs in what was read.
        let Some(last) = (0..reads).rev().find(|&i| times[i] + 1 < states.len()) else {
            return;
        };
        let next = times[last] + 1;
        times[last..].fill(next);
    }
}
