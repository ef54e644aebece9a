//! Any numbers and words as system calls of an extension whose policy grants a directory: the host
//! survives, nothing outside the directory changes, and memory that the extension may only read
//! stays as it was.
//!
//! Each call is 11 bytes: a number, then for each of five words a kind and a value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::policy::{Call, Input, Request, Sink};
use postern::{Access, Caller, Domain, Image, Offset, Placement, Policy, Rules, Verdict};
use postern_image::ImageBuilder;
use postern_verifier::window::{self, slot};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Bytes of memory that calls get pointers into.
const MEMORY: u32 = 64 << 10;

/// Paths that calls name, each in a slot of 64 bytes at the start of memory.
const PATHS: [&str; 16] = [
    "/data",
    "/data/file",
    "/data/new",
    "/data/sub",
    "/data/up/secret",
    "/data/out",
    "/data/absolute",
    "/data/../secret",
    "/",
    "file",
    "..",
    "../..",
    "/data/sub/../../..",
    "new",
    "",
    "/data/file/",
];

/// Interesting words.
const EXTREMES: [u64; 8] = [
    0,
    1,
    u64::MAX,
    1 << 63,
    i64::MAX as u64,
    0xffff_ffff,
    0x8000_0000,
    0xffff_ff9c, // AT_FDCWD
];

/// An image whose export `call` is the import `sys`.
static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let mut text = vec![0xe9];
    text.extend(
        slot(0)
            .wrapping_sub(window::text_start(1) + 5)
            .to_le_bytes(),
    );
    let mut builder = ImageBuilder::new(text);
    let signature = || Some("l(llllll)".parse().expect("a signature"));
    builder.import("sys", signature());
    builder.export("call", 0, signature());
    builder.rodata([7; 64]).data(*b"data", MEMORY.into());
    let file = builder.build().expect("legal");
    Image::from_bytes(&file).expect("accepted")
});

/// The host's directories: `granted`, and what lies beside it.
static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = std::env::temp_dir().join(format!("postern-fuzz-{}", std::process::id()));
    fs::create_dir_all(root.join("beside")).expect("a directory");
    fs::write(root.join("secret"), "secret").expect("a file");
    root
});

/// Everything beside the granted directory.
fn surroundings() -> Vec<(PathBuf, u32, u64, i64, i64)> {
    let mut all = Vec::new();
    for name in ["secret", "beside"] {
        let path = ROOT.join(name);
        let found = fs::symlink_metadata(&path).expect("it is still there");
        all.push((
            path,
            found.mode(),
            found.size(),
            found.mtime(),
            found.mtime_nsec(),
        ));
    }
    let names = fs::read_dir(&*ROOT).expect("a directory").count();
    all.push((PathBuf::new(), names as u32, 0, 0, 0));
    all
}

/// A fresh directory to grant.
fn granted() -> PathBuf {
    let path = ROOT.join("granted");
    // What the last run made may be closed to us.
    open_all(&path);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(path.join("sub")).expect("a directory");
    fs::write(path.join("file"), "some text").expect("a file");
    for (text, name) in [("..", "up"), ("../secret", "out")] {
        symlink(text, path.join(name)).expect("a link");
    }
    symlink(ROOT.join("secret"), path.join("absolute")).expect("a link");
    path
}

fn open_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(found) = fs::symlink_metadata(path) else {
        return;
    };
    if found.is_dir() {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o755));
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            open_all(&entry.path());
        }
    }
}

fn word(kind: u8, value: u8, memory: u32) -> i64 {
    let value = u64::from(value);
    let memory = u64::from(memory);
    let word = match kind % 6 {
        0 => value,
        1 => EXTREMES[value as usize % EXTREMES.len()],
        2 => memory + 64 * (value % 16),
        3 => memory + 1024 + 128 * value,
        4 => memory + u64::from(MEMORY) - value,
        _ => value << 12 | value,
    };
    word as i64
}

fuzz_target!(|bytes: &[u8]| {
    let rules = Rules::new()
        .grant("/data", granted(), Access::ReadWrite)
        .expect("it can be granted")
        .open_files(20)
        .file_size(1 << 16)
        .written(1 << 20);
    let base = Policy::files(rules)
        .stdin(Input::bytes("input"))
        .stdout(Sink::Discard)
        .stderr(Sink::Discard);
    // Only waiting is left out, for its time.
    let policy = Policy::custom(base, |_: &Caller<'_>, request: &Request| {
        match request.call {
            Call::Sleep { .. } => Verdict::Deny(4),
            _ => Verdict::Allow,
        }
    });
    let before = surroundings();
    let domain = Domain::builder(&IMAGE)
        .placement(Placement::Cold)
        .deadline(None)
        .policy(policy)
        .build()
        .expect("a domain");
    let layout = domain.image().tables().layout;
    let memory = layout.data;
    let constants = || {
        domain
            .read_vec(Offset(layout.text_end), 4096)
            .expect("readable")
    };
    let unchanged = constants();
    for (i, path) in PATHS.iter().enumerate() {
        let at = Offset(memory + 64 * i as u32);
        domain
            .write(at, format!("{path}\0").as_bytes())
            .expect("memory");
    }
    let call = domain
        .func::<fn(i64, i64, i64, i64, i64, i64) -> i64>("call")
        .expect("exported");
    for record in bytes.chunks_exact(11).take(64) {
        let number = i64::from(record[0]) + if record[1] >= 250 { 256 } else { 0 };
        let w: Vec<i64> = (0..5)
            .map(|i| word(record[1 + 2 * i], record[2 + 2 * i], memory))
            .collect();
        let result = call.call(number, w[0], w[1], w[2], w[3], w[4]);
        if domain.is_poisoned() {
            assert!(result.is_err());
            domain.reset().expect("nobody is inside");
        }
    }
    assert_eq!(constants(), unchanged);
    drop(domain);
    assert_eq!(surroundings(), before);
    assert_eq!(fs::read(ROOT.join("secret")).expect("a file"), b"secret");
});
