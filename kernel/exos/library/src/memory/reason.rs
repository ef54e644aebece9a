//! Why nobody has served a fault.

use postern_aegis::entry::Frame;
use postern_aegis::println;

/// As `enum exos_fault_reason` of `<exos/fault.h>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Reason {
    /// The address is nobody's.
    Nothing = 1,
    /// The page may not be used so.
    Protected = 2,
    /// The stack has all that it may have.
    Stack = 3,
    /// There is no memory for what was promised.
    Memory = 4,
    /// The page was taken by force.
    Lost = 5,
    /// The library itself was at work.
    Library = 6,
}

impl Reason {
    /// Words for an end that its signal does not explain.
    fn words(self) -> Option<&'static str> {
        match self {
            Reason::Nothing | Reason::Protected => None,
            Reason::Stack => Some("the stack is full"),
            Reason::Memory => Some("there is no memory left"),
            Reason::Lost => Some("its page was taken by force"),
            Reason::Library => Some("in the library's own tables"),
        }
    }

    /// Says of a fault that ends the program what its signal does not.
    pub fn tell(self, frame: &Frame) {
        if let Some(why) = self.words() {
            let (at, address) = (frame.rip, frame.address);
            println!("fault at {at:#x}: address {address:#x}: {why}");
        }
    }
}
