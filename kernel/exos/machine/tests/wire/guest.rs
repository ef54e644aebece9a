//! A machine whose network is a socket of this process's: what it sends is read here as frames, and
//! what is written here arrives at its device.

use std::net::Ipv4Addr;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use postern_aegis_machine::emulator::{self, Ended, Machine};
use postern_aegis_machine::peer;
use postern_exos_machine::{build, programs, software};
use postern_exos_net::arp::{self, Message, Operation};
use postern_exos_net::frame::{Frame, kind};
use postern_exos_net::{EVERYBODY, Hardware};

/// One machine at a time: there is enough to do.
static ONE: Mutex<()> = Mutex::new(());

/// The guest's addresses, and this side's.
pub const GUEST: (Hardware, Ipv4Addr) = ([0x52, 0x54, 0, 0, 0, 1], Ipv4Addr::new(10, 0, 0, 15));
pub const OWN: (Hardware, Ipv4Addr) = ([2, 0, 0, 0, 0, 2], Ipv4Addr::new(10, 0, 0, 2));

/// How the guest knows its address.
pub const SETTINGS: &str = "address 10.0.0.15/24\ngateway 10.0.0.2\nserver 10.0.0.2\n";

/// How long something is waited for that happens at once on a machine that has nothing else to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A machine that runs.
pub struct Guest {
    socket: UnixDatagram,
    machine: PathBuf,
    lines: mpsc::Receiver<String>,
    runs: thread::JoinHandle<Ended>,
    _folder: tempfile::TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Guest {
    /// Boots a shell with a script, which begins when the service `net` has its address, and these
    /// files besides. `None`: there is no emulator.
    pub fn boot(script: &str, more: &[(&str, &str)]) -> Option<Guest> {
        if !emulator::is_there() {
            println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
            return None;
        }
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        build::all().expect("the library and the root environment build");
        let mut all = programs::commands().expect("programs");
        for folder in ["services", "network"] {
            all.extend(programs::of(folder).expect("programs"));
        }
        let mut files = programs::make(&all).expect("programs compile");
        let mut put = |name: &str, text: &str| files.push((name.to_owned(), text.into()));
        put("init", "sh script");
        put("services.list", "netd\n");
        put("script", &format!("netstat\n{script}"));
        more.iter().for_each(|(name, text)| put(name, text));
        let folder = tempfile::tempdir().expect("a folder");
        let software = software::prepare(&files, folder.path()).expect("a package");
        let socket = UnixDatagram::bind(peer::peer_socket(folder.path())).expect("a socket");
        let wire = peer::options(folder.path());
        let machine = Machine {
            limit: Duration::from_secs(900),
            more: wire.split(' ').map(Into::into).collect(),
            ..Machine::default()
        };
        let (says, lines) = mpsc::channel();
        let runs = thread::spawn(move || {
            let hears = |line: &str| {
                println!("guest: {line}");
                _ = says.send(line.to_owned());
            };
            machine.run(&software, hears).expect("a machine")
        });
        Some(Guest {
            socket,
            machine: peer::machine_socket(folder.path()),
            lines,
            runs,
            _folder: folder,
            _one: one,
        })
    }

    /// Sends a frame. One that the emulator does not take in time is lost, as on any wire; one of
    /// nothing would end its side.
    pub fn send(&self, frame: &[u8]) -> bool {
        if frame.is_empty() {
            return false;
        }
        let limit = Duration::from_secs(5);
        self.socket
            .set_write_timeout(Some(limit))
            .expect("a timeout");
        self.socket.send_to(frame, &self.machine).is_ok()
    }

    /// The next frame of the guest's that comes within a time; questions for this side's address
    /// are answered meanwhile.
    pub fn receive(&self, within: Duration) -> Option<Vec<u8>> {
        let until = Instant::now() + within;
        let mut bytes = [0; 2048];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = left.max(Duration::from_millis(1));
            self.socket.set_read_timeout(Some(left)).expect("a timeout");
            let Ok(length) = self.socket.recv(&mut bytes) else {
                if Instant::now() >= until {
                    return None;
                }
                continue;
            };
            let frame = &bytes[..length];
            if !self.answers(frame) {
                return Some(frame.to_vec());
            }
        }
    }

    /// Answers a question of ARP for this side.
    fn answers(&self, bytes: &[u8]) -> bool {
        let question = Frame::read(bytes)
            .filter(|frame| frame.kind == kind::ARP)
            .and_then(|frame| Message::read(&frame))
            .filter(|message| message.operation == Operation::Request);
        match question {
            Some(message) if message.target.1 == OWN.1 => {
                self.send(&arp::answer(OWN, &message));
                true
            }
            _ => false,
        }
    }

    /// Waits until a line is said that has these words, and returns it; frames are answered
    /// meanwhile.
    pub fn hears(&self, wanted: &str) -> String {
        let until = Instant::now() + 3 * PATIENCE;
        loop {
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) if line.contains(wanted) => return line,
                Ok(_) | Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(error) => panic!("{wanted}: {error}"),
            }
            assert!(Instant::now() < until, "nobody said {wanted:?}");
            self.receive(Duration::from_millis(1));
        }
    }

    /// The number at the end of a line that has these words.
    pub fn count(&self, wanted: &str) -> u64 {
        let line = self.hears(wanted);
        let number = line.split_whitespace().next_back();
        number
            .and_then(|number| number.parse().ok())
            .expect("a number")
    }

    /// Whether the guest answers for its address.
    pub fn is_found(&self) -> bool {
        let question = Message {
            operation: Operation::Request,
            sender: OWN,
            target: ([0; 6], GUEST.1),
        };
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            self.send(&question.frame(EVERYBODY));
            let second = Instant::now() + Duration::from_secs(1);
            while let Some(bytes) = self.receive(second.saturating_duration_since(Instant::now())) {
                let message = Frame::read(&bytes).and_then(|frame| Message::read(&frame));
                if message.is_some_and(|message| {
                    message.operation == Operation::Reply && message.sender == GUEST
                }) {
                    return true;
                }
            }
        }
        false
    }

    /// Waits for the machine's end, which is to be a good one.
    pub fn ends(self) {
        let ended = self.runs.join().expect("a machine");
        assert!(
            ended.status.is_well(),
            "{}: {:#?}",
            ended.status,
            ended.lines
        );
    }
}
