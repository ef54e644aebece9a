//! Taking grants back: `pt_domain_revoke`, `pt_domain_revoke_at_once`, `pt_domain_restore`,
//! `pt_domain_repossessed`, `pt_domain_grants`.

use crate::boundary::{Out, Text, TextTarget};
use crate::domain::DomainKind;
use crate::failure::{self, Code, Failure};
use crate::handle::Handle;
use crate::structures::CRepossession;
use postern::{Grant, Offset, Revoked};
use std::ffi::{c_char, c_int};
use std::time::Duration;

/// Names in C and values, for the test that the header agrees.
pub const GRANTS: [(&str, i32); 4] = [
    ("PT_GRANT_SERVICE", 1),
    ("PT_GRANT_DIRECTORY", 2),
    ("PT_GRANT_DESCRIPTOR", 3),
    ("PT_GRANT_AREA", 4),
];
/// As [`GRANTS`].
pub const ENDS: [(&str, i32); 2] = [("PT_RETURNED", 0), ("PT_TAKEN", 1)];

fn grant(kind: c_int, name: Text<'_>) -> Result<Grant, Failure> {
    let name = name.get("grant's name")?;
    let wrong = |message| Failure::new(Code::Argument, message);
    match kind {
        1 => Ok(Grant::Service(name.to_owned())),
        2 => Ok(Grant::Directory(name.to_owned())),
        3 => name
            .parse()
            .map(Grant::Descriptor)
            .map_err(|_| wrong(format!("`{name}` is no descriptor: give its number"))),
        4 => offset(name).map(Grant::Area).ok_or_else(|| {
            wrong(format!(
                "`{name}` is no area: give its offset, such as 0x10000000"
            ))
        }),
        _ => Err(wrong(format!(
            "{kind} is no kind of grant; PT_GRANT_SERVICE, _DIRECTORY, _DESCRIPTOR and _AREA are"
        ))),
    }
}

/// As the list and the upcall have it, or in decimal.
fn offset(text: &str) -> Option<Offset> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().map(Offset)
}

fn kind(grant: &Grant) -> (c_int, String) {
    match grant {
        Grant::Service(name) => (1, name.clone()),
        Grant::Directory(path) => (2, path.clone()),
        Grant::Descriptor(number) => (3, number.to_string()),
        Grant::Area(offset) => (4, offset.to_string()),
        other => (0, other.to_string()),
    }
}

fn cut(text: &str) -> [c_char; 256] {
    let mut cut = [0; 256];
    for (to, from) in cut.iter_mut().take(255).zip(text.bytes()) {
        *to = from as c_char;
    }
    cut
}

/// `pt_domain_revoke`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_revoke(
    domain: Handle<DomainKind>,
    kind: c_int,
    name: Text<'_>,
    microseconds: u64,
) -> c_int {
    failure::number(|| {
        let grant = grant(kind, name)?;
        let deadline = Duration::from_micros(microseconds);
        match domain.get()?.domain.revoke(&grant, deadline)? {
            Revoked::Returned => Ok(0),
            _ => Ok(1),
        }
    }) as c_int
}

/// `pt_domain_revoke_at_once`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_revoke_at_once(
    domain: Handle<DomainKind>,
    kind: c_int,
    name: Text<'_>,
) -> c_int {
    failure::number(|| {
        let grant = grant(kind, name)?;
        match domain.get()?.domain.revoke_at_once(&grant)? {
            Revoked::Returned => Ok(0),
            _ => Ok(1),
        }
    }) as c_int
}

/// `pt_domain_restore`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_restore(
    domain: Handle<DomainKind>,
    kind: c_int,
    name: Text<'_>,
) -> c_int {
    failure::code(|| Ok(domain.get()?.domain.restore(&grant(kind, name)?)?))
}

/// `pt_domain_repossessed`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_repossessed(
    domain: Handle<DomainKind>,
    index: u32,
    found: Out<'_, CRepossession>,
) -> c_int {
    failure::number(|| {
        let list = domain.get()?.domain.repossessed();
        let Some(entry) = list.get(index as usize) else {
            return Ok(0);
        };
        let (kind, name) = kind(&entry.grant);
        found.put(CRepossession {
            size: size_of::<CRepossession>(),
            kind,
            name: cut(&name),
            why: cut(&entry.why.to_string()),
        });
        Ok(1)
    }) as c_int
}

/// `pt_domain_grants`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_grants(
    domain: Handle<DomainKind>,
    text: TextTarget<'_>,
    room: usize,
) -> i64 {
    failure::number(|| text.fill(room, &domain.get()?.domain.grants().to_string()))
}
