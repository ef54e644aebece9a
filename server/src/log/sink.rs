//! Lines on their way to a file or a stream, which may take none for as long as it likes: a full
//! pipe, a disk that hangs.
//!
//! Invariant: nobody but the sink's own thread waits for the destination; what waits here takes
//! [`ROOM`] bytes at most, and twice that while it is being written.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of lines that may wait to be written.
const ROOM: usize = 1 << 20;
/// So many are written without waiting for more.
const ENOUGH: usize = 32 << 10;
/// Fewer wait so long for others.
const SOON: Duration = Duration::from_secs(1);
/// Between two tries of a destination that says it would block.
const AGAIN: Duration = Duration::from_millis(20);

/// Where lines go.
pub enum Destination {
    /// A file that is appended to, and where it is.
    File(PathBuf, File),
    /// Anything else.
    Stream(Box<dyn Write + Send>),
}

impl Destination {
    /// `-` is what `standard` gives, an empty name nothing.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn open(
        path: &Path,
        standard: impl FnOnce() -> rustix::io::Result<OwnedFd>,
    ) -> io::Result<Option<Destination>> {
        Ok(match path.to_str() {
            Some("") => None,
            // A descriptor of its own: whoever is stuck in a write holds no lock of the standard
            // library's.
            Some("-") => Some(Destination::Stream(Box::new(File::from(standard()?)))),
            _ => Some(Destination::File(path.to_owned(), append(path)?)),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Destination::File(_, file) => file.write(bytes),
            Destination::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Destination::File(_, file) => file.flush(),
            Destination::Stream(stream) => stream.flush(),
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Somebody wants it written now.
    urgent: bool,
    /// What was taken from `waiting` is being written.
    writing: bool,
    reopen: bool,
    closed: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// There is something to do.
    wake: Condvar,
    /// All was written.
    idle: Condvar,
    dropped: AtomicU64,
}

/// A log's lines, and the thread that writes them.
pub struct Sink(Arc<Queue>);

impl Sink {
    /// For the log of this name. What goes wrong with it is told to another, or to itself.
    ///
    /// # Errors
    /// There are no more threads.
    pub fn new(
        name: &'static str,
        destination: Destination,
        tell: Option<&Sink>,
    ) -> io::Result<Sink> {
        let queue: Arc<Queue> = Arc::default();
        let mut writer = Writer {
            name,
            destination,
            queue: queue.clone(),
            tell: tell.map_or(&queue, |sink| &sink.0).clone(),
            told: 0,
        };
        std::thread::Builder::new()
            .name(format!("postern-log-{name}"))
            .spawn(move || writer.run())?;
        Ok(Sink(queue))
    }

    /// One more line.
    pub fn say(&self, line: &str, urgent: bool) {
        self.0.say(line, urgent);
    }

    /// The file is opened again before the next line.
    pub fn reopen(&self) {
        self.0.state().reopen = true;
        self.0.wake.notify_one();
    }

    /// Waits until all is written, but no longer than that.
    pub fn flush(&self, longest: Duration) {
        let mut state = self.0.state();
        state.urgent = true;
        self.0.wake.notify_one();
        let busy = |state: &mut State| state.writing || !state.waiting.is_empty();
        drop(self.0.idle.wait_timeout_while(state, longest, busy));
    }

    /// Lines that were not written, and never will be.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // The thread ends when it has written what there is. One that is stuck ends with the
        // process.
        self.0.state().closed = true;
        self.0.wake.notify_one();
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, line: &str, urgent: bool) {
        let mut state = self.state();
        if state.waiting.len() + line.len() + 1 > ROOM {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let first = state.waiting.is_empty();
        state.waiting.extend_from_slice(line.as_bytes());
        state.waiting.push(b'\n');
        let before = state.waiting.len() - line.len() - 1;
        let enough = before < ENOUGH && state.waiting.len() >= ENOUGH;
        state.urgent |= urgent || enough;
        if first || urgent || enough {
            self.wake.notify_one();
        }
    }
}

struct Writer {
    name: &'static str,
    destination: Destination,
    queue: Arc<Queue>,
    tell: Arc<Queue>,
    /// How many of the dropped lines were told.
    told: u64,
}

impl Writer {
    fn run(&mut self) {
        let mut taken = Vec::new();
        loop {
            let (queue, mut state) = (self.queue.clone(), self.queue.state());
            state.writing = false;
            if state.waiting.is_empty() {
                queue.idle.notify_all();
            }
            // First until there is anything, then until there is enough of it.
            let nothing =
                |state: &mut State| state.waiting.is_empty() && !state.reopen && !state.closed;
            state = wait(queue.wake.wait_while(state, nothing));
            let little = |state: &mut State| !state.urgent && !state.reopen && !state.closed;
            state = wait(queue.wake.wait_timeout_while(state, SOON, little)).0;
            if state.closed && state.waiting.is_empty() {
                return;
            }
            state.urgent = false;
            state.writing = true;
            let reopen = std::mem::take(&mut state.reopen);
            std::mem::swap(&mut state.waiting, &mut taken);
            drop(state);
            // What was said before somebody moved the file belongs there.
            self.write(&taken);
            taken.clear();
            if reopen {
                self.reopen();
            }
            self.tell_dropped();
        }
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.destination.write(bytes) {
                Ok(0) => break,
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.queue.state().closed {
                        break;
                    }
                    std::thread::sleep(AGAIN);
                }
                Err(_) => break,
            }
        }
        // Nobody can be told that it cannot be written; it is counted.
        let lost = bytes.iter().filter(|byte| **byte == b'\n').count();
        self.queue.dropped.fetch_add(lost as u64, Ordering::Relaxed);
        let _ = self.destination.flush();
    }

    fn reopen(&mut self) {
        if let Destination::File(path, file) = &mut self.destination {
            match append(path) {
                Ok(new) => *file = new,
                Err(error) => {
                    let text = format!("postern: {error} (the former log goes on)");
                    self.tell.say(&text, true);
                }
            }
        }
    }

    fn tell_dropped(&mut self) {
        let dropped = self.queue.dropped.load(Ordering::Relaxed);
        // Not while there is no room for more.
        if dropped > self.told && self.queue.state().waiting.len() < ROOM / 2 {
            let (lines, name) = (dropped - self.told, self.name);
            self.told = dropped;
            let text = format!(
                "postern: {lines} lines of the {name} log were dropped: nobody took them in time"
            );
            self.tell.say(&text, true);
        }
    }
}

