//! The modules: their names, when they are asked, and their two builds.

use postern_toolchain::{Build, Language};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// In the order in which they are asked.
pub const MODULES: [&str; 30] = [
    "headers",
    "unique_id",
    "setenvif",
    "vhost",
    "rewrite",
    "userdir",
    "alias",
    "access",
    "throttle",
    "robots",
    "auth_anon",
    "auth",
    "usertrack",
    "mime",
    "mime_magic",
    "negotiation",
    "dir",
    "speling",
    "env",
    "etag",
    "digest",
    "expires",
    "log_config",
    "cgi",
    "asis",
    "imap",
    "autoindex",
    "status",
    "info",
    "proxy",
];

/// What a module may be asked: the functions that it may export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The settings for the request's folder.
    Configure,
    /// The request has been read.
    PostRead,
    /// Its headers are looked at.
    Headers,
    /// From address to file.
    Translate,
    /// Where it is from.
    Access,
    /// Who asks.
    CheckUser,
    /// Whether that one may.
    Authorize,
    /// What the file is.
    Type,
    /// Last changes.
    Fixup,
    /// The answer's headers.
    RespondHeaders,
    /// It is over.
    Log,
    /// An answer that is no file.
    Handle,
}

impl Phase {
    /// All but [`Phase::Handle`], in order.
    pub const ALL: [Phase; 11] = [
        Phase::Configure,
        Phase::PostRead,
        Phase::Headers,
        Phase::Translate,
        Phase::Access,
        Phase::CheckUser,
        Phase::Authorize,
        Phase::Type,
        Phase::Fixup,
        Phase::RespondHeaders,
        Phase::Log,
    ];

    /// The function's name.
    pub fn function(self) -> &'static str {
        match self {
            Phase::Configure => "configure",
            Phase::PostRead => "post_read",
            Phase::Headers => "headers",
            Phase::Translate => "translate",
            Phase::Access => "check_access",
            Phase::CheckUser => "check_user",
            Phase::Authorize => "authorize",
            Phase::Type => "type",
            Phase::Fixup => "fixup",
            Phase::RespondHeaders => "respond_headers",
            Phase::Log => "log_request",
            Phase::Handle => "handle",
        }
    }
}

/// A module's two builds.
#[derive(Clone, Debug)]
pub struct Built {
    /// Its name.
    pub name: &'static str,
    /// The extension.
    pub extension: PathBuf,
    /// The shared object.
    pub native: PathBuf,
}

/// Where the sources lie.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("modules")
}

/// Builds all modules into `folder`, both ways and from the same source, unless they are newer than
/// it and than this program.
///
/// The linker lets the code of each begin in another page of its window. With `alike`, all begin in
/// the same one, so that they want the same few entries of the processor's tables of pages.
///
/// # Errors
/// What the compiler says.
pub fn build(folder: &Path, alike: bool) -> Result<Vec<Built>, String> {
    let folder = &folder.join(if alike { "alike" } else { "apart" });
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let sources = sources();
    let time = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    let program = std::env::current_exe().ok();
    let shared = [sources.join("module.h"), sources.join("sha256.h")];
    let newest = shared.iter().chain(&program).filter_map(|p| time(p)).max();
    let built: Vec<Built> = MODULES
        .iter()
        .map(|&name| Built {
            name,
            extension: folder.join(format!("{name}.px")),
            native: folder.join(format!("{name}.so")),
        })
        .collect();
    let one = |module: &Built| -> Result<(), String> {
        let source = sources.join(format!("{}.c", module.name));
        let fresh = |output: &Path| {
            time(output).is_some_and(|made| Some(made) > time(&source) && Some(made) > newest)
        };
        let build = |output: &Path, flags: &[&str]| {
            Build::new(Language::C)
                .file(&source)
                .flags(["-O2", "-Wall", "-Wextra", "-Wno-unused", "-s"])
                .flags(flags)
                .output(output)
        };
        if !fresh(&module.extension) {
            // No module needs more stack, and none allocates.
            let mut flags = vec!["-nolibc", "-fpostern-stack=8K", "-fpostern-heap=4K"];
            if alike {
                flags.push("-fpostern-shift=0");
            }
            let extension = build(&module.extension, &flags);
            extension.run().map_err(|e| e.to_string())?;
        }
        if !fresh(&module.native) {
            let native = build(&module.native, &["-DNATIVE"]).native();
            native.run().map_err(|e| e.to_string())?;
        }
        Ok(())
    };
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            let Some(module) = built.get(k) else {
                return Ok::<(), String>(());
            };
            one(module).map_err(|e| format!("{}: {e}", module.name))?;
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(work);
        work().and(
            other
                .join()
                .unwrap_or_else(|_| Err("a build panicked".to_owned())),
        )
    })?;
    Ok(built)
}
