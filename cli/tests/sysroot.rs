//! `postern sysroot`: what happens when the C library's source is not what it should be, and when
//! two build it at once.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn sysroot(cache: &Path, newlib: Option<&Path>, action: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postern"));
    command
        .args(["sysroot", action])
        .env("XDG_CACHE_HOME", cache)
        .env_remove("POSTERN_SYSROOT")
        .env_remove("POSTERN_NEWLIB")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(newlib) = newlib {
        command.env("POSTERN_NEWLIB", newlib);
    }
    command.spawn().expect("starts")
}

fn end(child: Child) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().expect("ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

fn left(cache: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(cache.join("postern"));
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap()
    };
    entries.map_or(Vec::new(), |entries| entries.map(name).collect())
}

#[test]
fn a_source_that_is_none_leaves_nothing() {
    let cache = tempfile::tempdir().expect("a folder");
    let absent = cache.path().join("absent.tar.xz");
    let (code, _, message) = end(sysroot(cache.path(), Some(&absent), "build"));
    assert_eq!(code, Some(2), "{message}");
    assert!(
        message.contains("absent.tar.xz") && message.contains("POSTERN_NEWLIB"),
        "{message}"
    );

    let broken = cache.path().join("newlib-3.3.0.tar.xz");
    std::fs::write(&broken, b"this is no archive").expect("written");
    let (code, _, message) = end(sysroot(cache.path(), Some(&broken), "build"));
    assert_eq!(code, Some(2), "{message}");

    let other = cache.path().join("other");
    std::fs::create_dir_all(other.join("newlib/libc")).expect("made");
    std::fs::create_dir_all(other.join("newlib/libm")).expect("made");
    let (code, _, message) = end(sysroot(cache.path(), Some(&other), "build"));
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("newlib"), "{message}");
    assert_eq!(left(cache.path()), [] as [&str; 0]);
}

#[test]
fn several_at_once_get_the_same_headers() {
    let cache = tempfile::tempdir().expect("a folder");
    let children: Vec<Child> = (0..3)
        .map(|_| sysroot(cache.path(), None, "path"))
        .collect();
    let paths: Vec<String> = children
        .into_iter()
        .map(|child| {
            let (code, path, message) = end(child);
            assert_eq!(code, Some(0), "{message}");
            path
        })
        .collect();
    assert!(paths.iter().all(|path| *path == paths[0]), "{paths:?}");
    assert!(
        Path::new(paths[0].trim_end())
            .join("include/stdio.h")
            .exists()
    );
    assert_eq!(left(cache.path()).len(), 1, "{:?}", left(cache.path()));
}
