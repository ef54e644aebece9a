//! A file server: whoever has [`Files`] serves them to all processes, by calls of procedures and an
//! area of memory with each client. Calls are served in the caller's time, one after the other.
//!
//! | module | what |
//! |---|---|
//! | [`clients`] | who has what open, and where its area is |
//! | [`walk`] | paths |
//! | [`locks`] | locks of bytes |
//! | [`loans`] | pages of this process that others may read |
//! | `trusted` | areas as bytes, and the one server of this process |
//!
//! Clients are processes: what one has open it has over exec, and its children have it, too, from
//! their first instruction on, since the parent tells before ([`Operation::Child`]). One that has
//! ended has nothing open, whenever it ended; that is looked for now and then. Nothing that a client
//! says is believed: it can read and write what it may name, and no more.

pub mod clients;
pub mod loans;
pub mod locks;
mod trusted;
mod walk;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use postern_aegis::abi::Context;
use postern_aegis::{entry, time};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::{Files, Kind, NAME, Status};
use postern_exos_abi::protocol::{
    DATA, Entry, Operation, PATH, SECOND, UNMOUNTS, VERSION, WORDS, entry_size, lock, status,
};

use crate::ipc::keep;
use crate::process::{registry, signals};
use clients::Clients;
use locks::Locks;

/// Where the page of counts stands.
const COUNTERS: u64 = clients::AREAS - 0x20_0000;

/// Requests between two looks for clients that have ended.
const LOOK: u64 = 64;
/// Microseconds after a request at which the files are told that it is quiet.
const QUIET: u64 = 1_000_000;

/// The server leaves its loop for a moment.
static PAUSES: AtomicU32 = AtomicU32::new(0);
/// Requests so far.
static SERVED: AtomicU64 = AtomicU64::new(0);

/// An answer: a number, and words for the page of answers.
type Answer = Result<u64, Errno>;

/// Files, and who has what of them open.
struct Server<'f, F: Files> {
    files: &'f mut F,
    clients: Clients,
    locks: Locks,
    words: [u64; WORDS],
    /// It was unmounted.
    is_over: bool,
}

/// Serves files under a name that begins with `/`, until somebody unmounts them. `quiet` is called now
/// and then while nobody asks. It may be that this cannot be: another process has the name, for example.
/// `is_volatile`: the files change without this server's doing, so that nobody keeps what they saw.
/// The disk's server has offered `/` before, to be told where the disk is, and offers it again.
pub fn serve<F: Files>(
    name: &[u8],
    files: &mut F,
    is_volatile: bool,
    quiet: impl FnMut(&mut F),
) -> Result<(), Errno> {
    let mut number = [0];
    let kept = keep::fresh(core::iter::once(COUNTERS), &mut number).map_err(|_| errno::NOMEM)?;
    // From here on clients come; who calls before this serves is told that it is busy.
    let words = [number[0].into(), kept.read, VERSION, is_volatile.into()];
    registry::serve(name, words)?;
    serve_published(files, quiet)?;
    registry::serve_no_more(name)
}

fn serve_published<F: Files>(files: &mut F, mut quiet: impl FnMut(&mut F)) -> Result<(), Errno> {
    let mut server = Server {
        files,
        clients: Clients::new(),
        locks: Locks::new(),
        words: [0; WORDS],
        is_over: false,
    };
    entry::on_events(|events| {
        if events & Context::EVENT_ALARM != 0 {
            PAUSES.store(1, Relaxed);
        }
    });
    let _ = time::alarm(QUIET);
    let mut seen = 0;
    loop {
        if !trusted::serve(&mut server, &PAUSES) {
            return Err(errno::INVAL);
        }
        PAUSES.store(0, Relaxed);
        signals::poll();
        if server.is_over {
            return Ok(());
        }
        server.look_for_ends();
        if SERVED.load(Relaxed) != seen {
            seen = SERVED.load(Relaxed);
            quiet(server.files);
        }
        let _ = time::alarm(QUIET);
    }
}

