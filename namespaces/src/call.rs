//! Calls by id, with types that are known only when it is called.

use crate::Namespace;
use crate::id::FunctionId;
use postern_gates::enter;
use postern_gates::gate::STATUS_OK;
use postern_gates::registers::{float_mask, integer_mask};
use postern_runtime::{CallError, SymbolError, call};
use thiserror::Error;

/// A function was not called by its id, or did not return.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum IdCallError {
    /// The function was deleted.
    #[error("the function was deleted")]
    Deleted,
    /// It takes another number of arguments.
    #[error("`{name}` takes {wanted} arguments, not {given}")]
    Arguments {
        /// The function.
        name: String,
        /// How many it takes.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
    /// Its types are not known.
    #[error(transparent)]
    Symbol(#[from] SymbolError),
    /// The call has no result.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Namespace {
    /// Calls a function by its id. Arguments and result are bits as
    /// [`Value::to_bits`](postern_runtime::Value::to_bits) gives them, by the types that the
    /// function says it has; nothing but the arguments is passed, whatever it says. An error of the
    /// call itself is also what [`last_error`](postern_runtime::last_error) shows.
    ///
    /// # Errors
    /// The function is gone or not so called, or the call has no result.
    pub fn call(&self, id: FunctionId, arguments: &[u64]) -> Result<u64, IdCallError> {
        let mut state = self.code().lock();
        let slot = state.live(id).ok_or(IdCallError::Deleted)?;
        let name = || slot.name.to_string();
        let signature = slot.signature.ok_or_else(|| SymbolError::Untyped(name()))?;
        let (wanted, given) = (signature.parameters().len(), arguments.len());
        if wanted != given {
            let name = name();
            return Err(IdCallError::Arguments {
                name,
                wanted,
                given,
            });
        }
        let entry = state.entry(&self.domain, id.slot, &signature);
        drop(state);
        let (mut integers, mut floats, mut stack) = ([0; 6], [0; 8], Vec::new());
        let (mut in_integers, mut in_floats) = (0, 0);
        for (&bits, &t) in arguments.iter().zip(signature.parameters()) {
            let bits = bits & (integer_mask(t) | float_mask(t));
            if t.is_float() && in_floats < floats.len() {
                floats[in_floats] = bits;
                in_floats += 1;
            } else if !t.is_float() && in_integers < integers.len() {
                integers[in_integers] = bits;
                in_integers += 1;
            } else {
                stack.push(bits);
            }
        }
        let returned = enter::all(&entry, integers, floats, &stack);
        if returned.status != STATUS_OK {
            return Err(call::failed_and_kept().into());
        }
        Ok(match signature.result() {
            Some(t) if t.is_float() => returned.float & float_mask(t),
            Some(t) => returned.integer & integer_mask(t),
            None => 0,
        })
    }
}
