//! What handlers of messages may ask the kernel: the services that their images import.

use crate::Error;

/// A service.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The import's name.
    pub name: &'static str,
    /// How it is declared.
    pub signature: &'static str,
    /// What it does.
    pub what: &'static str,
    /// What it says otherwise, below zero.
    pub errors: &'static [Error],
    /// What ends the run.
    pub ends: &'static str,
}

/// All, in the order of the kernel's functions.
pub const SERVICES: [Service; 4] = [
    Service {
        name: "send",
        signature: "long send(const void *frame, unsigned long length)",
        what: "sends a frame, which is copied",
        errors: &[Error::Argument, Error::Again, Error::NoDevice],
        ends: "more than 1,514 bytes; bytes outside of the window",
    },
    Service {
        name: "put",
        signature: "long put(unsigned long place, unsigned long capability, const void *from, \
                    unsigned long length)",
        what: "copies bytes to a place of a page, `number << 12` and an offset, that the owner may \
               write",
        errors: &[Error::Argument, Error::Denied, Error::Kind],
        ends: "more than the page has behind the place; bytes outside of the window",
    },
    Service {
        name: "raise",
        signature: "long raise(void)",
        what: "raises the owner's event of handlers",
        errors: &[],
        ends: "",
    },
    Service {
        name: "now",
        signature: "unsigned long now(void)",
        what: "the processor's counter of cycles",
        errors: &[],
        ends: "",
    },
];
