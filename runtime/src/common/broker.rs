//! Who keeps a common domain's memory, and hands it to those who may have it: by a name, over a
//! Unix socket.
//!
//! A conversation is one message: who connects is told no, or gets the descriptor. So the broker
//! waits for nobody, and keeps nothing of anybody. It knows who connects by the kernel's word
//! (`SO_PEERCRED`), and believes nothing else of it, for it reads nothing. Who connects checks what
//! it gets as what comes from a stranger ([`super::CommonMemory::join`]).
//!
//! Of brokers of one name only one runs: it holds a lock on a file beside its socket, which the
//! kernel takes back whenever it ends.

use super::CommonMemory;
use crate::error::CommonError;
use postern_gates::lock::{self, Range};
use postern_gates::machine;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recvmsg, sendmsg, socket_with, sockopt,
};
use std::fs::{DirBuilder, File};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the only message begins with. It changes with the form of the rest.
const GIVEN: &[u8] = b"postern-common-1";
const REFUSED: &[u8] = b"postern-common-0";
/// How long a broker is waited for, which answers at once or not at all.
const PATIENCE: Duration = Duration::from_secs(3);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Where a broker of this name has its socket: `$XDG_RUNTIME_DIR/postern`, or `/run/postern` where
/// there is none.
///
/// # Errors
/// It is no name: letters, digits, `-`, `_` and `.`, at most 64, and not a `.` first.
pub fn socket_of(name: &str) -> Result<PathBuf, CommonError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(plain) {
        return Err(CommonError::Name(name.to_owned()));
    }
    Ok(folder().join(name))
}

fn folder() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
    let folder = own.map_or_else(|| PathBuf::from("/run"), PathBuf::from);
    folder.join("postern")
}

/// The sockets in the folder that [`socket_of`] names, of brokers that run or ran, by name.
///
/// # Errors
/// The folder cannot be read. One that is not there has none.
pub fn brokers() -> std::io::Result<Vec<(String, PathBuf)>> {
    let folder = folder();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        if let (true, Ok(name)) = (is_socket, entry.file_name().into_string()) {
            // What has no name of a broker's is none.
            if let Ok(path) = socket_of(&name) {
                found.push((name, path));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Whether somebody hands out memory at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerState {
    /// A broker has the lock beside the socket.
    Runs,
    /// Nobody has.
    Ended,
    /// The lock cannot be asked about.
    Unknown,
}

/// Whether a broker has this path, by the kernel's word: nobody is spoken to.
pub fn broker_state(path: &Path) -> BrokerState {
    let lock = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(beside(path));
    let Ok(lock) = lock else {
        return BrokerState::Unknown;
    };
    match lock::query(&OwnedFd::from(lock), WHOLE) {
        Ok(found) if found.kind == libc::F_UNLCK as i16 => BrokerState::Ended,
        Ok(_) => BrokerState::Runs,
        Err(_) => BrokerState::Unknown,
    }
}

/// All of a file, for its owner alone.
const WHOLE: Range = Range {
    kind: libc::F_WRLCK as i16,
    start: 0,
    length: 0,
};

/// The file whose lock says that a broker has the socket beside it.
fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    beside.into()
}

/// Who may have the memory: by default processes of the broker's own user, and of root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Users, by their numbers.
    pub users: Vec<u32>,
    /// Groups, by their numbers: of each process the one that it runs with, no other one of its
    /// user's.
    pub groups: Vec<u32>,
    /// Anybody who reaches the socket.
    pub all: bool,
}

impl Admission {
    /// Whether a process with these numbers may have it.
    pub fn admits(&self, user: u32, group: u32) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.all
            || user == 0
            || user == own
            || self.users.contains(&user)
            || self.groups.contains(&group)
    }

    fn is_narrow(&self) -> bool {
        !self.all && self.users.is_empty() && self.groups.is_empty()
    }
}

/// A socket by which others get a common domain's memory. They keep it when this is dropped, or its
/// process ends; nobody else gets it then.
#[derive(Debug)]
pub struct Broker {
    memory: CommonMemory,
    admission: Admission,
    path: PathBuf,
    socket: OwnedFd,
    /// Its lock says that this is the only one of this path.
    _lock: OwnedFd,
}

fn system<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> CommonError {
    move |error| CommonError::System {
        what,
        reason: error.to_string(),
    }
}

fn socket() -> Result<OwnedFd, CommonError> {
    let flags = SocketFlags::CLOEXEC;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(system("make a socket"))
}

