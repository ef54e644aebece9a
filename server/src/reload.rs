//! Handlers and plugins whose files change are built again, while requests go on.

use crate::log::Log;
use crate::service::Service;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often is looked.
const EVERY: Duration = Duration::from_millis(500);

/// What a file looked like: gone, or its size and time.
pub type Look = (PathBuf, Option<(u64, SystemTime)>);

/// Watches for as long as it is polled.
pub async fn watch(service: Arc<Service>, log: Arc<Log>) {
    let mut looks: Vec<Vec<Look>> = service
        .handlers()
        .iter()
        .map(|handler| look(handler.files()))
        .collect();
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
        for (handler, seen) in service.handlers().iter().zip(&mut looks) {
            let now = look(handler.files());
            if now == *seen {
                continue;
            }
            *seen = now;
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

/// What files look like now.
pub fn look(files: Vec<PathBuf>) -> Vec<Look> {
    let look = |path: PathBuf| {
        let found = std::fs::metadata(&path).ok();
        let found = found.and_then(|found| Some((found.len(), found.modified().ok()?)));
        (path, found)
    };
    files.into_iter().map(look).collect()
}
