//! What is done with paths by the service `sys` is what the kernel does with them, errors included:
//! in two directories that are alike, and then still are.

use crate::guest::{DATA, Guest};
use crate::support::Directory;
use postern::{Access, Policy, Rules};
use std::ffi::CString;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

const PATHS: [&str; 22] = [
    "text",
    "text/",
    "text/x",
    "text/.",
    "text/..",
    "missing/.",
    "missing",
    "missing/",
    "no/file",
    "sub",
    "sub/",
    "sub/.",
    "sub/..",
    "sub/new",
    ".",
    "to-text",
    "to-text/",
    "to-sub",
    "to-sub/",
    "to-sub/new",
    "to-missing",
    "round",
];

const FLAGS: [(&str, i32); 9] = [
    ("CREAT", libc::O_CREAT),
    ("EXCL", libc::O_EXCL),
    ("TRUNC", libc::O_TRUNC),
    ("APPEND", libc::O_APPEND),
    ("DIRECTORY", libc::O_DIRECTORY),
    ("NOFOLLOW", libc::O_NOFOLLOW),
    ("TMPFILE", libc::O_TMPFILE & !libc::O_DIRECTORY),
    ("WRONLY", libc::O_WRONLY),
    ("RDWR", libc::O_RDWR),
];

/// A directory that the extension has, and one that is like it; and what was different.
struct Pair {
    directory: Directory,
    guest: Guest,
    different: Vec<String>,
}

impl Pair {
    fn new() -> Pair {
        let directory = Directory::new();
        build(&directory.path("ours/in"));
        build(&directory.path("theirs/in"));
        let rules = Rules::new().grant("/data", directory.path("ours"), Access::ReadWrite);
        Pair {
            directory,
            guest: Guest::new(Policy::files(rules.unwrap())),
            different: Vec::new(),
        }
    }

    /// A path in the other directory.
    fn native(&self, path: &str) -> CString {
        let root = self.directory.path("theirs/in");
        CString::new(format!("{}/{path}", root.display())).unwrap()
    }

    /// Compares what the two calls gave and what they left; a native one that failed gave -1, with
    /// its reason, which is `exact`.
    fn check(&mut self, what: impl Fn() -> String, exact: bool, ours: i64, theirs: i64) {
        let theirs = match theirs {
            -1 => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap()),
            done => done,
        };
        if ours != theirs && (exact || ours >= 0 || theirs >= 0) {
            let (said, should) = (meaning(ours), meaning(theirs));
            self.different
                .push(format!("{}: {said}, not {should}", what()));
        }
        if ours >= 0 || theirs >= 0 {
            let [ours, theirs] = ["ours/in", "theirs/in"].map(|root| self.directory.path(root));
            if tree(&ours) != tree(&theirs) {
                self.different.push(format!("{}: other files then", what()));
            }
            build(&ours);
            build(&theirs);
        }
    }

    fn finish(self) {
        let (count, list) = (self.different.len(), self.different.join("\n"));
        assert!(count == 0, "{count} differences\n{list}");
    }
}

fn build(root: &Path) {
    let _ = std::fs::remove_dir_all(root);
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("text"), "some text").unwrap();
    for (text, name) in [
        ("text", "to-text"),
        ("sub", "to-sub"),
        ("missing", "to-missing"),
        ("round", "round"),
    ] {
        symlink(text, root.join(name)).unwrap();
    }
}

