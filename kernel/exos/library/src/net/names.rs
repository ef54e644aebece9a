//! Addresses of names: as the archive's file `hosts` says, or the network's servers.

use core::net::Ipv4Addr;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_load::archive;
use postern_exos_net::dns::{self, MOST, QUESTION, Refused};
use postern_exos_net::stack::{Address, Kind};

use crate::files::descriptors;
use crate::net::wait::Until;
use crate::net::{ground, place, sockets};

/// Times that each server is asked, and microseconds that its answer is waited for.
const TRIES: u32 = 3;
const PATIENCE: u64 = 1_500_000;

/// Addresses, and how many there are.
pub type Addresses = ([Ipv4Addr; MOST], usize);

/// One address.
pub fn one(address: Ipv4Addr) -> Addresses {
    let mut all = [Ipv4Addr::UNSPECIFIED; MOST];
    all[0] = address;
    (all, 1)
}

/// Addresses of a name: [`errno::NOENT`] if there are none, [`errno::AGAIN`] if no server says.
pub fn find(name: &[u8]) -> Result<Addresses, Errno> {
    let text = core::str::from_utf8(name).ok();
    if let Some(address) = text.and_then(|text| text.parse().ok()) {
        return Ok(one(address));
    }
    if let Some(address) = in_file(name) {
        return Ok(one(address));
    }
    ask(name)
}

/// What the file `hosts` says: a line has an address and names.
fn in_file(name: &[u8]) -> Option<Ipv4Addr> {
    let mut bytes = [0; 2048];
    let file = archive::index_of(b"hosts").and_then(archive::nth)?;
    let length = file.read(0, &mut bytes).ok()?;
    let lines = bytes.get(..length)?.split(|byte| *byte == b'\n');
    for line in lines {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let address = words
            .next()
            .and_then(|word| core::str::from_utf8(word).ok()?.parse().ok());
        if address.is_some() && words.any(|word| word.eq_ignore_ascii_case(name)) {
            return address;
        }
    }
    None
}

fn ask(name: &[u8]) -> Result<Addresses, Errno> {
    let servers = place::place()?.servers;
    let mut question = [0; QUESTION];
    for _ in 0..TRIES {
        for server in servers.into_iter().flatten() {
            let number = ground::random() as u16;
            let length = dns::question(number, name, &mut question).ok_or(errno::NOENT)?;
            let asked = question.get(..length).unwrap_or_default();
            // A socket for each question: its port is another one that is to be guessed.
            let socket = sockets::socket(Kind::Datagram, 0)?;
            let answer = exchange(socket, asked, server);
            let _ = descriptors::close(socket);
            match answer {
                Ok(Err(Refused::NoName)) => return Err(errno::NOENT),
                Ok(Ok(found)) => return Ok(found),
                Err(errno::INTR) => return Err(errno::INTR),
                _ => {}
            }
        }
    }
    Err(errno::AGAIN)
}

fn exchange(
    socket: i32,
    asked: &[u8],
    server: Ipv4Addr,
) -> Result<Result<Addresses, Refused>, Errno> {
    let to = Address {
        host: server,
        port: dns::PORT,
    };
    sockets::connect(socket, to)?;
    sockets::send(socket, asked, 0, None)?;
    let until = Until::after(PATIENCE);
    let mut bytes = [0; 512];
    loop {
        let left = until.left().ok_or(errno::AGAIN)?;
        let patience = sockets::patience(socket, 0)?;
        patience.store(left, core::sync::atomic::Ordering::Relaxed);
        let received = sockets::receive(socket, &mut bytes, 0)?;
        match dns::answer(asked, bytes.get(..received.count).unwrap_or_default()) {
            // Somebody guesses: the server's own answer may come still.
            Err(Refused::Other) => {}
            answer => return Ok(answer),
        }
    }
}
