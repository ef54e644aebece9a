//! Programs: images with a `main`, called with arguments and an environment as the system would.

use crate::error::{AllocError, MemoryError};
use crate::fault::FaultKind;
use crate::own_threads::state::ProgramEnd;
use crate::value::Offset;
use crate::{CallError, Domain};
use postern_verifier::window::INFO_HEAP_END;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Bytes of arguments and environment at most.
const MOST: usize = 1 << 20;

impl Domain {
    /// Runs the image's `main` with these arguments, of which the first is the program's name, and
    /// this environment (`KEY=value`). The result is the status that it exits with. A program runs
    /// once: [`Domain::reset`] makes it fresh.
    ///
    /// # Errors
    /// [`CallError::NoMain`], [`CallError::Arguments`], and whatever ends calls, but not
    /// [`CallError::Exited`].
    pub fn run_main<A: AsRef<[u8]>, E: AsRef<[u8]>>(
        &self,
        arguments: &[A],
        environment: &[E],
    ) -> Result<i32, CallError> {
        let main = self
            .func_unchecked::<fn(i32, Offset) -> i32>("__postern_main")
            .map_err(|_| CallError::NoMain)?;
        let arguments: Vec<&[u8]> = arguments.iter().map(AsRef::as_ref).collect();
        let environment: Vec<&[u8]> = environment.iter().map(AsRef::as_ref).collect();
        let vector = self.place(&arguments, &environment)?;
        let call = || main.call(arguments.len() as i32, vector);
        let ended = catch_unwind(AssertUnwindSafe(call));
        // Its threads end with it.
        drop(self.0.end_threads());
        let by_thread = self.0.threads.take_end();
        match (
            ended.unwrap_or_else(|panic| resume_unwind(panic)),
            by_thread,
        ) {
            (Ok(status) | Err(CallError::Exited(status)), _) => Ok(status),
            (Err(_), Some(ProgramEnd::Panic(panic))) => resume_unwind(panic),
            (Err(CallError::Fault(fault)), Some(ProgramEnd::Fault(first)))
                if fault.kind == FaultKind::AnotherThread =>
            {
                Err(CallError::Fault(first))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Writes both vectors with their strings behind them: offsets of 8 bytes, NULL after each
    /// vector.
    fn place(&self, arguments: &[&[u8]], environment: &[&[u8]]) -> Result<Offset, CallError> {
        let strings = || arguments.iter().chain(environment);
        let table = 8 * (arguments.len() + environment.len() + 2);
        let bytes = strings().fold(table, |sum, s| sum.saturating_add(s.len() + 1));
        if bytes > MOST || strings().any(|s| s.contains(&0)) {
            // A string with a NUL inside would be another one for the program.
            return Err(CallError::Arguments(MemoryError::NoRoom(bytes)));
        }
        let at = self.room(bytes).map_err(|error| match error {
            AllocError::Memory(error) => CallError::Arguments(error),
            AllocError::Call(error) => error,
        })?;
        let mut block = vec![0u8; table];
        let mut slot = 0;
        for vector in [arguments, environment] {
            for string in vector {
                let place = u64::from(at.0) + block.len() as u64;
                block[slot..slot + 8].copy_from_slice(&place.to_le_bytes());
                slot += 8;
                block.extend_from_slice(string);
                block.push(0);
            }
            slot += 8;
        }
        self.write(at, &block).map_err(CallError::Arguments)?;
        Ok(at)
    }

    /// Memory for the block: from the extension's `malloc`, or, if it has none, at the end of its
    /// heap.
    fn room(&self, bytes: usize) -> Result<Offset, AllocError> {
        if self.image().tables().export("malloc").is_some() {
            return self.alloc(bytes);
        }
        let mut word = [0; 4];
        self.read(Offset(INFO_HEAP_END), &mut word)?;
        let end = u32::from_le_bytes(word);
        let at = end.checked_sub(bytes as u32).map(|at| Offset(at & !15));
        Ok(at.ok_or(MemoryError::NoRoom(bytes))?)
    }
}
