//! Handlers and routes whose files change are made again, and those of a folder come and go with
//! it, while requests go on.

use crate::config::Site;
use crate::file_stamp::{FileStamp, stamps};
use crate::log::Log;
use crate::program;
use crate::router::Router;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// How often is looked.
const EVERY: Duration = Duration::from_millis(500);

/// Watches for as long as it is polled. `discovered` is the site if its handlers are what its
/// folder has.
pub async fn watch(router: Arc<Router>, log: Arc<Log>, discovered: Option<Site>) {
    // Those that could not be built, as they were then.
    let mut broken = HashMap::new();
    loop {
        tokio::time::sleep(EVERY).await;
        if let Some(site) = &discovered {
            let (router, log, site) = (router.clone(), log.clone(), site.clone());
            let work = spawn_blocking(move || {
                discover(&router, &log, &site, &mut broken);
                broken
            });
            broken = work.await.unwrap_or_default();
        }
        if let Some(routes) = router.routes().filter(|routes| routes.has_changed()) {
            let (routes, log) = (routes.clone(), log.clone());
            let work = spawn_blocking(move || match routes.reload() {
                Ok(()) => log.error(&format!("{}: reloaded", routes.name())),
                Err(error) => {
                    log.error(&format!("{error} (the former {} go on)", routes.name()));
                }
            });
            let _ = work.await;
        }
        for handler in &*router.handlers() {
            if !handler.has_changed() {
                continue;
            }
            let (handler, log) = (handler.clone(), log.clone());
            let work = spawn_blocking(move || match handler.reload() {
                Ok(()) => log.error(&format!("{}: reloaded", handler.settings().path)),
                Err(error) => log.error(&format!("{error} (the former program goes on)")),
            });
            // One at a time; a compiler that panics is a bug, and the next change another chance.
            let _ = work.await;
        }
    }
}

/// Looks into the folder for handlers that came or went.
fn discover(router: &Router, log: &Log, site: &Site, broken: &mut HashMap<String, Vec<FileStamp>>) {
    // A folder that cannot be read now is no reason to end all.
    let Ok(found) = Site::load(&site.folder, site.components) else {
        return;
    };
    let found = if found.discovered {
        found.handlers
    } else {
        return;
    };
    for handler in &*router.handlers() {
        let path = &handler.settings().path;
        if !found.iter().any(|settings| settings.path == *path) {
            router.remove(path);
            log.error(&format!("{path}: gone"));
        }
    }
    broken.retain(|path, _| found.iter().any(|settings| settings.path == *path));
    let handlers = router.handlers();
    for settings in &found {
        if handlers.iter().any(|h| h.settings().path == settings.path) {
            continue;
        }
        let seen = stamps(program::sources(settings));
        if broken.get(&settings.path) == Some(&seen) {
            continue;
        }
        match router.add(settings) {
            Ok(()) => log.error(&format!("{}: new", settings.path)),
            Err(error) => {
                log.error(&format!("{error} (it is not served)"));
                broken.insert(settings.path.clone(), seen);
            }
        }
    }
}
