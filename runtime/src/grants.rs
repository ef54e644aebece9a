//! What a domain is granted, at a moment: each domain has its own.

use crate::{Access, Domain, Offset, Prot};
use std::fmt;

/// The grants of a domain. Everything that is not here it does not have, but for its own memory and
/// the services whose names begin with `__postern_`, which every domain is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grants {
    /// Name of the domain.
    pub domain: String,
    /// Its services, `sys` among them, and whether each is revoked.
    pub services: Vec<(String, bool)>,
    /// Who decides about each call: nobody, a closure, or a module by its name.
    pub decider: Option<String>,
    /// Name of the policy for system calls: `none`, `compute` or `files`.
    pub policy: &'static str,
    /// Whether a closure of the host decides about system calls before the policy does.
    pub custom: bool,
    /// Directories, by their paths in the extension's eyes.
    pub directories: Vec<(String, Access)>,
    /// Shared areas: name, first offset, bytes, and the most that may be done with any page.
    pub areas: Vec<(String, Offset, u32, Prot)>,
    /// Bytes of heap.
    pub heap: u64,
    /// Threads that it may start.
    pub threads: u32,
}

impl Domain {
    /// What the domain is granted now.
    pub fn grants(&self) -> Grants {
        let inner = &*self.0;
        let granted = inner.system.service().map(|service| service.granted());
        let granted = granted.unwrap_or_default();
        let (start, end) = inner.instance.heap();
        let areas = inner.instance.areas().into_iter();
        Grants {
            domain: self.name().to_owned(),
            services: inner.services.granted(inner),
            decider: inner.services.decider_name(),
            policy: granted.policy,
            custom: granted.custom,
            directories: granted.directories,
            areas: areas
                .map(|(name, start, bytes, most)| (name.to_string(), Offset(start), bytes, most))
                .collect(),
            heap: (end - start).into(),
            threads: inner.threads.most(),
        }
    }
}

impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "domain    {}", self.domain)?;
        for (name, revoked) in &self.services {
            let revoked = if *revoked { " (revoked)" } else { "" };
            writeln!(f, "service   {name}{revoked}")?;
        }
        let custom = if self.custom {
            ", decided by a closure"
        } else {
            ""
        };
        writeln!(f, "policy    {}{custom}", self.policy)?;
        for (path, access) in &self.directories {
            let access = match access {
                Access::Read => "read",
                Access::ReadWrite => "read and write",
            };
            writeln!(f, "directory {path} ({access})")?;
        }
        for (name, offset, bytes, most) in &self.areas {
            writeln!(f, "area      {name} at {offset}, {bytes} bytes ({most})")?;
        }
        writeln!(
            f,
            "decider   {}",
            self.decider.as_deref().unwrap_or("nobody")
        )?;
        if self.threads > 0 {
            writeln!(f, "threads   {}", self.threads)?;
        }
        writeln!(f, "heap      {} bytes", self.heap)
    }
}
