//! The thread by which a process learns what others do with a domain that they have in common.
//!
//! It keeps neither the domain nor its seat; so it ends soon after the domain, and has nothing that
//! anybody waits for.

use super::memory::Memory;
use postern_gates::mask::SignalsBlocked;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// A look is taken as often, though nothing was told: at seats whose processes have ended.
const LONGEST: Duration = Duration::from_secs(1);

/// A thread's owner: it ends when this is dropped.
pub(crate) struct Watch {
    memory: Arc<Memory>,
    over: Arc<AtomicBool>,
}

impl Watch {
    /// Has `look` called at every event of the memory, and now and then, for as long as it returns
    /// true.
    pub(crate) fn begin(
        memory: &Arc<Memory>,
        look: impl Fn() -> bool + Send + 'static,
    ) -> std::io::Result<Watch> {
        let over = Arc::new(AtomicBool::new(false));
        let watch = Watch {
            memory: Arc::clone(memory),
            over: Arc::clone(&over),
        };
        let memory = Arc::clone(memory);
        let named = std::thread::Builder::new().name("postern-common".into());
        // It has them blocked from its first moment.
        let _signals = SignalsBlocked::new();
        named.spawn(move || {
            let header = &memory.header;
            loop {
                let seen = header.events();
                if over.load(SeqCst) || !look() {
                    return;
                }
                header.await_event(seen, LONGEST);
            }
        })?;
        Ok(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        self.memory.header.tell();
    }
}