/// Every name below a directory, what it is, and how long.
fn tree(root: &Path) -> Vec<(PathBuf, u32, u64)> {
    fn walk(root: &Path, at: &Path, found: &mut Vec<(PathBuf, u32, u64)>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let stat = path.symlink_metadata().unwrap();
            let below = path.strip_prefix(root).unwrap().to_owned();
            let length = if stat.is_dir() { 0 } else { stat.len() };
            found.push((below, stat.mode(), length));
            if stat.is_dir() {
                walk(root, &path, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}

fn meaning(result: i64) -> String {
    match result {
        0.. => result.to_string(),
        error => std::io::Error::from_raw_os_error(-error as i32).to_string(),
    }
}

#[test]
fn open_is_the_kernels() {
    let mut pair = Pair::new();
    for path in PATHS {
        for mask in 0..1 << FLAGS.len() {
            let chosen: Vec<_> = (0..FLAGS.len()).filter(|n| mask >> n & 1 != 0).collect();
            let flags = chosen.iter().fold(0, |flags, &n| flags | FLAGS[n].1);
            // Kernels differ in whether there can be a new directory.
            let both = libc::O_CREAT | libc::O_DIRECTORY;
            if flags & libc::O_ACCMODE == libc::O_ACCMODE || flags & both == both {
                continue;
            }
            let mut ours = pair.guest.open(&format!("/data/in/{path}"), flags, 0o600);
            if ours >= 0 {
                ours = pair.guest.close(ours);
            }
            // SAFETY: a text that ends.
            let theirs = match unsafe { libc::open(pair.native(path).as_ptr(), flags, 0o600) } {
                -1 => -1,
                // SAFETY: opened above, and used nowhere else.
                file => unsafe { libc::close(file) },
            };
            let names = || chosen.iter().map(|&n| FLAGS[n].0).collect::<Vec<_>>();
            pair.check(
                || format!("{path} {:?}", names()),
                true,
                ours,
                theirs.into(),
            );
        }
    }
    pair.finish();
}

#[test]
fn other_calls_about_paths_are_the_kernels() {
    let mut pair = Pair::new();
    let place = pair.guest.memory + DATA;
    let mut room = [0u8; 256];
    let here = room.as_mut_ptr() as i64;
    for path in PATHS {
        let ours = format!("/data/in/{path}");
        let native = pair.native(path);
        // What is no name has many reasons.
        let exact = !path.ends_with('.');
        for (name, number, words, native_words) in [
            ("mkdir", libc::SYS_mkdir, [0o700, 0], [0o700, 0]),
            ("rmdir", libc::SYS_rmdir, [0, 0], [0, 0]),
            ("unlink", libc::SYS_unlink, [0, 0], [0, 0]),
            ("truncate", libc::SYS_truncate, [3, 0], [3, 0]),
            ("chmod", libc::SYS_chmod, [0o500, 0], [0o500, 0]),
            ("access", libc::SYS_access, [0, 0], [0, 0]),
            ("stat", libc::SYS_stat, [place, 0], [here, 0]),
            ("lstat", libc::SYS_lstat, [place, 0], [here, 0]),
            ("readlink", libc::SYS_readlink, [place, 9], [here, 9]),
        ] {
            let said = pair.guest.on(number, &ours, &words);
            let [first, second] = native_words;
            // SAFETY: a text that ends, and room for what is written.
            let should = unsafe { libc::syscall(number, native.as_ptr(), first, second) };
            pair.check(|| format!("{name} {path}"), exact, said, should);
        }
        let said = pair.guest.on_both(libc::SYS_symlink, "x", &ours);
        // SAFETY: texts that end.
        let should = unsafe { libc::symlink(c"x".as_ptr(), native.as_ptr()) };
        pair.check(|| format!("symlink {path}"), exact, said, should.into());
        for other in PATHS {
            let to = format!("/data/in/{other}");
            let native_to = pair.native(other);
            for (name, number) in [("rename", libc::SYS_rename), ("link", libc::SYS_link)] {
                let said = pair.guest.on_both(number, &ours, &to);
                // SAFETY: texts that end.
                let should = unsafe { libc::syscall(number, native.as_ptr(), native_to.as_ptr()) };
                // Of several reasons any may be given.
                pair.check(|| format!("{name} {path} {other}"), false, said, should);
            }
        }
    }
    pair.finish();
}
