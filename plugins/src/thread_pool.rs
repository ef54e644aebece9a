//! Threads that do what takes long: decoding, compiling, calls of plugins. They are as many as
//! pictures are worked on at a time, and live as long as the server: each that was in a namespace
//! has a stack there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// The threads. They end with the last of it.
pub struct ThreadPool(Mutex<Sender<Job>>);

impl ThreadPool {
    /// So many threads.
    ///
    /// # Errors
    /// The system makes none.
    pub fn new(threads: usize) -> std::io::Result<ThreadPool> {
        let (sender, receiver) = channel();
        let receiver: Arc<Mutex<Receiver<Job>>> = Arc::new(Mutex::new(receiver));
        for _ in 0..threads {
            let receiver = receiver.clone();
            let work = move || {
                loop {
                    let job = receiver
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .recv();
                    match job {
                        // Whoever waits for it hears that nothing comes.
                        Ok(job) => drop(catch_unwind(AssertUnwindSafe(job))),
                        Err(_) => return,
                    }
                }
            };
            std::thread::Builder::new()
                .name("postern-plugins".to_owned())
                .spawn(work)?;
        }
        Ok(ThreadPool(Mutex::new(sender)))
    }

    /// Has something done; `None` if it panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move || drop(tell.send(work())));
        let sent = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send(job);
        sent.ok()?;
        told.await.ok()
    }
}
