//! The three streams that a domain begins with: where its input comes from, where its output goes.
//! The host chooses.

use super::layout;
use super::status::Status;
use super::waiting::waiting;
use postern_runtime::system::{Answer, Done};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Fills a buffer and says how many bytes it has; 0 is the end.
pub type ReadFunction = dyn Fn(&mut [u8]) -> usize + Send + Sync;
/// Takes bytes.
pub type WriteFunction = dyn Fn(&[u8]) + Send + Sync;

/// Where an extension's standard input comes from.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Input {
    /// It is at its end from the start.
    #[default]
    Empty,
    /// The process's own.
    Inherit,
    /// These bytes. After a reset they come again.
    Bytes(Arc<[u8]>),
    /// The host's function: it fills the buffer and says how many bytes it has; 0 is the end.
    Function(Arc<ReadFunction>),
}

/// Where an extension's standard output, or its standard error, goes.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Sink {
    /// To the process's own stream of the same number.
    #[default]
    Inherit,
    /// Nowhere; the extension sees no difference.
    Discard,
    /// To the host's function. It runs on the extension's thread, while the extension waits; at
    /// most 1 MiB comes at once.
    Function(Arc<WriteFunction>),
}

impl Input {
    /// These bytes.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Input {
        Input::Bytes(bytes.into().into())
    }

    /// The host's function.
    pub fn function(read: impl Fn(&mut [u8]) -> usize + Send + Sync + 'static) -> Input {
        Input::Function(Arc::new(read))
    }
}

impl Sink {
    /// The host's function.
    pub fn function(write: impl Fn(&[u8]) + Send + Sync + 'static) -> Sink {
        Sink::Function(Arc::new(write))
    }

    /// To the end of a vector, of which the host keeps a handle.
    pub fn buffer(buffer: &Arc<Mutex<Vec<u8>>>) -> Sink {
        let buffer = buffer.clone();
        Sink::function(move |bytes| {
            let mut buffer = buffer.lock().unwrap_or_else(|e| e.into_inner());
            buffer.extend_from_slice(bytes);
        })
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Input::Empty => "Empty",
            Input::Inherit => "Inherit",
            Input::Bytes(_) => "Bytes",
            Input::Function(_) => "Function",
        })
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sink::Inherit => "Inherit",
            Sink::Discard => "Discard",
            Sink::Function(_) => "Function",
        })
    }
}

/// An open stream.
pub(super) struct Stream {
    end: End,
    pub(super) status: Status,
}

enum End {
    In(Input, AtomicUsize),
    Out(Sink, bool),
}

impl Stream {
    pub(super) fn input(input: &Input) -> Stream {
        Stream {
            end: End::In(input.clone(), AtomicUsize::new(0)),
            status: Status::new(libc::O_RDONLY),
        }
    }

    /// Standard error if `error`, else standard output.
    pub(super) fn output(sink: &Sink, error: bool) -> Stream {
        Stream {
            end: End::Out(sink.clone(), error),
            status: Status::new(libc::O_WRONLY),
        }
    }

    /// The process's own stream behind it, if it is inherited.
    fn inherited(&self) -> Option<BorrowedFd<'static>> {
        match &self.end {
            End::In(Input::Inherit, _) => Some(rustix::stdio::stdin()),
            End::Out(Sink::Inherit, false) => Some(rustix::stdio::stdout()),
            End::Out(Sink::Inherit, true) => Some(rustix::stdio::stderr()),
            _ => None,
        }
    }

    fn is_terminal(&self) -> bool {
        self.inherited().is_some_and(rustix::termios::isatty)
    }

    pub(super) fn read(&self, length: usize) -> Answer {
        let End::In(input, position) = &self.end else {
            return Err(Errno::BADF.into());
        };
        let mut bytes = Vec::new();
        match input {
            _ if length == 0 => {}
            Input::Empty => {}
            Input::Inherit => {
                let stdin = rustix::stdio::stdin();
                ready(stdin, PollFlags::IN)?;
                bytes.reserve_exact(length);
                rustix::io::read(stdin, rustix::buffer::spare_capacity(&mut bytes))?;
            }
            Input::Bytes(all) => {
                let advance = |at: usize| Some(at.saturating_add(length).min(all.len()));
                let (Ok(from) | Err(from)) =
                    position.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance);
                let to = from.saturating_add(length).min(all.len());
                bytes.extend_from_slice(all.get(from..to).unwrap_or_default());
            }
            Input::Function(function) => {
                bytes.resize(length, 0);
                let read = if length == 0 { 0 } else { function(&mut bytes) };
                bytes.truncate(read);
            }
        }
        Ok(Done::counted(bytes))
    }

    pub(super) fn write(&self, bytes: &[u8]) -> Answer {
        let End::Out(sink, _) = &self.end else {
            return Err(Errno::BADF.into());
        };
        let written = match (sink, self.inherited()) {
            (Sink::Function(function), _) => {
                if !bytes.is_empty() {
                    function(bytes);
                }
                bytes.len()
            }
            (_, Some(file)) => {
                ready(file, PollFlags::OUT)?;
                rustix::io::write(file, bytes)?
            }
            _ => bytes.len(),
        };
        Ok(Done::value(written as i64))
    }

    /// `struct stat`: a terminal or a pipe.
    pub(super) fn stat(&self) -> Answer {
        let kind = match self.is_terminal() {
            true => libc::S_IFCHR | 0o620,
            false => libc::S_IFIFO | 0o600,
        };
        Ok(Done::bytes(layout::stream_stat(kind)))
    }

    /// What programs ask terminals: whether one is there, and its size.
    pub(super) fn device(&self, request: u32) -> Answer {
        let Some(file) = self.inherited().filter(|_| self.is_terminal()) else {
            return Err(Errno::NOTTY.into());
        };
        match u64::from(request) {
            libc::TCGETS => Ok(Done::bytes(layout::TERMINAL.into())),
            libc::TIOCGWINSZ => {
                let size = rustix::termios::tcgetwinsize(file)?;
                Ok(Done::bytes(layout::window_size(size.ws_row, size.ws_col)))
            }
            _ => Err(Errno::NOTTY.into()),
        }
    }
}

/// Waits until a stream of the process can be read or written, or the call shall end.
fn ready(file: BorrowedFd<'_>, events: PollFlags) -> Result<(), Errno> {
    waiting(|most| {
        let most = Timespec {
            tv_sec: 0,
            tv_nsec: most.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::from_borrowed_fd(file, events)], Some(&most)) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => Ok(Some(())),
            Err(error) => Err(error),
        }
    })
}
