//! How an extension is loaded: its rights, what becomes of it after a fault, its memory.

use std::time::Duration;

use crate::abi;
use crate::error::Error;
use crate::id::Id;
use crate::image::Image;

/// The variable of an image that is its shared area, as the paper's modules name it.
pub const SHARED: &str = "postern_shared";

/// What an extension may do besides what every one may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(pub u32);

impl Rights {
    /// Bytes of the packet that a hook is about.
    pub const SEE_PACKETS: Rights = Rights(abi::MAY_SEE_PACKETS);
    /// Change those.
    pub const CHANGE_PACKETS: Rights = Rights(abi::MAY_CHANGE_PACKETS);
    /// Read memory of the kernel, and registers at probes.
    pub const OBSERVE: Rights = Rights(abi::MAY_OBSERVE);
    /// Write to the kernel's log.
    pub const LOG: Rights = Rights(abi::MAY_LOG);
    /// Each with the word for it.
    pub const ALL: [(Rights, &str); 4] = [
        (Rights::SEE_PACKETS, "see-packets"),
        (Rights::CHANGE_PACKETS, "change-packets"),
        (Rights::OBSERVE, "observe"),
        (Rights::LOG, "log"),
    ];

    /// The words for those that are given.
    pub fn names(self) -> Vec<&'static str> {
        let given = Rights::ALL.iter().filter(|row| self.0 & row.0.0 != 0);
        given.map(|row| row.1).collect()
    }
}

impl std::ops::BitOr for Rights {
    type Output = Rights;
    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

/// What becomes of an extension that faulted or took too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFault {
    /// It goes on as it was left.
    Keep,
    /// Its memory is made anew before the next call.
    #[default]
    Restart,
    /// It is called no more, and leaves its hooks.
    End,
}

impl OnFault {
    pub(crate) fn number(self) -> u32 {
        match self {
            OnFault::Keep => abi::FAULT_KEEPS,
            OnFault::Restart => abi::FAULT_RESTARTS,
            OnFault::End => abi::FAULT_ENDS,
        }
    }

    pub(crate) fn from_number(number: u32) -> Option<OnFault> {
        let all = [OnFault::Keep, OnFault::Restart, OnFault::End];
        all.into_iter().find(|policy| policy.number() == number)
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            OnFault::Keep => "keep",
            OnFault::Restart => "restart",
            OnFault::End => "end",
        }
    }
}

/// Which memory of an extension processes may map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedArea {
    /// The variable [`SHARED`], if the image has one and its symbols.
    #[default]
    BySymbol,
    /// None.
    None,
    /// Whole pages of data or bss.
    At {
        /// Their offset in the window.
        offset: u32,
        /// How many bytes.
        size: u32,
    },
}

/// How an extension is loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// What it is called; empty: what the image is called.
    pub name: String,
    /// The extension whose windows it shares, with their stack.
    pub segment: Option<Id>,
    /// What it may do.
    pub rights: Rights,
    /// What becomes of it after a fault.
    pub on_fault: OnFault,
    /// One window for all processors: a call while it is in use is skipped.
    pub one_window: bool,
    /// Bytes of heap in each window.
    pub heap: u32,
    /// The longest time of a call, in whole milliseconds; `None` is the module's limit.
    pub limit: Option<Duration>,
    /// Which memory processes may map.
    pub shared: SharedArea,
}

impl LoadOptions {
    /// The options of an extension that may do what every one may, with a name.
    pub fn named(name: impl Into<String>) -> LoadOptions {
        LoadOptions {
            name: name.into(),
            ..LoadOptions::default()
        }
    }

    /// The structure that asks for it.
    pub(crate) fn asked(&self, image: &Image) -> Result<abi::Load, Error> {
        let name = match &*self.name {
            "" => image.name(),
            name => name,
        };
        let refused = || Error::Name { name: name.into() };
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused());
        }
        let (shared, shared_size) = self.area(image)?;
        let milliseconds = |limit: Duration| {
            let limit = limit.as_nanos().div_ceil(1_000_000);
            u32::try_from(limit).unwrap_or(u32::MAX).max(1)
        };
        Ok(abi::Load {
            name: abi::Name::new(name).ok_or_else(refused)?,
            segment: self.segment.map_or(0, |id| id.0),
            rights: self.rights.0,
            on_fault: self.on_fault.number(),
            flags: match self.one_window {
                true => abi::ONE_WINDOW,
                false => 0,
            },
            heap: self.heap,
            limit: self.limit.map_or(0, milliseconds),
            shared,
            shared_size,
            ..abi::Load::default()
        })
    }

    /// Offset and size of the shared area.
    fn area(&self, image: &Image) -> Result<(u32, u32), Error> {
        const PAGE: u32 = 4096;
        let found = match self.shared {
            SharedArea::None => None,
            SharedArea::At { offset, size } => return Ok((offset, size)),
            SharedArea::BySymbol => image.variable(SHARED),
        };
        match found {
            None => Ok((0, 0)),
            Some(range) => {
                let (start, size) = (range.start, range.end - range.start);
                match start % PAGE == 0 && size % PAGE == 0 && size != 0 {
                    true => Ok((start, size)),
                    false => Err(Error::Shared {
                        symbol: SHARED.into(),
                        start,
                        size,
                    }),
                }
            }
        }
    }
}
