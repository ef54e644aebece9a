//! All plugins, and who works with them.

use crate::client::{Client, Clients};
use crate::config::PluginSettings;
use crate::mappings::MappingBudget;
use crate::measure::measure;
use crate::memory::{MemoryBudget, Received};
use crate::pipeline::{self, PictureCounters, Stage, Transcoded};
use crate::plugin_host::HostContext;
use crate::problem::Problem;
use crate::query::Query;
use crate::queue::{Asker, FairQueue};
use crate::site::{self, Lease, SitePlugins};
use crate::source::function;
use crate::thread_pool::ThreadPool;
use crate::trusted::give_back_freed;
use bytes::Bytes;
use http::StatusCode;
use postern_server::{Counters, FileStamp, Log, Party, RouteContext, Timeouts, stamps};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a picture's work behind which freed memory goes back to the system.
const LARGE: usize = 8 << 20;
/// Guests that end at most for one request.
const ENDED: usize = 4;

/// Those of a site and of its clients.
pub struct Plugins {
    /// As the site's file has them.
    pub settings: PluginSettings,
    /// Those who bring plugins.
    pub clients: Clients,
    /// Whose turn it is.
    pub queue: Arc<FairQueue>,
    /// What pictures may take together.
    pub memory: Arc<MemoryBudget>,
    /// Where they are worked on.
    pub threads: ThreadPool,
    /// How fast bodies must come.
    pub body: Timeouts,
    /// What namespaces share.
    pub context: Arc<HostContext>,
    /// What became of pictures.
    pub pictures: PictureCounters,
    /// Answers.
    pub counters: Arc<Counters>,
    /// For files that are made on the way.
    folder: PathBuf,
    site: Mutex<Arc<SitePlugins>>,
    log: Arc<Log>,
    /// What the site's sources looked like before they were read last.
    seen: Mutex<Vec<FileStamp>>,
    /// Whether the operator heard that guests end because there is no room for others.
    told: AtomicBool,
}

impl Plugins {
    /// Reads the site's plugins and makes what runs them.
    ///
    /// # Errors
    /// One of them is wrong, or there is no room; the text has the file and the place.
    pub fn new(settings: &PluginSettings, lent: &RouteContext) -> Result<Plugins, String> {
        let context = Arc::new(HostContext {
            kept: AtomicUsize::new(0),
            mappings: MappingBudget::new(),
            registry: lent.registry.clone(),
        });
        let seen = stamps(sources(settings));
        let set = SitePlugins::read(settings, &context, &lent.folder).map_err(|e| e.to_string())?;
        Ok(Plugins {
            clients: Clients::new(settings),
            queue: FairQueue::new(settings.instances, settings.waiting, settings.wait),
            memory: MemoryBudget::new(settings.memory_bytes),
            folder: lent.folder.clone(),
            threads: ThreadPool::new(settings.instances).map_err(|e| e.to_string())?,
            body: lent.body,
            context,
            pictures: PictureCounters::default(),
            counters: Arc::default(),
            settings: settings.clone(),
            site: Mutex::new(set),
            log: lent.log.clone(),
            seen: Mutex::new(seen),
            told: AtomicBool::new(false),
        })
    }

