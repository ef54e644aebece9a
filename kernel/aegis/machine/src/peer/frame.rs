//! Frames of the peer's: made and read. Addresses are fixed: the guest is 10.0.0.2 at
//! 52:54:00:00:00:01, the peer 10.0.0.1 at 52:54:00:00:00:02.

/// The type of frames that ask and report.
pub const COMMAND: u16 = 0x88b5;
/// The type of frames with nothing in them.
pub const PLAIN: u16 = 0x88b6;
pub const IP: u16 = 0x0800;
pub const ARP: u16 = 0x0806;

const GUEST: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const PEER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];
const GUEST_IP: [u8; 4] = [10, 0, 0, 2];
const PEER_IP: [u8; 4] = [10, 0, 0, 1];
/// The port of UDP's counter.
pub const COUNTER: u16 = 7;
/// The port of the lock.
pub const LOCK: u16 = 8;

/// Where words stand in frames that ask.
const WORDS: usize = 16;
const ETHERNET: usize = 14;
const UDP: usize = ETHERNET + 20;
const ICMP: usize = ETHERNET + 20;
/// The shortest frame on a wire, without its checksum.
const SHORTEST: usize = 60;

/// A frame's type.
pub fn kind(frame: &[u8]) -> Option<u16> {
    let kind = frame.get(12..14)?;
    Some(u16::from_be_bytes([kind[0], kind[1]]))
}

/// A word of a frame that asks; 0 beyond its end.
pub fn word(frame: &[u8], index: usize) -> u64 {
    let bytes = frame.get(WORDS + 8 * index..).unwrap_or_default();
    let mut word = [0; 8];
    word.iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}

fn ethernet(kind: u16) -> Vec<u8> {
    let kind = kind.to_be_bytes();
    GUEST.into_iter().chain(PEER).chain(kind).collect()
}

/// A frame with words.
pub fn words(words: &[u64]) -> Vec<u8> {
    let mut frame = ethernet(COMMAND);
    frame.resize(WORDS, 0);
    frame.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    frame.resize(frame.len().max(SHORTEST), 0);
    frame
}

/// A frame back to where it came from, with another first word.
pub fn echo(frame: &[u8], first: u64) -> Vec<u8> {
    let mut back = frame.to_vec();
    back[..6].copy_from_slice(&GUEST);
    back[6..12].copy_from_slice(&PEER);
    let word = first.to_le_bytes();
    let there = back.get_mut(WORDS..).unwrap_or_default();
    there.iter_mut().zip(word).for_each(|(to, from)| *to = from);
    back
}

/// A frame with nothing but a number in its words, of any length from 14 on.
pub fn plain(length: usize, number: u64) -> Vec<u8> {
    let mut frame = ethernet(PLAIN);
    frame.resize(length.clamp(14, 1 << 15), number as u8);
    let word = number.to_le_bytes();
    let there = frame.get_mut(WORDS..).unwrap_or_default();
    there.iter_mut().zip(word).for_each(|(to, from)| *to = from);
    frame
}

