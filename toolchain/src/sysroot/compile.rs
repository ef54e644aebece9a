//! Compiling the C library: every file through this driver.

use std::ffi::OsString;
use std::path::Path;

use super::parts::{FLAGS, FOLDERS, MENDED, SMALL_VARIANTS, SOURCES, create};
use super::source::Source;
use super::{SysrootError, is_source, makefile};
use crate::archive::{self, Job};
use crate::cache;
use crate::driver::{DriverError, Language};

/// Makes the folder `target` with `libc.a` and `libm.a`.
pub fn build(source: &Source, include: &Path, target: &Path) -> Result<(), DriverError> {
    let scratch = target.join("scratch");
    create(&scratch)?;
    let root = source.unpack(&scratch)?;
    mend(&root)?;
    let objects = scratch.join("objects");
    create(&objects)?;
    let mut jobs = Vec::new();
    let ours = scratch.join("ours");
    cache::write(&ours, SOURCES)?;
    for (name, _) in SOURCES {
        if is_source(Path::new(name)) {
            jobs.push(Job {
                language: Language::C,
                archive: "libc.a",
                source: ours.join(name),
                object: objects.join(format!("postern-{name}.o")),
                // Debug information: the signature of `sys` is read from there.
                options: ["-g", "-fno-builtin"].map(OsString::from).to_vec(),
            });
        }
    }
    for folder in FOLDERS {
        let path = root.join(folder.path);
        let rules = path.join("Makefile.am");
        let text = std::fs::read_to_string(&rules).map_err(DriverError::file(&rules))?;
        for unit in makefile::units(&text) {
            if unit.object.starts_with(SMALL_VARIANTS)
                || folder
                    .without
                    .split_whitespace()
                    .any(|name| name == unit.source)
            {
                continue;
            }
            let mut options: Vec<OsString> = folder.flags.iter().map(Into::into).collect();
            options.push("-g0".into());
            options.extend(unit.defines.iter().map(Into::into));
            options.extend(["-I".into(), path.clone().into(), "-I".into()]);
            options.push(root.join("libm/common").into());
            jobs.push(Job {
                language: Language::C,
                archive: folder.archive,
                source: path.join(&unit.source),
                object: objects.join(format!(
                    "{}-{}.o",
                    folder.path.replace('/', "-"),
                    unit.object
                )),
                options,
            });
        }
    }
    let mut headers = OsString::from("-fpostern-include=");
    headers.push(include);
    for job in &mut jobs {
        let flags = FLAGS.iter().map(OsString::from);
        job.options.splice(0..0, flags);
        job.options.push(headers.clone());
    }
    archive::build(&jobs, target, "the C library", "newlib")?;
    std::fs::remove_dir_all(&scratch).map_err(DriverError::file(&scratch))
}

/// Writes corrections into the unpacked source.
fn mend(root: &Path) -> Result<(), DriverError> {
    for (files, wrong, right) in MENDED {
        for name in files.split_whitespace() {
            let path = root.join(name);
            let file = DriverError::file(&path);
            let text = std::fs::read(&path).map_err(&file)?;
            let text = String::from_utf8_lossy(&text);
            if !text.contains(wrong) {
                return Err(SysrootError::Source {
                    path,
                    reason: format!("`{wrong}` is not in it, so that it is not of version 3.3.0"),
                }
                .into());
            }
            std::fs::write(&path, text.replace(wrong, right)).map_err(file)?;
        }
    }
    Ok(())
}
