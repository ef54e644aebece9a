//! Datagrams over the machine's own loopback.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use crate::trusted;

/// A socket on a port of the machine's, whose waits end.
pub fn socket(port: u16) -> Result<UdpSocket, String> {
    let socket =
        UdpSocket::bind(("127.0.0.1", port)).map_err(|error| format!("port {port}: {error}"))?;
    socket
        .set_read_timeout(Some(Duration::from_millis(400)))
        .map_err(|error| error.to_string())?;
    Ok(socket)
}

/// Sends to a port, and returns what came to the socket, if anything did.
pub fn sent(socket: &UdpSocket, bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let to = socket.local_addr().map_err(|error| error.to_string())?;
    let from = UdpSocket::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    from.send_to(bytes, to).map_err(|error| error.to_string())?;
    received(socket)
}

/// What comes to the socket, if anything does.
pub fn received(socket: &UdpSocket) -> Result<Option<Vec<u8>>, String> {
    let mut buffer = [0; 2048];
    match socket.recv(&mut buffer) {
        Ok(size) => Ok(Some(buffer[..size].to_vec())),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The sum of words that checksums of the Internet are (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum();
    (sum & 0xffff) + (sum >> 16)
}

fn checksum(sum: u32) -> [u8; 2] {
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    (!(sum as u16)).to_be_bytes()
}

/// A datagram as it would come from elsewhere: with its checksums, which the machine then looks at.
/// Those of its own it trusts.
pub fn send_summed(port: u16, bytes: &[u8]) -> Result<(), String> {
    let length = (28 + bytes.len()) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 64, 17, 0, 0];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend([127, 0, 0, 1, 127, 0, 0, 1]);
    let udp = (length - 20).to_be_bytes();
    packet.extend(5000u16.to_be_bytes());
    packet.extend(port.to_be_bytes());
    packet.extend(udp);
    packet.extend([0, 0]);
    packet.extend(bytes);
    let sums = sum(&packet[12..]) + 17 + u32::from(length - 20);
    let udp_sum = checksum(sums);
    packet[26..28].copy_from_slice(&udp_sum);
    let header = checksum(sum(&packet[..20]));
    packet[10..12].copy_from_slice(&header);
    trusted::send_raw(&packet).map_err(|error| format!("a raw packet: {error}"))
}
