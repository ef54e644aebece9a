//! A namespace with the plugins of one owner, and the areas in which its pictures lie.

use crate::area::PictureArea;
use crate::config::Quotas;
use crate::mappings::MappingBudget;
use crate::problem::Problem;
use crate::source::function;
use crate::trusted::Unconfined;
use http::StatusCode;
use postern::{
    CallError, Domain, Func, Image, Namespace, NamespaceBuilder, NamespaceError, Offset, Placement,
    Recovery, RestartPolicy, Room, SymbolError,
};
use postern_server::{RegisteredDomain, Registry};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of areas that all hosts together keep for their next pictures.
const KEPT: usize = 64 << 20;
/// A larger one is not worth it: its picture takes longer than making another.
const KEPT_EACH: usize = 16 << 20;

/// A plugin's function, as C has it: `int NAME(struct picture *)`.
type PluginFunction = fn(Offset) -> i32;

/// What a plugin is called by.
#[derive(Clone)]
pub enum PluginEntry {
    /// A function of a namespace.
    Confined(Arc<Func<PluginFunction>>),
    /// One of a shared object.
    Native(Unconfined),
}

impl PluginEntry {
    /// Calls it with the structure at the beginning of an area, in which [`PictureArea::describe`]
    /// wrote it for this call.
    ///
    /// # Errors
    /// It did not return.
    pub fn call(&self, area: &PictureArea) -> Result<i32, CallError> {
        match self {
            PluginEntry::Confined(function) => function.call(area.shared().offset()),
            PluginEntry::Native(function) => Ok(function.call(area.shared())),
        }
    }
}

/// Where plugins run.
pub enum Isolation {
    /// In a namespace, with others.
    Namespace(Namespace),
    /// An image by itself.
    Image(Domain),
    /// Nowhere apart from the server.
    Native,
}

impl Isolation {
    /// The domain, if it is one.
    pub fn domain(&self) -> Option<&Domain> {
        match self {
            Isolation::Namespace(namespace) => Some(namespace.domain()),
            Isolation::Image(domain) => Some(domain),
            Isolation::Native => None,
        }
    }

    /// The namespace, if it is one.
    pub fn namespace(&self) -> Option<&Namespace> {
        match self {
            Isolation::Namespace(namespace) => Some(namespace),
            _ => None,
        }
    }
}

/// What all hosts of a server share.
pub struct HostContext {
    /// Bytes of areas that are kept for the next pictures.
    pub kept: AtomicUsize,
    /// Room for namespaces.
    pub mappings: MappingBudget,
    /// Where namespaces are shown.
    pub registry: Arc<Registry>,
}

/// What plugins run in, and areas that it sees.
pub struct PluginHost {
    /// It.
    pub isolation: Isolation,
    /// Shows it, and its calls.
    pub registered: Option<Arc<RegisteredDomain>>,
    areas: Mutex<Vec<PictureArea>>,
    context: Arc<HostContext>,
}

impl PluginHost {
    /// One with this isolation, and whose that is. The site's are few: they need not ask for room.
    pub fn new(isolation: Isolation, owner: &str, context: &Arc<HostContext>) -> PluginHost {
        let join = |domain: &Domain| context.registry.add(domain, "plugin", owner);
        PluginHost {
            registered: isolation.domain().map(join),
            isolation,
            areas: Mutex::default(),
            context: context.clone(),
        }
    }

    /// One of `owner` whose isolation is made for it, if there is room.
    ///
    /// # Errors
    /// There is none, or `make` fails.
    pub fn make(
        owner: &str,
        context: &Arc<HostContext>,
        make: impl FnOnce() -> Result<Isolation, Problem>,
    ) -> Result<PluginHost, Problem> {
        context.mappings.take().map_err(Problem::room)?;
        let isolation = make();
        if isolation.is_err() {
            context.mappings.give();
        }
        Ok(PluginHost::new(isolation?, owner, context))
    }

