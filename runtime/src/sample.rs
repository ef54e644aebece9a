//! For unit tests: domains of extensions that are written in E-code.

use crate::restart::{FaultStreak, Outlook, RestartRule};
use crate::{Domain, DomainBuilder, Image};
use std::time::Duration;

/// An image of this source; what is not static is exported.
pub(crate) fn image(source: &str) -> Image {
    let unit = postern_ecode::compile(source).unwrap();
    let linked = postern_ecode::link(&[unit], 18).unwrap();
    Image::from_bytes(&linked.file).unwrap()
}

/// A domain of it.
pub(crate) fn domain(source: &str) -> DomainBuilder {
    Domain::builder(&image(source))
}

/// Every call that finds its domain closed begins it anew.
pub(crate) struct AtOnce;

impl RestartRule for AtOnce {
    fn restarts(&self) -> bool {
        true
    }

    fn fault(&self, _: &mut FaultStreak, _: Duration) {}

    fn outlook(&self, _: &FaultStreak, _: Duration) -> Outlook {
        Outlook::Now
    }
}
