//! Building `libstdc++.a`: which files of the compiler's source, with which options.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::SOURCES;
use crate::archive::{self, Job, LibraryError};
use crate::cache;
use crate::compile::{CompileOptions, Headers, Language};
use crate::error::CompileError;
use crate::tools::Tool;

/// A folder of the library's source.
struct Folder {
    path: &'static str,
    /// The language that its files are written in.
    standard: &'static str,
    /// Files that are left out.
    without: &'static str,
    /// Templates are instantiated where a file says so, and nowhere else.
    explicit: bool,
}

/// Left out are: what is there for programs that older versions of the library were linked to, the
/// parallel mode, and what we have ourselves.
const FOLDERS: &[Folder] = &[
    Folder {
        path: "libsupc++",
        standard: "-std=gnu++17",
        without: "atexit_arm atexit_thread eh_arm eh_term_handler pure vterminate vtv_stubs",
        explicit: true,
    },
    Folder {
        path: "src/c++98",
        standard: "-std=gnu++98",
        without: "concept-inst hash-long-double-tr1-aux parallel_settings",
        explicit: true,
    },
    Folder {
        path: "src/c++11",
        standard: "-std=gnu++11",
        without: "compatibility-atomic-c++0x",
        explicit: true,
    },
    Folder {
        path: "src/c++17",
        standard: "-std=gnu++17",
        without: "",
        explicit: false,
    },
    Folder {
        path: "src/c++20",
        standard: "-std=gnu++20",
        without: "",
        explicit: false,
    },
    Folder {
        path: "config/locale/generic",
        standard: "-std=gnu++98",
        without: "ctype_members",
        explicit: false,
    },
    Folder {
        path: "config/locale/newlib",
        standard: "-std=gnu++11",
        without: "",
        explicit: true,
    },
    Folder {
        path: "config/os/newlib",
        standard: "-std=gnu++11",
        without: "",
        explicit: true,
    },
    Folder {
        path: "config/io",
        standard: "-std=gnu++11",
        without: "",
        explicit: true,
    },
];

/// Files that need other options.
const SPECIAL: &[(&str, &[&str])] = &[
    ("src/c++98/locale_init.cc", &["-std=gnu++11", "-fchar8_t"]),
    ("src/c++98/localename.cc", &["-std=gnu++11", "-fchar8_t"]),
    ("src/c++11/hashtable_c++0x.cc", &["-fimplicit-templates"]),
    ("src/c++11/codecvt.cc", &["-fchar8_t"]),
    ("src/c++11/limits.cc", &["-fchar8_t"]),
];

/// Files that are compiled once more for the string of before C++11, which some facets of locales
/// know.
const OLD_STRING: &[&str] = &[
    "collate_members",
    "messages_members",
    "monetary_members",
    "numeric_members",
];

const FLAGS: &[&str] = &["-O2", "-w"];

/// Everything in this file that the result depends on.
pub const IDENTITY: &str = include_str!("build.rs");

/// Unpacks the parts of the compiler's source that are needed into `folder/source`.
pub fn unpack(archive: &Path, folder: &Path) -> Result<(), LibraryError> {
    let target = folder.join("source");
    std::fs::create_dir_all(&target).map_err(CompileError::file(&target))?;
    Tool::Unpacker
        .command()
        .arg("-xf")
        .arg(archive)
        .arg("-C")
        .arg(&target)
        .args(["--strip-components=1", "--wildcards"])
        .args(["*/libstdc++-v3/src", "*/libstdc++-v3/libsupc++"])
        .args([
            "*/libstdc++-v3/config",
            "*/libgcc/unwind*.h",
            "*/include/*.h",
        ])
        .args(["--exclude=*/testsuite/*", "--exclude=*/config/abi/post/*"])
        .run()?;
    if !target.join("libstdc++-v3/libsupc++/eh_throw.cc").is_file() {
        return Err(LibraryError::Source {
            path: archive.to_owned(),
            reason: "this is not gcc's source (libstdc++-v3 is missing)".to_owned(),
        });
    }
    Ok(())
}

/// Makes `target/libstdc++.a`.
pub fn build(folder: &Path, headers: &Headers, target: &Path) -> Result<(), LibraryError> {
    let scratch = target.join("scratch");
    cache::write(&scratch, SOURCES)?;
    let source = folder.join("source/libstdc++-v3");
    let mut common: Vec<OsString> = FLAGS.iter().map(Into::into).collect();
    for folder in ["libsupc++", "../libgcc", "../include"] {
        common.extend(["-I".into(), source.join(folder).into()]);
    }
    let mut jobs = Vec::new();
    let mut add = |path: PathBuf, object: String, options: &[&str]| {
        let mut flags = common.clone();
        flags.extend(options.iter().map(Into::into));
        jobs.push(Job {
            language: Language::Cxx,
            archive: "libstdc++.a",
            source: path,
            object: scratch.join(object),
            options: CompileOptions {
                flags,
                debug: false,
                hidden: true,
                ..CompileOptions::default()
            },
            plain: false,
        });
    };
    for (name, _) in SOURCES {
        add(
            scratch.join(name),
            format!("postern-{name}.o"),
            &["-std=gnu++17"],
        );
    }
    for part in FOLDERS {
        let path = source.join(part.path);
        let mut files: Vec<PathBuf> = std::fs::read_dir(&path)
            .map_err(CompileError::file(&path))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension() == Some(OsStr::new("cc")))
            .collect();
        files.sort();
        for file in files {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            if part.without.split_whitespace().any(|name| name == stem)
                || stem.starts_with("compatibility")
            {
                continue;
            }
            let mut options = vec![part.standard];
            if part.explicit {
                options.push("-fno-implicit-templates");
            }
            let whole = format!("{}/{stem}.cc", part.path);
            if let Some((_, more)) = SPECIAL.iter().find(|(name, _)| *name == whole) {
                options.extend(*more);
            }
            let prefix = part.path.replace('/', "-");
            if OLD_STRING.contains(&&*stem) {
                let mut old = options.clone();
                old.push("-D_GLIBCXX_USE_CXX11_ABI=0");
                add(file.clone(), format!("{prefix}-{stem}-old.o"), &old);
            }
            add(file.clone(), format!("{prefix}-{stem}.o"), &options);
        }
    }
    archive::build(&jobs, headers, target, "the C++ library", "libstdc++")?;
    Ok(std::fs::remove_dir_all(&scratch).map_err(CompileError::file(&scratch))?)
}
