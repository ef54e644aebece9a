//! What requests of files take: instructions that the machine executes for each, by `www` of ExOS
//! and by nginx on Debian's Linux, with the same client over the emulator's own network.
//!
//! A plugin of the emulator's counts all instructions. What the machine executes while nobody asks
//! is measured before, and taken off by the time that requests took.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use postern_aegis_machine::archive::Archive;
use postern_aegis_machine::emulator::{self, EmulatorError, Machine, Software, User};
use postern_aegis_machine::linux::Linux;
use thiserror::Error;

use crate::executed::{self, Executed, ExecutedError};
use crate::place::repository;
use crate::programs::{self, ProgramsError};
use crate::software::{self, SoftwareError};

/// Why there are no figures.
#[derive(Debug, Error)]
pub enum RequestsError {
    /// A program or the plugin cannot be compiled, or nothing be counted.
    #[error(transparent)]
    Executed(#[from] ExecutedError),
    /// There are no programs.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// There is nothing to boot.
    #[error(transparent)]
    Software(#[from] SoftwareError),
    /// The emulator.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// A file, or a connection.
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    /// No answer, or another one.
    #[error("{0} does not serve: {1}")]
    Silent(&'static str, String),
}

/// Sizes of files, and how often each is asked for.
pub const SIZES: [(usize, u32); 4] = [(1024, 2000), (100 << 10, 200), (4 << 20, 8), (SUSTAINED, 4)];

/// Bytes of the file that shows what a transfer takes once it goes on.
pub const SUSTAINED: usize = 16 << 20;

/// What one size took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// Bytes of the file.
    pub size: usize,
    /// Instructions of a request.
    pub instructions: u64,
    /// Nanoseconds of one, by the host's clock.
    pub time: u64,
}

fn file(what: &Path) -> impl FnOnce(std::io::Error) -> RequestsError {
    let what = what.display().to_string();
    move |error| RequestsError::File(what, error)
}

fn body(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 % 251) as u8).collect()
}

/// What ExOS boots.
fn exos(folder: &Path) -> Result<Software, RequestsError> {
    let mut files = programs::make(&programs::of("services")?)?;
    for (size, _) in SIZES {
        files.push((format!("www/{size}"), body(size)));
    }
    files.push(("services.list".to_owned(), b"netd\n".to_vec()));
    files.push(("init".to_owned(), b"www".to_vec()));
    Ok(software::prepare(&files, folder)?)
}

/// Where nginx and its libraries lie, as Debian's packages have them.
pub fn nginx() -> PathBuf {
    repository().join("target/linux/nginx")
}

/// What of them is needed.
const NEEDED: [(&str, &str); 8] = [
    ("usr/sbin/nginx", "usr/sbin/nginx"),
    (
        "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        "lib64/ld-linux-x86-64.so.2",
    ),
    ("lib/x86_64-linux-gnu/libc.so.6", "lib/libc.so.6"),
    ("lib/x86_64-linux-gnu/libcrypt.so.1", "lib/libcrypt.so.1"),
    (
        "usr/lib/x86_64-linux-gnu/libpcre2-8.so.0",
        "lib/libpcre2-8.so.0",
    ),
    ("usr/lib/x86_64-linux-gnu/libssl.so.3", "lib/libssl.so.3"),
    (
        "usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        "lib/libcrypto.so.3",
    ),
    ("lib/x86_64-linux-gnu/libz.so.1", "lib/libz.so.1"),
];

