//! Domains that call each other: `pt_options_peer`, `pt_options_peer_open`, `pt_domain_bind_peer`.

use crate::boundary::Text;
use crate::domain::DomainKind;
use crate::failure::{self, Failure};
use crate::handle::Handle;
use crate::options::{self, OptionsKind};
use postern::PeerExport;
use std::ffi::c_int;
use std::time::Duration;

/// An export with its limits; 0 is the default of each.
fn export(
    domain: Handle<DomainKind>,
    name: Text<'_>,
    microseconds: u64,
    stack: usize,
) -> Result<PeerExport, Failure> {
    let mut export = domain
        .get()?
        .domain
        .peer_export(name.get("export's name")?)?;
    if microseconds != 0 {
        export = export.time(Duration::from_micros(microseconds));
    }
    if stack != 0 {
        export = export.stack(stack);
    }
    Ok(export)
}

/// `pt_options_peer`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_peer(
    options: Handle<OptionsKind>,
    import: Text<'_>,
    domain: Handle<DomainKind>,
    name: Text<'_>,
    microseconds: u64,
    stack: usize,
) -> c_int {
    options::change(options, |o| {
        let export = export(domain, name, microseconds, stack)?;
        o.peer(import.get("import's name")?, Some(export));
        Ok(())
    })
}

/// `pt_options_peer_open`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_peer_open(options: Handle<OptionsKind>, import: Text<'_>) -> c_int {
    options::change(options, |o| {
        o.peer(import.get("import's name")?, None);
        Ok(())
    })
}

/// `pt_domain_bind_peer`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_bind_peer(
    caller: Handle<DomainKind>,
    import: Text<'_>,
    domain: Handle<DomainKind>,
    name: Text<'_>,
    microseconds: u64,
    stack: usize,
) -> c_int {
    failure::code(|| {
        let export = export(domain, name, microseconds, stack)?;
        let import = import.get("import's name")?;
        Ok(caller.get()?.domain.bind_peer(import, &export)?)
    })
}
