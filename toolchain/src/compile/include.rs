//! Postern's own headers for extensions, which the compiler finds before all others.

use std::path::PathBuf;

use crate::cache::{cached, hash, write};
use crate::error::CompileError;

/// Their names and texts.
pub const HEADERS: &[(&str, &str)] = &[
    (
        "postern/extension.h",
        include_str!("../../include/postern/extension.h"),
    ),
    (
        "postern/agent.h",
        include_str!("../../include/postern/agent.h"),
    ),
    (
        "postern/policy.h",
        include_str!("../../include/postern/policy.h"),
    ),
    (
        "postern/upcall.h",
        include_str!("../../include/postern/upcall.h"),
    ),
    (
        "postern/packet.h",
        include_str!("../../include/postern/packet.h"),
    ),
    (
        "postern/threads.h",
        include_str!("../../include/postern/threads.h"),
    ),
    (
        "postern/kernel.h",
        include_str!("../../include/postern/kernel.h"),
    ),
];

/// The folder to give to the compiler with `-isystem`.
pub fn path() -> Result<PathBuf, CompileError> {
    cached(&format!("include-{:016x}", hash(HEADERS)), |folder| {
        write(folder, HEADERS)
    })
}
