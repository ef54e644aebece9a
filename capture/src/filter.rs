//! Who says which packets are wanted: a compiled filter, or a program of the user's, in a domain of its own.

use crate::packet::PacketRef;
use crate::source::Source;
use postern::{CallError, Domain, Func, Image, Offset, RestartPolicy};
use postern_filter::classifier::ClassifierError;
use postern_filter::{Code, Loaded};
use thiserror::Error;

/// Why an extension cannot look at packets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// The filter's code makes no domain.
    #[error(transparent)]
    Filter(#[from] ClassifierError),
    /// The image does not become a domain.
    #[error(transparent)]
    Instantiate(#[from] postern::InstantiateError),
    /// It does not export what it should.
    #[error(
        "{0}; it has to define `int {1}(const unsigned char *packet, unsigned length, unsigned wire_length)`"
    )]
    Export(postern::SymbolError, &'static str),
    /// Its window has no room for the source's packets.
    #[error(transparent)]
    Share(#[from] postern::ShareError),
}

/// The functions of programs and handlers.
pub(crate) type PacketFunction = Func<fn(Offset, u32, u32) -> u32>;

/// The function of a domain that looks at packets.
pub(crate) fn entry(domain: &Domain, name: &'static str) -> Result<PacketFunction, ExtensionError> {
    domain
        .func(name)
        .map_err(|error| ExtensionError::Export(error, name))
}

/// A filter that is ready to be asked.
pub struct PacketFilter {
    backend: Backend,
    faults: u64,
}

enum Backend {
    Compiled(Loaded),
    Program(Domain, PacketFunction),
}

impl PacketFilter {
    /// A compiled filter.
    ///
    /// # Errors
    /// The code is refused, or there is no memory for a domain.
    pub fn compiled(code: &Code) -> Result<PacketFilter, ExtensionError> {
        Ok(PacketFilter {
            backend: Backend::Compiled(code.load(false)?),
            faults: 0,
        })
    }

    /// A program that exports `int filter(const unsigned char *packet, unsigned length, unsigned wire_length)`. After a fault it
    /// begins anew with the next packet.
    ///
    /// # Errors
    /// It exports something else, wishes services, or there is no memory for a domain.
    pub fn program(image: &Image) -> Result<PacketFilter, ExtensionError> {
        let domain = Domain::builder(image)
            .name("filter")
            .restart(RestartPolicy::Immediate)
            .build()?;
        let entry = entry(&domain, "filter")?;
        Ok(PacketFilter {
            backend: Backend::Program(domain, entry),
            faults: 0,
        })
    }

    /// Maps a source's packets into the filter's window.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn watch(&self, source: &mut Source) -> Result<(), ExtensionError> {
        let domain = match &self.backend {
            Backend::Compiled(loaded) => loaded.domain(),
            Backend::Program(domain, _) => domain,
        };
        Ok(source.watch(domain)?)
    }

    /// How much of a packet is accepted; 0 rejects it.
    ///
    /// # Errors
    /// A fault; the packet is rejected.
    pub fn ask(&mut self, seen: &PacketRef) -> Result<u32, CallError> {
        let verdict = match &self.backend {
            Backend::Compiled(loaded) => loaded.run_at(seen.at, seen.wire, seen.captured),
            Backend::Program(_, entry) => entry.call(seen.at, seen.captured, seen.wire),
        };
        self.faults += u64::from(verdict.is_err());
        verdict
    }

    /// Calls that ended with an error.
    pub fn faults(&self) -> u64 {
        self.faults
    }
}