fn wait<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Takes nothing before it is told to.
    struct Stuck(mpsc::Receiver<()>, mpsc::Sender<Vec<u8>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_who_takes_nothing() {
        let ((go, wait), (send, got)) = (mpsc::channel(), mpsc::channel());
        let stuck = Destination::Stream(Box::new(Stuck(wait, send)));
        let sink = Sink::new("access", stuck, None).unwrap();
        let line = "x".repeat(1023);
        let most = 2 * ROOM / 1024;
        for _ in 0..2 * most {
            sink.say(&line, false);
        }
        let dropped = sink.dropped();
        assert!(dropped as usize >= most, "{dropped}");
        // What was kept comes, in order and whole, and how much did not.
        drop(go);
        sink.flush(Duration::from_secs(60));
        drop(sink);
        let all = got.iter().collect::<Vec<_>>().concat();
        let text = String::from_utf8(all).unwrap();
        let whole = text.lines().filter(|found| **found == line).count();
        assert_eq!(whole + dropped as usize, 2 * most);
        let told = format!("{dropped} lines of the access log were dropped");
        assert!(text.contains(&told), "{}", text.lines().last().unwrap());
    }

    #[test]
    fn a_file_that_was_moved_away_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let [path, moved] = ["log", "log.1"].map(|name| folder.path().join(name));
        let open = || Destination::open(&path, || unreachable!());
        let sink = Sink::new("error", open().unwrap().unwrap(), None).unwrap();
        let long = Duration::from_secs(60);
        sink.say("one", true);
        sink.flush(long);
        std::fs::rename(&path, &moved).unwrap();
        sink.say("two", true);
        sink.flush(long);
        sink.reopen();
        while !path.exists() {
            std::thread::yield_now();
        }
        sink.say("three", true);
        sink.flush(long);
        assert_eq!(std::fs::read_to_string(moved).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "three\n");
    }
}
