//! What is read of a path that leads to anything at all: regular files up to a length, and nothing
//! else is opened.

use postern_image::input::{ReadError, open, read, read_text};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("postern-input-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn only_regular_files_are_read_and_only_so_much_of_them() {
    let folder = Folder::new("kinds");
    let path = folder.0.join("file");
    std::fs::write(&path, "twelve bytes").unwrap();
    assert_eq!(read(&path, 12).unwrap(), b"twelve bytes");
    assert_eq!(read_text(&path, 100).unwrap(), "twelve bytes");
    let error = read(&path, 11).unwrap_err();
    assert!(
        matches!(error, ReadError::TooLarge { size: 12, most: 11 }),
        "{error}"
    );
    // Six gibibytes of which none was written.
    let sparse = folder.0.join("sparse");
    File::create(&sparse).unwrap().set_len(6 << 30).unwrap();
    let error = read(&sparse, 1 << 20).unwrap_err();
    assert!(error.to_string().contains("6442450944"), "{error}");
    assert_eq!(std::io::Error::from(error).kind(), ErrorKind::FileTooLarge);
    for (path, what) in [
        (folder.0.clone(), "a directory"),
        ("/dev/zero".into(), "a device"),
        ("/dev/null".into(), "a device"),
    ] {
        match read(&path, 1 << 20) {
            Err(ReadError::Kind(found)) => assert_eq!(found, what),
            other => panic!("{}: {other:?}", path.display()),
        }
    }
    let missing = read(folder.0.join("missing"), 1).unwrap_err();
    assert!(matches!(missing, ReadError::Io(error) if error.kind() == ErrorKind::NotFound));
    std::fs::write(&path, [0xff]).unwrap();
    assert!(
        matches!(read_text(&path, 1), Err(ReadError::Io(error)) if error.kind() == ErrorKind::InvalidData)
    );
}

#[test]
fn a_pipe_is_refused_at_once_and_its_writer_goes_on_waiting() {
    let folder = Folder::new("pipe");
    let pipe = folder.0.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let woken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut file = OpenOptions::new().write(true).open(&pipe).unwrap();
            woken.store(true, Ordering::SeqCst);
            file.write_all(b"x")
        });
        for _ in 0..1000 {
            assert!(matches!(read(&pipe, 10), Err(ReadError::Kind("a pipe"))));
        }
        assert!(!woken.load(Ordering::SeqCst));
        assert_eq!(std::fs::read(&pipe).unwrap(), b"x");
        writer.join().unwrap().unwrap();
    });
}

#[test]
fn a_file_that_grows_meanwhile_ends_at_the_limit() {
    let folder = Folder::new("grows");
    let path = folder.0.join("file");
    std::fs::write(&path, [1; 1000]).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            while !done.load(Ordering::SeqCst) && file.metadata().unwrap().len() < 1 << 26 {
                file.write_all(&[2; 4096]).unwrap();
            }
        });
        for _ in 0..20 {
            match read(&path, 100_000) {
                Ok(bytes) => assert!((1000..=100_000).contains(&bytes.len())),
                Err(error) => {
                    assert!(matches!(error, ReadError::TooLarge { size, .. } if size > 100_000))
                }
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    assert!(open(&path, u64::MAX).is_ok());
}