/// What Linux boots.
fn linux(system: &Linux, folder: &Path) -> Result<Software, RequestsError> {
    let kernel = system.kernel();
    let missing = || RequestsError::Silent("Linux", "make setup-kernel fetches it".to_owned());
    let kernel = kernel.ok_or_else(missing)?;
    let mut archive = Archive::default();
    let folders = [
        "dev", "proc", "sys", "modules", "usr", "usr/sbin", "lib", "lib64", "www", "etc",
    ];
    let var = [
        "var",
        "var/log",
        "var/log/nginx",
        "var/lib",
        "var/lib/nginx",
        "run",
    ];
    for name in folders.into_iter().chain(var) {
        archive.folder(name);
    }
    archive.device("dev/console", (5, 1));
    let mut put = |name: &str, path: &Path| {
        let bytes = std::fs::read(path).map_err(file(path))?;
        archive.file(name, &bytes);
        Ok::<(), RequestsError>(())
    };
    for (from, to) in NEEDED {
        put(to, &nginx().join(from))?;
    }
    let modules = kernel.with_file_name("modules");
    for entry in std::fs::read_dir(&modules).map_err(file(&modules))? {
        let path = entry.map_err(file(&modules))?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            put(&format!("modules/{name}"), &path)?;
        }
    }
    let init = folder.join("nginx-init");
    executed::compiled("nginx.c", &["-static", "-s"], &init)?;
    put("init", &init)?;
    put("nginx.conf", &repository().join("bench/exos/nginx.conf"))?;
    archive.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n");
    archive.file("etc/group", b"root:x:0:\n");
    for (size, _) in SIZES {
        archive.file(&format!("www/{size}"), &body(size));
    }
    let initial = emulator::write(folder, "nginx.cpio", &archive.finish());
    Ok(Software {
        kernel,
        initial: initial.map_err(file(folder))?,
        line: "console=ttyS0 quiet panic=-1 tsc=reliable idle=halt cpuidle.off=1".to_owned(),
    })
}

/// Asks once, and reads the answer to its end.
fn ask(stream: &mut TcpStream, size: usize, piece: &mut [u8]) -> std::io::Result<()> {
    let request = format!("GET /{size} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let (mut got, mut head) = (0, None);
    loop {
        let count = stream.read(piece)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if head.is_none() {
            let bytes = piece.get(..count).unwrap_or_default();
            let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
            let fine = bytes.starts_with(b"HTTP/1.1 200 ");
            head = end.filter(|_| fine).map(|end| end + 4);
            if head.is_none() {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
        }
        got += count;
        if head.is_some_and(|head| got >= head + size) {
            return Ok(());
        }
    }
}

/// Boots a system and asks.
fn measure(
    name: &'static str,
    software: &Software,
    folder: &Path,
) -> Result<Vec<Took>, RequestsError> {
    let (executed, more) = Executed::new(folder)?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(file(folder))?;
    let port = listener.local_addr().map_err(file(folder))?.port();
    drop(listener);
    let machine = Machine {
        memory: 512,
        limit: Duration::from_secs(120),
        user: Some(User {
            forwards: vec![(port, 80)],
            restricted: true,
        }),
        more,
        ..Machine::default()
    };
    let software = software.clone();
    // It ends with this process, or at its limit.
    thread::spawn(move || machine.run(&software, |_| ()));
    let silent = |error: std::io::Error| RequestsError::Silent(name, error.to_string());
    let mut piece = vec![0; 256 << 10];
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.set_nodelay(true)?;
        Ok::<TcpStream, std::io::Error>(stream)
    };
    let mut tries = 0;
    let mut stream = loop {
        thread::sleep(Duration::from_millis(500));
        let found = connect().and_then(|mut stream| {
            ask(&mut stream, SIZES[0].0, &mut piece)?;
            Ok(stream)
        });
        match found {
            Ok(stream) => break stream,
            Err(_) if tries < 80 => tries += 1,
            Err(error) => return Err(silent(error)),
        }
    };
    // What the system does by itself after its start is over.
    thread::sleep(Duration::from_secs(5));
    let (before, began) = (executed.all()?, Instant::now());
    thread::sleep(Duration::from_secs(3));
    let idle = (executed.all()? - before) as f64 / began.elapsed().as_secs_f64();
    let mut all = Vec::new();
    for (size, count) in SIZES {
        // The first ones find nothing in caches.
        for _ in 0..count / 4 + 1 {
            ask(&mut stream, size, &mut piece).map_err(silent)?;
        }
        let (before, began) = (executed.all()?, Instant::now());
        for _ in 0..count {
            ask(&mut stream, size, &mut piece).map_err(silent)?;
        }
        let took = began.elapsed();
        let count_of = (executed.all()? - before) as f64 - idle * took.as_secs_f64();
        all.push(Took {
            size,
            instructions: (count_of / f64::from(count)).max(0.0) as u64,
            time: (took.as_nanos() / u128::from(count)) as u64,
        });
    }
    Ok(all)
}

/// What requests take on ExOS.
pub fn of_exos(folder: &Path) -> Result<Vec<Took>, RequestsError> {
    measure("www", &exos(folder)?, folder)
}

/// What they take on Linux.
pub fn of_linux(system: &Linux, folder: &Path) -> Result<Vec<Took>, RequestsError> {
    measure("nginx", &linux(system, folder)?, folder)
}