    /// An area for a picture of so many bytes, which this host sees.
    ///
    /// # Errors
    /// No room.
    pub fn area(&self, pixels: usize) -> Result<PictureArea, Problem> {
        let mut areas = self.areas.lock().unwrap_or_else(PoisonError::into_inner);
        let found = areas.iter().position(|area| area.fits(pixels));
        let found = found.map(|place| areas.swap_remove(place));
        drop(areas);
        let mut area = match found {
            Some(area) => {
                self.context.kept.fetch_sub(area.bytes(), Ordering::Relaxed);
                area
            }
            None => PictureArea::new(pixels).map_err(|e| Problem::room(e.to_string()))?,
        };
        let shown = area.show(self.isolation.domain());
        shown.map_err(|e| Problem::room(e.to_string()))?;
        Ok(area)
    }

    /// Keeps an area for the next picture, if not too much is kept already. A smaller one goes for
    /// it.
    pub fn keep(&self, area: PictureArea) {
        let mut areas = self.areas.lock().unwrap_or_else(PoisonError::into_inner);
        let most = areas.iter().map(PictureArea::bytes).max();
        if area.bytes() > KEPT_EACH || most.is_some_and(|most| most >= area.bytes()) {
            return;
        }
        let kept = self.context.kept.fetch_add(area.bytes(), Ordering::Relaxed);
        if kept + area.bytes() > KEPT {
            self.context.kept.fetch_sub(area.bytes(), Ordering::Relaxed);
            return;
        }
        let smaller = std::mem::replace(&mut *areas, vec![area]);
        drop(areas);
        let bytes: usize = smaller.iter().map(PictureArea::bytes).sum();
        self.context.kept.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether two are one.
    pub fn is(&self, other: &PluginHost) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Drop for PluginHost {
    fn drop(&mut self) {
        let areas = self.areas.get_mut().unwrap_or_else(PoisonError::into_inner);
        let bytes: usize = areas.iter().map(PictureArea::bytes).sum();
        self.context.kept.fetch_sub(bytes, Ordering::Relaxed);
        if self.isolation.domain().is_some() {
            self.context.mappings.give();
        }
    }
}

/// Begins a namespace of this name with these quotas.
pub fn namespace(name: &str, quotas: &Quotas, call: Duration) -> NamespaceBuilder {
    let mut room = Room::default();
    let functions = quotas.plugins.saturating_mul(16);
    room.functions = u32::try_from(functions).unwrap_or(u32::MAX).min(4096);
    room.code = quotas.code_bytes;
    room.constants = quotas.code_bytes;
    room.variables = quotas.memory_bytes;
    Namespace::builder()
        .name(name)
        .room(room)
        .quantum(Some(call))
        .recovery(Recovery::Restart)
        // E-code has none.
        .domain(|domain| domain.heap(4096))
}

/// A domain of an image, with these quotas.
///
/// # Errors
/// It wants more than it is given, or there is no room.
pub fn image(
    image: &Image,
    name: &str,
    quotas: &Quotas,
    call: Duration,
) -> Result<Domain, Problem> {
    let builder = Domain::builder(image)
        .name(name)
        .deadline(Some(call))
        .heap(quotas.memory_bytes)
        .restart(RestartPolicy::Immediate)
        .placement(Placement::Cold);
    Ok(builder.build().map_err(NamespaceError::from)?)
}

/// The entry of a plugin; none if there is no function of its name.
///
/// # Errors
/// The function is one of other types.
pub fn entry(isolation: &Isolation, name: &str) -> Result<Option<PluginEntry>, Problem> {
    let wanted = function(name);
    let found = match isolation {
        Isolation::Namespace(namespace) => namespace.func::<PluginFunction>(&wanted),
        Isolation::Image(domain) => domain.func::<PluginFunction>(&wanted),
        Isolation::Native => return Ok(None),
    };
    match found {
        Ok(function) => Ok(Some(PluginEntry::Confined(Arc::new(function)))),
        Err(SymbolError::Missing { .. }) => Ok(None),
        Err(error) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("{error}; a plugin's function is `int {wanted}(struct picture *)`"),
        )),
    }
}
