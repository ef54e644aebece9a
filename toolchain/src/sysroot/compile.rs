//! Compiling the C library: every file as any source of an extension.

use std::ffi::OsString;
use std::path::Path;

use super::parts::{MENDED, SMALL_VARIANTS, Target, create};
use super::source::Source;
use super::{is_source, makefile};
use crate::archive::{self, Job, LibraryError};
use crate::cache;
use crate::compile::{CompileOptions, Headers, Language};
use crate::error::CompileError;

/// Makes the folder `lib` with `libc.a` and `libm.a`.
pub fn build(
    source: &Source,
    target: &Target,
    headers: &Headers,
    lib: &Path,
) -> Result<(), LibraryError> {
    let scratch = lib.join("scratch");
    create(&scratch)?;
    let root = source.unpack(&scratch)?;
    mend(&root)?;
    let objects = scratch.join("objects");
    create(&objects)?;
    let mut common: Vec<OsString> = target.flags.iter().map(OsString::from).collect();
    if target.plain {
        // What a failed assertion names is not where this is built.
        common.push(format!("-ffile-prefix-map={}=", root.display()).into());
    }
    let options = |flags: Vec<OsString>, debug| CompileOptions {
        flags: common.iter().cloned().chain(flags).collect(),
        debug,
        ..CompileOptions::default()
    };
    let mut jobs = Vec::new();
    let ours = scratch.join("ours");
    cache::write(&ours, target.sources)?;
    for (name, _) in target.sources {
        if is_source(Path::new(name)) {
            jobs.push(Job {
                language: Language::C,
                archive: "libc.a",
                source: ours.join(name),
                object: objects.join(format!("postern-{name}.o")),
                // Debug information: the signature of `sys` is read from there.
                options: options(["-g", "-fno-builtin"].map(OsString::from).into(), true),
                plain: target.plain,
            });
        }
    }
    for folder in target.folders {
        let path = root.join(folder.path);
        let rules = path.join("Makefile.am");
        let text = std::fs::read_to_string(&rules).map_err(CompileError::file(&rules))?;
        for unit in makefile::units(&text) {
            if unit.object.starts_with(SMALL_VARIANTS)
                || folder
                    .without
                    .split_whitespace()
                    .any(|name| name == unit.source)
            {
                continue;
            }
            let mut flags: Vec<OsString> = folder.flags.iter().map(Into::into).collect();
            flags.extend(unit.defines.iter().map(Into::into));
            flags.extend(["-I".into(), path.clone().into(), "-I".into()]);
            flags.push(root.join("libm/common").into());
            jobs.push(Job {
                language: Language::C,
                archive: folder.archive,
                source: path.join(&unit.source),
                object: objects.join(format!(
                    "{}-{}.o",
                    folder.path.replace('/', "-"),
                    unit.object
                )),
                options: options(flags, false),
                plain: target.plain,
            });
        }
    }
    for unit in target.units {
        let folder = root.join(unit.folder);
        let mut flags: Vec<OsString> = unit.flags.iter().map(Into::into).collect();
        flags.extend(["-I".into(), folder.clone().into()]);
        jobs.push(Job {
            language: Language::C,
            archive: "libc.a",
            source: folder.join(unit.source),
            object: objects.join(format!("{}.o", unit.object)),
            options: options(flags, false),
            plain: target.plain,
        });
    }
    archive::build(&jobs, headers, lib, "the C library", "newlib")?;
    Ok(std::fs::remove_dir_all(&scratch).map_err(CompileError::file(&scratch))?)
}

/// Writes corrections into the unpacked source.
fn mend(root: &Path) -> Result<(), LibraryError> {
    for (files, wrong, right) in MENDED {
        for name in files.split_whitespace() {
            let path = root.join(name);
            let file = CompileError::file(&path);
            let text = std::fs::read(&path).map_err(&file)?;
            let text = String::from_utf8_lossy(&text);
            if !text.contains(wrong) {
                return Err(LibraryError::Source {
                    path,
                    reason: format!("`{wrong}` is not in it, so that it is not of version 3.3.0"),
                });
            }
            std::fs::write(&path, text.replace(wrong, right)).map_err(file)?;
        }
    }
    Ok(())
}
