//! Plugins that clients bring by HTTP, the site's own, and pictures that pass through them: after the server of Kernel Plugins (2004),
//! section 6.3.
//!
//! Invariants:
//! - A client's plugins run in namespaces of that client alone; the site's in namespaces that one request at a time is in.
//! - Whatever is sent, and whatever a plugin does, has a bound: sizes, numbers, time, requests at once.

mod area;
mod client;
mod crew;
mod face;
mod listing;
mod mappings;
mod metrics;
mod picture;
mod problem;
mod run;
mod site;
mod source;
mod space;
mod through;

pub use face::serves;
pub use source::PICTURE_H;
pub use through::asks;

use crate::config::PluginSettings;
use crate::failure::Failure;
use crate::gate::Gate;
use crate::log::Log;
use crate::metrics::Counted;
use crate::patience::Patience;
use crate::reload::{Look, look};
use crate::status::Roster;
use bytes::Bytes;
use client::{Client, Clients, Flying};
use crew::Crew;
use http::StatusCode;
use mappings::Mappings;
use problem::Problem;
use run::{Stage, Tally, Transcoded};
use site::{Loan, Set};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use through::Through;

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

/// Guests that end at most for one request.
const ENDED: usize = 4;

/// All plugins, and who works with them.
pub struct Plugins {
    settings: PluginSettings,
    clients: Clients,
    site: Mutex<Arc<Set>>,
    gate: Gate,
    crew: Crew,
    log: Arc<Log>,
    body_wait: Patience,
    common: Arc<Common>,
    tally: Arc<Tally>,
    /// What the site's sources looked like before they were read first.
    pub seen: Vec<Look>,
    /// Answers.
    pub counted: Arc<Counted>,
}

/// What all namespaces have in common.
struct Common {
    /// Bytes of areas that are kept for the next pictures.
    kept: AtomicUsize,
    /// Room for namespaces.
    mappings: Mappings,
    /// Whether the operator heard that guests end because there is no room for others.
    told: AtomicBool,
    /// Where namespaces are shown.
    roster: Arc<Roster>,
}

impl Plugins {
    /// Reads the site's plugins and makes what runs them.
    ///
    /// # Errors
    /// One of them is wrong, or there is no room; the text has the file and the place.
    pub fn new(
        settings: &PluginSettings,
        body_wait: Patience,
        roster: &Arc<Roster>,
        log: &Arc<Log>,
    ) -> Result<Plugins, String> {
        let common = Arc::new(Common {
            kept: AtomicUsize::new(0),
            mappings: Mappings::new(),
            told: AtomicBool::new(false),
            roster: roster.clone(),
        });
        let folder = settings.folder.iter();
        let seen = look(folder.flat_map(|folder| site::sources(folder)).collect());
        let set = Set::read(settings, &common).map_err(|e| e.to_string())?;
        Ok(Plugins {
            clients: Clients::new(settings),
            site: Mutex::new(set),
            gate: Gate::new(settings.instances, settings.waiting, settings.wait),
            crew: Crew::new(settings.instances).map_err(|e| e.to_string())?,
            seen,
            settings: settings.clone(),
            log: log.clone(),
            body_wait,
            common,
            tally: Arc::default(),
            counted: Arc::default(),
        })
    }

    fn site(&self) -> Arc<Set> {
        self.site
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The files that the site's plugins are made of.
    pub fn files(&self) -> Vec<PathBuf> {
        self.settings
            .folder
            .iter()
            .flat_map(|folder| site::sources(folder))
            .collect()
    }

    /// Reads the site's plugins again.
    ///
    /// # Errors
    /// One of them is wrong; the former ones go on.
    pub fn reload(&self) -> Result<(), String> {
        let set = Set::read(&self.settings, &self.common).map_err(|e| e.to_string())?;
        *self.site.lock().unwrap_or_else(PoisonError::into_inner) = set;
        Ok(())
    }

    /// Passes a picture through plugins of a client and of the site.
    async fn transcode(
        self: &Arc<Self>,
        client: Option<Arc<Client>>,
        through: Through,
        file: Bytes,
    ) -> Result<Transcoded, Problem> {
        let flying = client.as_ref().map(Client::enter).transpose()?;
        let permit = self.gate.enter().await.map_err(busy)?;
        let plugins = self.clone();
        let work = move || {
            let _held: (Option<Flying>, _) = (flying, permit);
            let client = client.as_deref();
            plugins.with_room(|| plugins.work(client, &through, &file))
        };
        match self.crew.run(work).await {
            Some(result) => result,
            None => Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server failed at this picture",
            )
            .with_id()),
        }
    }

    fn work(
        &self,
        client: Option<&Client>,
        through: &Through,
        file: &Bytes,
    ) -> Result<Transcoded, Problem> {
        let mut loan: Option<Loan> = None;
        let mut stages = Vec::new();
        for step in &through.steps {
            let held = client.and_then(|client| client.find(&step.name));
            let (plugin, space, entry) = match held {
                Some(held) => (held.plugin, held.space, held.entry),
                None => {
                    let set = self.site();
                    let plugin = set.plugins.get(&step.name).cloned();
                    let plugin = plugin.ok_or_else(|| {
                        Problem::missing(format!("there is no plugin `{}`", step.name))
                    })?;
                    let loan = match &mut loan {
                        Some(loan) => loan,
                        none => none.insert(set.lend()?),
                    };
                    let entry = loan.seat.entries.get(&step.name).cloned();
                    (plugin, loan.seat.space.clone(), entry)
                }
            };
            let entry = entry.ok_or_else(|| {
                let text = format!(
                    "`{}` has no function `int {}(struct picture *)`: it is a library for others",
                    step.name,
                    source::function(&step.name)
                );
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text)
            })?;
            stages.push(Stage {
                plugin,
                space,
                entry,
                arguments: step.arguments.clone(),
            });
        }
        let most = self.settings.picture_bytes;
        let result = run::transcode(file, &stages, through.format, most, &self.tally);
        if let Err(problem) = &result {
            let counter = match problem.is_fault() {
                true => &self.tally.faults,
                false => &self.tally.refused,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            if problem.is_fault() {
                self.counted.fault();
            }
        }
        result
    }

    /// Does what may need room for a namespace or an area. Where there is none, the guests go that were here longest ago.
    fn with_room<T>(&self, work: impl Fn() -> Result<T, Problem>) -> Result<T, Problem> {
        for _ in 0..ENDED {
            match work() {
                Err(problem) if problem.is_room() && self.clients.end_oldest() => {
                    if !self.common.told.swap(true, Ordering::Relaxed) {
                        let text = "the guest that was here longest ago ends";
                        self.log
                            .error(&format!("plugins: {} ({text})", problem.detail()));
                    }
                }
                result => return result,
            }
        }
        work()
    }

    /// Tells the operator of what is not the client's doing, or is worth to be known.
    fn note(&self, client: Option<&Client>, problem: &Problem) {
        if let Some(id) = problem.id() {
            let who = client.map_or("site", |client| &client.name);
            self.log
                .error(&format!("plugins of {who}: id {id}: {}", problem.detail()));
        }
    }
}

fn busy(failure: Failure) -> Problem {
    match failure {
        Failure::Full(waiting) => Problem::busy(format!("{waiting} pictures wait already")),
        Failure::Busy(time) => {
            Problem::busy(format!("all were busy with other pictures for {time:?}"))
        }
        other => other.into(),
    }
}
