//! Connections beyond counting, and a packet of each.

/// The filter of a connection, one of many.
pub fn connection(n: u32) -> String {
    let [_, a, b, c] = n.to_be_bytes();
    format!(
        "ip and tcp and src host 10.{a}.{b}.{c} and src port {} and dst host 10.0.0.1 and dst port 80",
        1024 + n % 60_000
    )
}

/// A packet of that connection.
pub fn connection_packet(n: u32) -> Vec<u8> {
    let mut packet = vec![0; 60];
    packet[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    packet[23] = 6;
    packet[26..30].copy_from_slice(&(10 << 24 | n).to_be_bytes());
    packet[30..34].copy_from_slice(&[10, 0, 0, 1]);
    packet[34..36].copy_from_slice(&(1024 + (n % 60_000) as u16).to_be_bytes());
    packet[37] = 80;
    packet
}
