//! The site's own plugins: the sources of a folder, in as many namespaces as pictures are worked on
//! at a time.
//!
//! Invariant: one request at a time is in a namespace of the site's. All of a set are of one
//! reading of the folder.

use crate::config::{PluginRun, PluginSettings, Quotas};
use crate::plugin::Plugin;
use crate::plugin_host::{self, HostContext, Isolation, PluginEntry, PluginHost};
use crate::problem::Problem;
use crate::source::{self, PluginKind, function};
use crate::trusted::Unconfined;
use postern::input;
use postern_toolchain::Language;
use postern_toolchain::driver::run_captured;
use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Anything = Box<dyn Error + Send + Sync>;

/// What the site's plugins may have: the site's owner wrote them.
const QUOTAS: Quotas = Quotas {
    plugins: 1024,
    source_bytes: 1 << 20,
    code_bytes: 4 << 20,
    memory_bytes: 16 << 20,
    requests: usize::MAX,
};

/// The site's plugins as they were read once.
pub struct SitePlugins {
    /// By name.
    pub plugins: BTreeMap<String, Arc<Plugin>>,
    objects: BTreeMap<String, Vec<u8>>,
    native: BTreeMap<String, Unconfined>,
    call: Duration,
    context: Arc<HostContext>,
    idle: Mutex<Vec<Arc<SiteInstance>>>,
}

/// A namespace with all of a set.
pub struct SiteInstance {
    /// The namespace.
    pub host: Arc<PluginHost>,
    /// What its plugins are called by.
    pub entries: BTreeMap<String, PluginEntry>,
}

/// An instance for one request.
pub struct Lease {
    /// The instance.
    pub instance: Arc<SiteInstance>,
    set: Arc<SitePlugins>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut idle = self.set.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(self.instance.clone());
    }
}

fn problem(path: &Path, problem: &Problem) -> Anything {
    format!("{}: {}", path.display(), problem.detail()).into()
}

impl SitePlugins {
    /// Reads, compiles and tries the plugins of a folder.
    ///
    /// # Errors
    /// One of them is wrong.
    pub fn read(
        settings: &PluginSettings,
        context: &Arc<HostContext>,
        folder: &Path,
    ) -> Result<Arc<SitePlugins>, Anything> {
        let mut set = SitePlugins {
            plugins: BTreeMap::new(),
            objects: BTreeMap::new(),
            native: BTreeMap::new(),
            call: settings.call,
            context: context.clone(),
            idle: Mutex::default(),
        };
        let builds = tempfile::Builder::new()
            .prefix("plugins-")
            .tempdir_in(folder)?;
        std::fs::write(builds.path().join("picture.h"), source::PICTURE_H)?;
        for path in settings.folder.iter().flat_map(|folder| sources(folder)) {
            let name = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            if !source::is_name(name) {
                let text = "a plugin's name has letters, digits, `-` and `_`, 64 at most";
                return Err(format!("{}: {text}", path.display()).into());
            }
            let text = input::read(&path, input::MAX_TEXT)?;
            // Also what is compiled by others must be E-code: the source is what the site shows.
            let artifact = source::compile(name, &text, QUOTAS.source_bytes, QUOTAS.memory_bytes);
            let mut artifact = artifact.map_err(|e| problem(&path, &e))?;
            let mut kind = PluginKind::Ecode;
            let output = |extension: &str| builds.path().join(format!("{name}.{extension}"));
            match settings.run {
                PluginRun::Ecode => {}
                PluginRun::Protected => {
                    let object = output("o");
                    let mut arguments = arguments(builds.path(), &path, &object);
                    // A namespace has no C library for loops that look like memset.
                    arguments.push("-fno-tree-loop-distribute-patterns".into());
                    arguments.push("-c".into());
                    run_captured(Language::C, &arguments).map_err(|e| e.to_string())?;
                    set.objects.insert(name.to_owned(), std::fs::read(object)?);
                    kind = PluginKind::Object;
                }
                PluginRun::Unprotected => {
                    let library = output("so");
                    compile(&arguments(builds.path(), &path, &library))?;
                    let loaded = Unconfined::open(&library, &function(name))?;
                    set.native.insert(name.to_owned(), loaded);
                    (kind, artifact.verify_ns) = (PluginKind::Native, 0);
                }
            }
            let mut plugin = Plugin::new(name, kind, &text, artifact);
            plugin.source = Some(String::from_utf8_lossy(&text).into_owned());
            set.plugins.insert(name.to_owned(), Arc::new(plugin));
        }
        let first = set.instance().map_err(|e| e.detail().to_owned())?;
        set.idle = Mutex::new(vec![Arc::new(first)]);
        Ok(Arc::new(set))
    }

    /// An instance that nobody has.
    ///
    /// # Errors
    /// No room for another namespace.
    pub fn lend(self: &Arc<SitePlugins>) -> Result<Lease, Problem> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let instance = match idle {
            Some(instance) => instance,
            None => Arc::new(self.instance()?),
        };
        Ok(Lease {
            instance,
            set: self.clone(),
        })
    }

    fn instance(&self) -> Result<SiteInstance, Problem> {
        if !self.native.is_empty() {
            let native = self.native.iter();
            return Ok(SiteInstance {
                host: Arc::new(PluginHost::new(Isolation::Native, "site", &self.context)),
                entries: native
                    .map(|(name, function)| (name.clone(), PluginEntry::Native(function.clone())))
                    .collect(),
            });
        }
        let namespace = plugin_host::namespace("site", &QUOTAS, self.call).build()?;
        for (name, plugin) in &self.plugins {
            match self.objects.get(name) {
                Some(object) => {
                    let types = [(&*function(name), source::PICTURES)];
                    namespace.create_object(name, object, &types)?;
                }
                None => drop(namespace.create(name, &plugin.artifact.text)?),
            }
        }
        let isolation = Isolation::Namespace(namespace);
        let mut entries = BTreeMap::new();
        for name in self.plugins.keys() {
            if let Some(entry) = plugin_host::entry(&isolation, name)? {
                entries.insert(name.clone(), entry);
            }
        }
        Ok(SiteInstance {
            host: Arc::new(PluginHost::new(isolation, "site", &self.context)),
            entries,
        })
    }
}

/// The sources of a folder, in the order of their names.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "c" || e == "ec"));
    paths.sort();
    paths
}

/// E-code's arithmetic, for other compilers.
fn arguments(include: &Path, source: &Path, output: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "-O2",
        "-g",
        "-std=c11",
        "-fwrapv",
        "-fno-strict-aliasing",
        "-xc",
    ]
    .map(OsString::from)
    .to_vec();
    arguments.extend([
        "-I".into(),
        include.into(),
        source.into(),
        "-o".into(),
        output.into(),
    ]);
    arguments
}

fn compile(arguments: &[OsString]) -> Result<(), Anything> {
    let output = Command::new("gcc")
        .args(["-shared", "-fPIC"])
        .args(arguments)
        .output();
    let output = output.map_err(|error| format!("cannot run gcc: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim_end().into()),
    }
}
