//! Filters of packets: `pt_filter_…`.

use crate::boundary::{Out, Source, Text, TextTarget, User};
use crate::domain::{self, DomainKind, Opened};
use crate::failure::{self, Code, Failure};
use crate::handle::{Handle, kind};
use crate::object::Object;
use crate::source;
use postern::Offset;
use postern_filter::classifier::ClassifierError;
use postern_filter::{Databases, Error, Filter, Link, Loaded, Options};
use std::ffi::c_int;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A filter with what the C host holds of it.
pub struct Compiled {
    /// The engine's.
    pub filter: Filter,
    loaded: Loaded,
    /// Whoever has its room for packets.
    room: Object<()>,
    domain: Handle<DomainKind>,
}

kind!(FilterKind: Arc<Compiled>, b'F', "pt_filter");

impl From<ClassifierError> for Failure {
    fn from(error: ClassifierError) -> Failure {
        match error.call {
            Some(call) => call.into(),
            None => Failure::new(Code::Limit, error.to_string()),
        }
    }
}

fn wrong(error: &Error, message: String, at: Out<'_, u64>) -> Failure {
    at.put(error.at.start as u64);
    Failure::new(Code::Source, message)
}

fn make(filter: Filter) -> Result<Handle<FilterKind>, Failure> {
    let loaded = filter.code().load(true)?;
    let domain = domain::enter(Arc::new(Opened::new(
        loaded.domain().clone(),
        User::default(),
    )));
    Ok(Handle::make(Arc::new(Compiled {
        filter,
        loaded,
        room: Object::default(),
        domain,
    })))
}

/// `pt_filter_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_new(expression: Text<'_>, at: Out<'_, u64>) -> Handle<FilterKind> {
    failure::or(Handle::NULL, || {
        let source = expression.get("expression")?;
        let filter = Filter::compile(source, &Databases::system());
        make(filter.map_err(|error| wrong(&error, error.show(source), at))?)
    })
}

/// `pt_filter_new_with`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_new_with(
    expression: Text<'_>,
    netmask: Text<'_>,
    snaplen: u32,
    at: Out<'_, u64>,
) -> Handle<FilterKind> {
    failure::or(Handle::NULL, || {
        compile(expression, Link::Ethernet, netmask, snaplen, at)
    })
}

/// `pt_filter_new_for`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_new_for(
    expression: Text<'_>,
    link: c_int,
    netmask: Text<'_>,
    snaplen: u32,
    at: Out<'_, u64>,
) -> Handle<FilterKind> {
    failure::or(Handle::NULL, || {
        let link = source::link(link.into())?;
        compile(expression, link, netmask, snaplen, at)
    })
}

fn compile(
    expression: Text<'_>,
    link: Link,
    netmask: Text<'_>,
    snaplen: u32,
    at: Out<'_, u64>,
) -> Result<Handle<FilterKind>, Failure> {
    let source = expression.get("expression")?;
    let mut options = Options {
        link,
        ..Options::default()
    };
    if let Some(mask) = netmask.optional("netmask")? {
        let parsed: Result<Ipv4Addr, _> = mask.parse();
        let parsed = parsed.map_err(|_| {
            let wrong = format!("`{mask}` is no netmask; write it as 255.255.255.0");
            Failure::new(Code::Argument, wrong)
        });
        options.netmask = Some(parsed?.to_bits());
    }
    if snaplen != 0 {
        options.snaplen = snaplen;
    }
    let filter = Filter::compile_with(source, &Databases::system(), options);
    make(filter.map_err(|error| wrong(&error, error.show(source), at))?)
}

/// `pt_filter_classic`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_classic(program: Text<'_>, at: Out<'_, u64>) -> Handle<FilterKind> {
    failure::or(Handle::NULL, || {
        let filter = Filter::classic(program.get("program")?);
        make(filter.map_err(|error| wrong(&error, error.to_string(), at))?)
    })
}

/// `pt_filter_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_free(filter: Handle<FilterKind>) -> c_int {
    failure::code(|| {
        let compiled = filter.take()?;
        let _ = domain::leave(compiled.domain);
        compiled.loaded.domain().close();
        Ok(())
    })
}

/// `pt_filter_run`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_run(
    filter: Handle<FilterKind>,
    packet: Source<'_>,
    length: usize,
    wire_length: u32,
) -> i64 {
    failure::number(|| {
        let (compiled, packet) = (filter.get()?, packet.get(length, "packet")?);
        let _room = compiled.room.lock()?;
        Ok(i64::from(compiled.loaded.run(packet, wire_length)?))
    })
}

/// `pt_filter_run_at`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_run_at(
    filter: Handle<FilterKind>,
    packet: u32,
    length: u32,
    wire_length: u32,
) -> i64 {
    failure::number(|| {
        let compiled = filter.get()?;
        let verdict = compiled.loaded.run_at(Offset(packet), wire_length, length);
        Ok(i64::from(verdict?))
    })
}

/// `pt_filter_domain`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_domain(filter: Handle<FilterKind>) -> Handle<DomainKind> {
    failure::or(Handle::NULL, || Ok(filter.get()?.domain))
}

/// `pt_filter_show`
#[unsafe(no_mangle)]
pub extern "C" fn pt_filter_show(
    filter: Handle<FilterKind>,
    text: TextTarget<'_>,
    size: usize,
) -> i64 {
    failure::number(|| text.fill(size, &filter.get()?.filter.to_string()))
}
