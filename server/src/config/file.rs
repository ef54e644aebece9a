//! `serve.toml` as it is written: each table with its keys and their defaults. What the values mean
//! is for [`super::check`] to say.
//!
//! Invariant: a key that is not here is an error.

use crate::settings::{Recycle, Run};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) listen: String,
    pub(super) public: Option<PathBuf>,
    pub(super) workers: Option<usize>,
    pub(super) limits: FileLimits,
    pub(super) log: FileLog,
    pub(super) operations: FileOperations,
    pub(super) tls: Option<FileTls>,
    pub(super) page: FilePage,
    pub(super) handler: Vec<FileHandler>,
    pub(super) transcode: bool,
    /// Whoever answers plugins reads it.
    pub(super) plugins: Option<IgnoredAny>,
}

impl Default for File {
    fn default() -> File {
        File {
            listen: "127.0.0.1:8080".to_owned(),
            public: None,
            workers: None,
            limits: FileLimits::default(),
            log: FileLog::default(),
            operations: FileOperations::default(),
            tls: None,
            page: FilePage::default(),
            handler: Vec::new(),
            transcode: false,
            plugins: None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileLimits {
    pub(super) connections: usize,
    pub(super) connections_per_client: usize,
    pub(super) requests_per_client: usize,
    pub(super) headers: usize,
    pub(super) header_bytes: usize,
    pub(super) header_ms: u64,
    pub(super) body_bytes: u64,
    pub(super) body_ms: u64,
    pub(super) send_ms: u64,
    pub(super) bytes_per_second: u64,
    pub(super) shutdown_ms: u64,
}

impl Default for FileLimits {
    fn default() -> FileLimits {
        FileLimits {
            connections: 1024,
            connections_per_client: 256,
            requests_per_client: 256,
            headers: 100,
            header_bytes: 16 << 10,
            header_ms: 10_000,
            body_bytes: 1 << 20,
            body_ms: 10_000,
            send_ms: 10_000,
            bytes_per_second: 500,
            shutdown_ms: 10_000,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileLog {
    pub(super) access: PathBuf,
    pub(super) error: PathBuf,
    pub(super) seconds: bool,
}

impl Default for FileLog {
    fn default() -> FileLog {
        FileLog {
            access: "-".into(),
            error: "-".into(),
            seconds: false,
        }
    }
}

#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileOperations {
    pub(super) listen: Option<String>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilePage {
    pub(super) enabled: bool,
    pub(super) heartbeat: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTls {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileHandler {
    pub(super) path: String,
    pub(super) program: PathBuf,
    #[serde(default)]
    pub(super) run: Run,
    #[serde(default)]
    pub(super) sources: Vec<PathBuf>,
    #[serde(default)]
    pub(super) flags: Vec<String>,
    pub(super) instances: Option<usize>,
    #[serde(default = "default_waiting")]
    pub(super) waiting: usize,
    #[serde(default = "default_wait")]
    pub(super) wait_ms: u64,
    #[serde(default = "default_call")]
    pub(super) call_ms: u64,
    pub(super) heap_bytes: Option<u64>,
    #[serde(default = "default_buffer")]
    pub(super) buffer_bytes: usize,
    pub(super) body_bytes: Option<u64>,
    pub(super) share: Option<String>,
    #[serde(default)]
    pub(super) recycle: Recycle,
    #[serde(default)]
    pub(super) files: Vec<PathBuf>,
    #[serde(default = "default_log_lines")]
    pub(super) log_lines: u64,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
}

fn default_waiting() -> usize {
    128
}
fn default_wait() -> u64 {
    5_000
}
fn default_call() -> u64 {
    10_000
}
fn default_log_lines() -> u64 {
    100
}
fn default_buffer() -> usize {
    128 << 10
}

/// `public/`, and a handler for each source in `handlers/`.
pub(super) fn discovered(folder: &Path) -> File {
    let sources = std::fs::read_dir(folder.join("handlers"))
        .into_iter()
        .flatten();
    let mut names: Vec<PathBuf> = sources.flatten().map(|entry| entry.path()).collect();
    names.retain(|path| path.extension().is_some_and(|e| e == "c" || e == "px"));
    names.sort();
    let handler = names.iter().filter_map(|path| {
        let stem = path.file_stem()?.to_str()?;
        let file = path.file_name()?.to_str()?;
        let text = format!(
            "path = {:?}\nprogram = {:?}",
            format!("/{stem}"),
            format!("handlers/{file}")
        );
        toml::from_str(&text).ok()
    });
    File {
        handler: handler.collect(),
        ..File::default()
    }
}
