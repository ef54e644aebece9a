//! Extensions of the Linux kernel, for processes that load and call them: the device
//! `/dev/postern`.
//!
//! ```no_run
//! use postern_kernel::{Device, Ended, Image, LoadOptions};
//!
//! let device = Device::open()?;
//! let image = Image::read("rules.pst")?;
//! let id = device.load(&image, &LoadOptions::named("rules"))?.id;
//! match device.call(id, "count", &[3])? {
//!     Ended::Returned(value) => println!("{value}"),
//!     other => println!("{}", other.told(Some(&image))),
//! }
//! device.unload(id)?;
//! # Ok::<(), postern_kernel::Error>(())
//! ```
//!
//! Nothing that this crate says is believed by the module, which judges and checks for itself. What
//! the crate promises its users is to ask no more of the kernel than it has memory for: `unsafe` is
//! in one module, [`Requests`] are what is asked, and tests ask a device that is none.
//!
//! | module | what |
//! |---|---|
//! | [`abi`] | the structures of `kernel/linux/postern.h` |
//! | [`Error`] | why something was not done |
//! | [`Requests`] | what a device is asked, as values |
//! | [`Image`] | a file with its names and lines; [`Refusal`] of one |
//! | [`Ended`], [`Fault`] | how calls end |
//! | [`Hook`] | what may call an extension besides processes |
//! | [`Device`] | all requests |
//! | [`Map`] | maps that extensions and processes share |
//! | [`Opened`] | the shared area and the ring of entries |

#![deny(unsafe_code)]

pub mod abi;
mod device;
mod ended;
mod error;
mod hook;
mod id;
mod image;
mod load;
mod map;
mod opened;
mod refusal;
mod request;
mod statistics;
#[allow(unsafe_code, reason = "the module that asks the kernel")]
mod trusted;

pub use device::{Device, Loaded, PATH};
pub use ended::{Ended, Fault, KINDS, Kind};
pub use error::Error;
pub use hook::{Attachment, Family, Hook, Otherwise};
pub use id::{AttachmentId, Id};
pub use image::{Image, Unreadable};
pub use load::{LoadOptions, OnFault, Rights, SHARED, SharedArea};
pub use map::{Entry, Map, MapSizes};
pub use opened::{Events, Opened};
pub use refusal::Refusal;
pub use request::{MapBuffers, Request, Requests};
pub use statistics::{Listed, Statistics};
pub use trusted::Area;
