//! Clients on wires of all kinds.

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;

use crate::platform::{byte, bytes, server};
use crate::wire::{Bad, Net};

/// What a client asks, one after the other, and what it has of the answers.
struct Client {
    socket: SocketHandle,
    asks: Vec<(String, Vec<u8>)>,
    at: usize,
    sent: usize,
    got: Vec<u8>,
    /// It reads at most so many bytes at a time.
    reads: usize,
    done: bool,
}

impl Client {
    /// Bodies that are to come, by length; the last one ends the connection.
    fn new(net: &mut Net, window: usize, lengths: &[u64], reads: usize) -> Client {
        let last = lengths.len() - 1;
        let ask = |(index, length): (usize, &u64)| {
            let close = if index == last {
                "Connection: close\r\n"
            } else {
                ""
            };
            let text = format!("GET /{length} HTTP/1.1\r\nHost: h\r\n{close}\r\n");
            (text, bytes(*length))
        };
        Client {
            socket: net.connect(window),
            asks: lengths.iter().enumerate().map(ask).collect(),
            at: 0,
            sent: 0,
            got: Vec::new(),
            reads,
            done: false,
        }
    }

    fn work(&mut self, net: &mut Net) {
        if self.done {
            return;
        }
        let reads = match self.reads {
            0 => usize::MAX,
            most => net.random.usize(..=most),
        };
        let socket = net.sockets.get_mut::<tcp::Socket>(self.socket);
        if let Some((text, _)) = self.asks.get(self.at)
            && socket.may_send()
            && self.sent < text.len()
        {
            self.sent += socket
                .send_slice(&text.as_bytes()[self.sent..])
                .expect("open");
        }
        if socket.can_recv() {
            let got = &mut self.got;
            let take = |data: &mut [u8]| {
                let length = data.len().min(reads);
                got.extend(&data[..length]);
                (length, ())
            };
            socket.recv(take).expect("open");
        }
        if let Some((_, body)) = self.asks.get(self.at) {
            let Some(end) = self
                .got
                .windows(4)
                .take(1024)
                .position(|w| w == b"\r\n\r\n")
            else {
                return;
            };
            let head = String::from_utf8_lossy(&self.got[..end]).into_owned();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert!(
                head.contains(&format!("Content-Length: {}\r\n", body.len())),
                "{head}"
            );
            let length = end + 4 + body.len();
            if self.got.len() >= length {
                assert!(
                    self.got[end + 4..length] == body[..],
                    "{} bytes differ",
                    body.len()
                );
                self.got.drain(..length);
                self.at += 1;
                self.sent = 0;
            }
        }
        if self.at == self.asks.len() && !socket.may_recv() {
            assert!(self.got.is_empty());
            socket.close();
            self.done = true;
        }
    }
}

fn run(net: &mut Net, clients: &mut [Client]) {
    let begun = net.now;
    while clients.iter().any(|client| !client.done) {
        net.step();
        for client in clients.iter_mut() {
            client.work(net);
        }
        assert!(
            net.now - begun < 900_000_000,
            "{:?} {} of {} came, {:?}, {:?}",
            net.server.web.site.lines.last(),
            clients.iter().filter(|client| client.done).count(),
            clients.len(),
            net.server.web.tcp.counts,
            clients.iter().find(|c| !c.done).map(|c| (
                c.at,
                c.got.len(),
                net.sockets.get::<tcp::Socket>(c.socket).state()
            ))
        );
    }
    // What is closed is known for a while, and no longer.
    for _ in 0..400 {
        net.step();
    }
    let until = net.now + 400_000_000;
    while net.now < until && net.server.web.tcp.count() > 0 {
        net.step();
    }
    assert_eq!(net.server.web.tcp.count(), 0);
}

const LENGTHS: [u64; 14] = [
    0, 1, 2, 1000, 1024, 1366, 1367, 4096, 4097, 5000, 8192, 20_000, 100_000, 300_001,
];

#[test]
fn pages_of_all_sizes() {
    let mut net = Net::new(server(8, 4), Bad::default(), 1514, 1);
    let mut clients = vec![Client::new(&mut net, 65_535, &LENGTHS, 0)];
    run(&mut net, &mut clients);
    let counts = net.server.web.tcp.counts;
    assert_eq!(
        (counts.again, counts.lost, counts.wrong),
        (0, 0, 0),
        "{counts:?}"
    );
    // A byte is summed once, whoever asks for it how often. (And a place in the table serves a
    // second connection, though the first one ended by the frame that told of its end.)
    let summed = net.server.summed.get();
    let mut clients = vec![Client::new(&mut net, 65_535, &LENGTHS, 0)];
    run(&mut net, &mut clients);
    assert_eq!(net.server.summed.get(), summed);
}

