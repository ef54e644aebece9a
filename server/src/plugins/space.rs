//! A namespace with the plugins of one owner, and the areas in which its pictures lie.

use super::Common;
use super::area::Area;
use super::problem::Problem;
use super::source::{self, Kind, Made, function};
use crate::config::Quotas;
use crate::status::Member;
use crate::trusted::loaded::Unconfined;
use http::StatusCode;
use postern::{
    CallError, Domain, Func, Image, Namespace, NamespaceBuilder, NamespaceError, Offset, Placement,
    Recovery, RestartPolicy, Room, SymbolError,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of areas that all spaces together keep for their next pictures.
const KEPT: usize = 512 << 20;

/// A plugin's function, as C has it: `int NAME(struct picture *)`.
type Change = fn(Offset) -> i32;

/// What a plugin is called by.
#[derive(Clone)]
pub enum Entry {
    /// A function of a namespace.
    Confined(Arc<Func<Change>>),
    /// One of a shared object.
    Native(Unconfined),
}

impl Entry {
    /// Calls it with the place of the structure.
    ///
    /// # Errors
    /// It did not return.
    pub fn call(&self, place: u64) -> Result<i32, CallError> {
        match self {
            Entry::Confined(function) => function.call(Offset(place as u32)),
            Entry::Native(function) => Ok(function.call(place)),
        }
    }
}

/// Where plugins run.
pub enum Home {
    /// In a namespace, with others.
    Namespace(Namespace),
    /// An image by itself.
    Image(Domain),
    /// Nowhere apart from the server.
    Native,
}

impl Home {
    /// The domain, if it is one.
    pub fn domain(&self) -> Option<&Domain> {
        match self {
            Home::Namespace(namespace) => Some(namespace.domain()),
            Home::Image(domain) => Some(domain),
            Home::Native => None,
        }
    }

    /// The namespace, if it is one.
    pub fn namespace(&self) -> Option<&Namespace> {
        match self {
            Home::Namespace(namespace) => Some(namespace),
            _ => None,
        }
    }
}

/// What plugins run in, and areas that it sees.
pub struct Space {
    /// It.
    pub home: Home,
    /// Shows it, and its calls.
    pub member: Option<Arc<Member>>,
    areas: Mutex<Vec<Area>>,
    common: Arc<Common>,
}

impl Space {
    /// One with this home, and whose that is. The site's are few: they need not ask for room.
    pub fn new(home: Home, owner: &str, common: &Arc<Common>) -> Space {
        let join = |domain: &Domain| common.roster.join(domain, "plugin", owner);
        Space {
            member: home.domain().map(join),
            home,
            areas: Mutex::default(),
            common: common.clone(),
        }
    }

    /// One of `owner` whose home is made for it, if there is room.
    ///
    /// # Errors
    /// There is none, or `make` fails.
    pub fn make(
        owner: &str,
        common: &Arc<Common>,
        make: impl FnOnce() -> Result<Home, Problem>,
    ) -> Result<Space, Problem> {
        common.mappings.take().map_err(Problem::room)?;
        let made = make();
        if made.is_err() {
            common.mappings.give();
        }
        Ok(Space::new(made?, owner, common))
    }

    /// An area for a picture of so many bytes, which this space sees.
    ///
    /// # Errors
    /// No room.
    pub fn area(&self, pixels: usize) -> Result<Area, Problem> {
        let mut areas = self.areas.lock().unwrap_or_else(PoisonError::into_inner);
        let found = areas.iter().position(|area| area.fits(pixels));
        let found = found.map(|place| areas.swap_remove(place));
        drop(areas);
        let mut area = match found {
            Some(area) => {
                self.common.kept.fetch_sub(area.bytes(), Ordering::Relaxed);
                area
            }
            None => Area::new(pixels).map_err(|e| Problem::room(e.to_string()))?,
        };
        let shown = area.show(self.home.domain());
        shown.map_err(|e| Problem::room(e.to_string()))?;
        Ok(area)
    }

    /// Keeps an area for the next picture, if not too much is kept already. A smaller one goes for it.
    pub fn keep(&self, area: Area) {
        let mut areas = self.areas.lock().unwrap_or_else(PoisonError::into_inner);
        let most = areas.iter().map(Area::bytes).max();
        if most.is_some_and(|most| most >= area.bytes()) {
            return;
        }
        let kept = self.common.kept.fetch_add(area.bytes(), Ordering::Relaxed);
        if kept + area.bytes() > KEPT {
            self.common.kept.fetch_sub(area.bytes(), Ordering::Relaxed);
            return;
        }
        let smaller = std::mem::replace(&mut *areas, vec![area]);
        drop(areas);
        let bytes: usize = smaller.iter().map(Area::bytes).sum();
        self.common.kept.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether two are one.
    pub fn is(&self, other: &Space) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let areas = self.areas.get_mut().unwrap_or_else(PoisonError::into_inner);
        let bytes: usize = areas.iter().map(Area::bytes).sum();
        self.common.kept.fetch_sub(bytes, Ordering::Relaxed);
        if self.home.domain().is_some() {
            self.common.mappings.give();
        }
    }
}

/// A plugin, whoever's it is.
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub kind: Kind,
    /// What the client sent, if it is text.
    pub source: Option<String>,
    /// Bytes that were sent.
    pub bytes: usize,
    /// What came of it.
    pub made: Made,
    /// Calls.
    pub calls: AtomicU64,
    /// Calls that ended in a fault.
    pub faults: AtomicU64,
    /// Nanoseconds inside.
    pub busy: AtomicU64,
}

impl Plugin {
    /// A new one.
    pub fn new(name: &str, kind: Kind, sent: &[u8], made: Made) -> Plugin {
        Plugin {
            name: name.to_owned(),
            kind,
            source: match kind {
                Kind::Ecode | Kind::Native => Some(String::from_utf8_lossy(sent).into_owned()),
                _ => None,
            },
            bytes: sent.len(),
            made,
            calls: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        }
    }

    /// What clients are told of it.
    pub fn describe(&self, owner: &str) -> Value {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut value = json!({
            "name": self.name,
            "owner": owner,
            "kind": self.kind.name(),
            "compile_ns": self.made.compile_ns,
            "verify_ns": self.made.verify_ns,
            "source_bytes": self.bytes,
            "code_bytes": self.made.code_bytes,
            "functions": self.made.functions,
            "facts": self.made.facts,
            "calls": load(&self.calls),
            "faults": load(&self.faults),
            "busy_ns": load(&self.busy),
        });
        let parameters = self.source.as_deref().and_then(source::parameters);
        if let Some(parameters) = parameters {
            value["parameters"] = parameters.into();
        }
        value
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
pub fn entry(home: &Home, name: &str) -> Result<Option<Entry>, Problem> {
    let wanted = function(name);
    let found = match home {
        Home::Namespace(namespace) => namespace.func::<Change>(&wanted),
        Home::Image(domain) => domain.func::<Change>(&wanted),
        Home::Native => return Ok(None),
    };
    match found {
        Ok(function) => Ok(Some(Entry::Confined(Arc::new(function)))),
        Err(SymbolError::Missing { .. }) => Ok(None),
        Err(error) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("{error}; a plugin's function is `int {wanted}(struct picture *)`"),
        )),
    }
}
