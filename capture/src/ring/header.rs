//! What the kernel says of a packet, in whichever order it hands packets over.

/// Bytes of a block: several of the largest packets.
pub(super) const BLOCK: usize = 1 << 20;
/// Bytes of the socket address behind a packet's header.
pub(super) const ADDRESS: usize = 20;

/// What the kernel says of a packet, and where it is.
pub(super) struct Header {
    pub(super) captured: u32,
    pub(super) wire: u32,
    pub(super) seconds: u32,
    pub(super) nanos: u32,
    pub(super) status: u32,
    pub(super) tag: u16,
    pub(super) tag_kind: u16,
    /// The interface's number, then the hardware's type and which way the packet went.
    pub(super) address: [u8; ADDRESS],
    pub(super) place: PacketPosition,
}

/// Where a packet's bytes begin.
#[derive(Clone, Copy)]
pub(super) struct PacketPosition {
    /// In the memory for large packets, not in the ring.
    pub(super) aside: bool,
    pub(super) at: usize,
}

/// Words of the machine's own order.
pub(super) fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}
