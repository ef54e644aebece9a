//! Domains: images in windows, with what they are given.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use postern_gates::block::{Block, Terms};
use postern_gates::bulk::Function;
use postern_gates::call_state::CallPhase;
use postern_gates::callee::{Callee, ServiceTable};
use postern_gates::control::Control;
use postern_gates::enter;
use postern_gates::entry::Manner;
use postern_gates::gate::STATUS_OK;
use postern_gates::lifecycle::Phase;
use postern_gates::outcome::RawFault;
use postern_gates::peer::Peer;
use postern_gates::shim::DEFAULT_STACK;
use postern_gates::thread;
use postern_gates::window::Window;
use postern_image::{ImportOwned, Signature, Type};
use postern_verifier::window::{LIMIT, PAGE};

use super::fault::Fault;
use super::image::Image;
use super::{ExtensionError, engine, trusted};

/// Bytes of heap where neither host nor image say otherwise.
const HEAP: u64 = 1 << 20;
/// Nanoseconds of a call where the host does not say otherwise.
const DEADLINE: u64 = 1_000_000_000;

/// What a domain is given.
#[derive(Clone)]
pub struct Options {
    /// What faults call it; `None`: the image's number.
    pub name: Option<String>,
    /// Bytes of heap; `None` takes the image's wish.
    pub heap: Option<u64>,
    /// Bytes of an area that both host and extension read and write.
    pub area: u32,
    /// Longest time of a call in nanoseconds; 0 is none.
    pub deadline: u64,
    /// Deepest nesting of calls inside; 0 is as deep as the stack.
    pub call_depth: u64,
    services: Vec<Service>,
    peers: Vec<(String, Option<Bound>)>,
}

/// A function of another domain, with the longest time of a call and the stack that it finds.
#[derive(Clone)]
struct Bound {
    domain: Domain,
    export: String,
    limit: u64,
    stack: u64,
}

#[derive(Clone)]
struct Service {
    name: String,
    callee: Callee,
    signature: Signature,
    stack: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            name: None,
            heap: None,
            area: 0,
            deadline: DEADLINE,
            call_depth: 0,
            services: Vec::new(),
            peers: Vec::new(),
        }
    }
}

impl Options {
    /// Grants a service; [`super::service`] makes callees of C functions.
    pub fn service(&mut self, name: &str, callee: Callee, signature: Signature, stack: usize) {
        self.services.retain(|service| service.name != name);
        self.services.push(Service {
            name: name.to_owned(),
            callee,
            signature,
            stack,
        });
    }

    /// Grants an import that is a function which another domain exports; one call takes at most so
    /// many nanoseconds (0: what its deadline allows) and finds so many bytes of control stack.
    pub fn peer(&mut self, import: &str, to: &Domain, export: &str, limit: u64, stack: u64) {
        let bound = Bound {
            domain: to.clone(),
            export: export.to_owned(),
            limit,
            stack,
        };
        self.peers.retain(|(name, _)| name != import);
        self.peers.push((import.to_owned(), Some(bound)));
    }

    /// Leaves an import open for [`Domain::bind_peer`].
    pub fn peer_open(&mut self, import: &str) {
        self.peers.retain(|(name, _)| name != import);
        self.peers.push((import.to_owned(), None));
    }
}

/// An image in a window. Clones are the same domain, which closes with the last one.
#[derive(Clone)]
pub struct Domain(Arc<Handle>);

/// The last handle closes it.
struct Handle(Arc<Inner>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.block.lifecycle().close();
        engine::remove(&self.0.block);
    }
}

pub(super) struct Inner {
    name: String,
    image: Arc<Image>,
    pub(super) block: Block,
    pub(super) window: Arc<Window>,
}

impl Inner {
    /// Where the thread's data stack begins.
    pub(super) fn data_stack(&self) -> u32 {
        self.image.tables.layout.data - self.image.reserved
    }

