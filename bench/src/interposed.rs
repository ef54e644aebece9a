//! Programs that stay as they are, while somebody sees their system calls: nginx, whose answers are
//! counted; a build and two interpreters, which are to print the same in about the time that they
//! take alone.

mod programs;
mod server;
mod under;

pub use server::{charts, possible};

use postern_figures::Measured;
use std::path::Path;

/// The figures.
pub fn figures(directory: &Path) -> Measured {
    let folder = directory.join("interposed");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let agent = under::agent(&folder)?;
    let mut figures = programs::figures(&folder, &agent)?;
    if possible() {
        figures.extend(server::figures(&folder, &agent)?);
    } else {
        eprintln!("interposed.nginx.* is left out: nginx and wrk are not both installed");
    }
    Ok(figures)
}
