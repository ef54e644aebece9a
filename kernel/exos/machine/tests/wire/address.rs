//! Servers that give addresses and lie, until a good one answers.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use postern_exos_net::dhcp;
use postern_exos_net::frame::{self, Datagram, Frame};

use crate::client::Client;
use crate::guest::{GUEST, Guest, OWN, PATIENCE};

/// Where options begin, and the first one's value: what a message is.
const OPTIONS: usize = 240;
const KIND: usize = OPTIONS + 2;

/// A question to a server, if a frame is one.
fn question(bytes: &[u8]) -> Option<Vec<u8>> {
    let datagram = Datagram::read(Frame::read(bytes)?.carries).ok()?;
    let ([68, 67], message) = frame::read_udp(&datagram)? else {
        return None;
    };
    Some(message.to_vec())
}

/// An answer, to everybody.
fn answer(guest: &Guest, message: &[u8]) {
    let mut bytes = vec![0; frame::LONGEST];
    let (to, ports) = ([GUEST.0, OWN.0], [67, 68]);
    let hosts = [OWN.1, Ipv4Addr::BROADCAST];
    let length = frame::udp(&mut bytes, to, hosts, ports, message).expect("room");
    bytes.truncate(length);
    guest.send(&bytes);
}

/// What is wrong with the answers of a round.
fn spoil(good: &[u8], round: usize) -> Vec<Vec<u8>> {
    let mut bad = good.to_vec();
    let is_offer = bad[KIND] == 2;
    match round {
        // What was offered is refused, often.
        0 if !is_offer => {
            bad[KIND] = 6;
            return vec![bad; 50];
        }
        // A mask with holes; it stands behind the kind, the server and the time.
        1 if !is_offer => bad[OPTIONS + 18] = 0x55,
        // Another address than was offered, for nobody.
        2 if !is_offer => bad[16..20].copy_from_slice(&[224, 0, 0, 1]),
        // Options that end nowhere, in an offer that is huge otherwise.
        3 => {
            bad[OPTIONS + 3] = 52;
            bad[44..236].fill(0xfe);
            bad.resize(1400, 0xfe);
        }
        _ => {}
    }
    vec![bad]
}

#[test]
fn an_address_is_had_in_spite_of_servers_that_lie() {
    // Whoever connects to port 9 sees the counts.
    let script = "echod 9 1\nnetstat -s\necho the end\nexit\n";
    let Some(guest) = Guest::boot(script, &[]) else {
        return;
    };
    let hosts = [GUEST.1, OWN.1, OWN.1, OWN.1];
    let until = Instant::now() + 3 * PATIENCE;
    let (mut round, mut acknowledged) = (0, false);
    while !acknowledged {
        assert!(Instant::now() < until, "round {round}: nobody asks");
        let Some(message) = guest
            .receive(Duration::from_millis(500))
            .and_then(|bytes| question(&bytes))
        else {
            continue;
        };
        let is_request = message[KIND] == 3;
        let good = dhcp::answer(&message, hosts, 600).expect("an answer");
        for bytes in spoil(&good, round) {
            answer(&guest, &bytes);
        }
        acknowledged = is_request && round >= 4;
        // The last one spoils the offer, so that nothing is ever asked for.
        round += usize::from(is_request || round == 3);
    }
    guest.hears("has an address: 10.0.0.15/24");
    assert!(Client::new(&guest, 1).is_echoed(9));
    assert_eq!(guest.count("leases"), 1);
    guest.hears("the end");
    guest.ends();
}