    /// A string of the extension's, as far as it can be read.
    pub(super) fn string(&self, offset: u32) -> Option<String> {
        const MOST: u32 = 256;
        let mut bytes = Vec::new();
        for at in offset..offset.saturating_add(MOST) {
            let mut byte = [0];
            match self.window.read(at, &mut byte) {
                true if byte != [0] => bytes.extend(byte),
                _ => break,
            }
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn fault(&self, raw: &RawFault, words: Option<String>) -> Fault {
        Fault::new(&self.image, &self.window, &self.name, raw, words)
    }
}

/// Whether a function of type `found` can be called as `wanted`: the same classes and widths; signs
/// do not matter to registers of 32 bits and more, and a caller may ignore a result.
fn compatible(found: &Signature, wanted: &Signature) -> bool {
    let offset = |t: Type| matches!(t, Type::Pointer | Type::U32);
    let same = |a: Type, b: Type| {
        a == b
            || (a.is_integer() && b.is_integer() && a.size() == b.size() && a.size() >= 4)
            || (offset(a) && offset(b))
    };
    let results = match (found.result(), wanted.result()) {
        (_, None) => true,
        (Some(a), Some(b)) => same(a, b),
        (None, Some(_)) => false,
    };
    let mut pairs = found.parameters().iter().zip(wanted.parameters());
    results
        && found.parameters().len() == wanted.parameters().len()
        && pairs.all(|(&a, &b)| same(a, b))
}

/// What an import leads to.
fn callee(
    import: &ImportOwned,
    options: &Options,
    facts: u32,
) -> Result<(Callee, usize, Option<Type>), ExtensionError> {
    let name = &*import.name;
    if let Some(service) = options.services.iter().find(|service| service.name == name) {
        let suits = import
            .signature
            .is_none_or(|s| compatible(&service.signature, &s));
        return match suits {
            true => Ok((
                service.callee.clone(),
                service.stack,
                service.signature.result(),
            )),
            false => Err(ExtensionError::Signature(name.to_owned())),
        };
    }
    if let Some((_, bound)) = options.peers.iter().find(|(peer, _)| peer == name) {
        let Some(bound) = bound else {
            return Ok((Callee::peer(Peer::open(), ()), 0, None));
        };
        let wanted = import
            .signature
            .ok_or(ExtensionError::Signature(name.to_owned()))?;
        let (peer, result) =
            bound
                .domain
                .as_peer(&bound.export, &wanted, facts, bound.limit, bound.stack)?;
        return Ok((Callee::peer(peer, bound.domain.0.0.clone()), 0, result));
    }
    if Function::of(name).is_some() {
        return Ok((trusted::unreached(), DEFAULT_STACK, None));
    }
    match trusted::builtin(name) {
        Some((callee, result)) => Ok((callee, DEFAULT_STACK, result)),
        None => Err(ExtensionError::Unresolved(name.to_owned())),
    }
}

impl Domain {
    /// Makes a domain of an image.
    ///
    /// # Errors
    /// An import is not provided or has other types, there is no memory, or its constructors did
    /// not return.
    pub fn new(image: &Arc<Image>, options: &Options) -> Result<Domain, ExtensionError> {
        let layout = &image.tables.layout;
        let wish = image.tables.header.heap_wish;
        let heap = options.heap.unwrap_or(if wish == 0 { HEAP } else { wish });
        let pages = heap.div_ceil(PAGE.into()).saturating_mul(PAGE.into());
        let heap_end = u64::from(layout.heap_start).saturating_add(pages);
        if heap_end > u64::from(LIMIT) {
            return Err(ExtensionError::Limit);
        }
        let facts = image.facts;
        let own = postern_gates::gate::fact_bits(image.text.facts()) | facts;
        let imports = image.tables.imports.iter();
        let callees = imports
            .map(|import| callee(import, options, own))
            .collect::<Result<Vec<_>, _>>()?;
        let table = callees
            .iter()
            .map(|(callee, stack, result)| (callee, *stack, *result));
        let services = ServiceTable::new(table);
        let area = options.area.checked_next_multiple_of(PAGE);
        let area = area.ok_or(ExtensionError::Limit)?;
        let window = Arc::new(Window::furnish(&image.text, heap_end as u32, area)?);
        let block = Block::take()?;
        let terms = Terms {
            facts,
            deadline: options.deadline,
            call_depth: options.call_depth,
        };
        block.open(&image.text, services, &window, &terms)?;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Relaxed);
        let name = options.name.clone();
        let inner = Arc::new(Inner {
            name: name.unwrap_or_else(|| format!("extension#{number}")),
            image: image.clone(),
            block,
            window,
        });
        engine::add(&inner);
        let domain = Domain(Arc::new(Handle(inner)));
        match domain.construct(false) {
            true => Ok(domain),
            false => Err(ExtensionError::Constructors),
        }
    }

    /// Runs the image's constructors, if it has any. Whether they returned.
    fn construct(&self, exclusive: bool) -> bool {
        let inner = &self.0.0;
        let Some(export) = inner.image.tables.export("__postern_init") else {
            return true;
        };
        let Ok(nothing) = Signature::new(None, &[]) else {
            return false;
        };
        let entry = inner
            .block
            .entry(export.offset, &nothing, Manner::default());
        let entry = if exclusive {
            entry.in_exclusive()
        } else {
            entry
        };
        enter::all(&entry, [0; 6], [0; 8], &[]).status == STATUS_OK
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.0.name
    }

    /// Whether a fault closed it until [`Domain::reset`].
    pub fn poisoned(&self) -> bool {
        self.control().lifecycle().now() == Phase::Poisoned
    }

    pub(crate) fn control(&self) -> &Control {
        &self.0.0.block
    }

    /// Calls that entered.
    pub fn calls(&self) -> u64 {
        self.control().calls()
    }

    /// Back to the image's first state; forgets the fault that closed it.
    ///
    /// # Errors
    /// A call is inside; there is no memory; its constructors did not return.
    pub fn reset(&self) -> Result<(), ExtensionError> {
        let inner = &self.0.0;
        let inside = thread::own_phase() != CallPhase::Outside && thread::is_inside(&inner.block);
        let exclusive = match inside {
            true => None,
            false => inner.block.lifecycle().begin_exclusive(None),
        };
        let exclusive = exclusive.ok_or(ExtensionError::Busy)?;
        inner.block.take_my_data_stack();
        let refreshed = inner.window.refresh(&inner.image.text);
        let begun = refreshed.is_ok() && self.construct(true);
        exclusive.end(if begun { Phase::Open } else { Phase::Poisoned });
        refreshed?;
        match begun {
            true => Ok(()),
            false => Err(ExtensionError::Constructors),
        }
    }

    /// A C function pointer to an export that is called by this signature.
    ///
    /// # Errors
    /// There is none of this name, or the file claims other types.
    pub fn symbol(&self, name: &str, signature: &Signature) -> Result<usize, ExtensionError> {
        let offset = self.export(name, signature)?;
        self.symbol_at(offset, signature)
    }

    /// The same for a function pointer that came from the extension.
    ///
    /// # Errors
    /// No function of the image's begins there.
    pub fn symbol_at(&self, offset: u32, signature: &Signature) -> Result<usize, ExtensionError> {
        let block = &self.0.0.block;
        if !block.is_start(offset) {
            return Err(ExtensionError::Missing(format!("{offset:#x}")));
        }
        let entry = block.entry(offset, signature, Manner::default());
        Ok(block.pointer(entry.for_c(signature.result()))?)
    }

    /// Calls an export with integers.
    ///
    /// # Errors
    /// As [`Domain::symbol`]; `Ok(None)`: it did not return.
    pub fn call(
        &self,
        name: &str,
        signature: &Signature,
        arguments: [u64; 6],
    ) -> Result<Option<u64>, ExtensionError> {
        let offset = self.export(name, signature)?;
        let entry = self.0.0.block.entry(offset, signature, Manner::default());
        let returned = enter::all(&entry, arguments, [0; 8], &[]);
        Ok((returned.status == STATUS_OK).then_some(returned.integer))
    }

    fn export(&self, name: &str, wanted: &Signature) -> Result<u32, ExtensionError> {
        let export = self.0.0.image.tables.export(name);
        let export = export.ok_or_else(|| ExtensionError::Missing(name.to_string()))?;
        match export
            .signature
            .is_none_or(|found| compatible(&found, wanted))
        {
            true => Ok(export.offset),
            false => Err(ExtensionError::Signature(name.to_string())),
        }
    }

    fn as_peer(
        &self,
        export: &str,
        wanted: &Signature,
        facts: u32,
        limit: u64,
        stack: u64,
    ) -> Result<(Peer, Option<Type>), ExtensionError> {
        let offset = self.export(export, wanted)?;
        let stack = if stack == 0 {
            DEFAULT_STACK as u64
        } else {
            stack
        };
        let peer = Peer::new(&self.0.0.block, offset, wanted, facts, limit, stack);
        Ok((peer, wanted.result()))
    }

    /// Binds an import that a peer serves, for calls that begin from now on.
    ///
    /// # Errors
    /// There is no such import or export, or their types differ.
    pub fn bind_peer(
        &self,
        import: &str,
        to: &Domain,
        export: &str,
        limit: u64,
        stack: u64,
    ) -> Result<(), ExtensionError> {
        let inner = &self.0.0;
        let imports = &inner.image.tables.imports;
        let number = imports.iter().position(|known| &*known.name == import);
        let number = number.ok_or_else(|| ExtensionError::Missing(import.to_string()))?;
        let wanted = imports[number].signature;
        let wanted = wanted.ok_or_else(|| ExtensionError::Signature(import.to_string()))?;
        let (peer, _) = to.as_peer(export, &wanted, inner.block.facts(), limit, stack)?;
        Ok(inner.block.bind(number, peer)?)
    }

    /// Where the area is that was asked for.
    pub fn area(&self) -> core::ops::Range<u32> {
        self.0.0.window.area()
    }

    /// Copies into the domain. False if not all of the range may be written.
    pub fn write(&self, offset: u32, from: &[u8]) -> bool {
        self.0.0.window.write(offset, from)
    }

    /// Copies out of the domain. False if not all of the range is there.
    pub fn read(&self, offset: u32, to: &mut [u8]) -> bool {
        self.0.0.window.read(offset, to)
    }
}
