//! A server in this process, and a client that can say anything. The test program says in
//! `COMPONENTS` what the server has.

use postern_server::{Log, Server, Site};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Longer than anything here takes.
pub const LONG: Duration = Duration::from_secs(120);

/// Where a log goes.
#[derive(Clone, Default)]
pub struct Text(Arc<Mutex<Vec<u8>>>, Arc<OnceLock<Weak<Log>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Text {
    /// What was written; what was said before is.
    pub fn get(&self) -> String {
        if let Some(log) = self.1.get().and_then(Weak::upgrade) {
            log.flush();
        }
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// A site of a folder, at a port that the kernel chooses.
pub fn site(folder: &Path, toml: &str) -> Site {
    let toml = format!("listen = \"127.0.0.1:0\"\n{toml}");
    Site::parse(folder, &toml, crate::COMPONENTS).unwrap()
}

/// A server that runs until this is dropped.
pub struct Serving {
    pub folder: tempfile::TempDir,
    pub address: SocketAddr,
    pub operations: Option<SocketAddr>,
    pub errors: Text,
    pub access: Text,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A folder with the program, and some files.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("program.c", include_str!("programs/program.c"));
    put("public/index.html", "<h1>home</h1>\n");
    put("public/a b.txt", "a file\n");
    put("public/sub/index.html", "below\n");
    put("public/.hidden", "hidden\n");
    put("secret.txt", "secret\n");
    folder
}

/// A handler's table.
pub fn handler(path: &str, run: &str, more: &str) -> String {
    format!("[[handler]]\npath = \"{path}\"\nprogram = \"program.c\"\nrun = \"{run}\"\n{more}\n")
}

impl Serving {
    pub fn new(toml: &str) -> Serving {
        Serving::of(folder(), toml)
    }

    pub fn of(folder: tempfile::TempDir, toml: &str) -> Serving {
        let access = Text::default();
        Serving::logging(folder, toml, access.clone(), Box::new(access))
    }

    /// With an access log that goes elsewhere.
    pub fn logging(
        folder: tempfile::TempDir,
        toml: &str,
        access: Text,
        to: Box<dyn Write + Send>,
    ) -> Serving {
        let site = site(folder.path(), toml);
        Serving::serve(folder, site, access, to)
    }

    /// What a folder without a file has.
    pub fn found(folder: tempfile::TempDir) -> Serving {
        let mut site = Site::load(folder.path(), crate::COMPONENTS).unwrap();
        site.listen.set_port(0);
        let access = Text::default();
        Serving::serve(folder, site, access.clone(), Box::new(access))
    }

    fn serve(
        folder: tempfile::TempDir,
        site: Site,
        access: Text,
        to: Box<dyn Write + Send>,
    ) -> Serving {
        let errors = Text::default();
        let log = Arc::new(Log::to(to, Box::new(errors.clone())).unwrap());
        let _ = errors.1.set(Arc::downgrade(&log));
        let server = Server::with_log(site, log).unwrap();
        let (stop, stopped) = oneshot::channel();
        Serving {
            address: server.address().unwrap(),
            operations: server.operations_address(),
            folder,
            errors,
            access,
            stop: Some(stop),
            thread: Some(std::thread::spawn(move || {
                server.run(async { drop(stopped.await) }).unwrap();
            })),
        }
    }

    /// Waits until the error log is as it shall be.
    pub fn wait_for(&self, is: impl Fn(&str) -> bool) {
        let began = std::time::Instant::now();
        while !is(&self.errors.get()) {
            assert!(began.elapsed() < LONG, "{}", self.errors.get());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Tells it to end, without waiting.
    pub fn tell_to_end(&mut self) {
        self.stop.take();
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Sends bytes, and reads the answer to its end.
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connect();
        // A server that says no early may close before all is sent.
        let _ = stream.write_all(bytes.as_ref());
        read(stream)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(request("GET", path, "", b""))
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.send(request(
            "POST",
            path,
            &format!("Content-Length: {}\r\n", body.len()),
            body,
        ))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream
}

/// A request after whose answer the connection is closed.
pub fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// A request that is inside a program until its body ends.
pub fn hold(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = connect(address);
    let head = request(
        "POST",
        &format!("{path}/hold"),
        "Transfer-Encoding: chunked\r\n",
        b"1\r\nx\r\n",
    );
    stream.write_all(&head).unwrap();
    let mut got = Vec::new();
    while !got.windows(4).any(|w| w == b"held") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        got.push(byte[0]);
    }
    stream
}

/// Lets it end.
pub fn release(mut stream: TcpStream) {
    stream.write_all(b"0\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
}

/// What came back. No status is a connection that was closed.
#[derive(Debug)]
pub struct Answer {
    pub status: Option<u16>,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether it came to its end.
    pub whole: bool,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub fn read(mut stream: impl Read) -> Answer {
    let mut bytes = Vec::new();
    // A connection that is reset has said what it said.
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes)
}

pub fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
    let Some(end) = end else {
        return Answer {
            status: None,
            head: String::from_utf8_lossy(bytes).into_owned(),
            body: Vec::new(),
            whole: false,
        };
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let rest = &bytes[end + 4..];
    let lower = head.to_lowercase();
    let (body, whole) = match lower.contains("transfer-encoding: chunked") {
        true => chunks(rest),
        false => {
            let length = lower.split("content-length: ").nth(1);
            let length = length.and_then(|l| l.split("\r\n").next()?.parse().ok());
            (
                rest.to_vec(),
                length.is_none_or(|length: usize| length == rest.len()),
            )
        }
    };
    Answer {
        status: head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok()),
        head,
        body,
        whole,
    }
}

fn chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|w| w == b"\r\n") else {
            return (body, false);
        };
        let size = std::str::from_utf8(&rest[..end])
            .ok()
            .and_then(|s| usize::from_str_radix(s, 16).ok());
        let Some(size) = size else {
            return (body, false);
        };
        let (from, to) = (end + 2, end + 2 + size);
        if rest.len() < to + 2 {
            body.extend_from_slice(&rest[from.min(rest.len())..to.min(rest.len())]);
            return (body, false);
        }
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[from..to]);
        rest = &rest[to + 2..];
    }
}

/// The plugins of the example, as a site's own.
pub fn example_plugins(folder: &Path) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/site/plugins");
    let own = folder.join("plugins");
    std::fs::create_dir(&own).unwrap();
    for file in std::fs::read_dir(example).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), own.join(file.file_name())).unwrap();
    }
}
