//! Domains: `pt_domain_new` to `pt_domain_user`.

use crate::boundary::{Text, TextTarget, User};
use crate::failure::{self, Code, Failure};
use crate::fork::Shared;
use crate::handle::{Handle, kind};
use crate::image::ImageKind;
use crate::options::{self, OptionsKind};
use crate::pointers::Pointers;
use postern::Domain;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

/// An open domain.
pub struct Opened {
    /// The engine's.
    pub domain: Domain,
    /// Function pointers that were given out.
    pub pointers: Pointers,
    name: CString,
    user: User,
}

impl Opened {
    /// A domain with the host's pointer.
    pub fn new(domain: Domain, user: User) -> Opened {
        Opened {
            name: failure::text(domain.name()),
            domain,
            pointers: Pointers::default(),
            user,
        }
    }
}

kind!(DomainKind: Arc<Opened>, b'D', "pt_domain");

/// Handles by the domains' numbers.
static BY_ID: Shared<BTreeMap<u64, Handle<DomainKind>>> = Shared::new(BTreeMap::new());

/// The handle of a live domain.
pub fn handle_of(domain: &Domain) -> Option<Handle<DomainKind>> {
    BY_ID.lock().get(&domain.id()).copied()
}

/// `pt_domain_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_new(
    image: Handle<ImageKind>,
    options: Handle<OptionsKind>,
) -> Handle<DomainKind> {
    failure::or(Handle::NULL, || {
        let options = options::get(options)?;
        let domain = options.apply(Domain::builder(&image.get()?)).build()?;
        Ok(enter(Arc::new(Opened::new(domain, options.user))))
    })
}

/// `pt_domain_shared`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_shared(
    name: Text<'_>,
    image: Handle<ImageKind>,
    options: Handle<OptionsKind>,
) -> Handle<DomainKind> {
    failure::or(Handle::NULL, || {
        let (name, image, options) = (name.get("name")?, image.get()?, options::get(options)?);
        let builder = match name.contains('/') {
            true => Domain::shared_at(name.as_ref(), &image)?,
            false => Domain::shared(name, &image)?,
        };
        let domain = options.apply(builder).build()?;
        Ok(enter(Arc::new(Opened::new(domain, options.user))))
    })
}

/// `pt_domain_poison`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_poison(
    domain: Handle<DomainKind>,
    text: TextTarget<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let why = domain.get()?.domain.poison();
        text.fill(size, &why.map_or_else(String::new, |why| why.to_string()))
    })
}

/// A new handle for a domain, by which its services find it.
pub fn enter(opened: Arc<Opened>) -> Handle<DomainKind> {
    let id = opened.domain.id();
    let handle = Handle::make(opened);
    BY_ID.lock().insert(id, handle);
    handle
}

/// Takes the handle back.
///
/// # Errors
/// It was taken back before.
pub fn leave(handle: Handle<DomainKind>) -> Result<Arc<Opened>, Failure> {
    let opened = handle.take()?;
    let (mut known, id) = (BY_ID.lock(), opened.domain.id());
    // A pool may have lent it again meanwhile, with another handle.
    if known.get(&id).is_some_and(|newest| newest.0 == handle.0) {
        known.remove(&id);
    }
    drop(known);
    Ok(opened)
}

/// `pt_domain_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_free(domain: Handle<DomainKind>) -> c_int {
    failure::code(|| {
        leave(domain)?.domain.close();
        Ok(())
    })
}

/// `pt_domain_reset`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_reset(domain: Handle<DomainKind>) -> c_int {
    failure::code(|| {
        let reset = domain.get()?.domain.reset();
        reset.map_err(|busy| match postern::nesting() {
            0 => Failure::new(Code::Busy, busy.to_string()),
            _ => Failure::new(
                Code::Busy,
                "this thread is in a service (if longjmp left it, call pt_thread_unwind), or others are inside the domain",
            ),
        })
    })
}

/// `pt_domain_interrupt`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_interrupt(domain: Handle<DomainKind>) -> c_int {
    failure::code(|| {
        domain.get()?.domain.interrupt();
        Ok(())
    })
}

/// `pt_domain_poisoned`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_poisoned(domain: Handle<DomainKind>) -> c_int {
    failure::number(|| Ok(i64::from(domain.get()?.domain.is_poisoned()))) as c_int
}

/// `pt_domain_name`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_name(domain: Handle<DomainKind>) -> *const c_char {
    failure::or(c"".as_ptr(), || Ok(domain.get()?.name.as_ptr()))
}

/// `pt_domain_user`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_user(domain: Handle<DomainKind>) -> *mut c_void {
    failure::or(0, || Ok(domain.get()?.user.number())) as *mut c_void
}
