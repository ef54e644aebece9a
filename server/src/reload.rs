//! Handlers and routes whose files change are made again, while requests go on.

use crate::log::Log;
use crate::router::Router;
use std::sync::Arc;
use std::time::Duration;

/// How often is looked.
const EVERY: Duration = Duration::from_millis(500);

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
