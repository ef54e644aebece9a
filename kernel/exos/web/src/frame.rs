//! Headers of Ethernet, IPv4 (RFC 791) and TCP (RFC 9293, section 3.1).

use crate::sum::Sum;

/// Bytes of the headers of a segment without options.
pub const HEADERS: usize = 54;
/// Bytes of the options of our SYN: MSS, no operation, window scale.
pub const OPTIONS: usize = 8;
/// Bytes of the largest segment on Ethernet.
pub const MSS: u16 = 1460;

const ETHERNET: usize = 14;
const IP: usize = 20;

/// No more data.
pub const FIN: u8 = 1;
/// The first segment.
pub const SYN: u8 = 2;
/// There is no such connection.
pub const RST: u8 = 4;
/// Nothing follows for now.
pub const PSH: u8 = 8;
/// The acknowledgement counts.
pub const ACK: u8 = 16;

/// A segment that arrived, and whose sums are right.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The station that sent the frame.
    pub station: [u8; 6],
    /// Who sent it.
    pub from: u32,
    /// Whom it is for: this machine's address, or one of its loopback.
    pub to: u32,
    /// Its port.
    pub from_port: u16,
    /// Our port.
    pub port: u16,
    /// The number of the first byte, or of the SYN.
    pub sequence: u32,
    /// The number that is expected next, if [`ACK`] is among the flags.
    pub acknowledged: u32,
    /// [`SYN`] and the others.
    pub flags: u8,
    /// The window, not scaled.
    pub window: u16,
    /// Options.
    pub options: &'a [u8],
    /// Data.
    pub data: &'a [u8],
}

/// Why a frame is no segment of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is shorter than what it says.
    Short,
    /// It is not TCP over IPv4, not for this address, or nobody may have sent it.
    Others,
    /// A fragment: those are not put together. TCP's own are not, with an MSS.
    Fragment,
    /// A sum is wrong.
    Sum,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn double(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whether a host may have this address: no network, no loopback, no group, not everybody.
fn is_host(address: u32) -> bool {
    !matches!(address >> 24, 0 | 127 | 224..=255)
}

/// Whether it is an address of a loopback.
const fn is_loopback(address: u32) -> bool {
    address >> 24 == 127
}

/// Reads a frame for a station and its address. What says that it is from this machine must have
/// the station's own address: nobody outside can have it, since such frames are dropped.
///
/// # Errors
/// It is none for us, or not as it should be.
pub fn read(frame: &[u8], (own_station, own): ([u8; 6], u32)) -> Result<Segment<'_>, Wrong> {
    const SHORT: Wrong = Wrong::Short;
    let station: [u8; 6] = *frame.get(6..).and_then(<[u8]>::first_chunk).ok_or(SHORT)?;
    let packet = frame.get(ETHERNET..).ok_or(SHORT)?;
    let first = *packet.first().ok_or(SHORT)?;
    // A frame for a group may not be answered (RFC 1122, section 3.3.6).
    let group = frame.first().is_none_or(|byte| byte & 1 != 0) || station[0] & 1 != 0;
    if word(frame, 12) != Some(0x0800) || first >> 4 != 4 || group {
        return Err(Wrong::Others);
    }
    let length = usize::from(word(packet, 2).ok_or(SHORT)?);
    let head = usize::from(first & 15) * 4;
    let packet = packet.get(..length).ok_or(SHORT)?;
    let header = packet.get(..head.max(IP)).ok_or(SHORT)?;
    if head < IP {
        return Err(SHORT);
    }
    let from = double(header, 12).unwrap_or(0);
    let to = double(header, 16).unwrap_or(0);
    let fits = match station == own_station {
        true => (from == own || is_loopback(from)) && (to == own || is_loopback(to)),
        false => to == own && from != own && is_host(from),
    };
    if header.get(9) != Some(&6) || !fits {
        return Err(Wrong::Others);
    }
    if word(header, 6).unwrap_or(0) & 0x3fff != 0 {
        return Err(Wrong::Fragment);
    }
    let tcp = packet.get(head..).ok_or(SHORT)?;
    let pseudo = Sum::default()
        .double(from)
        .double(to)
        .word(6)
        .word(tcp.len() as u16);
    if !Sum::of(header).is_right() || !pseudo.and(Sum::of(tcp)).is_right() {
        return Err(Wrong::Sum);
    }
    let offset = usize::from(*tcp.get(12).ok_or(SHORT)? >> 4) * 4;
    Ok(Segment {
        station,
        from,
        to,
        from_port: word(tcp, 0).ok_or(SHORT)?,
        port: word(tcp, 2).ok_or(SHORT)?,
        sequence: double(tcp, 4).ok_or(SHORT)?,
        acknowledged: double(tcp, 8).ok_or(SHORT)?,
        flags: *tcp.get(13).ok_or(SHORT)?,
        window: word(tcp, 14).ok_or(SHORT)?,
        options: tcp.get(20..offset).ok_or(SHORT)?,
        data: tcp.get(offset..).ok_or(SHORT)?,
    })
}

