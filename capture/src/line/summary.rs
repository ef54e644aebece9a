//! What is found in a packet, and the fields from which it is read.

use serde::Serialize;
use std::net::IpAddr;

/// What is shown of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Network protocol: `IP`, `IP6`, `ARP`, or the number that the link header has.
    pub network: String,
    /// VLANs, the outer one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<u16>,
    /// Source address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// Destination address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpAddr>,
    /// `tcp`, `udp`, `icmp` and so on, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    /// Source port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Destination port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// What else can be said.
    pub info: String,
    /// What the network header says besides.
    #[serde(skip)]
    pub header: String,
}

pub(super) fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

pub(super) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*field))
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*field))
}
