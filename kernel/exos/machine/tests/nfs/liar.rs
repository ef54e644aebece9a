//! A server that lies, at a port of the loopback: the one of the client's own tests.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use postern_exos_nfs::record::{self, Records};

use crate::lies;
use crate::server::Server;

/// Answers of which none is changed, so that something is mounted.
const HONEST: u32 = 12;

fn server(seed: u64) -> Server {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut before, mut said) = (Vec::new(), 0);
    let hand = move |answer: &[u8]| {
        said += 1;
        if said > HONEST && random.u8(..100) < 40 {
            return lies::changed(&mut random, answer, &mut before);
        }
        before = answer.to_vec();
        vec![answer.to_vec()]
    };
    Server::new(Box::new(hand), fastrand::Rng::with_seed(!seed).bool())
}

/// Lies until it is dropped.
pub struct Liar {
    pub port: u16,
    ends: Arc<AtomicBool>,
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// In datagrams.
pub fn datagrams(seed: u64) -> Liar {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let patience = Some(Duration::from_millis(200));
    socket.set_read_timeout(patience).expect("a time");
    let ends = Arc::new(AtomicBool::new(false));
    let liar = Liar {
        port: socket.local_addr().expect("its number").port(),
        ends: ends.clone(),
    };
    thread::spawn(move || {
        let (mut server, mut bytes) = (server(seed), [0; 65536]);
        while !ends.load(Ordering::Relaxed) {
            let Ok((count, from)) = socket.recv_from(&mut bytes) else {
                continue;
            };
            for answer in server.answers(&bytes[..count]) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    liar
}

/// In a stream, of which a lie may be the end or a record that is none.
pub fn stream(seed: u64) -> Liar {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let ends = Arc::new(AtomicBool::new(false));
    let liar = Liar {
        port,
        ends: ends.clone(),
    };
    thread::spawn(move || {
        let (mut server, mut random) = (server(seed), fastrand::Rng::with_seed(seed));
        let mut said = 0;
        while let Ok((mut connection, _)) = listener.accept() {
            if ends.load(Ordering::Relaxed) {
                return;
            }
            let patience = Some(Duration::from_secs(20));
            let _ = connection.set_read_timeout(patience);
            let (mut records, mut bytes, mut message) =
                (Records::default(), [0; 65536], Vec::new());
            'connection: while let Ok(count @ 1..) = connection.read(&mut bytes) {
                records.put(&bytes[..count]);
                while records.take(&mut message).is_ok_and(|taken| taken) {
                    for answer in server.answers(&message) {
                        said += 1;
                        let mut mark = record::mark(&answer);
                        if said > HONEST {
                            match random.u8(..30) {
                                0 => mark = random.u32(..).to_be_bytes(),
                                1 => break 'connection,
                                _ => {}
                            }
                        }
                        let sent = connection.write_all(&[&mark, &answer[..]].concat());
                        if sent.is_err() {
                            break 'connection;
                        }
                    }
                }
            }
        }
    });
    liar
}
