//! Frames that are made to harm, at all layers, while a machine serves: afterwards everybody is
//! served as before, and what was refused is counted.

use std::time::{Duration, Instant};

use fastrand::Rng;
use postern_exos_net::frame::{self, Datagram, Frame, protocol};

use crate::client::Client;
use crate::guest::{Guest, SETTINGS};
use crate::mutations::{by_hand, change, right, segment};

/// Seconds of random frames, of which there are more if the environment says so.
fn seconds() -> u64 {
    let said = std::env::var("POSTERN_WIRE_SECONDS").ok();
    said.and_then(|text| text.parse().ok()).unwrap_or(8)
}

/// The seed, which a failure tells.
fn seed() -> u64 {
    let said = std::env::var("POSTERN_WIRE_SEED").ok();
    said.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A question for a name is answered: rightly, or by something that was an answer once.
fn answer_name(guest: &Guest, random: &mut Rng, bytes: &[u8], truly: bool) -> bool {
    let udp = Frame::read(bytes)
        .and_then(|frame| Datagram::read(frame.carries).ok())
        .and_then(|datagram| frame::read_udp(&datagram));
    let Some(([from, 53], question)) = udp else {
        return false;
    };
    let mut answer = question.to_vec();
    if answer.len() < 17 {
        return false;
    }
    (answer[2], answer[3], answer[7]) = (answer[2] | 0x80, 0, 1);
    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 0, 0, 2]);
    if !truly {
        let at = random.usize(2..answer.len());
        answer[at] = random.u8(..);
        change(random, &mut answer);
        // The number stays as it is, so that it is looked at further.
        answer.truncate(512);
        let number = question.get(..2).unwrap_or_default();
        for (to, from) in answer.iter_mut().zip(number) {
            *to = *from;
        }
    }
    guest.send(&crate::mutations::udp([53, from], &answer));
    true
}

/// A segment that nearly fits into a connection of which this is the guest's last one.
fn beside(random: &mut Rng, last: &[u8]) -> Option<Vec<u8>> {
    let datagram = Datagram::read(Frame::read(last)?.carries).ok()?;
    let bytes = datagram.carries;
    if datagram.protocol != protocol::TCP || bytes.len() < 20 {
        return None;
    }
    let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let word =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let near = |random: &mut Rng, number: u32| match random.u8(..4) {
        0 => number,
        1 => number.wrapping_add(random.u32(..100)),
        2 => number.wrapping_sub(random.u32(..100_000)),
        _ => number.wrapping_add(random.u32(..1 << 17)),
    };
    let numbers = [near(random, word(8)), near(random, word(4))];
    let data: Vec<u8> = (0..random.usize(..1400)).map(|_| random.u8(..)).collect();
    let options: Vec<u8> = (0..random.usize(..20)).map(|_| random.u8(..)).collect();
    let mut frame = segment([half(2), half(0)], numbers, random.u8(..), &options, &data);
    if random.bool() {
        change(random, &mut frame);
    }
    Some(frame)
}

/// Everybody is served: the kernel's handler, the service, a server with its own TCP, a program
/// with sockets.
fn all_serve(guest: &Guest, number: u16) {
    assert!(guest.is_found(), "nobody answers for the address");
    let mut client = Client::new(guest, number);
    assert!(client.is_echoed(7), "the program with sockets is gone");
    let page = client.get("/page").expect("the server is gone");
    assert!(
        page.starts_with("HTTP/1.1 200 ") && page.ends_with("a page\n"),
        "{page}"
    );
}

#[test]
fn a_machine_that_is_sent_nonsense_goes_on() {
    let script = "www -c 32 &\nechod 7 0 1 &\nwhile :; do ask udp name.example 9 x; done > log 2>&1 &\n\
                  echod 9 1\nnetstat -s\necho the end\nexit\n";
    let script = script.replace(" > log 2>&1", "");
    let files = [("net", SETTINGS), ("www/page", "a page\n")];
    let Some(guest) = Guest::boot(&script, &files) else {
        return;
    };
    guest.hears("echod: port 9");
    all_serve(&guest, 1);
    println!("POSTERN_WIRE_SEED={}", seed());
    let mut random = Rng::with_seed(seed());
    for frame in by_hand() {
        guest.send(&frame);
        guest.receive(Duration::from_micros(100));
    }
    all_serve(&guest, 2);
    let until = Instant::now() + Duration::from_secs(seconds());
    let (mut sent, mut number, mut names) = (0u64, 3, 0u64);
    while Instant::now() < until {
        // Connections that are open meanwhile, into which something else is sent.
        let mut client = Client::new(&guest, number);
        number = number % 250 + 1;
        let sockets = [80, 7].map(|port| client.connect(port));
        for socket in sockets.into_iter().flatten() {
            client.send(socket, b"GET /page HTTP/1.1\r\nHost: guest\r\n");
        }
        for round in 0..400 {
            let frame = match random.u8(..4) {
                0 => beside(&mut random, &client.last),
                _ => None,
            };
            let frame = frame.unwrap_or_else(|| {
                let mut frame = right(&mut random);
                if random.u8(..8) > 0 {
                    change(&mut random, &mut frame);
                }
                frame
            });
            guest.send(&frame);
            sent += 1;
            if round % 16 == 0 {
                client.poll();
                names += u64::from(answer_name(
                    &guest,
                    &mut random,
                    &client.last.clone(),
                    false,
                ));
            }
        }
    }
    println!("{sent} frames, {names} answers for names");
    // What is under way still is over.
    while guest.receive(Duration::from_millis(200)).is_some() {}
    all_serve(&guest, 251);
    let status = Client::new(&guest, 252).get("/status").expect("its counts");
    println!("{status}");
    assert!(Client::new(&guest, 253).is_echoed(9));
    assert!(guest.count("frames that arrived") > sent / 2);
    assert!(guest.count("frames that nobody wanted") > 0);
    assert!(guest.count("of those, malformed") > 0);
    assert!(guest.count("told that nobody is there") > 0);
    guest.hears("the end");
    guest.ends();
}
