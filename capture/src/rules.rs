//! Who gets which packets: rules from a file in TOML, or from words.
//!
//! Invariant: [`Rules`] have at least one consumer, names are not empty and differ, and every
//! filter compiles.

use postern::input;
use postern_filter::{Filter, Names, Options};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::Spanned;

/// What is wrong with rules.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Not TOML, or a key that there is not; with line and column.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
    /// A filter does not compile.
    #[error("{place}consumer `{name}`: {message}")]
    Filter {
        /// File and line of the rule, and `: `; nothing of a rule in words.
        place: String,
        /// Whose.
        name: String,
        /// With the place marked.
        message: String,
    },
    /// A consumer that cannot be.
    #[error("consumer `{name}`: {message}")]
    Consumer {
        /// Which.
        name: String,
        /// What would make sense.
        message: &'static str,
    },
    /// Nobody wants anything.
    #[error("there is no consumer; write a `[[consumer]]` table, or say `--to NAME=EXPRESSION`")]
    Nobody,
}

/// Where a consumer's packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A capture file.
    File(PathBuf),
    /// A Unix datagram socket that the consumer has bound: each packet is a message, the header of
    /// a packet in a pcap file with times in nanoseconds (16 bytes, little-endian) and its bytes.
    Socket(PathBuf),
    /// An extension with a function `handle`.
    Handler(PathBuf),
}

/// Somebody who wants packets.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// What counters call it.
    pub name: String,
    /// Which packets, as it was written.
    pub expression: String,
    /// Which packets.
    pub filter: Filter,
    /// Where they go.
    pub target: Target,
    /// Of two consumers that want a packet the one with the higher priority gets it, of equal ones
    /// the first.
    pub priority: u32,
    /// Who it belongs to.
    pub owner: String,
    /// Packets that consumers of other owners want may be taken.
    pub may_steal: bool,
    /// Packets that wait for a socket at most.
    pub queue: usize,
    /// Everybody waits for the socket instead of packets being dropped.
    pub block: bool,
}

/// All consumers.
#[derive(Clone, Debug)]
pub struct Rules {
    /// In the order of the file.
    pub consumers: Vec<Consumer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    consumer: Vec<FileConsumer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileConsumer {
    name: String,
    filter: Option<Spanned<String>>,
    file: Option<PathBuf>,
    socket: Option<PathBuf>,
    handler: Option<PathBuf>,
    #[serde(default)]
    priority: u32,
    #[serde(default)]
    owner: String,
    #[serde(default)]
    may_steal: bool,
    #[serde(default = "usual_queue")]
    queue: usize,
    #[serde(default)]
    block: bool,
}

fn usual_queue() -> usize {
    1024
}

impl Rules {
    /// Reads a file. Paths in it begin at its folder.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, has keys that there are not, or consumers that cannot be.
    pub fn load(path: &Path, names: &dyn Names, options: Options) -> Result<Rules, RulesError> {
        let text = input::read_text(path, input::MAX_TEXT).map_err(|error| RulesError::Read {
            path: path.to_owned(),
            error: error.into(),
        })?;
        let file: File = toml::from_str(&text).map_err(|error| RulesError::Syntax {
            path: path.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let consumers = file.consumer.into_iter().map(|entry| {
            let refused = |message| RulesError::Consumer {
                name: entry.name.clone(),
                message,
            };
            let target = match (&entry.file, &entry.socket, &entry.handler) {
                (Some(file), None, None) => Target::File(folder.join(file)),
                (None, Some(socket), None) => Target::Socket(folder.join(socket)),
                (None, None, Some(handler)) => Target::Handler(folder.join(handler)),
                _ => return Err(refused("it needs one of `file`, `socket` and `handler`")),
            };
            if entry.queue == 0 {
                return Err(refused("`queue` is at least 1"));
            }
            let line = |at: usize| {
                text.get(..at)
                    .map_or(0, |before| before.matches('\n').count())
            };
            let at = entry.filter.as_ref().map(|filter| filter.span().start);
            let place = || {
                let line = at.map(|at| format!("{}:{}: ", path.display(), line(at) + 1));
                line.unwrap_or_default()
            };
            let expression = entry.filter.map(Spanned::into_inner).unwrap_or_default();
            Ok(Consumer {
                filter: compile(place, &entry.name, &expression, names, options)?,
                name: entry.name,
                expression,
                target,
                priority: entry.priority,
                owner: entry.owner,
                may_steal: entry.may_steal,
                queue: entry.queue,
                block: entry.block,
            })
        });
        Rules::new(consumers.collect::<Result<_, _>>()?)
    }

    /// Rules of words `NAME=EXPRESSION`, the most important one first. The name says where packets
    /// go: `unix:PATH` is a socket, a C, C++ or E-code source or a `.px` a handler, all else a
    /// capture file.
    ///
    /// # Errors
    /// A word has no `=`, or a filter does not compile.
    pub fn words(
        words: &[String],
        names: &dyn Names,
        options: Options,
    ) -> Result<Rules, RulesError> {
        let count = words.len() as u32;
        let consumers = words.iter().zip(0..).map(|(word, number)| {
            let (name, expression) = word.split_once('=').ok_or_else(|| RulesError::Consumer {
                name: word.clone(),
                message: "say NAME=EXPRESSION",
            })?;
            Ok(Consumer {
                name: name.to_owned(),
                expression: expression.to_owned(),
                filter: compile(String::new, name, expression, names, options)?,
                target: target(name),
                priority: count - number,
                owner: String::new(),
                may_steal: false,
                queue: usual_queue(),
                block: false,
            })
        });
        Rules::new(consumers.collect::<Result<_, _>>()?)
    }

    fn new(consumers: Vec<Consumer>) -> Result<Rules, RulesError> {
        if consumers.is_empty() {
            return Err(RulesError::Nobody);
        }
        let mut names = BTreeSet::new();
        for consumer in &consumers {
            let refused = |message| RulesError::Consumer {
                name: consumer.name.clone(),
                message,
            };
            if consumer.name.is_empty() {
                return Err(refused("it needs a name"));
            }
            if !names.insert(&consumer.name) {
                return Err(refused("there are two of that name"));
            }
        }
        Ok(Rules { consumers })
    }
}

fn target(name: &str) -> Target {
    if let Some(path) = name.strip_prefix("unix:") {
        return Target::Socket(path.into());
    }
    let path = PathBuf::from(name);
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("c" | "cc" | "cpp" | "cxx" | "ec" | "px") => Target::Handler(path),
        _ => Target::File(path),
    }
}

fn compile(
    place: impl FnOnce() -> String,
    name: &str,
    expression: &str,
    names: &dyn Names,
    options: Options,
) -> Result<Filter, RulesError> {
    Filter::compile_with(expression, names, options).map_err(|error| RulesError::Filter {
        place: place(),
        name: name.to_owned(),
        message: error.show(expression),
    })
}
