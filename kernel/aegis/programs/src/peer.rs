//! What the peer on the host is asked, as `kernel/aegis/machine/src/peer.rs` has it.

/// Sends the frame back.
pub const ECHO: u64 = 1;
/// Sends many frames: count, length.
pub const FLOOD: u64 = 2;
/// Sends bytes at random: count, seed.
pub const GARBAGE: u64 = 3;
/// Exchanges a counter by UDP: rounds.
pub const ROUNDS: u64 = 4;
/// The same after pauses at random: rounds, the longest one in microseconds.
pub const PACED: u64 = 9;
/// Exchanges ICMP echoes: rounds.
pub const PING: u64 = 5;
/// Asks for a lock: rounds.
pub const LOCKS: u64 = 8;
/// Says what it has seen.
pub const SEEN: u64 = 6;
/// Takes nothing for a while: milliseconds.
pub const SLEEP: u64 = 7;
/// In the first word: this is what came of it.
pub const REPORT: u64 = 0x100;

/// Where words stand in a frame that asks.
pub const WORDS: u64 = 16;
/// The beginning of a frame that asks: the peer's address, the guest's, the type.
pub const HEADER: [u8; 16] = [
    0x52, 0x54, 0, 0, 0, 2, 0x52, 0x54, 0, 0, 0, 1, 0x88, 0xb5, 0, 0,
];
