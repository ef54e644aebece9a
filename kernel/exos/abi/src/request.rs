//! Requests to the registry: five words, the first an [`Operation`] with the version in its upper
//! half. The answer's first word is 0, or below zero an error number of C:
//! [`errno::PROTO`](crate::errno::PROTO) if the registry is of another version.

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// A new process: `entry` → pid, environment, capability to control it. It stands still.
    Create = 1,
    /// Lets a process run that was created: `pid`, and whether it gets a slice.
    Start = 2,
    /// Another environment for the caller's own pid: `entry` → environment, capability.
    Replace = 3,
    /// The caller's pid is now what [`Operation::Replace`] gave; the caller ends.
    Commit = 4,
    /// Pages whose numbers stand in the mailbox, and which were given to the registry: `count`,
    /// whether a capability to write is wanted → capability to read, capability to write.
    Keep = 5,
    /// More pages for the caller: how many. 0: what nobody binds any more becomes free now.
    Room = 6,
    /// A limit of the tree below the caller: what, value. Only down.
    Limit = 7,
    /// The caller ends: status.
    Exit = 8,
    /// How a child ended, which is forgotten, or was stopped or goes on, which is told once: `pid`
    /// → status.
    Reap = 9,
    /// A signal: `pid` (0: for the caller and all below it; with [`GROUP`]: for a process group),
    /// number, and of a stop the signal that it comes of.
    Kill = 10,
    /// One slice more or fewer for a process: `pid`, 1 or -1. One fewer is
    /// [`errno::BUSY`](crate::errno::BUSY) until the process has freed one or lost one by force.
    Slice = 11,
    /// A process group: `pid` (the caller or a child of its) → `group`, the same pid or a group
    /// that there is; with `pid` 0: the group that the console is for.
    Group = 12,
    /// What was typed on the console ([`typed`]) → byte. [`errno::AGAIN`](crate::errno::AGAIN):
    /// nothing was.
    Typed = 13,
    /// A service of the caller's, whose name stands in the mailbox ([`service`](crate::service)):
    /// its four words. Offered again by who offers it, it has other words. Who offers `/` is told
    /// how to reach the disk → range of blocks, capability to read it, capability to write it; the
    /// range is 0 if there is none. [`errno::EXIST`](crate::errno::EXIST): another process offers
    /// it.
    Serve = 14,
    /// Blocks of the disk for the caller alone, until it ends: how many → range of blocks. What
    /// they held before is there still. 0: all that it has so are given back.
    Blocks = 15,
    /// Parts of devices that the caller may have (endpoints, handlers, ranges of blocks): at least
    /// so many from now on, at most [`HOLDINGS`] → how many.
    Holdings = 16,
    /// The machine stops: [`STOP`], a status of at most six bits. For who has no limits.
    Stop = 17,
}

/// What is done with what was typed on the console.
pub mod typed {
    /// Takes a byte, for the group that the console is for.
    pub const TAKE: u64 = 0;
    /// Leaves it, and says whether there is some.
    pub const LOOK: u64 = 1;
    /// Leaves it for who reads, up to [`INTERRUPT`], which is taken: nothing else is told.
    pub const WATCH: u64 = 2;
    /// Ctrl-C.
    pub const INTERRUPT: u8 = 3;
}

/// What a request to stop the machine says, lest nonsense does.
pub const STOP: u64 = 0x6666_6f72_6577_6f50;

/// The status of a machine that is to begin again. Whoever started it does that.
pub const AGAIN: u8 = 63;

/// Parts of devices that a process may have at most.
pub const HOLDINGS: u32 = 24;

/// In the place of a pid: a process group of the lower half's number.
pub const GROUP: u64 = 1 << 32;

impl Operation {
    /// The operation of a request's first word, whose upper half is the version that it is of:
    /// another version's numbers mean something else.
    pub fn of(word: u64) -> Option<Operation> {
        const ALL: [Operation; 17] = [
            Operation::Create,
            Operation::Start,
            Operation::Replace,
            Operation::Commit,
            Operation::Keep,
            Operation::Room,
            Operation::Limit,
            Operation::Exit,
            Operation::Reap,
            Operation::Kill,
            Operation::Slice,
            Operation::Group,
            Operation::Typed,
            Operation::Serve,
            Operation::Blocks,
            Operation::Holdings,
            Operation::Stop,
        ];
        let own = (word >> 32) as u32 == crate::VERSION;
        let operation = ALL.get((word as u32).checked_sub(1)? as usize);
        operation.filter(|_| own).copied()
    }

    /// A request's first word.
    pub const fn word(self) -> u64 {
        self as u64 | (crate::VERSION as u64) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_operations() {
        for number in 0..20 {
            let of = |version: u64| Operation::of(number | version << 32);
            match of(crate::VERSION.into()) {
                Some(operation) => assert_eq!(operation as u64, number),
                None => assert!(number == 0 || number > 17, "{number}"),
            }
            assert_eq!(of(0), None);
            assert_eq!(of(u64::from(crate::VERSION) + 1), None);
        }
        assert_eq!(Operation::of(Operation::Keep.word()), Some(Operation::Keep));
    }
}
