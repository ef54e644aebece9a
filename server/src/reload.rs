//! Handlers and plugins whose files change are built again, while requests go on.

use crate::config::Settings;
use crate::log::Log;
use crate::program::Workshop;
use crate::service::Service;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often is looked.
const EVERY: Duration = Duration::from_millis(500);

/// What a file looked like: gone, or its size and time.
pub type Look = (PathBuf, Option<(u64, SystemTime)>);

/// Watches for as long as it is polled.
pub async fn watch(service: Arc<Service>, log: Arc<Log>) {
    let mut plugins = service.plugins().map(|plugins| plugins.seen.clone());
    loop {
        tokio::time::sleep(EVERY).await;
        if let (Some(own), Some(seen)) = (service.plugins(), &mut plugins) {
            let now = look(own.files());
            if now != *seen {
                *seen = now;
                let (own, log) = (own.clone(), log.clone());
                let work = tokio::task::spawn_blocking(move || match own.reload() {
                    Ok(()) => log.error("plugins: reloaded"),
                    Err(error) => log.error(&format!("{error} (the former plugins go on)")),
                });
                let _ = work.await;
            }
        }
        for handler in service.handlers() {
            if !handler.has_changed() {
                continue;
            }
            let (handler, log) = (handler.clone(), log.clone());
            let work = tokio::task::spawn_blocking(move || match handler.reload() {
                Ok(()) => log.error(&format!("{}: reloaded", handler.settings().path)),
                Err(error) => log.error(&format!("{error} (the former program goes on)")),
            });
            // One at a time; a compiler that panics is a bug, and the next change another chance.
            let _ = work.await;
        }
    }
}

/// The files that a program is made of: its sources, and if it has some, the headers beside the first.
pub fn sources(settings: &Settings) -> Vec<PathBuf> {
    let mut files = vec![settings.program.clone()];
    files.extend(settings.sources.iter().cloned());
    if Workshop::is_source(&settings.program) {
        let folder = settings.program.parent().unwrap_or(Path::new("."));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let headers = entries.map(|entry| entry.path());
        files.extend(headers.filter(|path| path.extension().is_some_and(|e| e == "h")));
    }
    files.sort();
    files
}

/// What files look like now.
pub fn look(files: Vec<PathBuf>) -> Vec<Look> {
    let look = |path: PathBuf| {
        let found = std::fs::metadata(&path).ok();
        let found = found.and_then(|found| Some((found.len(), found.modified().ok()?)));
        (path, found)
    };
    files.into_iter().map(look).collect()
}
