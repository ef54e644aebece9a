//! From bitcode to an extension: what `postern cc` does, with the names of std made those of the C
//! library here, or refused.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind, SymbolScope};
use postern_toolchain::{Language, run};

use crate::bitcode::{self, Kind, Target};
use crate::build::Build;
use crate::error::Error;
use crate::names::{self, Fate};

/// What std, which was compiled for another C library, finds in that one's place.
const GLIBC: &str = include_str!("glibc.c");

/// Builds the crate; returns the image.
pub fn build(build: &Build, kind: Kind) -> Result<PathBuf, Error> {
    let target = bitcode::target(build)?;
    let bitcode = bitcode::write(build, &target, kind)?;
    let program = target.program || kind == Kind::Tests;
    let object = compile(build, &target, &bitcode)?;
    let symbols = Symbols::read(&object)?;
    // The harness can run each test in a process of its own, which it never does for one thread.
    if kind != Kind::Tests {
        symbols.check()?;
    }
    let object = rename(&object, &symbols)?;
    let image = build
        .output
        .clone()
        .unwrap_or_else(|| bitcode.with_extension("px"));
    let mut options: Vec<OsString> = vec!["-O2".into()];
    options.extend(processor(build));
    if !program {
        if symbols.exports.is_empty() {
            return Err(Error::Other(
                "the crate exports no function: mark one by #[postern::export], or by #[unsafe(no_mangle)] and extern \"C\"".to_owned(),
            ));
        }
        options.push(format!("-fpostern-export={}", symbols.exports.join(",")).into());
    }
    options.push("-Wl,--no-undefined".into());
    // std is linked whole where a program panics or prints, and its formatting wants some room.
    options.push("-fpostern-stack=1M".into());
    options.extend(build.link.iter().map(OsString::from));
    options.extend([
        "-o".into(),
        image.clone().into_os_string(),
        object.into_os_string(),
    ]);
    let shim = target.folder.join("glibc.c");
    let mut text = GLIBC.to_owned();
    for name in symbols.with(Fate::Absent) {
        // One name for all is more than objcopy allows.
        text +=
            &format!("long __postern_absent_{name}(void) {{ return __postern_glibc_absent(); }}\n");
    }
    std::fs::write(&shim, text).map_err(Error::file(&shim))?;
    options.push(shim.into_os_string());
    run(Language::C, &options)?;
    Ok(image)
}

fn processor(build: &Build) -> Option<OsString> {
    build
        .march
        .as_ref()
        .map(|name| format!("-march={name}").into())
}

fn compile(build: &Build, target: &Target, bitcode: &Path) -> Result<PathBuf, Error> {
    let object = target.folder.join(format!("{}.o", target.name));
    let mut options: Vec<OsString> = ["-O3", "-c", "-o"].map(OsString::from).into();
    options.push(object.clone().into_os_string());
    options.extend(processor(build));
    options.push(bitcode.as_os_str().to_owned());
    run(Language::C, &options)?;
    Ok(object)
}

/// Symbols of an object.
struct Symbols {
    /// Functions that the host may call.
    exports: Vec<String>,
    /// What nobody in it defines.
    undefined: BTreeSet<String>,
    /// Which of those are the host's.
    services: BTreeSet<String>,
}

impl Symbols {
    fn read(path: &Path) -> Result<Self, Error> {
        let data = std::fs::read(path).map_err(Error::file(path))?;
        let malformed = |error: object::Error| Error::Other(format!("{}: {error}", path.display()));
        let file = object::File::parse(&*data).map_err(malformed)?;
        let mut symbols = Self {
            exports: Vec::new(),
            undefined: BTreeSet::new(),
            services: BTreeSet::new(),
        };
        for symbol in file.symbols() {
            let name = symbol.name().map_err(malformed)?;
            if symbol.is_undefined() && !name.is_empty() {
                symbols.undefined.insert(name.to_owned());
            }
            // Hidden ones are the compiler's, and so are those with a name that it made.
            let outside = symbol.scope() == SymbolScope::Dynamic;
            if symbol.is_definition()
                && symbol.kind() == SymbolKind::Text
                && outside
                && !names::is_compilers(name)
            {
                symbols.exports.push(name.to_owned());
            }
        }
        if let Some(section) = file.section_by_name(".postern.services") {
            let names = section.data().map_err(malformed)?;
            let names = names
                .split(|byte| *byte == 0)
                .filter(|name| !name.is_empty());
            symbols
                .services
                .extend(names.map(|name| String::from_utf8_lossy(name).into_owned()));
        }
        Ok(symbols)
    }

    /// What nobody defines and is not the host's, of one kind.
    fn with(&self, fate: Fate) -> impl Iterator<Item = &String> {
        self.undefined
            .iter()
            .filter(move |name| names::fate(name) == fate && !self.services.contains(*name))
    }

    /// Refuses what an extension in Rust has not.
    fn check(&self) -> Result<(), Error> {
        let missing: Vec<String> = self
            .with(Fate::Absent)
            .map(|name| format!("`{name}`"))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::Other(format!(
            "{}: extensions in Rust have no such function: the crate, or what it uses of std, cannot be confined; what is the host's is \
             declared by postern::service!",
            missing.join(", ")
        )))
    }
}

/// Gives the functions whose meaning is another one here the names of `glibc.c`.
fn rename(object: &Path, symbols: &Symbols) -> Result<PathBuf, Error> {
    let renamed = object.with_extension("named.o");
    let mut command = Command::new("objcopy");
    for name in symbols.with(Fate::Renamed) {
        command.arg(format!("--redefine-sym={name}=__postern_glibc_{name}"));
    }
    for name in symbols.with(Fate::Absent) {
        command.arg(format!("--redefine-sym={name}=__postern_absent_{name}"));
    }
    let output = command
        .arg(object)
        .arg(&renamed)
        .output()
        .map_err(|source| Error::Start {
            program: "objcopy".to_owned(),
            source,
        })?;
    match output.status.success() {
        true => Ok(renamed),
        false => Err(Error::Other(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}
