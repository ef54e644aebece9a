//! Servers of DHCP that know the right number and address, and lie in everything else: the client
//! asks neither all the time nor never again, and has a lease once a good server answers.

use std::net::Ipv4Addr;

use postern_exos_net::Hardware;
use postern_exos_net::dhcp::{Asks, Client, LENGTH, answer};

const OWN: Hardware = [0x52, 0x54, 0, 0, 0, 1];
const SECOND: u64 = 1_000_000;
const OPTIONS: usize = 240;
const GOOD: [Ipv4Addr; 4] = [host(15), host(2), host(1), host(3)];
const BAD: Ipv4Addr = host(66);

const fn host(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 2, last)
}

/// What a client asks for: 1 an offer, 3 what was offered.
fn kind(asks: &Asks) -> u8 {
    asks.bytes[OPTIONS + 2]
}

/// An answer with these options.
fn with(asks: &Asks, address: Ipv4Addr, options: &[&[u8]]) -> Vec<u8> {
    let mut bytes = asks.bytes[..OPTIONS].to_vec();
    bytes[0] = 2;
    bytes[16..20].copy_from_slice(&address.octets());
    bytes.extend(options.concat());
    bytes
}

/// What a server of this address says of what it means, and of itself.
fn begin(kind: u8, server: Ipv4Addr) -> Vec<u8> {
    let mut bytes = vec![53, 1, kind, 54, 4];
    bytes.extend(server.octets());
    bytes
}

type Liar = fn(&Asks, u32) -> Vec<Vec<u8>>;

/// Offers like anybody, and acknowledges with other options.
fn acknowledges(asks: &Asks, address: Ipv4Addr, options: &[u8]) -> Vec<Vec<u8>> {
    let said = [0, 2, 0, 5][usize::from(kind(asks) & 3)];
    let begin = begin(said, BAD);
    vec![with(asks, address, &[&begin, options, &[255]])]
}

/// All of them; the number counts what they were asked.
const LIARS: [(&str, Liar); 16] = [
    ("no lease at all: cut off", |asks, _| {
        acknowledges(asks, host(9), &[51, 4, 0])
    }),
    ("a length beyond the end", |asks, _| {
        acknowledges(asks, host(9), &[3, 255, 10])
    }),
    ("a mask with holes", |asks, _| {
        acknowledges(asks, host(9), &[1, 4, 255, 0, 255, 0])
    }),
    ("a mask of nothing", |asks, _| {
        acknowledges(asks, host(9), &[1, 4, 0, 0, 0, 0])
    }),
    ("a mask of one", |asks, _| {
        acknowledges(asks, host(9), &[1, 4, 255, 255, 255, 255])
    }),
    ("the network's own address", |asks, _| {
        acknowledges(asks, host(0), &[1, 4, 255, 255, 255, 0])
    }),
    ("everybody's address", |asks, _| {
        acknowledges(asks, host(255), &[1, 4, 255, 255, 255, 0])
    }),
    ("a group's address", |asks, _| {
        acknowledges(asks, Ipv4Addr::new(224, 0, 0, 1), &[])
    }),
    ("another address than was offered", |asks, count| {
        acknowledges(asks, host(count as u8 % 100 + 20), &[])
    }),
    ("refusals", |asks, _| {
        let said = if kind(asks) == 1 { 2 } else { 6 };
        vec![with(asks, host(9), &[&begin(said, BAD), &[255]])]
    }),
    ("a storm of refusals", |asks, _| {
        let said = if kind(asks) == 1 { 2 } else { 6 };
        vec![with(asks, host(9), &[&begin(said, BAD), &[255]]); 500]
    }),
    ("another server each time", |asks, count| {
        let server = host(count as u8 % 50 + 100);
        let said = if kind(asks) == 1 { 2 } else { 5 };
        vec![with(asks, host(9), &[&begin(said, server), &[255]])]
    }),
    ("another server each time, which refuses", |asks, count| {
        let server = host((count / 2) as u8 % 50 + 100);
        let said = if kind(asks) == 1 { 2 } else { 6 };
        vec![with(asks, host(9), &[&begin(said, server), &[255]])]
    }),
    ("offers, and silence behind them", |asks, _| {
        let offer = with(asks, host(9), &[&begin(2, BAD), &[255]]);
        if kind(asks) == 1 { vec![offer] } else { vec![] }
    }),
    ("options that are huge, and go on everywhere", |asks, _| {
        let many: Vec<u8> = (0..250)
            .flat_map(|code| [&[code % 50 + 100, 255][..], &[0xff; 255]].concat())
            .collect();
        let mut all = acknowledges(asks, host(9), &[&[52, 1, 3][..], &many, &[255]].concat());
        // What stands in the other places has no end, and a length beyond it.
        all.iter_mut().for_each(|bytes| bytes[44..236].fill(0xfe));
        all
    }),
    (
        "options in the other places that take all back",
        |asks, _| {
            let mut all = acknowledges(asks, host(9), &[52, 1, 3, 255]);
            for bytes in &mut all {
                bytes[44..108].fill(0);
                bytes[108..236].fill(0);
                // A loop would be read without an end.
                bytes[44..53].copy_from_slice(&[52, 1, 3, 1, 4, 0, 0, 0, 0]);
                bytes[108..117].copy_from_slice(&[52, 1, 3, 1, 4, 255, 1, 255, 1]);
            }
            all
        },
    ),
];

