//! Plugins that clients of the web server bring by HTTP, the site's own, and pictures that pass
//! through them: after the server of Kernel Plugins (2004), section 6.3. And a page on which people
//! try them.
//!
//! Invariants:
//! - A client's plugins run in namespaces of that client alone; the site's in namespaces that one
//!   request at a time is in.
//! - Whatever is sent, and whatever a plugin does, has a bound: sizes, numbers, time, requests at
//!   once.
#![deny(unsafe_code)]

mod area;
mod client;
mod config;
mod listing;
mod mappings;
mod measure;
mod memory;
mod metrics;
mod page;
mod picture;
mod pipeline;
mod plugin;
mod plugin_host;
mod plugins;
mod problem;
mod query;
mod queue;
mod routes;
mod site;
mod source;
mod thread_pool;
#[allow(unsafe_code)]
mod trusted;

pub use page::serve as serve_page;
pub use source::PICTURE_H;

use config::PluginSettings;
use plugins::Plugins;
use postern_server::{Checker, ConfigError, RouteContext, RouteSettings, Routes};
use std::sync::Arc;

/// What the plugins are called in the site's file, in logs and in metrics.
const NAME: &str = "plugins";

/// The plugins of the example's site: names of files, and sources.
pub const SITE_PLUGINS: [(&str, &str); 7] = [
    (
        "deflate.c",
        include_str!("../../examples/site/plugins/deflate.c"),
    ),
    ("gray.c", include_str!("../../examples/site/plugins/gray.c")),
    (
        "quantise.c",
        include_str!("../../examples/site/plugins/quantise.c"),
    ),
    ("roi.c", include_str!("../../examples/site/plugins/roi.c")),
    (
        "scale.c",
        include_str!("../../examples/site/plugins/scale.c"),
    ),
    (
        "scale2.c",
        include_str!("../../examples/site/plugins/scale2.c"),
    ),
    (
        "sharpen.c",
        include_str!("../../examples/site/plugins/sharpen.c"),
    ),
];

/// Reads `[plugins]` of a site's file: for [`postern_server::Components::plugins`].
///
/// # Errors
/// See [`ConfigError`].
pub fn read(checker: &Checker<'_>, workers: usize) -> Result<Arc<dyn RouteSettings>, ConfigError> {
    Ok(Arc::new(PluginSettings::read(checker, workers)?))
}

impl RouteSettings for PluginSettings {
    fn start(&self, context: &RouteContext) -> Result<Arc<dyn Routes>, String> {
        Ok(Arc::new(Plugins::new(self, context)?))
    }

    fn name(&self) -> &'static str {
        NAME
    }
}
