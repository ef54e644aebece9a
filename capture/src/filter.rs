//! Who says which packets are wanted: a compiled filter, or a program of the user's, in a domain of
//! its own.

use crate::packet::PacketRef;
use crate::source::Source;
use postern::{CallError, Domain, Func, Image, Offset, RestartPolicy};
use postern_filter::classifier::ClassifierError;
use postern_filter::{Code, Link, Loaded};
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
    /// One for each kind of packets.
    Compiled(Vec<(Link, Loaded)>),
    Program(Domain, PacketFunction),
}

impl PacketFilter {
    /// A compiled filter, for packets that begin with Ethernet's header.
    ///
    /// # Errors
    /// The code is refused, or there is no memory for a domain.
    pub fn compiled(code: &Code) -> Result<PacketFilter, ExtensionError> {
        PacketFilter::compiled_for(Link::Ethernet, code)
    }

    /// A filter that was compiled for this link. Packets of others are rejected.
    ///
    /// # Errors
    /// As of [`PacketFilter::compiled`].
    pub fn compiled_for(link: Link, code: &Code) -> Result<PacketFilter, ExtensionError> {
        Ok(PacketFilter {
            backend: Backend::Compiled(vec![(link, code.load(false)?)]),
            faults: 0,
        })
    }

    /// Whether it is for packets of this link.
    pub fn knows(&self, link: Link) -> bool {
        match &self.backend {
            Backend::Compiled(list) => list.iter().any(|(known, _)| *known == link),
            Backend::Program(..) => true,
        }
    }

    /// Adds what the filter is for packets of another link, of the same source.
    ///
    /// # Errors
    /// As of [`PacketFilter::compiled`] and [`PacketFilter::watch`].
    pub fn add(
        &mut self,
        link: Link,
        code: &Code,
        source: &mut Source,
    ) -> Result<(), ExtensionError> {
        if let Backend::Compiled(list) = &mut self.backend {
            let loaded = code.load(false)?;
            source.watch(loaded.domain())?;
            list.push((link, loaded));
        }
        Ok(())
    }

    /// A program that exports `int filter(const unsigned char *packet, unsigned length, unsigned
    /// wire_length)`. After a fault it begins anew with the next packet.
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
        match &self.backend {
            Backend::Compiled(list) => {
                for (_, loaded) in list {
                    source.watch(loaded.domain())?;
                }
            }
            Backend::Program(domain, _) => source.watch(domain)?,
        }
        Ok(())
    }

    /// How much of a packet is accepted; 0 rejects it.
    ///
    /// # Errors
    /// A fault; the packet is rejected.
    pub fn ask(&mut self, seen: &PacketRef) -> Result<u32, CallError> {
        let verdict = match &self.backend {
            Backend::Compiled(list) => {
                let own = list.iter().find(|(link, _)| *link == seen.origin.link);
                match own {
                    Some((_, loaded)) => loaded.run_at(seen.at, seen.wire, seen.captured),
                    None => Ok(0),
                }
            }
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
