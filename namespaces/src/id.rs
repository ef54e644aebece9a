//! Which function is meant, whoever has its name by then.

/// A function of a namespace. It means the function of that name, also after that was replaced or
/// deleted and created again; no other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl FunctionId {
    /// The id as a number, for hosts in other languages; never 0.
    pub fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot + 1)
    }

    /// The id with this number. Of a number that no id has, it means no function.
    pub fn from_number(number: u64) -> FunctionId {
        FunctionId {
            slot: (number as u32).wrapping_sub(1),
            generation: (number >> 32) as u32,
        }
    }
}