#[test]
fn wires_that_lose_and_change() {
    for seed in 0..40 {
        let bad = match seed % 4 {
            0 => Bad {
                lost: 50,
                ..Bad::default()
            },
            1 => Bad {
                late: 200,
                twice: 50,
                ..Bad::default()
            },
            2 => Bad {
                changed: 40,
                ..Bad::default()
            },
            _ => Bad {
                lost: 80,
                late: 100,
                twice: 30,
                changed: 30,
            },
        };
        let mut net = Net::new(server(16, 8), bad, 1514, seed);
        let mut clients: Vec<Client> = (0..6)
            .map(|_| {
                let count = net.random.usize(1..4);
                let lengths: Vec<u64> = (0..count)
                    .map(|_| LENGTHS[net.random.usize(..LENGTHS.len() - 1)])
                    .collect();
                Client::new(&mut net, 65_535, &lengths, 0)
            })
            .collect();
        run(&mut net, &mut clients);
    }
}

#[test]
fn windows_and_segments_of_all_sizes() {
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mtu = [1514, 1514, 590, 200, 1300][random.usize(..5)];
        let lost = if seed % 2 == 0 { 0 } else { 20 };
        let bad = Bad {
            lost,
            ..Bad::default()
        };
        let mut net = Net::new(server(16, 8), bad, mtu, seed);
        let mut clients: Vec<Client> = (0..3)
            .map(|_| {
                let window = [1usize, 7, 100, 1000, 1460, 3000, 200_000][random.usize(..7)];
                let most = if window < 100 { 300 } else { 30_000 };
                // smoltcp takes a byte that asks a closed window, and panics.
                let closes = window >= 1000 || lost == 0;
                let window = if closes { window } else { 1460 };
                let reads = if lost == 0 {
                    [0, window.div_ceil(3)][random.usize(..2)]
                } else {
                    0
                };
                let lengths = [random.u64(..most), random.u64(..most)];
                Client::new(&mut net, window, &lengths, reads)
            })
            .collect();
        run(&mut net, &mut clients);
    }
}

#[test]
fn many_at_once_and_more_than_there_is_room_for() {
    let bad = Bad {
        lost: 5,
        late: 50,
        ..Bad::default()
    };
    let mut net = Net::new(server(40, 4), bad, 1514, 3);
    let mut clients: Vec<Client> = (0..32)
        .map(|index| Client::new(&mut net, 20_000, &[1000, 5000 + index], 0))
        .collect();
    run(&mut net, &mut clients);
    let counts = net.server.web.tcp.counts;
    // Four half-open ones, and cookies for the others.
    assert!(counts.by_cookie > 8, "{counts:?}");
}

#[test]
fn bodies_come_in_pieces() {
    for (seed, length) in (0..8).zip([0, 1, 100, 3000, 9000, 16_384, 20_000, 40_000]) {
        let bad = Bad {
            lost: 30,
            late: 30,
            ..Bad::default()
        };
        let mut net = Net::new(server(8, 4), bad, 1514, seed);
        // A machine that has run for long: the word that a client waits for has its time, too.
        net.now = 1_000_000_000;
        let mut text =
            format!("PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n").into_bytes();
        text.extend(b"Expect: 100-continue\r\nConnection: close\r\n\r\n");
        text.extend((0..length).map(|at| byte(1, at)));
        let socket = net.connect(4000);
        let (mut sent, mut got) = (0, Vec::new());
        loop {
            net.step();
            let socket = net.sockets.get_mut::<tcp::Socket>(socket);
            if socket.may_send() && sent < text.len() {
                sent += socket.send_slice(&text[sent..]).expect("open");
            }
            if socket.can_recv() {
                socket
                    .recv(|data| (data.len(), got.extend(&*data)))
                    .expect("open");
            }
            if sent > 0 && !socket.may_recv() {
                break;
            }
            assert!(
                net.now < 1_300_000_000,
                "{sent} {:?}",
                String::from_utf8_lossy(&got)
            );
        }
        let got = String::from_utf8_lossy(&got).into_owned();
        assert_eq!(got.contains("100 Continue"), length > 1400, "{got}");
        assert!(got.contains("HTTP/1.1 201 Created"), "{got}");
    }
}
