//! A domain of a common memory that somebody else keeps, by its name.

use super::{Domain, DomainBuilder};
use crate::common::CommonMemory;
use crate::common::broker::socket_of;
use crate::error::InstantiateError;
use crate::image::Image;
use std::path::Path;

impl Domain {
    /// Begins a domain of `image` with the state that `postern share NAME` keeps: the same in every
    /// process that does so. Text is verified by each process itself, from its own file.
    ///
    /// # Errors
    /// [`crate::CommonError`] inside: nothing of this name is shared, this process may not have it,
    /// or it is of another image (which [`DomainBuilder::build`] says).
    pub fn shared(name: &str, image: &Image) -> Result<DomainBuilder, InstantiateError> {
        Domain::shared_at(&socket_of(name)?, image)
    }

    /// The same, by the path of the broker's socket.
    ///
    /// # Errors
    /// As there.
    pub fn shared_at(socket: &Path, image: &Image) -> Result<DomainBuilder, InstantiateError> {
        let memory = CommonMemory::from_broker(socket)?;
        Ok(Domain::builder(image).common(&memory))
    }
}
