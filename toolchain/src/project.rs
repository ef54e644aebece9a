//! `postern build`: an extension that is described by a file, `postern.toml`, and built piece by
//! piece.
//!
//! A [`Project`] is such a file, read and checked. [`Project::build`] compiles what has changed, in
//! parallel, and links. What it builds depends only on the description, the sources and the tools;
//! a piece that is up to date is left alone only if it is certain that nothing in this list has
//! changed since it was begun (see `stamp`).

mod compile;
mod crates;
mod manifest;
mod sources;
mod stamp;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::compile::Language;
use crate::driver::run_captured;
use manifest::Manifest;

pub use manifest::FILE_NAME;
pub use sources::Unit;

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// There is no description.
    #[error("there is no {FILE_NAME} in {}; the page \"Third-party libraries\" of the guide has one to begin with", .0.display())]
    Missing(PathBuf),
    /// The description is wrong.
    #[error("{}:{line}: error: {message}", path.display())]
    Manifest {
        /// The description.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong and what would be right.
        message: String,
    },
    /// A crate's source could not be had.
    #[error(
        "the source of {name} {version} could not be obtained: {reason}\nIt is fetched once, by `cargo`, and kept. Check the \
         name and the version (versions are exact), and that cargo can reach its registry; where it cannot, set a mirror \
         or vendored sources in .cargo/config.toml."
    )]
    Crate {
        /// The crate.
        name: String,
        /// Its version.
        version: String,
        /// What cargo said.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Sources that do not compile; the messages were handed out as [`Event::Failed`].
    #[error("{} of {total} sources cannot be compiled: {}", failed.len(), failed.join(", "))]
    Sources {
        /// Their names.
        failed: Vec<String>,
        /// How many sources there are.
        total: usize,
    },
    /// The link failed.
    #[error("{0}")]
    Link(String),
}

/// What to build, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of objects and, unless the description says otherwise, of the result.
    pub folder: PathBuf,
    /// An ordinary shared object is built, too.
    pub native: bool,
    /// How many compilers run at once.
    pub jobs: usize,
    /// Messages of the compiler have colours.
    pub colour: bool,
}

impl Options {
    /// Builds in `folder`, with a compiler for each processor.
    pub fn new(folder: impl Into<PathBuf>) -> Options {
        Options {
            folder: folder.into(),
            native: false,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            colour: false,
        }
    }

    /// Builds the shared object, too.
    pub fn native(mut self) -> Options {
        self.native = true;
        self
    }
}

/// What happens during a build, in the order in which it happens.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The source of a crate is looked for, and fetched if it is not there.
    Fetch {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// So many sources have to be compiled, out of so many.
    Plan {
        /// Those that changed.
        stale: usize,
        /// All.
        total: usize,
    },
    /// A source was compiled.
    Compiled {
        /// As the description names it.
        source: String,
        /// Warnings of the compiler.
        messages: String,
        /// By plain gcc, for the shared object.
        native: bool,
    },
    /// A source cannot be compiled.
    Failed {
        /// As the description names it.
        source: String,
        /// What the compiler says.
        messages: String,
    },
    /// The result is linked, and judged by the verifier.
    Linked {
        /// The file.
        output: PathBuf,
        /// It is the shared object.
        native: bool,
    },
    /// Nothing had changed.
    Fresh {
        /// The file.
        output: PathBuf,
        /// It is the shared object.
        native: bool,
    },
}

/// What a build made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The extension.
    pub extension: PathBuf,
    /// The shared object, where it was asked for.
    pub native: Option<PathBuf>,
}

/// A description that was read and checked.
#[derive(Clone, Debug)]
pub struct Project {
    folder: PathBuf,
    manifest: Manifest,
}

/// Makes the folder, and waits until no other build works in it; the lock ends with the value.
fn lock(folder: &Path) -> Result<std::fs::File, ProjectError> {
    let path = folder.join("lock");
    let file = std::fs::create_dir_all(folder).and_then(|()| {
        let file = std::fs::File::create(&path)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
        Ok(file)
    });
    file.map_err(|source| ProjectError::File { path, source })
}

