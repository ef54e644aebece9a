//! How a domain gets room for code that comes later.

use crate::domain::{Domain, DomainBuilder};
use crate::error::LoadError;
use crate::image::More;
use postern_gates::map::MapError;
use postern_gates::window::Window;
use postern_image::{ImportOwned, Signature};

/// What a domain is offered for imports, by name, with the types where those are known.
pub fn offers(builder: &DomainBuilder) -> Vec<(String, Option<Signature>)> {
    builder.services.offers()
}

/// Has the domain be one of `image` with more gate slots than it imports, and with gates that leave
/// more registers to it. `None` if the slots do not fit before its text.
///
/// # Errors
/// The image cannot be laid out anew.
pub fn widen(
    mut builder: DomainBuilder,
    imports: Vec<ImportOwned>,
    fact_bits: u32,
) -> Result<Option<DomainBuilder>, LoadError> {
    let wider = builder.image.with_more(&More { imports, fact_bits })?;
    Ok(wider.map(|image| {
        builder.image = image;
        builder
    }))
}

/// Finds room in a domain's window for `bytes` bytes of code with `data` bytes of variables behind,
/// and has `make` map the code there: it is given the offset and the window. `None` if there is no
/// room, or code was added before.
///
/// # Errors
/// The kernel's, or those of `make`.
pub fn give_room<T>(
    domain: &Domain,
    (bytes, data): (u32, u32),
    make: impl FnOnce(u32, &Window) -> Result<T, MapError>,
) -> Result<Option<(u32, T)>, MapError> {
    domain.0.instance.give_code(bytes, data, make)
}