/// Goes on for some time with servers: what they were asked, and when there was a lease.
fn go(
    client: &mut Client,
    mut now: u64,
    seconds: u64,
    mut servers: impl FnMut(&Asks, u32) -> Vec<Vec<u8>>,
) -> (u32, Option<u64>) {
    let (until, mut asked) = (now + seconds * SECOND, 0);
    while now < until {
        if let Some(asks) = client.tick(now) {
            for bytes in servers(&asks, asked) {
                client.answered(now, &bytes);
            }
            asked += 1;
        }
        assert!(asked < 10_000, "it asks all the time");
        if client.lease().is_some_and(|lease| lease.address == GOOD[0]) {
            return (asked, Some(now));
        }
        // What is due at once is done at once.
        now = client.due().clamp(now, now + SECOND);
        if client.due() > now {
            continue;
        }
        now += 1;
    }
    (asked, None)
}

/// What a good server answers: nothing to a question for another server's.
fn good(asks: &Asks) -> Vec<Vec<u8>> {
    let at = OPTIONS + 11;
    let options = &asks.bytes[at..LENGTH];
    let server = options.windows(6).find(|six| six[..2] == [54, 4]);
    let other = server.is_some_and(|six| six[2..] != GOOD[1].octets());
    let all = answer(&asks.bytes, GOOD, 600).filter(|_| !other);
    all.map(|bytes| bytes.to_vec()).into_iter().collect()
}

#[test]
fn a_liar_is_not_asked_all_the_time() {
    for (name, liar) in LIARS {
        let mut client = Client::new(OWN, 5);
        let (asked, lease) = go(&mut client, 0, 600, liar);
        println!("{name}: {asked} questions");
        assert!((5..=150).contains(&asked), "{name}: {asked} questions");
        assert_eq!(lease, None, "{name}");
        assert!(client.lease().is_none(), "{name}: {:?}", client.lease());
        // It is gone, and a good one is there.
        let (_, lease) = go(&mut client, 600 * SECOND, 200, |asks, _| good(asks));
        let lease = lease.unwrap_or_else(|| panic!("{name}: no lease from a good server"));
        let took = (lease - 600 * SECOND) / SECOND;
        println!("{name}: a lease after {took} seconds");
        assert!(took <= 100, "{name}: {took}");
    }
}

#[test]
fn a_good_server_beside_a_liar_is_found() {
    for (name, liar) in LIARS {
        let mut client = Client::new(OWN, 5);
        // The liar is always quicker.
        let (_, lease) = go(&mut client, 0, 300, |asks, count| {
            [liar(asks, count), good(asks)].concat()
        });
        assert!(lease.is_some(), "{name}: no lease beside it");
    }
}

#[test]
fn a_lease_that_is_odd_is_had_with_what_makes_sense_of_it() {
    let cases: [(&[u8], u8, Option<Ipv4Addr>); 6] = [
        // No mask, and no time.
        (&[], 24, None),
        // A lease of nothing, with times beyond it.
        (
            &[
                51, 4, 0, 0, 0, 0, 58, 4, 255, 255, 255, 255, 59, 4, 0, 0, 0, 0,
            ],
            24,
            None,
        ),
        // Somebody outside of the network who forwards; the address itself; somebody in it.
        (&[3, 4, 192, 168, 7, 1], 24, None),
        (&[3, 4, 10, 0, 2, 9], 24, None),
        (
            &[1, 4, 255, 255, 0, 0, 3, 4, 10, 0, 9, 1],
            16,
            Some(Ipv4Addr::new(10, 0, 9, 1)),
        ),
        // Too short to be an address.
        (&[3, 2, 10, 0, 6, 3, 1, 2, 3], 24, None),
    ];
    for (options, bits, gateway) in cases {
        let mut client = Client::new(OWN, 5);
        for now in [0, 1] {
            let asks = client.tick(now).expect("a question");
            for bytes in acknowledges(&asks, host(9), options) {
                client.answered(now, &bytes);
            }
        }
        let lease = client.lease().expect("a lease");
        assert_eq!((lease.bits, lease.gateway), (bits, gateway), "{options:?}");
        // It is renewed after half a minute at the earliest.
        assert!(client.tick(29 * SECOND).is_none(), "{options:?}");
    }
}

#[test]
fn options_go_on_in_other_places() {
    let mut client = Client::new(OWN, 5);
    for now in [0, 1] {
        let asks = client.tick(now).expect("a question");
        let said = [0, 2, 0, 5][usize::from(kind(&asks) & 3)];
        let mut bytes = with(&asks, host(9), &[&[53, 1, said, 52, 1, 3, 255]]);
        bytes[108..115].copy_from_slice(&[3, 4, 10, 0, 2, 1, 255]);
        bytes[44..51].copy_from_slice(&[54, 4, 10, 0, 2, 2, 255]);
        client.answered(now, &bytes);
    }
    assert_eq!(client.lease().expect("a lease").gateway, Some(host(1)));
}

/// Refusals of a lease that is there, from its own server and without an end.
#[test]
fn a_lease_is_taken_away_again_and_again() {
    let mut client = Client::new(OWN, 5);
    let mut asked = 0;
    let mut now = 0;
    while now < 600 * SECOND {
        if let Some(asks) = client.tick(now) {
            asked += 1;
            for bytes in good(&asks) {
                client.answered(now, &bytes);
            }
            for _ in 0..100 {
                let refusal = with(&asks, host(9), &[&begin(6, GOOD[1]), &[255]]);
                client.answered(now, &refusal);
            }
        }
        assert!(asked < 3000, "it asks all the time");
        now += SECOND / 4;
    }
    let (_, lease) = go(&mut client, now, 100, |asks, _| good(asks));
    assert!(lease.is_some());
}
