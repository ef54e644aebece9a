//! What a domain may use.

use std::time::Duration;

/// What a domain may use. All have defaults that suit a request handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of heap; `None` takes the image's wish, or 64 MiB.
    pub heap: Option<u64>,
    /// Most bytes of heap, and of variables that begin as zero, that an image gets by its own wish,
    /// which is only its maker's word. `heap` is the host's and not bounded by it. Default: 256
    /// MiB.
    pub heap_ceiling: u64,
    /// Bytes of each data stack, rounded up to a power of two; `None` takes what the image was
    /// linked with. Other sizes than that are for images whose code finds the size in its window,
    /// which is all that `postern cc` and E-code make now. Default: `None`.
    pub data_stack: Option<u64>,
    /// Longest time of one call. `None` is no limit; `Some(Duration::ZERO)` is over at once, so
    /// whatever the watchdog sees inside is ended. Default: 1 s.
    pub deadline: Option<Duration>,
    /// Deepest nesting of calls inside the extension; `None` is as deep as the thread's own stack.
    pub call_depth: Option<u32>,
    /// Threads that may be inside from one reset to the next: who resets the domain is counted
    /// again when it comes back, others stay counted. Default: 4096.
    pub threads: u32,
    /// Threads that the extension may have started and that run at once: threads of the process,
    /// each with a stack there and a data stack in the window. Default: 0.
    pub own_threads: u32,
    /// Threads of the process that go on with handlers that wait, and call what the extension
    /// spawns: they are there as long as the domain, and count among `threads` like the data stacks
    /// of those handlers. Default: 0.
    pub sandbox_threads: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            heap: None,
            heap_ceiling: 256 << 20,
            data_stack: None,
            deadline: Some(Duration::from_secs(1)),
            call_depth: None,
            threads: 4096,
            own_threads: 0,
            sandbox_threads: 0,
        }
    }
}