    /// The site's own.
    pub fn site(&self) -> Arc<SitePlugins> {
        self.site
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn seen(&self) -> MutexGuard<'_, Vec<FileStamp>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the site's sources are not what they were when they were read.
    pub fn has_changed(&self) -> bool {
        *self.seen() != stamps(sources(&self.settings))
    }

    /// Reads the site's plugins again.
    ///
    /// # Errors
    /// One of them is wrong; the former ones go on.
    pub fn reload(&self) -> Result<(), String> {
        *self.seen() = stamps(sources(&self.settings));
        let set = SitePlugins::read(&self.settings, &self.context, &self.folder)
            .map_err(|e| e.to_string())?;
        *self.site.lock().unwrap_or_else(PoisonError::into_inner) = set;
        Ok(())
    }

    /// Passes a picture through plugins of a client and of the site.
    ///
    /// # Errors
    /// The picture is none, a plugin is not there or fails, or too many are asked for.
    pub async fn transcode(
        self: &Arc<Self>,
        client: Option<Arc<Client>>,
        query: Query,
        file: Received,
        asker: Asker,
    ) -> Result<Transcoded, Problem> {
        let request = client.as_ref().map(Client::enter).transpose()?;
        // One that does not say how large it is may be as large as may be.
        let most = self.settings.picture_bytes;
        let measure = measure(&file.bytes);
        let pixels = measure.map_or(most, |measure| measure.pixels).min(most);
        let decoded = measure.map_or(2 * most, |m| m.decoded).min(2 * most);
        let needed = pipeline::most(pixels, decoded);
        // Whose pixels lie in its file has no more than that.
        let held = if decoded == 0 { most } else { pixels };
        let party = asker.party.clone();
        let turn = self.queue.enter(asker).await.map_err(Problem::waited)?;
        let memory = self.memory.work(needed, self.settings.wait).await?;
        let plugins = self.clone();
        let work = move || {
            let (mut turn, _held) = (turn, (request, memory));
            let client = client.as_deref();
            let mut lying = plugins.memory.lay(&party);
            let result = plugins.with_room(|| plugins.work(client, &query, &file.bytes, held));
            drop(file);
            let result = result.and_then(|mut transcoded: Transcoded| {
                lying.grow(transcoded.body.len())?;
                transcoded.body = lying.hold(transcoded.body);
                Ok(transcoded)
            });
            if result.as_ref().is_err_and(Problem::is_late) {
                turn.was_late();
            }
            if needed >= LARGE {
                give_back_freed();
            }
            result
        };
        match self.threads.run(work).await {
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
        query: &Query,
        file: &Bytes,
        most: u64,
    ) -> Result<Transcoded, Problem> {
        let mut lease: Option<Lease> = None;
        let mut stages = Vec::new();
        for step in &query.steps {
            let installed = client.and_then(|client| client.find(&step.name));
            let (plugin, host, entry) = match installed {
                Some(installed) => (installed.plugin, installed.host, installed.entry),
                None => {
                    let set = self.site();
                    let plugin = set.plugins.get(&step.name).cloned();
                    let plugin = plugin.ok_or_else(|| {
                        Problem::missing(format!("there is no plugin `{}`", step.name))
                    })?;
                    let lease = match &mut lease {
                        Some(lease) => lease,
                        none => none.insert(set.lend()?),
                    };
                    let entry = lease.instance.entries.get(&step.name).cloned();
                    (plugin, lease.instance.host.clone(), entry)
                }
            };
            let entry = entry.ok_or_else(|| {
                let text = format!(
                    "`{}` has no function `int {}(struct picture *)`: it is a library for others",
                    step.name,
                    function(&step.name)
                );
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text)
            })?;
            stages.push(Stage {
                plugin,
                host,
                entry,
                arguments: step.arguments.clone(),
            });
        }
        let result = pipeline::transcode(file, &stages, query.format, most, &self.pictures);
        if let Err(problem) = &result {
            let counter = match problem.is_fault() {
                true => &self.pictures.faults,
                false => &self.pictures.refused,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            if problem.is_fault() {
                self.counters.fault();
            }
        }
        result
    }

    /// Does what may need room for a namespace or an area. Where there is none, the guests go that
    /// were here longest ago.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn with_room<T>(&self, work: impl Fn() -> Result<T, Problem>) -> Result<T, Problem> {
        for _ in 0..ENDED {
            match work() {
                Err(problem) if problem.is_room() && self.clients.end_oldest() => {
                    if !self.told.swap(true, Ordering::Relaxed) {
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

    /// Who a request is of, to the queue and the budget.
    pub fn asker(&self, client: Option<&Client>, from: IpAddr) -> Asker {
        let guest = client.is_some_and(|client| client.guest);
        Asker {
            party: match client.filter(|_| !guest) {
                Some(known) => Party::Known(known.name.clone()),
                None => Party::of(from),
            },
            client: client.map_or_else(String::new, |client| client.name.clone()),
        }
    }

    /// Tells the operator of what is not the client's doing, or is worth to be known.
    pub fn note(&self, client: Option<&Client>, problem: &Problem) {
        if let Some(id) = problem.id() {
            let who = client.map_or("site", |client| &client.name);
            self.log
                .error(&format!("plugins of {who}: id {id}: {}", problem.detail()));
        }
    }
}

/// The files that the site's plugins are made of.
fn sources(settings: &PluginSettings) -> Vec<PathBuf> {
    let folders = settings.folder.iter();
    folders.flat_map(|folder| site::sources(folder)).collect()
}
