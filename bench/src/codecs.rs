//! Codecs of other people, built like the kernels: lz4, zlib and bzip2, whose sources lie in crates that cargo fetches.
//!
//! Each is one program with two functions (`codecs/drive.c` over `examples/codecs/*/face.c`). The module has a library of a few functions
//! (`codecs/wasm`), and memory that grows.

use crate::kernels::{Build, Kernel};
use crate::wasm::{Builds, clang, extension, module_options};
use postern_toolchain::Language;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

struct Codec {
    name: [&'static str; 2],
    /// Folder of `examples/codecs`.
    face: &'static str,
    /// The crate, and the folder of the sources in it.
    source: (&'static str, &'static str),
    /// Beginnings of the names of files that are not part of it.
    without: &'static [&'static str],
    flags: &'static [&'static str],
}

const CODECS: [Codec; 3] = [
    Codec {
        name: ["lz4.compress", "lz4.decompress"],
        face: "lz4",
        source: ("lz4-sys", "liblz4/lib"),
        without: &["lz4file"],
        flags: &["-DXXH_NAMESPACE=LZ4_", "-DLEVEL=1"],
    },
    Codec {
        name: ["zlib.compress", "zlib.decompress"],
        face: "zlib",
        source: ("libz-sys", "src/zlib"),
        without: &["gz"],
        flags: &["-DLEVEL=6"],
    },
    Codec {
        name: ["bzip2.compress", "bzip2.decompress"],
        face: "bzip2",
        source: ("bzip2-sys", "bzip2-1.0.8"),
        without: &["bzip2", "dlltest", "mk251", "spewG", "unzcrash"],
        flags: &["-DBZ_NO_STDIO", "-DLEVEL=9"],
    },
];

const FUNCTIONS: [&str; 2] = ["compress_once", "decompress_once"];

/// Where cargo has put the source of a crate, which it fetches if need be.
fn crates() -> Result<impl Fn(&str) -> Result<PathBuf, String>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version=1",
            "--all-features",
            "--manifest-path",
        ])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    let known: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|_| {
        let messages = String::from_utf8_lossy(&output.stderr);
        format!("cargo does not say where crates are: {messages}")
    })?;
    Ok(move |name: &str| {
        let all = known["packages"].as_array();
        let found = all.and_then(|all| all.iter().find(|one| one["name"] == name));
        let manifest = found.and_then(|one| one["manifest_path"].as_str());
        let folder = manifest.and_then(|path| Path::new(path).parent());
        folder
            .map(Path::to_owned)
            .ok_or_else(|| format!("cargo knows no crate {name}"))
    })
}

/// All codecs in all builds, two programs for each.
pub fn build(directory: &Path) -> Result<Vec<(Kernel, Builds)>, String> {
    let place = crates()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut programs = Vec::new();
    for codec in &CODECS {
        let folder = place(codec.source.0)?.join(codec.source.1);
        let mut sources = vec![
            root.join("codecs/drive.c"),
            root.join("../examples/codecs")
                .join(codec.face)
                .join("face.c"),
        ];
        let entries =
            std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        sources.extend(files.into_iter().filter(|path| {
            let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
            let other = |start: &&str| stem.starts_with(*start);
            path.extension() == Some(OsStr::new("c")) && !codec.without.iter().any(other)
        }));
        let mut options: Vec<OsString> = codec.flags.iter().map(Into::into).collect();
        for include in [root.join("../examples/codecs"), folder] {
            options.extend(["-I".into(), include.into()]);
        }
        options.extend(sources.iter().map(Into::into));

        let at = |ending: &str| directory.join(format!("{}.{ending}", codec.face));
        let ours = |output: PathBuf| {
            postern_toolchain::Build::new(Language::C)
                .flags(["-O2", "-w"])
                .flags(&options)
                .output(output)
        };
        let own = ours(at("px")).run().map_err(|e| e.to_string())?;
        let native = ours(at("so")).native().run().map_err(|e| e.to_string())?;

        // What the header says of exports is for gcc.
        let mut plain: Vec<OsString> = ["-DPOSTERN_EXTENSION_H", "-DPOSTERN_EXPORT=extern", "-I"]
            .map(OsString::from)
            .into();
        plain.push(root.join("../toolchain/include").into());
        plain.extend(options);
        let shared: Vec<OsString> = ["-shared", "-fPIC"].map(OsString::from).into();
        clang(&at("clang.so"), &[shared, plain.clone()].concat())?;
        let mut module = module_options(&FUNCTIONS);
        module
            .extend(["-mbulk-memory", "-Wl,-z,stack-size=262144", "-isystem"].map(OsString::from));
        module.push(root.join("codecs/wasm").into());
        module.push(root.join("codecs/wasm/library.c").into());
        module.extend(plain);
        clang(&at("clang.scalar.wasm"), &module)?;
        let wasm2c = extension(&at("clang.scalar.wasm"))?;
        module.push("-msimd128".into());
        clang(&at("clang.wasm"), &module)?;
        for (name, function) in codec.name.into_iter().zip(FUNCTIONS) {
            let kernel = Kernel {
                name,
                function,
                builds: vec![Build {
                    extension: own.clone(),
                    native: native.clone(),
                }],
            };
            let builds = Builds {
                clang: at("clang.so"),
                module: at("clang.wasm"),
                wasm2c: wasm2c.clone(),
            };
            programs.push((kernel, builds));
        }
    }
    Ok(programs)
}
