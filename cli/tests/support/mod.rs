//! What the tests of packets share: the command, and networks to capture on.
#![allow(dead_code)]

pub mod network;
pub mod running;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the command in a folder.
pub fn postern(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of the examples of handlers.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples/packets")
        .join(name)
}