/// What a SYN may say: the MSS and the window's scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// The largest segment (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// The scale of windows (RFC 7323, section 2.2).
    pub scale: Option<u8>,
}

/// Reads the options of a SYN, as far as they make sense.
pub fn offers(mut options: &[u8]) -> Offers {
    let mut offers = Offers::default();
    while let [kind, rest @ ..] = options {
        match *kind {
            0 => break,
            1 => options = rest,
            _ => {
                let Some(length) = rest.first().map(|length| usize::from(*length)) else {
                    break;
                };
                let Some(body) = options.get(2..length) else {
                    break;
                };
                match (*kind, body) {
                    (2, [high, low]) => offers.mss = Some(u16::from_be_bytes([*high, *low])),
                    (3, [scale]) => offers.scale = Some((*scale).min(14)),
                    _ => {}
                }
                options = options.get(length..).unwrap_or_default();
            }
        }
    }
    offers
}

/// Headers of all segments of a connection: what differs between them is filled in.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    bytes: [u8; HEADERS],
    /// Sums of what stays the same.
    ip: Sum,
    tcp: Sum,
}

/// What differs between segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields {
    /// The number of the first byte.
    pub sequence: u32,
    /// What is expected next.
    pub acknowledged: u32,
    /// [`SYN`] and the others.
    pub flags: u8,
    /// The window.
    pub window: u16,
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, from: [u8; N]) {
    if let Some(to) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *to = from;
    }
}

impl Template {
    /// Headers from our station and address to others.
    pub fn new(
        (station, own, port): ([u8; 6], u32, u16),
        (other, to, to_port): ([u8; 6], u32, u16),
    ) -> Template {
        let mut bytes = [0; HEADERS];
        put(&mut bytes, 0, other);
        put(&mut bytes, 6, station);
        put(&mut bytes, 12, [8, 0, 0x45, 0]);
        // Not to be fragmented, so the identification says nothing (RFC 6864, section 4).
        put(&mut bytes, 20, [0x40, 0, 64, 6]);
        put(&mut bytes, 26, own.to_be_bytes());
        put(&mut bytes, 30, to.to_be_bytes());
        put(&mut bytes, 34, port.to_be_bytes());
        put(&mut bytes, 36, to_port.to_be_bytes());
        let ip = Sum::of(bytes.get(ETHERNET..ETHERNET + IP).unwrap_or_default());
        let tcp = Sum::default().double(own).double(to).word(6);
        let tcp = tcp.word(port).word(to_port);
        Template { bytes, ip, tcp }
    }

