//! Handlers and routes whose files change are made again, while requests go on.

use crate::config::HandlerSettings;
use crate::log::Log;
use crate::program::BuildFolder;
use crate::router::Router;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often is looked.
const EVERY: Duration = Duration::from_millis(500);

/// What a file looked like: gone, or its size and time.
pub type FileStamp = (PathBuf, Option<(u64, SystemTime)>);

/// Watches for as long as it is polled.
pub async fn watch(router: Arc<Router>, log: Arc<Log>) {
    loop {
        tokio::time::sleep(EVERY).await;
        if let Some(routes) = router.routes().filter(|routes| routes.has_changed()) {
            let (routes, log) = (routes.clone(), log.clone());
            let work = tokio::task::spawn_blocking(move || match routes.reload() {
                Ok(()) => log.error(&format!("{}: reloaded", routes.name())),
                Err(error) => {
                    log.error(&format!("{error} (the former {} go on)", routes.name()));
                }
            });
            let _ = work.await;
        }
        for handler in router.handlers() {
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
pub fn sources(settings: &HandlerSettings) -> Vec<PathBuf> {
    let mut files = vec![settings.program.clone()];
    files.extend(settings.sources.iter().cloned());
    if BuildFolder::is_source(&settings.program) {
        let folder = settings.program.parent().unwrap_or(Path::new("."));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let headers = entries.map(|entry| entry.path());
        files.extend(headers.filter(|path| path.extension().is_some_and(|e| e == "h")));
    }
    files.sort();
    files
}

/// What files look like now.
pub fn stamps(files: Vec<PathBuf>) -> Vec<FileStamp> {
    let stamp = |path: PathBuf| {
        let found = std::fs::metadata(&path).ok();
        let found = found.and_then(|found| Some((found.len(), found.modified().ok()?)));
        (path, found)
    };
    files.into_iter().map(stamp).collect()
}