impl Project {
    /// Reads `postern.toml` of a folder.
    ///
    /// # Errors
    /// It is not there, or wrong.
    pub fn load(folder: impl AsRef<Path>) -> Result<Project, ProjectError> {
        // Messages say `a.c`, not `./a.c`.
        let folder = folder.as_ref();
        let folder = folder.strip_prefix(".").unwrap_or(folder).to_owned();
        let manifest = manifest::read(&folder)?;
        Ok(Project { folder, manifest })
    }

    /// The extension's name.
    pub fn name(&self) -> &str {
        &self.manifest.extension.name
    }

    /// What is compiled, each source once, and with which options. `tell` hears of crates that are
    /// fetched for it.
    ///
    /// # Errors
    /// A crate cannot be had, or a pattern matches nothing.
    pub fn units(&self, tell: &mut dyn FnMut(&Event)) -> Result<Vec<Unit>, ProjectError> {
        let mut folders = BTreeMap::new();
        for (name, version) in &self.manifest.crates {
            tell(&Event::Fetch {
                name: name.clone(),
                version: version.clone(),
            });
            folders.insert(name.clone(), crates::folder(&self.folder, name, version)?);
        }
        sources::units(&self.folder, &self.manifest, &folders)
    }

    /// Builds what is not up to date. `tell` hears of each step, on the calling thread.
    ///
    /// # Errors
    /// Of all sources that fail, each is told of; the rest is still compiled.
    pub fn build(
        &self,
        options: &Options,
        tell: &mut dyn FnMut(&Event),
    ) -> Result<Built, ProjectError> {
        let units = self.units(tell)?;
        let _alone = lock(&options.folder)?;
        let tools = stamp::tools();
        let extension = self.variant(&units, options, &tools, false, tell)?;
        let native = match options.native {
            true => Some(self.variant(&units, options, &tools, true, tell)?),
            false => None,
        };
        Ok(Built { extension, native })
    }

    fn variant(
        &self,
        units: &[Unit],
        options: &Options,
        tools: &str,
        native: bool,
        tell: &mut dyn FnMut(&Event),
    ) -> Result<PathBuf, ProjectError> {
        let about = &self.manifest.extension;
        let output = match (&about.output, native) {
            (Some(output), false) => self.folder.join(output),
            (Some(output), true) => self.folder.join(output).with_extension("so"),
            (None, false) => options.folder.join(format!("{}.px", about.name)),
            (None, true) => options.folder.join(format!("lib{}.so", about.name)),
        };
        let objects = options
            .folder
            .join(if native { "native" } else { "objects" });
        for folder in [objects.as_path(), output.parent().unwrap_or(Path::new(""))] {
            std::fs::create_dir_all(folder).map_err(|source| ProjectError::File {
                path: folder.to_owned(),
                source,
            })?;
        }
        let done = compile::all(units, &objects, options, tools, native, tell)?;

        let cxx = about.cxx.unwrap_or_else(|| units.iter().any(|u| u.is_cxx));
        let mut arguments: Vec<OsString> = Vec::new();
        if native {
            arguments.push("--native".into());
        } else {
            let linked = [("stack", &about.stack), ("heap", &about.heap)];
            for (name, value) in linked {
                if let Some(value) = value {
                    arguments.push(format!("-fpostern-{name}={}", value.0).into());
                }
            }
            for name in about.exports.iter().flatten() {
                arguments.push(format!("-fpostern-export={name}").into());
            }
        }
        arguments.extend(done.objects.iter().map(|object| object.into()));
        if native {
            arguments.push("-lm".into());
        }
        arguments.extend(about.link.iter().map(OsString::from));
        arguments.extend(["-o".into(), output.clone().into_os_string()]);
        let stamp = stamp::Stamp::new(&output, &objects.join("link.stamp"), &arguments, tools);
        if done.compiled == 0 && stamp.is_fresh() {
            tell(&Event::Fresh {
                output: output.clone(),
                native,
            });
            return Ok(output);
        }
        stamp.begin()?;
        let language = if cxx { Language::Cxx } else { Language::C };
        match run_captured(language, &arguments) {
            Ok(_) => {
                tell(&Event::Linked {
                    output: output.clone(),
                    native,
                });
                Ok(output)
            }
            Err(error) => {
                stamp.forget();
                Err(ProjectError::Link(error.to_string()))
            }
        }
    }
}
