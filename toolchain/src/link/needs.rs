//! What has to be linked besides the inputs: found out by trial links, until one asks for nothing
//! new.
//!
//! Each trial is made with what the trials before asked for, and may ask for more: the C++ library
//! for the C library, constructors for the function that runs them, and so on. One thing is taken
//! up at a time, in the order of [`next`], for what comes later is to be judged by what came before
//! alone: a library that nothing refers to any more would not be linked, but its services would
//! stay imports.
//!
//! It ends. Everything here only grows, but for `frames`. More is linked with tables of frames than
//! without, so that a trial that says the tables are of use says so with them, too, and one that
//! says that they are not says so without: they change at most once after each change of something
//! else, and once when they are laid down by guess.

use std::collections::HashSet;
use std::path::PathBuf;

use super::linker::Linker;
use super::symbols::{self, Found};
use super::{LinkError, notes};
use crate::cxx::CxxLibrary;

/// What is linked besides the inputs, and in which way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// The archive of the C++ library, if it is linked.
    pub cxx: Option<PathBuf>,
    /// Whether frames and landing pads are described, for an unwinder that is linked.
    pub frames: bool,
    /// The folder of the C library, if it is linked.
    pub libc: Option<PathBuf>,
    /// The host's functions that no library is to be searched for.
    pub imports: Vec<String>,
    /// The function that runs static constructors.
    pub constructors: bool,
    /// What stands in virtual tables where there is no function.
    pub pure: bool,
}

/// What has to be linked, and what the last trial, which was made with that, left.
pub fn find(linker: &Linker) -> Result<(Needs, Found), LinkError> {
    let mut needs = Needs::default();
    loop {
        linker.try_with(&needs)?;
        let mut found = symbols::read(&linker.trial())?;
        let next = next(linker, &needs, &found)?;
        if next == needs {
            found.undefined.extend(needs.imports.iter().cloned());
            found
                .undefined
                .sort_unstable_by(|a, b| by_slot(a).cmp(&by_slot(b)));
            found.undefined.dedup();
            return Ok((needs, found));
        }
        needs = next;
    }
}

/// The order of imports: by name, and what every domain is granted comes last, so that the numbers
/// of the host's services do not hang on what the library asks for.
fn by_slot(name: &str) -> (bool, &str) {
    (name.starts_with("__postern_"), name)
}

/// What the next trial has to be made with, after one with `needs` that left `found`.
fn next(linker: &Linker, needs: &Needs, found: &Found) -> Result<Needs, LinkError> {
    let mut next = needs.clone();
    if needs.cxx.is_none()
        && let Some(archive) = cxx(linker, found)?
    {
        next.cxx = Some(archive);
        // A guess: what the tables of frames refer to may ask for more of the C library.
        next.frames = true;
    } else if needs.frames != found.throws {
        next.frames = found.throws;
    } else if needs.libc.is_none()
        && let Some((folder, imports)) = libc(linker, found)?
    {
        next.libc = Some(folder);
        next.imports = imports;
    } else if linker.options.library.is_some() {
        next.constructors |= found.has_constructors;
        next.pure |= found.pure;
    }
    Ok(next)
}

/// The archive of the C++ library, if something asks for it.
fn cxx(linker: &Linker, found: &Found) -> Result<Option<PathBuf>, LinkError> {
    let asks = |name: &String| CxxLibrary::may_define(name);
    let library = linker.options.cxx.as_ref();
    let wanted = library.filter(|_| found.undefined.iter().any(asks));
    Ok(wanted.map(CxxLibrary::archive).transpose()?)
}

/// The folder of the C library, if something asks for it, and the undefined functions that are the
/// host's all the same.
fn libc(linker: &Linker, found: &Found) -> Result<Option<(PathBuf, Vec<String>)>, LinkError> {
    let Some(library) = &linker.options.libc else {
        return Ok(None);
    };
    // A service of the host goes before a function of the library.
    let mut imports = linker.options.imports.clone();
    imports.extend(symbols::services(linker.inputs)?);
    let undefined: HashSet<&String> = found.undefined.iter().collect();
    imports.retain(|name| undefined.contains(name) && notes::is_name(name));
    let others = found.undefined.iter().map(String::as_str);
    let others: HashSet<&str> = others
        .filter(|name| !imports.iter().any(|import| import == name))
        .collect();
    if !others.contains(symbols::MAIN) && !library.0.declares_one_of(&others) {
        return Ok(None);
    }
    Ok(Some((library.0.library()?, imports)))
}