impl Broker {
    /// Begins to hand out `memory` at this path, to those whom `admission` admits.
    ///
    /// # Errors
    /// Another broker does so there ([`CommonError::Shared`]), or the system's own.
    pub fn begin(
        path: &Path,
        memory: &CommonMemory,
        admission: Admission,
    ) -> Result<Broker, CommonError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        // One that is there may be for others.
        let _ = DirBuilder::new().mode(0o755).create(folder);
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            // In a folder of many, a link may lie there, or a pipe that nobody reads.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(beside(path))
            .map_err(system("make a file beside the socket"))?;
        let lock = OwnedFd::from(lock);
        match lock::set(&lock, WHOLE) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => return Err(CommonError::Shared(path.into())),
            Err(error) => return Err(system("lock the file beside the socket")(error)),
        }
        match std::fs::symlink_metadata(path).map(|there| there.file_type().is_socket()) {
            // A former broker's, which has ended.
            Ok(true) => drop(std::fs::remove_file(path)),
            Ok(false) => {
                let why = format!("what is at {} is no socket", path.display());
                return Err(system("make the socket's file")(why));
            }
            Err(_) => {}
        }
        let own = socket()?;
        let address = SocketAddrUnix::new(path).map_err(system("name the socket"))?;
        bind(&own, &address).map_err(system("make the socket's file"))?;
        let mode = if admission.is_narrow() { 0o600 } else { 0o666 };
        chmod(path, Mode::from_raw_mode(mode)).map_err(system("open the socket's file"))?;
        listen(&own, BACKLOG).map_err(system("listen on the socket"))?;
        Ok(Broker {
            memory: memory.clone(),
            admission,
            path: path.to_owned(),
            socket: own,
            _lock: lock,
        })
    }

    /// The socket's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for somebody, or until `stop` can be read: who came, and whether they got the memory;
    /// `None` after `stop`.
    ///
    /// # Errors
    /// The system's own. It can be called again.
    pub fn serve_one(&self, stop: BorrowedFd<'_>) -> Result<Option<Visit>, CommonError> {
        loop {
            let mut polled = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::from_borrowed_fd(stop, PollFlags::IN),
            ];
            match poll(&mut polled, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(system("wait for a connection")(error)),
            }
            if !polled[1].revents().is_empty() {
                return Ok(None);
            }
            match accept_with(&self.socket, SocketFlags::CLOEXEC) {
                Ok(client) => return self.answer(&client).map(Some),
                // It went away meanwhile.
                Err(Errno::CONNABORTED | Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(system("accept a connection")(error)),
            }
        }
    }

    /// Gives the memory to who may have it, and tells others that they may not.
    fn answer(&self, client: &OwnedFd) -> Result<Visit, CommonError> {
        let who = machine::peer(client.as_fd()).map_err(system("see who connects"))?;
        let visit = Visit {
            pid: who.process,
            user: who.user,
            group: who.group,
            admitted: self.admission.admits(who.user, who.group),
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        let descriptor = [self.memory.descriptor()];
        let word = match visit.admitted {
            true => {
                with.push(SendAncillaryMessage::ScmRights(&descriptor));
                GIVEN
            }
            false => REFUSED,
        };
        // There is room for one message, or nobody reads it; in neither case is anybody waited for.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = sendmsg(client, &[IoSlice::new(word)], &mut with, flags);
        Ok(visit)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // While the lock is held, so it is no other broker's. The file of the lock stays: whoever
        // has it open would lock one that nobody finds.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Somebody who came for the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Visit {
    /// The process; 0 if it runs in a PID namespace that this one does not see.
    pub pid: u32,
    /// Its user.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// It got the memory.
    pub admitted: bool,
}

impl CommonMemory {
    /// The memory that a broker hands out at this path ([`socket_of`] a name, or another one).
    ///
    /// # Errors
    /// There is no broker, it does not admit this process, or what it gave is no memory of a common
    /// domain.
    pub fn from_broker(path: &Path) -> Result<CommonMemory, CommonError> {
        let own = socket()?;
        let address = SocketAddrUnix::new(path).map_err(system("name the socket"))?;
        // To connect has to wait, too, where a broker has stopped and many wait already.
        for timeout in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
            sockopt::set_socket_timeout(&own, timeout, Some(PATIENCE))
                .map_err(system("limit the time of an answer"))?;
        }
        let since = Instant::now();
        loop {
            match connect(&own, &address) {
                Ok(()) => break,
                Err(Errno::INTR) if since.elapsed() < PATIENCE => {}
                Err(
                    Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR | Errno::AGAIN | Errno::INTR,
                ) => return Err(CommonError::NoBroker(path.into())),
                Err(Errno::ACCESS | Errno::PERM) => return Err(CommonError::Refused(path.into())),
                Err(error) => return Err(system("connect to the broker")(error)),
            }
        }
        let (mut word, mut descriptors) = ([0; 64], Vec::new());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = loop {
            match recvmsg(&own, &mut [IoSliceMut::new(&mut word)], &mut with, flags) {
                Ok(received) => break received,
                Err(Errno::INTR) if since.elapsed() < 2 * PATIENCE => {}
                Err(Errno::AGAIN | Errno::CONNRESET | Errno::INTR) => {
                    return Err(CommonError::NoBroker(path.into()));
                }
                Err(error) => return Err(system("hear from the broker")(error)),
            }
        };
        // Whatever came is owned from here on, and closed if it is not what it should be.
        for message in with.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        match (&word[..received.bytes], descriptors.len()) {
            (REFUSED, 0) => Err(CommonError::Refused(path.into())),
            // It ended just now.
            ([], 0) => Err(CommonError::NoBroker(path.into())),
            (GIVEN, 1) => CommonMemory::taken(descriptors.remove(0)),
            _ => Err(CommonError::Foreign("what listens there is no broker")),
        }
    }
}
