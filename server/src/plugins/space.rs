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
    CallError, Func, Image, Namespace, NamespaceBuilder, Offset, Recovery, Room, SymbolError,
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

/// A namespace, and areas that it sees. Native plugins are in none.
pub struct Space {
    /// The namespace.
    pub namespace: Option<Namespace>,
    /// Shows it, and its calls.
    pub member: Option<Arc<Member>>,
    areas: Mutex<Vec<Area>>,
    common: Arc<Common>,
}

impl Space {
    /// One over a namespace, and whose that is.
    pub fn new(namespace: Option<Namespace>, owner: &str, common: &Arc<Common>) -> Space {
        let join = |n: &Namespace| common.roster.join(n.domain(), "plugin", owner);
        Space {
            member: namespace.as_ref().map(join),
            namespace,
            areas: Mutex::default(),
            common: common.clone(),
        }
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
        let shown = area.show(self.namespace.as_ref());
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
pub fn namespace(
    image: Option<&Image>,
    name: &str,
    quotas: &Quotas,
    call: Duration,
) -> NamespaceBuilder {
    let builder = match image {
        Some(image) => Namespace::over(image),
        None => Namespace::builder(),
    };
    let mut room = Room::default();
    let functions = quotas.plugins.saturating_mul(16);
    room.functions = u32::try_from(functions).unwrap_or(u32::MAX).min(4096);
    room.code = quotas.code_bytes;
    room.constants = quotas.code_bytes;
    room.variables = quotas.memory_bytes;
    let heap = match image {
        Some(_) => quotas.memory_bytes,
        // E-code has none.
        None => 4096,
    };
    builder
        .name(name)
        .room(room)
        .quantum(Some(call))
        .recovery(Recovery::Restart)
        .domain(move |domain| domain.heap(heap))
}

/// The entry of a plugin in a namespace; none if it has no function of its name.
///
/// # Errors
/// The function is one of other types.
pub fn entry(namespace: &Namespace, name: &str) -> Result<Option<Entry>, Problem> {
    match namespace.func::<Change>(&function(name)) {
        Ok(function) => Ok(Some(Entry::Confined(Arc::new(function)))),
        Err(SymbolError::Missing { .. }) => Ok(None),
        Err(error) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!(
                "{error}; a plugin's function is `int {}(struct picture *)`",
                function(name)
            ),
        )),
    }
}
