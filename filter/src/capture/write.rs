//! The pieces of new capture files.

use alloc::vec::Vec;

use crate::link::Link;

use super::{DESCRIPTION, FLAGS, Origin, PACKET, SECTION};

/// A block of a pcapng file: its kind, its length twice, and what is between, which is filled up to
/// a multiple of 4.
fn block(kind: u32, parts: &[&[u8]], into: &mut Vec<u8>) {
    let start = into.len();
    into.extend(kind.to_le_bytes());
    into.extend([0; 4]);
    for part in parts {
        into.extend_from_slice(part);
    }
    let padded = into.len().next_multiple_of(4);
    into.resize(padded, 0);
    let length = ((padded - start + 4) as u32).to_le_bytes();
    into.extend(length);
    if let Some(field) = into.get_mut(start + 4..start + 8) {
        field.copy_from_slice(&length);
    }
}

/// The beginning of a pcapng file: its section. Interfaces follow, then packets.
pub fn pcapng_header(into: &mut Vec<u8>) {
    let version = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    block(SECTION, &[&version, &[0xff; 8]], into);
}

/// An interface of such a file, whose times are nanoseconds. The first one is number 0, and packets
/// name them by their numbers.
pub fn pcapng_interface(link: Link, snaplen: u32, name: &str, into: &mut Vec<u8>) {
    let name = name.as_bytes();
    let name = name.get(..name.len().min(255)).unwrap_or_default();
    let mut options = Vec::from([9, 0, 1, 0, 9, 0, 0, 0]);
    if !name.is_empty() {
        options.extend([2, 0, name.len() as u8, 0]);
        options.extend(name);
        options.resize(options.len().next_multiple_of(4), 0);
    }
    options.extend([0; 4]);
    let [low, high] = link.number().to_le_bytes();
    let head = [low, high, 0, 0];
    block(
        DESCRIPTION,
        &[&head, &snaplen.to_le_bytes(), &options],
        into,
    );
}

/// A packet of such a file.
pub fn pcapng_packet(origin: Origin, time: u64, bytes: &[u8], wire: u32, into: &mut Vec<u8>) {
    let fields = [
        origin.interface,
        (time >> 32) as u32,
        time as u32,
        bytes.len() as u32,
        wire,
    ];
    let mut head = [0; 20];
    for (place, value) in head.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    let flags = origin.direction.flags();
    if flags == 0 {
        return block(PACKET, &[&head, bytes], into);
    }
    let filling = [0; 3].get(..bytes.len().next_multiple_of(4) - bytes.len());
    let filling = filling.unwrap_or_default();
    let [a, b] = FLAGS.to_le_bytes();
    let option = [a, b, 4, 0, flags as u8, 0, 0, 0, 0, 0, 0, 0];
    block(PACKET, &[&head, bytes, filling, &option], into);
}

/// The header of a pcap file of Ethernet frames with times in nanoseconds.
pub fn pcap_header(snaplen: u32) -> [u8; 24] {
    pcap_header_of(Link::Ethernet, snaplen)
}

/// The header of a pcap file of any packets, with times in nanoseconds.
pub fn pcap_header_of(link: Link, snaplen: u32) -> [u8; 24] {
    let mut header = [0; 24];
    header[..8].copy_from_slice(&[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
    header[16..20].copy_from_slice(&snaplen.to_le_bytes());
    header[20..22].copy_from_slice(&link.number().to_le_bytes());
    header
}

/// The header of a pcap file of any packets, with times in microseconds.
pub fn pcap_header_micro(link: Link, snaplen: u32) -> [u8; 24] {
    let mut header = pcap_header_of(link, snaplen);
    header[..4].copy_from_slice(&[0xd4, 0xc3, 0xb2, 0xa1]);
    header
}

/// What stands before a packet's bytes in a file with times in nanoseconds.
pub fn pcap_record(time: u64, captured: u32, wire: u32) -> [u8; 16] {
    record(time, 1, captured, wire)
}

/// What stands before a packet's bytes in a file with times in microseconds; what the time has
/// besides is left out.
pub fn pcap_record_micro(time: u64, captured: u32, wire: u32) -> [u8; 16] {
    record(time, 1000, captured, wire)
}

/// A record whose fraction of a second counts so many nanoseconds.
fn record(time: u64, unit: u64, captured: u32, wire: u32) -> [u8; 16] {
    let mut record = [0; 16];
    let (seconds, part) = (time / 1_000_000_000, time % 1_000_000_000 / unit);
    for (field, value) in [seconds as u32, part as u32, captured, wire]
        .iter()
        .enumerate()
    {
        record[4 * field..4 * field + 4].copy_from_slice(&value.to_le_bytes());
    }
    record
}