impl<F: Files> Server<'_, F> {
    /// Serves one request.
    fn request(&mut self, caller: u16, words: [u64; 4]) -> u64 {
        let _busy = signals::hold();
        let served = SERVED.fetch_add(1, Relaxed);
        if served.is_multiple_of(LOOK) {
            self.look_for_ends();
        }
        match self.answer(caller, words) {
            Ok(value) => value,
            Err(error) => error.word(),
        }
    }

    fn answer(&mut self, caller: u16, [first, a, b, c]: [u64; 4]) -> Answer {
        let operation = Operation::of(first).ok_or(errno::NOSYS)?;
        if self.is_over {
            return Err(errno::NOTCONN);
        }
        let argument = (first >> 32) as u32;
        if operation == Operation::Attach {
            return self.attach(caller, [a, b]);
        }
        let client = self.clients.of(caller).ok_or(errno::NOTCONN)?;
        self.words = [0; WORDS];
        let value = match operation {
            Operation::Attach => Err(errno::INVAL),
            Operation::Walk => self.walk(client, a, b, c as u32, argument),
            Operation::Close => self.close(client, a),
            Operation::Read => {
                let bytes = trusted::bytes(client, 0, length(c)?);
                self.files.read(a, b, bytes).map(|done| done as u64)
            }
            Operation::Write => self.write(client, a, b, length(c)?, argument != 0),
            Operation::Status => self.status(a),
            Operation::Make => self.make(client, a, b, c as u32, argument),
            Operation::Remove => self.remove(client, a, b, argument != 0),
            Operation::Rename => self.rename(client, a, b, c),
            Operation::Link => {
                let name = Name::of(client, 0, c)?;
                self.files.link(a, b, name.bytes())?;
                self.renamed(&[a, b])
            }
            Operation::SetLength => {
                self.files.set_length(a, b)?;
                self.changed(&[a])
            }
            Operation::SetMode => {
                self.files.set_mode(a, b as u32 & 0o777)?;
                self.renamed(&[a])
            }
            Operation::SetModified => {
                self.files.set_modified(a, b)?;
                self.changed(&[a])
            }
            Operation::Target => {
                let bytes = trusted::bytes(client, 0, PATH);
                self.files.target(a, bytes).map(|done| done as u64)
            }
            Operation::List => self.list(client, a, b, length(c)?),
            Operation::Synchronise => {
                let node = Some(a).filter(|node| *node != 0);
                self.files.synchronise(node).map(|()| 0)
            }
            Operation::Space => {
                let space = self.files.space()?;
                let words = [space.blocks, space.free, space.files, space.free_files];
                self.words[..4].copy_from_slice(&words);
                Ok(0)
            }
            Operation::Page => {
                let version = self.files.status(a)?.version;
                let (page, capability) = self.files.page(a, b)?;
                self.words[..3].copy_from_slice(&[page.into(), capability, version]);
                Ok(0)
            }
            Operation::Child => self.child(client, a),
            Operation::Lock => self.lock(client, a, b, c, argument),
            Operation::Unmount if argument == UNMOUNTS => self.unmount(client),
            Operation::Unmount => Err(errno::INVAL),
        }?;
        trusted::answer(client, &self.words);
        Ok(value)
    }

    /// Something of these files has changed.
    fn changed(&mut self, nodes: &[u64]) -> Answer {
        let counters = trusted::counters(COUNTERS);
        for node in nodes {
            counters.of(*node).fetch_add(1, Relaxed);
        }
        Ok(0)
    }

    /// What names stand for, or who may do what, has changed, and something of these files.
    fn renamed(&mut self, nodes: &[u64]) -> Answer {
        trusted::counters(COUNTERS).names.fetch_add(1, Relaxed);
        self.changed(nodes)
    }

    fn attach(&mut self, caller: u16, [page, capability]: [u64; 2]) -> Answer {
        self.look_for_ends();
        let client = self.clients.attach(caller, page, capability)?;
        // What it does not have any more over exec is closed.
        let nodes = trusted::held(client);
        self.clients
            .retain(client, &nodes, |node| self.files.release(node));
        Ok(self.files.root())
    }

    /// A client has a node open, or a child of one that has.
    fn open(&mut self, client: usize, node: u64, is_shared: bool) -> Result<(), Errno> {
        if self.clients.has(client, node) {
            return Ok(());
        }
        match is_shared {
            true => self.files.share(node),
            false => self.files.hold(node),
        }?;
        let added = self.clients.add(client, node);
        added.inspect_err(|_| self.files.release(node))
    }

    fn close(&mut self, client: usize, node: u64) -> Answer {
        if self.clients.remove(client, node) {
            self.locks.close(self.clients.pid(client), node);
            self.files.release(node);
        }
        Ok(0)
    }

    fn child(&mut self, client: usize, pid: u64) -> Answer {
        let pid = u32::try_from(pid).map_err(|_| errno::SRCH)?;
        let child = self.clients.child(client, pid)?;
        for index in 0.. {
            let Some(node) = self.clients.node(client, index) else {
                break;
            };
            self.open(child, node, true)?;
        }
        Ok(0)
    }

    /// Clients that have ended have nothing open, and no area.
    fn look_for_ends(&mut self) {
        let Server {
            files,
            clients,
            locks,
            ..
        } = self;
        clients.look(|pid| locks.end(pid), |node| files.release(node));
    }

    /// Nobody is served any more, unless somebody has a file open.
    fn unmount(&mut self, client: usize) -> Answer {
        let process = registry::find(self.clients.pid(client)).ok_or(errno::SRCH)?;
        if process.tree.load(Relaxed) != 0 {
            return Err(errno::PERM);
        }
        self.look_for_ends();
        if self.clients.have_some() {
            return Err(errno::BUSY);
        }
        self.files.synchronise(None)?;
        self.is_over = true;
        PAUSES.store(1, Relaxed);
        Ok(0)
    }

    fn write(&mut self, client: usize, node: u64, at: u64, length: usize, ends: bool) -> Answer {
        let at = match ends {
            true => self.files.status(node)?.size,
            false => at,
        };
        let bytes = trusted::bytes(client, 0, length);
        let done = self.files.write(node, at, bytes)? as u64;
        self.words[0] = at.saturating_add(done);
        self.changed(&[node])?;
        Ok(done)
    }

    fn status(&mut self, node: u64) -> Answer {
        let found = self.files.status(node)?;
        self.tell(&found);
        Ok(0)
    }

    fn tell(&mut self, found: &Status) {
        let words = &mut self.words;
        words[status::NODE] = found.node;
        words[status::KIND] = found.kind as u64;
        words[status::MODE] = found.mode.into();
        words[status::LINKS] = found.links.into();
        words[status::SIZE] = found.size;
        words[status::BLOCKS] = found.blocks;
        words[status::MODIFIED] = found.modified;
        words[status::CHANGED] = found.changed;
        words[status::VERSION] = found.version;
    }

    fn make(&mut self, client: usize, folder: u64, length: u64, mode: u32, kind: u32) -> Answer {
        let kind = match kind {
            1 => Kind::File,
            2 => Kind::Folder,
            3 => Kind::Link,
            _ => return Err(errno::INVAL),
        };
        let name = Name::of(client, 0, length)?;
        let mut target = [0; PATH];
        let target = match kind {
            Kind::Link => trusted::string(client, SECOND, &mut target).ok_or(errno::NAMETOOLONG)?,
            _ => &[],
        };
        let made = self
            .files
            .create(folder, name.bytes(), kind, mode & 0o777, target)?;
        self.renamed(&[folder])?;
        let found = self.files.status(made)?;
        self.tell(&found);
        Ok(0)
    }

    fn remove(&mut self, client: usize, folder: u64, length: u64, is_folder: bool) -> Answer {
        let name = Name::of(client, 0, length)?;
        let node = self.files.look_up(folder, name.bytes())?;
        self.files.remove(folder, name.bytes(), is_folder)?;
        self.renamed(&[folder, node])
    }

    fn rename(&mut self, client: usize, from: u64, to: u64, lengths: u64) -> Answer {
        let former = Name::of(client, 0, lengths & 0xffff_ffff)?;
        let name = Name::of(client, SECOND, lengths >> 32)?;
        let gone = self.files.look_up(to, name.bytes()).unwrap_or(0);
        let (former, name) = (former.bytes(), name.bytes());
        self.files.rename((from, former), (to, name))?;
        self.renamed(&[from, to, gone])
    }

    fn list(&mut self, client: usize, folder: u64, from: u64, room: usize) -> Answer {
        let mut used = 0;
        let mut some = false;
        self.files.list(folder, from, &mut |entry| {
            some = true;
            let size = entry_size(entry.name.len());
            if used + size > room || entry.name.len() > NAME {
                return false;
            }
            let head = Entry {
                node: entry.node,
                next: entry.next,
                kind: entry.kind as u32,
                length: entry.name.len() as u32,
            };
            trusted::write_entry(client, used, &head, entry.name);
            used += size;
            true
        })?;
        match some && used == 0 {
            true => Err(errno::INVAL),
            false => Ok(used as u64),
        }
    }

    fn lock(&mut self, client: usize, node: u64, from: u64, count: u64, what: u32) -> Answer {
        let pid = self.clients.pid(client);
        let end = match count {
            0 => u64::MAX,
            count => from.checked_add(count).ok_or(errno::INVAL)?,
        };
        let writes = match what & !lock::ASKS {
            lock::FREE => {
                self.locks.free(pid, node, from..end)?;
                return Ok(0);
            }
            lock::READ => false,
            lock::WRITE => true,
            _ => return Err(errno::INVAL),
        };
        // Locks end when the file is closed, so only who has it open has one.
        if !self.clients.has(client, node) {
            return Err(errno::BADF);
        }
        let mut other = self.locks.other(pid, node, &(from..end), writes);
        if other.is_some() {
            self.look_for_ends();
            other = self.locks.other(pid, node, &(from..end), writes);
        }
        match other {
            None if what & lock::ASKS != 0 => Ok(0),
            None => self.locks.take(pid, node, from..end, writes).map(|()| 0),
            Some(_) if what & lock::ASKS == 0 => Err(errno::AGAIN),
            Some(other) => {
                let kind = if other.writes {
                    lock::WRITE
                } else {
                    lock::READ
                };
                let count = match other.bytes.end {
                    u64::MAX => 0,
                    end => end - other.bytes.start,
                };
                let words = [kind.into(), other.bytes.start, count, other.pid.into()];
                self.words[..4].copy_from_slice(&words);
                Ok(0)
            }
        }
    }
}

fn length(word: u64) -> Result<usize, Errno> {
    let length = usize::try_from(word).map_err(|_| errno::INVAL)?;
    match length <= DATA {
        true => Ok(length),
        false => Err(errno::INVAL),
    }
}

/// A name, read once.
struct Name {
    bytes: [u8; NAME],
    length: usize,
}

impl Name {
    /// The name at a place of a client's area.
    fn of(client: usize, at: usize, length: u64) -> Result<Name, Errno> {
        let length = usize::try_from(length).map_err(|_| errno::INVAL)?;
        let mut bytes = [0; NAME];
        let to = bytes.get_mut(..length).ok_or(errno::NAMETOOLONG)?;
        trusted::copy_out(client, at, to);
        if matches!(&*to, b"" | b"." | b"..") || to.iter().any(|byte| matches!(byte, b'/' | 0)) {
            return Err(errno::INVAL);
        }
        Ok(Name { bytes, length })
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}
