//! A machine that serves, and clients of it on this one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use postern_aegis_machine::emulator::{self, Ended, Machine, User};
use postern_exos_machine::{build, programs, software};

/// One machine at a time: it has this one's ports, and enough to do.
static ONE: Mutex<()> = Mutex::new(());

/// What a machine says, and how it ended at last.
pub struct Guest {
    ports: [u16; 2],
    lines: mpsc::Receiver<String>,
    runs: thread::JoinHandle<Ended>,
    _folder: tempfile::TempDir,
    _one: MutexGuard<'static, ()>,
}

/// A port of the loopback that nobody has now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

impl Guest {
    /// Boots a machine whose server has these options, with files in its archive. `None`: there is
    /// no emulator.
    pub fn serving(options: &str, own: Vec<(String, Vec<u8>)>) -> Option<Guest> {
        Guest::after("", options, own, "")
    }

    /// The same with what the shell does before, and behind it, when [`Guest::next`] says so.
    pub fn after(
        before: &str,
        options: &str,
        own: Vec<(String, Vec<u8>)>,
        behind: &str,
    ) -> Option<Guest> {
        if !emulator::is_there() {
            println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
            return None;
        }
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        build::all().expect("the library and the root environment build");
        let mut all = programs::commands().expect("programs");
        all.extend(programs::of("services").expect("programs"));
        let mut files = programs::make(&all).expect("programs compile");
        files.extend(own);
        files.push(("services.list".to_owned(), b"ramd /tmp\nnetd\n".to_vec()));
        files.push(("init".to_owned(), b"sh script".to_vec()));
        // Whoever connects to port 7 ends the machine. An address may be long in coming.
        let script = format!(
            "{before}www {options} &\nwaits() {{ until echod 7 1; do :; done; }}\n{behind}waits\nexit\n"
        );
        files.push(("script".to_owned(), script.into_bytes()));
        let folder = tempfile::tempdir().expect("a folder");
        let software = software::prepare(&files, folder.path()).expect("a package");
        let ports = [free_port(), free_port()];
        let machine = Machine {
            limit: Duration::from_secs(120),
            user: Some(User {
                forwards: vec![(ports[0], 80), (ports[1], 7)],
                restricted: false,
            }),
            ..Machine::default()
        };
        let (says, lines) = mpsc::channel();
        let runs = thread::spawn(move || {
            machine
                .run(&software, |line| {
                    println!("guest: {line}");
                    _ = says.send(line.to_owned());
                })
                .expect("a machine")
        });
        let guest = Guest {
            ports,
            lines,
            runs,
            _folder: folder,
            _one: one,
        };
        guest.hears(&["echod: port 7", "www: http://"]);
        Some(guest)
    }

    /// Waits until all of these lines were said, in any order.
    pub fn hears(&self, wanted: &[&str]) {
        let mut wanted = wanted.to_vec();
        while !wanted.is_empty() {
            let line = self.lines.recv_timeout(Duration::from_secs(60));
            let line = line.expect("a line");
            wanted.retain(|words| !line.contains(words));
        }
    }

    /// A connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.ports[0])).expect("a connection");
        let time = Some(Duration::from_secs(30));
        stream.set_read_timeout(time).expect("a time");
        stream
    }

    /// The server's URL.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports[0])
    }

    /// Asks for something over a connection of its own.
    pub fn ask(&self, request: &str, body: &[u8]) -> Answer {
        let mut stream = self.connect();
        ask(&mut stream, request, body)
    }

    /// Has the shell go on that `waits`, until it has said a line and waits again.
    pub fn next(&self, line: &str) {
        drop(TcpStream::connect(("127.0.0.1", self.ports[1])).expect("a connection"));
        self.hears(&[line, "echod: port 7"]);
    }

    /// Ends the machine, which must have gone on until then.
    pub fn ends(self) {
        drop(TcpStream::connect(("127.0.0.1", self.ports[1])).expect("a connection"));
        let ended = self.runs.join().expect("a machine");
        assert!(
            ended.status.is_well(),
            "{}: {:#?}",
            ended.status,
            ended.lines
        );
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Asks over a connection: a method, a target, and more lines of the head.
pub fn ask(stream: &mut TcpStream, request: &str, body: &[u8]) -> Answer {
    let mut lines = request.lines();
    let first = lines.next().unwrap_or_default();
    let mut text = format!("{first} HTTP/1.1\r\nHost: localhost\r\n");
    for line in lines {
        text += &format!("{line}\r\n");
    }
    if !body.is_empty() {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    text += "\r\n";
    stream.write_all(text.as_bytes()).expect("writing");
    stream.write_all(body).expect("writing");
    read(stream, first.starts_with("HEAD "))
}

/// Reads an answer.
pub fn read(stream: &mut TcpStream, is_head: bool) -> Answer {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 << 10];
    let mut more = |bytes: &mut Vec<u8>| {
        let count = stream.read(&mut piece).expect("reading");
        assert!(count > 0, "it ended: {:?}", String::from_utf8_lossy(bytes));
        bytes.extend_from_slice(&piece[..count]);
    };
    let end = loop {
        match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(end) => break end,
            None => more(&mut bytes),
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is text");
    let mut answer = Answer {
        status: head[9..12].parse().expect("a status"),
        head,
        body: Vec::new(),
    };
    let length = match is_head || matches!(answer.status, 204 | 304) {
        true => 0,
        false => answer
            .field("Content-Length")
            .and_then(|length| length.parse().ok())
            .expect("a length"),
    };
    while bytes.len() < end + 4 + length {
        more(&mut bytes);
    }
    assert_eq!(bytes.len(), end + 4 + length, "more than one answer");
    answer.body = bytes.split_off(end + 4);
    answer
}
