//! State that extensions hand over themselves: one writes it into a shared area, the other reads it
//! there.

use postern_runtime::{CallError, Domain, Offset, Prot, ShareError, Shared, SymbolError};
use thiserror::Error;

/// ModuleState could not be carried by the extension's own functions.
#[derive(Debug, Error)]
pub(super) enum CarryError {
    #[error(transparent)]
    Symbol(#[from] SymbolError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Share(#[from] ShareError),
    #[error("`{function}` returned {wrote}, which is no length of up to {room} bytes")]
    Length {
        function: String,
        wrote: i64,
        room: usize,
    },
    #[error("`{function}` refused the state with {answer}")]
    Refused { function: String, answer: i32 },
}

/// Lets `old` write its state and `new` take it.
pub(super) fn carry(
    old: &Domain,
    new: &Domain,
    save: String,
    load: String,
    room: usize,
) -> Result<(), CarryError> {
    let saves = old.func::<fn(Offset, u64) -> i64>(&save)?;
    let loads = new.func::<fn(Offset, u64) -> i32>(&load)?;
    let area = Shared::new(room)?;
    let at = old.share(&area, Prot::ReadWrite)?;
    let wrote = saves.call(at, room as u64)?;
    let Some(length) = u64::try_from(wrote).ok().filter(|&n| n <= room as u64) else {
        let function = save;
        return Err(CarryError::Length {
            function,
            wrote,
            room,
        });
    };
    new.share(&area, Prot::Read)?;
    let answer = loads.call(at, length)?;
    // It has taken what it needs.
    new.unshare(&area)?;
    match answer {
        0 => Ok(()),
        answer => {
            let function = load;
            Err(CarryError::Refused { function, answer })
        }
    }
}
