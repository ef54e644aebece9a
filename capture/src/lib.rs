//! Where packets come from and where they go: capture files and live rings as sources, files and
//! sockets as sinks, and extensions that judge or answer packets.
//!
//! A packet stays where its source has it: a file's pages, or the ring that the kernel fills, are
//! mapped read-only into the windows of the domains that look at packets. The host reads headers
//! only, each field once, and copies a packet's bytes only to write them.
//!
//! The parts: [`Source`] gives packets, [`PacketFilter`] says which are wanted, [`Writer`] keeps
//! them, [`Handler`] answers them, [`Demux`] spreads them over consumers, and [`line`] shows them.

mod arriving;
mod demux;
mod error;
mod filter;
mod handler;
pub mod line;
mod mapped;
mod packet;
mod program;
mod ring;
mod rules;
mod savefiles;
mod socket;
mod source;
mod trusted;
mod writer;

pub use demux::{ConsumerSet, Demux, DemuxError, Tally};
pub use error::SourceError;
pub use filter::{ExtensionError, PacketFilter};
pub use handler::{Answers, Handler};
pub use packet::{Counters, Next, PacketRef};
pub use postern_filter::Link;
pub use postern_filter::capture::{Direction, Origin};
#[cfg(feature = "compile")]
pub use program::load;
pub use program::{ProgramError, load_compiled};
pub use ring::{CaptureDirection, Live, Sender, interfaces, link, netmask};
pub use rules::{Consumer, Rules, RulesError, Target};
pub use savefiles::{Rotation, Savefiles, is_stdout};
pub use source::Source;
pub use trusted::clock::ahead_of_utc;
pub use trusted::signal::{requests, stop_on_interrupt};
pub use trusted::user::become_user;
pub use writer::{Format, Writer};