/// The sum of the Internet's protocols (RFC 1071).
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts
        .iter()
        .copied()
        .flatten()
        .copied()
        .collect::<Vec<u8>>();
    let words = bytes.chunks(2).map(|two| {
        let low = two.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([two[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A datagram of IP to the guest.
fn ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut header = vec![0x45, 0];
    header.extend(length.to_be_bytes());
    header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    header.extend(PEER_IP);
    header.extend(GUEST_IP);
    let sum = sum(&[&header]).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    let mut frame = ethernet(IP);
    frame.extend(header);
    frame.extend(payload);
    frame
}

/// A counter by UDP: 60 bytes.
pub fn udp(counter: u64) -> Vec<u8> {
    udp_on(COUNTER, counter)
}

/// The same for a port.
pub fn udp_on(port: u16, counter: u64) -> Vec<u8> {
    let length = 8u16 + 18;
    let mut datagram = Vec::new();
    for half in [port, port, length, 0] {
        datagram.extend(half.to_be_bytes());
    }
    datagram.extend(counter.to_be_bytes());
    datagram.extend([0; 10]);
    let pseudo = [0, 17, 0, length as u8];
    let sum = match sum(&[&PEER_IP, &GUEST_IP, &pseudo, &datagram]) {
        0 => 0xffff,
        sum => sum,
    };
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    ip(17, &datagram)
}

/// The counter of a frame of UDP for the peer's port, whose sum is right if it has one.
pub fn udp_counter(frame: &[u8]) -> Option<u64> {
    udp_counter_on(COUNTER, frame)
}

/// The same for a port.
pub fn udp_counter_on(port: u16, frame: &[u8]) -> Option<u64> {
    let is_udp = kind(frame)? == IP && *frame.get(14)? == 0x45 && *frame.get(23)? == 17;
    let length = usize::from(u16::from_be_bytes(
        frame.get(UDP + 4..UDP + 6)?.try_into().ok()?,
    ));
    let datagram = frame.get(UDP..UDP.checked_add(length)?)?;
    let addresses = frame.get(26..34)?;
    let pseudo = [0, 17, (length >> 8) as u8, length as u8];
    let summed = datagram.get(6..8)? != [0, 0];
    let wanted = datagram.get(2..4)? == port.to_be_bytes();
    if !is_udp || !wanted || (summed && sum(&[addresses, &pseudo, datagram]) != 0) {
        return None;
    }
    Some(u64::from_be_bytes(datagram.get(8..16)?.try_into().ok()?))
}

/// A request for an echo.
pub fn ping(number: u16) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0, 0x50, 0x53];
    message.extend(number.to_be_bytes());
    message.extend(0..32u8);
    let sum = sum(&[&message]).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    ip(1, &message)
}

/// The number of an echo, whose sum and contents are right.
pub fn pong(frame: &[u8]) -> Option<u16> {
    let is_icmp = kind(frame)? == IP && *frame.get(14)? == 0x45 && *frame.get(23)? == 1;
    let message = frame.get(ICMP..ICMP + 40)?;
    let well =
        message[..2] == [0, 0] && sum(&[message]) == 0 && message[8..].iter().copied().eq(0..32);
    (is_icmp && well).then(|| u16::from_be_bytes([message[6], message[7]]))
}

/// The answer to a question for the peer's address.
pub fn arp_answer(frame: &[u8]) -> Option<Vec<u8>> {
    let question = frame.get(14..42)?;
    let asked = question[..8] == [0, 1, 8, 0, 6, 4, 0, 1] && question[24..28] == PEER_IP;
    asked.then(|| {
        let mut answer = ethernet(ARP);
        answer.extend([0, 1, 8, 0, 6, 4, 0, 2]);
        answer.extend(PEER);
        answer.extend(PEER_IP);
        answer.extend(&question[8..18]);
        answer.resize(SHORTEST, 0);
        answer
    })
}

/// A hash of bytes (FNV-1a), which guests compute, too.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Numbers at random from a seed (xorshift*).
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    /// A frame of any length up to 1600, of bytes at random; half of them begin like frames that
    /// somebody could want.
    pub fn frame(&mut self) -> Vec<u8> {
        let length = (self.next() >> 8) as usize % 1601;
        let mut frame: Vec<u8> = match self.next() >> 9 & 3 {
            0 => udp(self.next()),
            1 => ping(self.next() as u16),
            _ => Vec::new(),
        };
        let keep = (self.next() >> 10) as usize % (frame.len() + 1);
        frame.truncate(keep);
        while frame.len() < length {
            frame.push((self.next() >> 20) as u8);
        }
        frame
    }
}

/// What a guest answers to a counter, or to a request for an echo.
#[cfg(test)]
pub fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    if let Some(counter) = udp_counter(frame) {
        return Some(udp(counter + 1));
    }
    let mut back = frame.to_vec();
    back[ICMP] = 0;
    back[ICMP + 2..ICMP + 4].fill(0);
    let sum = sum(&[&back[ICMP..]]).to_be_bytes();
    back[ICMP + 2..ICMP + 4].copy_from_slice(&sum);
    Some(back)
}
