//! A place where scripts of strangers run: Lua in a domain that is as new for each of them.
//!
//! A script has all of Lua's standard library, a deadline, a heap, and a limit of output. It reads
//! no file and no variable of the environment, because the domain's policy has none. However it
//! ends, the next script finds nothing of it.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postern::policy::Sink;
use postern::{AllocError, CallError, Domain, Func, Image, MemoryError, Offset, Policy};

/// What a script may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time of one run.
    pub deadline: Duration,
    /// Bytes of heap.
    pub heap: u64,
    /// Bytes of output that are kept.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            deadline: Duration::from_secs(1),
            heap: 64 << 20,
            output: 1 << 20,
        }
    }
}

/// Why a script did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Lua's own error, with its line and the calls that led to it.
    #[error("{0}")]
    Lua(String),
    /// The script called `os.exit` with a status other than success.
    #[error("the script exited with status {0}")]
    Exit(i32),
    /// The call was ended: the deadline, or a fault of the interpreter.
    #[error("ended: {0}")]
    Ended(CallError),
    /// The script, or its error message, could not be copied.
    #[error(transparent)]
    Window(#[from] MemoryError),
}

impl From<AllocError> for ScriptError {
    fn from(error: AllocError) -> ScriptError {
        match error {
            AllocError::Memory(error) => error.into(),
            AllocError::Call(error) => error.into(),
        }
    }
}

impl From<CallError> for ScriptError {
    fn from(error: CallError) -> ScriptError {
        match error {
            CallError::Exited(status) => ScriptError::Exit(status),
            other => ScriptError::Ended(other),
        }
    }
}

/// The interpreter, ready for the next script.
pub struct Playground {
    domain: Domain,
    run: Func<fn(Offset, u64, Offset) -> i32>,
    line: Func<fn(Offset, u64) -> i32>,
    message: Func<fn() -> Offset>,
    output: Arc<Mutex<Vec<u8>>>,
}

/// The longest error message that is copied out.
const MESSAGE: usize = 4096;

impl Playground {
    /// A domain of `image`, which is the extension that postern.toml describes.
    ///
    /// # Errors
    /// It is another one, or there is no room for one more domain.
    pub fn new(image: &Image, limits: Limits) -> Result<Playground, Box<dyn std::error::Error>> {
        let output = Arc::new(Mutex::new(Vec::new()));
        let kept = output.clone();
        let sink = move |bytes: &[u8]| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = limits.output.saturating_sub(kept.len());
            kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        };
        let sink = Sink::function(sink);
        let policy = Policy::compute().stdout(sink.clone()).stderr(sink);
        let domain = Domain::builder(image)
            .deadline(Some(limits.deadline))
            .heap(limits.heap)
            .policy(policy)
            .build()?;
        Ok(Playground {
            run: domain.func("script_run")?,
            line: domain.func("script_line")?,
            message: domain.func("script_message")?,
            domain,
            output,
        })
    }

    /// Runs a script in a domain that is as new. `name` is what errors call it.
    ///
    /// # Errors
    /// See [`ScriptError`].
    pub fn run(&self, name: &str, script: &[u8]) -> Result<(), ScriptError> {
        self.restart();
        let name = self.domain.alloc_from(format!("@{name}\0").as_bytes())?;
        let text = self.domain.alloc_from(script)?;
        self.finish(self.run.call(text, script.len() as u64, name))
    }

    /// Runs a line; what it defines is there for the next one, unless it was ended.
    ///
    /// # Errors
    /// See [`ScriptError`].
    pub fn line(&self, line: &[u8]) -> Result<(), ScriptError> {
        let text = self.domain.alloc_from(line)?;
        let outcome = self.finish(self.line.call(text, line.len() as u64));
        match &outcome {
            Ok(()) | Err(ScriptError::Lua(_)) => self.domain.free(text)?,
            Err(_) => self.restart(),
        }
        outcome
    }

    /// What was printed since the last time, at most as much as the limit says.
    pub fn take_output(&self) -> Vec<u8> {
        std::mem::take(&mut self.output.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The domain, to look at.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    fn restart(&self) {
        if self.domain.reset().is_err() {
            // Somebody else is inside, which this type does not do: better no playground than a
            // dirty one.
            self.domain.close();
        }
    }

    fn finish(&self, status: Result<i32, CallError>) -> Result<(), ScriptError> {
        match status {
            Ok(0) | Err(CallError::Exited(0)) => Ok(()),
            Ok(_) => {
                let message = self.message.call()?;
                Err(ScriptError::Lua(
                    match self.domain.read_c_bytes(message, MESSAGE) {
                        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                        // Longer than is useful: its beginning.
                        Err(MemoryError::Unterminated { .. }) => {
                            let bytes = self.domain.read_vec(message, MESSAGE)?;
                            String::from_utf8_lossy(&bytes).into_owned() + "…"
                        }
                        Err(error) => return Err(error.into()),
                    },
                ))
            }
            Err(error) => Err(error.into()),
        }
    }
}
