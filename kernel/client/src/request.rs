//! What a device is asked, as values. Addresses are not among them: whoever asks the kernel takes
//! them from what is borrowed here.

use std::io;
use std::os::fd::OwnedFd;

use crate::abi;

/// Room for keys and values of any size that a map may have, whatever size somebody says it has.
#[derive(Debug)]
pub struct MapBuffers {
    /// The key that is asked about.
    pub key: [u8; abi::KEY],
    /// Its value.
    pub value: [u8; abi::VALUE],
    /// The key behind it.
    pub next_key: [u8; abi::KEY],
}

impl Default for MapBuffers {
    fn default() -> MapBuffers {
        MapBuffers {
            key: [0; abi::KEY],
            value: [0; abi::VALUE],
            next_key: [0; abi::KEY],
        }
    }
}

/// One request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Request<'a> {
    /// `POSTERN_LOAD` of a file's bytes.
    Load(&'a mut abi::Load, &'a [u8]),
    /// `POSTERN_REPLACE`.
    Replace(&'a mut abi::Load, &'a [u8]),
    /// `POSTERN_UNLOAD`
    Unload(u32),
    /// `POSTERN_JUDGE_TEXT` of code.
    JudgeText(&'a mut abi::Text, &'a [u8]),
    /// `POSTERN_CALL`
    Call(&'a mut abi::Call),
    /// `POSTERN_STATISTICS`
    Statistics(&'a mut abi::Statistics),
    /// `POSTERN_ATTACH`
    Attach(&'a mut abi::Attach),
    /// `POSTERN_DETACH`
    Detach(u32),
    /// `POSTERN_ATTACHMENT`
    Attachment(&'a mut abi::Attachment),
    /// `POSTERN_MAP_MAKE`
    MapMake(abi::Map),
    /// `POSTERN_MAP_SIZES`
    MapSizes(&'a mut abi::Map),
    /// `POSTERN_MAP_ACCESS`; `first`: there is no key yet.
    MapAccess {
        /// Which map, and what to do.
        access: abi::MapAccess,
        /// Where keys and values are.
        buffers: &'a mut MapBuffers,
        /// With `MAP_NEXT`: the first key is asked for.
        first: bool,
    },
}

/// Who answers requests: the device, or in tests something else.
pub trait Requests: Send + Sync {
    /// Answers a request, in the structures that it has.
    ///
    /// # Errors
    /// As the device gives them, by their numbers.
    fn ask(&self, request: Request<'_>) -> io::Result<()>;

    /// Opens an extension: `POSTERN_OPEN`.
    ///
    /// # Errors
    /// As [`Requests::ask`].
    fn open(&self, id: u32) -> io::Result<OwnedFd>;

    /// The list of extensions, a line each.
    ///
    /// # Errors
    /// As [`Requests::ask`].
    fn list(&self) -> io::Result<String>;
}
