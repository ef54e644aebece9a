//! What a source gives: packets, where they lie.

use postern::Offset;
use postern_filter::capture::Origin;

/// A packet, where it lies in the windows of those who watch the source. It is there until the next
/// one is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRef {
    /// Its first byte.
    pub at: Offset,
    /// Bytes that are there.
    pub captured: u32,
    /// Its length on the wire.
    pub wire: u32,
    /// When it was captured, in nanoseconds since 1970.
    pub time: u64,
    /// By which interface it came or went, as far as the source says.
    pub origin: Origin,
}

/// What a source gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A packet.
    Packet(PacketRef),
    /// None came for a while; ask again.
    Idle,
    /// There are no more.
    End,
}

/// What a source counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that it gave.
    pub received: u64,
    /// Packets for which the kernel found no room in the ring.
    pub dropped: u64,
}
