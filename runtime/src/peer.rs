//! Peers: functions of one domain that another one calls directly, through the gates alone.
//!
//! An export is what the called domain gives: a function, the longest time of one call, the stack
//! that must be left. An import that is served by it looks like a service to the calling extension.
//! The types are allegations of two files. Both must say them, and the same: so what the gate
//! passes is what the caller says that it gives and the called one says that it takes. Each
//! register then holds something of the caller's own, or nothing: an image that says floating-point
//! types, or does not say all types of its imports, has the gates clear its vector registers of the
//! host's values even if no instruction of it could read them (`image.rs`).
//!
//! What is bound when a domain is built keeps the other domain alive; that cannot make a ring. What
//! is bound afterwards does not: once the other domain is dropped, calls end as `Closed`.

use crate::domain::{Domain, DomainBuilder};
use crate::error::{BindError, SymbolError};
use crate::signature::{self, compatible};
use postern_gates::callee::Callee;
use postern_gates::peer::Peer;
use postern_image::Signature;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Least stack that a call of a peer finds: the gate's own slow path needs as much.
const LEAST_STACK: usize = 16 << 10;

/// A function that a domain lets other domains call. See [`Domain::peer_export`].
#[derive(Clone, Debug)]
pub struct PeerExport {
    domain: Domain,
    offset: u32,
    signature: Signature,
    time: u64,
    stack: u64,
}

impl PeerExport {
    /// Longest time of one call, besides the domain's own deadline. A caller's deadline is put off
    /// for at most that long. A call that takes longer is a fault of the called domain.
    #[must_use]
    pub fn time(mut self, longest: Duration) -> PeerExport {
        self.time = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX).max(1);
        self
    }

    /// Bytes of control stack that must be left when the call begins; [`crate::DEFAULT_STACK`]
    /// unless said, and 16 KiB at least. A caller that has less is ended with a fault of kind
    /// `ServiceStack`.
    #[must_use]
    pub fn stack(mut self, bytes: usize) -> PeerExport {
        self.stack = bytes.clamp(LEAST_STACK, 1 << 48) as u64;
        self
    }

    /// The domain that is called.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The C types.
    pub fn signature(&self) -> Signature {
        self.signature
    }

    /// For callers whose image has these facts.
    fn peer(&self, caller_facts: u32) -> Peer {
        let (called, signature) = (&self.domain.0.control, &self.signature);
        Peer::new(
            called,
            self.offset,
            signature,
            caller_facts,
            self.time,
            self.stack,
        )
    }
}

impl DomainBuilder {
    /// Grants an import that is another domain's function: calls go there without the host. That
    /// domain stays alive as long as this one.
    pub fn peer(mut self, name: &str, export: &PeerExport) -> Self {
        let peer = export.peer(self.image.0.fact_bits);
        let callee = Callee::peer(peer, export.domain.clone());
        self.services.add_peer(name, callee, Some(export.signature));
        self
    }

    /// Leaves an import open, for [`Domain::bind_peer`]. Until then its calls fail as
    /// [`crate::PeerError::Unbound`].
    pub fn peer_open(mut self, name: &str) -> Self {
        let callee = Callee::peer(Peer::open(), ());
        self.services.add_peer(name, callee, None);
        self
    }
}

impl Domain {
    /// A function that other domains may be given as a peer ([`DomainBuilder::peer`]), with the
    /// image's signature. What imports it must say the same types.
    ///
    /// # Errors
    /// No such export, its types are unknown, or not all of its parameters fit registers: six
    /// integers and eight floats.
    pub fn peer_export(&self, name: &str) -> Result<PeerExport, SymbolError> {
        let export = self.export(name)?;
        let (offset, signature) = (export.offset, signature::alleged(name, export.signature)?);
        if !signature::in_registers(&signature, true) {
            return Err(SymbolError::Parameters(name.to_owned()));
        }
        self.0.pointed_to.store(true, Ordering::SeqCst);
        Ok(PeerExport {
            domain: self.clone(),
            offset,
            signature,
            time: 0,
            stack: crate::DEFAULT_STACK as u64,
        })
    }

    /// Binds an import that [`DomainBuilder::peer_open`] left open, or binds it anew: calls that
    /// begin from now on go there. That domain is not kept alive by it, so that rings of domains
    /// end.
    ///
    /// # Errors
    /// The import was not left open, or has another type, or none.
    pub fn bind_peer(&self, name: &str, export: &PeerExport) -> Result<(), BindError> {
        let imports = &self.0.image.tables.imports;
        let not_open = || BindError::NotOpen(name.to_owned());
        let number = self.0.services.peer(imports, name).ok_or_else(not_open)?;
        let expected = imports
            .iter()
            .find(|import| &*import.name == name)
            .and_then(|import| import.signature)
            .ok_or_else(|| BindError::Untyped(name.to_owned()))?;
        if !compatible(&expected, &export.signature) {
            return Err(BindError::Signature {
                name: name.to_owned(),
                expected,
                offered: export.signature,
            });
        }
        let peer = export.peer(self.0.image.fact_bits);
        self.0.control.bind(number, peer).map_err(|_| not_open())
    }
}
