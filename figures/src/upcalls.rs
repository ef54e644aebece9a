//! Handlers that interrupt threads, beside signals; how long a missing page takes to be filled; and
//! how long an event takes to its handler, by the way that it goes, while others want the same
//! processor.

mod costs;
mod doorbell;
mod image;
mod latency;
mod log;
mod pages;
mod ring;

pub use latency::charts;

use crate::figure::Figure;

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let image = image::image()?;
    let mut figures = costs::figures(&image)?;
    figures.extend(ring::figures(&image)?);
    figures.extend(pages::figures(&image)?);
    figures.extend(doorbell::figures(&image)?);
    figures.extend(latency::figures(&image)?);
    Ok(figures)
}
