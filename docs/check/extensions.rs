//! The extensions of a page, built where its Rust blocks run.

use crate::page;
use postern_toolchain::Language;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The project's root.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("docs/ lies in the project")
        .to_owned()
}

/// An empty directory for one block or page.
///
/// # Panics
/// When it cannot be made.
pub fn scratch(name: &str) -> PathBuf {
    let directory = workspace()
        .join("build/docs-tests")
        .join(name.replace(['/', '.'], "-"));
    if directory.exists() {
        std::fs::remove_dir_all(&directory)
            .unwrap_or_else(|e| panic!("cannot empty {}: {e}", directory.display()));
    }
    std::fs::create_dir_all(&directory)
        .unwrap_or_else(|e| panic!("cannot make {}: {e}", directory.display()));
    directory
}

/// Goes into a directory that holds the extensions of `page`, compiled: `add.px` for a block with
/// `file=add.c`. Each Rust block begins with it (`build.rs` puts it there).
///
/// # Panics
/// When an extension does not compile.
pub fn enter(page: &str, line: usize) {
    let markdown = std::fs::read_to_string(workspace().join(page))
        .unwrap_or_else(|e| panic!("cannot read {page}: {e}"));
    let directory = scratch(&format!("{page}-{line}"));
    for block in page::blocks(&markdown) {
        let Some(name) = block.file().filter(|_| block.is_extension()) else {
            continue;
        };
        let source = directory.join(name);
        std::fs::write(&source, &block.text)
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", source.display()));
        let arguments: [OsString; 4] = [
            "-O2".into(),
            "-o".into(),
            source.with_extension("px").into(),
            source.clone().into(),
        ];
        if let Err(error) = postern_toolchain::run(Language::C, &arguments) {
            panic!(
                "{page}, line {}: {name} does not compile:\n{error}",
                block.line
            );
        }
    }
    std::env::set_current_dir(&directory)
        .unwrap_or_else(|e| panic!("cannot enter {}: {e}", directory.display()));
}
