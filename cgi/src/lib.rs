//! Programs of the web server in processes: CGI/1.1 (RFC 3875), a process for each request, and
//! FastCGI, processes that serve one request after the other. They are there to compare with, and
//! to come from.
//!
//! Invariant: no process that is started here outlives the server, however that ends.
#![deny(unsafe_code)]

mod child;
mod conversation;
mod fastcgi;
mod process;
mod response_writer;
#[allow(unsafe_code)]
mod trusted;

use child::Spawner;
use fastcgi::FastCgi;
use postern_server::{HandlerSettings, ProcessProgram, Processes, ProgramLog, Run};
use process::Process;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Prepares to start processes: for [`postern_server::Components::processes`].
///
/// # Errors
/// There are no more threads.
pub fn start() -> io::Result<Arc<dyn Processes>> {
    Ok(Arc::new(Backend(Spawner::new()?)))
}

struct Backend(Arc<Spawner>);

impl Processes for Backend {
    fn program(
        &self,
        settings: &Arc<HandlerSettings>,
        file: &Path,
        folder: &Path,
        log: &Arc<ProgramLog>,
    ) -> io::Result<Box<dyn ProcessProgram>> {
        let spawner = &self.0;
        Ok(match settings.run {
            Run::Fastcgi => {
                // Nobody else can enter it.
                let sockets = tempfile::Builder::new().prefix("run-").tempdir_in(folder)?;
                Box::new(FastCgi::new(settings, file, sockets, spawner, log))
            }
            _ => Box::new(Process::new(settings, file, spawner, log)),
        })
    }
}
