//! A plugin, and what clients are told of it.

use crate::source::{self, Artifact, PluginKind};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// A plugin, whoever brought it.
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub kind: PluginKind,
    /// What the client sent, if it is text.
    pub source: Option<String>,
    /// Bytes that were sent.
    pub bytes: usize,
    /// What came of it.
    pub artifact: Artifact,
    /// Calls.
    pub calls: AtomicU64,
    /// Calls that ended in a fault.
    pub faults: AtomicU64,
    /// Nanoseconds inside.
    pub busy: AtomicU64,
}

impl Plugin {
    /// A new one.
    pub fn new(name: &str, kind: PluginKind, sent: &[u8], artifact: Artifact) -> Plugin {
        Plugin {
            name: name.to_owned(),
            kind,
            source: match kind {
                PluginKind::Ecode | PluginKind::Native => {
                    Some(String::from_utf8_lossy(sent).into_owned())
                }
                _ => None,
            },
            bytes: sent.len(),
            artifact,
            calls: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        }
    }

    /// What clients are told of it.
    pub fn describe(&self, owner: &str) -> Value {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut value = json!({
            "name": self.name,
            "owner": owner,
            "kind": self.kind.name(),
            "compile_ns": self.artifact.compile_ns,
            "verify_ns": self.artifact.verify_ns,
            "source_bytes": self.bytes,
            "code_bytes": self.artifact.code_bytes,
            "functions": self.artifact.functions,
            "facts": self.artifact.facts,
            "calls": load(&self.calls),
            "faults": load(&self.faults),
            "busy_ns": load(&self.busy),
        });
        let parameters = self.source.as_deref().and_then(source::parameters);
        if let Some(parameters) = parameters {
            value["parameters"] = parameters.into();
        }
        value
    }
}
