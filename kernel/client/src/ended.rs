//! How calls end: with a value, with a fault that has a place, or without having begun.

use std::fmt;

use crate::abi;
use crate::image::Image;

/// Names of the ways in which a call ends, by their numbers.
pub const KINDS: [&str; abi::KINDS] = [
    "returned",
    "page-fault",
    "division",
    "trap",
    "timeout",
    "bad-argument",
    "skipped",
    "ended",
    "absent",
    "unsuitable",
];

/// What ended a call that did not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// It touched what is not mapped so.
    PageFault,
    /// A division by zero, or one whose result does not fit.
    Division,
    /// An instruction that ends it: `__builtin_trap`, an assertion.
    Trap,
    /// It took longer than its limit.
    Timeout,
    /// A service was given what it does not take.
    BadArgument,
}

/// Why a call did not return.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What happened.
    pub kind: Kind,
    /// Offset of the instruction in the window; where a service was called, of its slot.
    pub offset: u32,
    /// Of a page fault: offset in the window of what it touched, as far as that is known.
    pub address: u32,
    /// Of a bad argument: the service's index among the imports.
    pub service: u32,
    /// The service's name, if the image tells.
    pub service_name: Option<String>,
    /// The function and the distance from its start, if the image tells.
    pub symbol: Option<String>,
    /// The source's file, if the image was compiled with `-g`.
    pub file: Option<String>,
    /// The line in it, counted from 1.
    pub line: Option<u64>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, &self.service_name) {
            (Kind::PageFault, _) => write!(f, "access to {:#x}, which is not there", self.address)?,
            (Kind::Division, _) => f.write_str("division by zero or overflow")?,
            (Kind::Trap, _) => f.write_str("trap")?,
            (Kind::Timeout, _) => f.write_str("it took longer than its limit")?,
            (Kind::BadArgument, Some(name)) => write!(f, "bad argument of the service `{name}`")?,
            (Kind::BadArgument, None) => write!(f, "bad argument of service {}", self.service)?,
        }
        if let Some(symbol) = &self.symbol {
            write!(f, ", in {symbol}")?;
        }
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            write!(f, " ({}:{line})", file.escape_debug())?;
        }
        write!(f, " ({:#x})", self.offset)
    }
}

impl std::error::Error for Fault {}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The function returned this.
    Returned(u64),
    /// It did not return. What becomes of the extension is its policy's to say.
    Fault(Fault),
    /// The window was in use, and the extension has one only.
    Skipped,
    /// The extension faulted before, and is called no more.
    Over,
    /// It has no function of this name: no action.
    Absent,
    /// Interrupts are off at the hook, and the extension may loop.
    Unsuitable,
}

impl Ended {
    /// What an outcome says, with the value of a call that returned; `None` if no device of this
    /// version says so.
    pub fn new(outcome: &abi::Outcome, value: u64) -> Option<Ended> {
        let kind = match outcome.kind {
            abi::RETURNED => return Some(Ended::Returned(value)),
            abi::SKIPPED => return Some(Ended::Skipped),
            abi::ENDED => return Some(Ended::Over),
            abi::ABSENT => return Some(Ended::Absent),
            abi::UNSUITABLE => return Some(Ended::Unsuitable),
            abi::PAGE_FAULT => Kind::PageFault,
            abi::DIVISION => Kind::Division,
            abi::TRAP => Kind::Trap,
            abi::TIMEOUT => Kind::Timeout,
            abi::BAD_ARGUMENT => Kind::BadArgument,
            _ => return None,
        };
        Some(Ended::Fault(Fault {
            kind,
            offset: outcome.offset,
            address: outcome.address,
            service: outcome.service,
            service_name: None,
            symbol: None,
            file: None,
            line: None,
        }))
    }

    /// The number of the kind, as in [`KINDS`].
    pub fn number(&self) -> u32 {
        match self {
            Ended::Returned(_) => abi::RETURNED,
            Ended::Fault(fault) => match fault.kind {
                Kind::PageFault => abi::PAGE_FAULT,
                Kind::Division => abi::DIVISION,
                Kind::Trap => abi::TRAP,
                Kind::Timeout => abi::TIMEOUT,
                Kind::BadArgument => abi::BAD_ARGUMENT,
            },
            Ended::Skipped => abi::SKIPPED,
            Ended::Over => abi::ENDED,
            Ended::Absent => abi::ABSENT,
            Ended::Unsuitable => abi::UNSUITABLE,
        }
    }

    /// The kind's name.
    pub fn name(&self) -> &'static str {
        KINDS[self.number() as usize]
    }

    /// With names and lines of the image that was called, if there is a place.
    #[must_use]
    pub fn located(self, image: &Image) -> Ended {
        let Ended::Fault(mut fault) = self else {
            return self;
        };
        fault.symbol = image.symbol(fault.offset);
        if let Some(line) = image.line(fault.offset) {
            (fault.file, fault.line) = (Some(line.file), Some(line.line));
        }
        if fault.kind == Kind::BadArgument {
            fault.service_name = image.import(fault.service);
        }
        Ended::Fault(fault)
    }

    /// A sentence for people, with names and lines if the image is at hand.
    pub fn told(&self, image: Option<&Image>) -> String {
        match self {
            Ended::Returned(value) => format!("returned {value}"),
            Ended::Fault(fault) => match image.map(|image| self.clone().located(image)) {
                Some(Ended::Fault(fault)) => fault.to_string(),
                _ => fault.to_string(),
            },
            Ended::Skipped => "skipped: its window was in use".into(),
            Ended::Over => {
                "not called: it faulted before, and is called no more; replace it or load it again"
                    .into()
            }
            Ended::Absent => "no action: it has no function of this name".into(),
            Ended::Unsuitable => {
                "not called: interrupts are off here, and it may loop; make it free of loops".into()
            }
        }
    }
}