    /// Headers of a segment with `length` bytes of data, whose sum is known; how many bytes they
    /// are.
    pub fn fill(
        &self,
        to: &mut [u8; HEADERS + OPTIONS],
        fields: &Fields,
        options: &[u8],
        (length, data): (usize, Sum),
    ) -> usize {
        let options = options.get(..OPTIONS).map_or(&[][..], |options| options);
        let tcp = 20 + options.len() + length;
        put(to, 0, self.bytes);
        put(to, HEADERS, [0; OPTIONS]);
        if let Some(place) = to.get_mut(HEADERS..HEADERS + options.len()) {
            place.copy_from_slice(options);
        }
        let total = (IP + tcp) as u16;
        put(to, 16, total.to_be_bytes());
        put(to, 24, self.ip.word(total).complement().to_be_bytes());
        put(to, 38, fields.sequence.to_be_bytes());
        put(to, 42, fields.acknowledged.to_be_bytes());
        let offset = ((20 + options.len()) / 4) as u16;
        let control = offset << 12 | u16::from(fields.flags);
        put(to, 46, control.to_be_bytes());
        put(to, 48, fields.window.to_be_bytes());
        let sum = self.tcp.word(tcp as u16).double(fields.sequence);
        let sum = sum.double(fields.acknowledged).word(control);
        let sum = sum.word(fields.window).and(Sum::of(options)).and(data);
        put(to, 50, sum.complement().to_be_bytes());
        HEADERS + options.len()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const OTHER: ([u8; 6], u32, u16) = ([2, 0, 0, 0, 0, 9], 0x0a00_0202, 4000);
    const OWN: ([u8; 6], u32, u16) = ([2, 0, 0, 0, 0, 1], 0x0a00_020f, 80);
    const HERE: ([u8; 6], u32) = (OWN.0, OWN.1);

    fn segment(data: &[u8]) -> Vec<u8> {
        let template = Template::new(OTHER, OWN);
        let fields = Fields {
            sequence: 7,
            acknowledged: 0xffff_fff0,
            flags: ACK,
            window: 500,
        };
        let mut headers = [0; HEADERS + OPTIONS];
        let length = template.fill(&mut headers, &fields, &[], (data.len(), Sum::of(data)));
        [&headers[..length], data].concat()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut frame = segment(b"GET /");
        // Short frames are filled.
        frame.resize(60, 0x55);
        let found = read(&frame, HERE).expect("a segment");
        assert_eq!((found.data, found.port), (&b"GET /"[..], 80));
        assert_eq!((found.sequence, found.acknowledged), (7, 0xffff_fff0));
        assert_eq!((found.from, found.from_port), (OTHER.1, 4000));
        assert_eq!(read(&frame, (OWN.0, 1)).err(), Some(Wrong::Others));
    }

    #[test]
    fn from_here_is_what_this_station_sends() {
        const LOOPBACK: u32 = 0x7f00_0001;
        let said = |station, from, to| {
            let template = Template::new((station, from, 4000), (OWN.0, to, 80));
            let mut headers = [0; HEADERS + OPTIONS];
            let fields = Fields::default();
            let length = template.fill(&mut headers, &fields, &[], (0, Sum::default()));
            read(&headers[..length], HERE).is_ok()
        };
        assert!(said(OWN.0, OWN.1, OWN.1) && said(OWN.0, LOOPBACK, LOOPBACK));
        assert!(said(OTHER.0, OTHER.1, OWN.1) && !said(OWN.0, OTHER.1, OWN.1));
        assert!(!said(OTHER.0, OWN.1, OWN.1) && !said(OTHER.0, LOOPBACK, OWN.1));
        assert!(!said(OTHER.0, OTHER.1, LOOPBACK));
    }

    #[test]
    fn no_frame_is_believed() {
        let frame = segment(b"GET / HTTP/1.1\r\n\r\n");
        for length in 0..frame.len() {
            assert!(read(&frame[..length], HERE).is_err(), "{length}");
        }
        for bit in 14 * 8..frame.len() * 8 {
            let mut wrong = frame.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&wrong, HERE).is_err(), "bit {bit}");
        }
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..20_000 {
            let mut bytes = frame.clone();
            for _ in 0..random.usize(1..8) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            bytes.truncate(random.usize(..=bytes.len()));
            let _ = read(&bytes, HERE);
            let _ = offers(&bytes[random.usize(..=bytes.len())..]);
        }
    }

    #[test]
    fn options_of_a_syn() {
        let found = offers(&[
            1, 1, 2, 4, 5, 0xb4, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 200,
        ]);
        assert_eq!((found.mss, found.scale), (Some(1460), Some(14)));
        for wrong in [
            &[2, 0, 1][..],
            &[2, 1],
            &[3],
            &[8, 200, 1],
            &[0, 2, 4, 1, 1],
        ] {
            assert_eq!(offers(wrong), Offers::default());
        }
    }
}
