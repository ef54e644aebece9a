//! The network of ExOS, with this machine's own sockets at the other end: a server in the guest
//! that sends back what comes, through a forwarded port.

mod tools;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use postern_aegis_machine::emulator::{self, Ended, Machine, User};
use postern_exos_machine::{build, programs, software};

/// What a machine says, and how it ended at last.
struct Guest {
    port: u16,
    lines: mpsc::Receiver<String>,
    runs: thread::JoinHandle<Ended>,
    _folder: tempfile::TempDir,
}

/// A port of the loopback that nobody has now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

/// Boots a shell with a script, the network's service among its processes. `None`: there is no
/// emulator.
fn guest(script: &str, processors: u32) -> Option<Guest> {
    guest_with(script, processors, &[])
}

/// The same with files besides.
fn guest_with(script: &str, processors: u32, more: &[(&str, &str)]) -> Option<Guest> {
    if !emulator::is_there() {
        println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
        return None;
    }
    build::all().expect("the library and the root environment build");
    let mut all = programs::of("shell").expect("programs");
    for folder in ["services", "network", "tools"] {
        all.extend(programs::of(folder).expect("programs"));
    }
    let mut files = programs::make(&all).expect("programs compile");
    files.push(("init".to_owned(), b"sh script".to_vec()));
    files.push((
        "script".to_owned(),
        // Who asks before the service is there is told that the network is down.
        format!("netd &\nuntil netstat > /dev/null; do sleep 1; done\n{script}").into_bytes(),
    ));
    let more = more.iter();
    files.extend(more.map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())));
    let folder = tempfile::tempdir().expect("a folder");
    let software = software::prepare(&files, folder.path()).expect("a package");
    let port = free_port();
    let machine = Machine {
        processors,
        limit: Duration::from_secs(600),
        user: Some(User {
            forwards: vec![(port, 7)],
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
    Some(Guest {
        port,
        lines,
        runs,
        _folder: folder,
    })
}

impl Guest {
    /// Waits until a line is said.
    fn hears(&self, wanted: &str) {
        let patience = Duration::from_secs(180);
        while !self
            .lines
            .recv_timeout(patience)
            .expect("a line")
            .contains(wanted)
        {}
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a time");
        stream
    }

    fn ends(self) {
        let ended = self.runs.join().expect("a machine");
        assert!(
            ended.status.is_well(),
            "{}: {:#?}",
            ended.status,
            ended.lines
        );
    }
}

fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Sends bytes, ends that side, and reads the echo to its end; slowly, if that is wanted.
fn echo(mut stream: TcpStream, sent: &[u8], pause: Duration) {
    let mut writer = stream.try_clone().expect("another end");
    thread::scope(|scope| {
        scope.spawn(move || {
            writer.write_all(sent).expect("writing");
            writer.shutdown(Shutdown::Write).expect("an end");
        });
        let (mut got, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            match stream.read(&mut piece).expect("reading") {
                0 => break,
                count => got.extend_from_slice(&piece[..count]),
            }
            thread::sleep(pause);
        }
        assert_eq!(got.len(), sent.len());
        assert!(got == sent, "other bytes came back");
    });
}

#[test]
fn the_hosts_connections_are_served() {
    let Some(guest) = guest("netstat\nechod 7 26\nexit\n", 1) else {
        return;
    };
    guest.hears("10.0.2.15/24, gateway 10.0.2.2");
    guest.hears("echod: port 7");
    echo(guest.connect(), &bytes(4 << 20, 1), Duration::ZERO);
    // A reader that is slow has the other side wait, and loses nothing.
    echo(
        guest.connect(),
        &bytes(1 << 20, 2),
        Duration::from_millis(20),
    );
    echo(guest.connect(), &[], Duration::ZERO);
    for seed in 0..15 {
        echo(
            guest.connect(),
            &bytes(1 + 997 * seed as usize, seed),
            Duration::ZERO,
        );
    }
    // Several are asked for while one is served: they wait in the backlog.
    let waiting: Vec<TcpStream> = (0..6).map(|_| guest.connect()).collect();
    for (seed, stream) in waiting.into_iter().enumerate() {
        echo(stream, &bytes(3000, seed as u64), Duration::ZERO);
    }
    // One that ends in the middle is over, and the next is served.
    let mut cut = guest.connect();
    cut.write_all(&bytes(200_000, 3)).expect("writing");
    drop(cut);
    echo(guest.connect(), &bytes(100_000, 4), Duration::ZERO);
    guest.ends();
}

#[test]
fn the_guest_asks_this_machine() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    udp.set_read_timeout(Some(Duration::from_secs(180)))
        .expect("a time");
    let there = tcp.local_addr().expect("its number").port();
    let datagrams = udp.local_addr().expect("its number").port();
    let nobody = free_port();
    let script = format!(
        "netstat\nask udp 10.0.2.2 {datagrams} hullo\nask tcp 10.0.2.2 {there} hello\n\
         ask tcp 10.0.2.2 {nobody} word\nask udp 10.0.2.77 9 word\nnetstat\nexit\n"
    );
    let Some(guest) = guest(&script, 1) else {
        return;
    };
    guest.hears("10.0.2.15/24");
    let mut bytes = [0; 100];
    let (length, from) = udp.recv_from(&mut bytes).expect("a datagram");
    assert_eq!(&bytes[..length], b"hullo");
    udp.send_to(b"hullo yourself", from).expect("an answer");
    guest.hears("hullo yourself");
    let (mut stream, _) = tcp.accept().expect("a connection");
    let mut asked = String::new();
    stream.read_to_string(&mut asked).expect("a line");
    assert_eq!(asked, "hello");
    stream.write_all(b"hello yourself").expect("an answer");
    drop(stream);
    guest.hears("hello yourself");
    guest.hears("Connection refused");
    guest.hears("No route to host");
    guest.hears("10.0.2.15/24");
    drop(guest);
}

/// An address of its own, itself as the server for names, and a name.
const ITSELF: [(&str, &str); 2] = [
    (
        "net",
        "address 10.0.2.15/24\ngateway 10.0.2.2\nserver 127.0.0.1\n",
    ),
    ("hosts", "10.7.7.7 filed\n"),
];

#[test]
fn processes_of_one_machine_talk() {
    for processors in [1, 2] {
        let Some(guest) = guest_with("sockets\nexit\n", processors, &ITSELF) else {
            return;
        };
        guest.hears("sockets: 0 failures");
        guest.ends();
    }
}
