//! What a handler answers in the kernel, while the service whose handler it is does not run.

use std::time::{Duration, Instant};

use postern_exos_net::frame::{self, Datagram, Frame, kind, protocol};

use crate::client::Client;
use crate::guest::{GUEST, Guest, OWN, PATIENCE, SETTINGS};

/// A request for an echo of bytes, of a number and an order.
pub fn echo(order: u16, bytes: &[u8]) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0, 0x12, 0x34];
    message.extend(order.to_be_bytes());
    message.extend(bytes);
    let sum = frame::sum(&[&message]).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    datagram(protocol::ICMP, &message)
}

/// A frame for the guest with a datagram that carries bytes.
pub fn datagram(of: u8, carries: &[u8]) -> Vec<u8> {
    let mut all = frame::ethernet(GUEST.0, OWN.0, kind::IP).to_vec();
    all.extend(frame::ip(OWN.1, GUEST.1, of, 7, carries.len()));
    all.extend(carries);
    all.resize(all.len().max(frame::SHORTEST), 0);
    all
}

/// The next answer to an echo that comes within a time: its order, and its bytes behind the header.
fn answer_within(guest: &Guest, time: Duration) -> Option<(u16, Vec<u8>)> {
    let until = Instant::now() + time;
    while let Some(bytes) = guest.receive(until.saturating_duration_since(Instant::now())) {
        let frame = Frame::read(&bytes)?;
        let Ok(datagram) = Datagram::read(frame.carries) else {
            continue;
        };
        let message = datagram.carries;
        if datagram.protocol != protocol::ICMP || message[0] != 0 {
            continue;
        }
        assert_eq!((frame.to, frame.from), (OWN.0, GUEST.0));
        assert_eq!((datagram.from, datagram.to), (GUEST.1, OWN.1));
        assert_eq!(datagram.whole[8], 64);
        assert_eq!(frame::sum(&[message]), 0);
        assert_eq!(message[4..6], [0x12, 0x34]);
        let order = u16::from_be_bytes([message[6], message[7]]);
        return Some((order, message[8..].to_vec()));
    }
    None
}

/// The answer to an echo of an order.
fn answered(guest: &Guest, order: u16) -> Option<Vec<u8>> {
    let (got, bytes) = answer_within(guest, PATIENCE)?;
    (got == order).then_some(bytes)
}

#[test]
fn echoes_and_questions_are_answered_while_the_service_stands_still() {
    // Whoever connects to port 7 lets it go on.
    let script = "kill -STOP netd\nsleep 1\necho stopped\nechod 7 1\n\
                  kill -CONT netd\nsleep 2\nnetstat -s\nexit\n";
    let Some(guest) = Guest::boot(script, &[("net", SETTINGS)]) else {
        return;
    };
    guest.hears("stopped");
    guest.hears("echod: port 7");
    const ECHOES: u16 = 400;
    for order in 0..ECHOES {
        let length = usize::from(order) * 37 % 1473;
        let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
        guest.send(&echo(order, &bytes));
        assert_eq!(answered(&guest, order).as_deref(), Some(&bytes[..]));
    }
    for _ in 0..50 {
        assert!(guest.is_found());
    }
    // What is not right, or not for this machine, is not answered.
    let right = echo(1, b"right");
    for at in [0, 5, 6, 14, 16, 17, 20, 26, 30, 33, 34, 35, 36, 42] {
        let mut wrong = right.clone();
        wrong[at] ^= 0x41;
        guest.send(&wrong);
    }
    assert_eq!(answer_within(&guest, Duration::from_secs(1)), None);
    assert!(Client::new(&guest, 1).is_echoed(7));
    assert_eq!(guest.count("echoes answered by the service"), 0);
    assert_eq!(
        guest.count("echoes answered in the kernel"),
        u64::from(ECHOES)
    );
    assert!(guest.count("questions answered in the kernel") >= 50);
    guest.ends();
}
