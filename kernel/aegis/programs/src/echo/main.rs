//! A small root with a network: it has the peer send three frames, and sends each of them back from
//! the page in which it came.
#![no_std]
#![no_main]

use postern_aegis::abi::device::Piece;
use postern_aegis::ring::{Ring, Told};
use postern_aegis::{Error, Mapping, calls, entry, memory, pages, println};
use postern_aegis_programs::peer;

postern_aegis::program!(main);

fn main() -> ! {
    match echo(3) {
        Ok(()) => println!("three frames went back"),
        Err(error) => println!("echo: {error}"),
    }
    let _ = calls::stop(0);
    postern_aegis::start::exit()
}

fn echo(frames: u64) -> Result<(), Error> {
    // A ring with a page for each frame, and an endpoint for what this filter accepts.
    let mut ring = Ring::new()?;
    for _ in 0..frames {
        ring.offer(u64::from(pages::take()?) << 12, 0);
    }
    let endpoint = calls::bind("ether proto 0x88b6", 0, ring.page())?;
    ask_for(frames)?;
    for _ in 0..frames {
        let frame = next(&mut ring);
        // Whoever sent it is whom it goes to: the same bytes, gathered in another order.
        let piece = |offset: u64, length: u64| Piece {
            place: frame.place + offset,
            length,
            capability: 0,
        };
        let rest = frame.length() as u64 - 12;
        let pieces = [piece(6, 6), piece(0, 6), piece(12, rest)];
        pages::patiently(|| calls::send(&pieces))?;
        println!("{} bytes went back", frame.length());
        pages::free((frame.place >> 12) as u32)?;
    }
    calls::drop_holding(endpoint, 0).map(drop)
}

/// The next frame, whenever it comes.
fn next(ring: &mut Ring) -> Told {
    loop {
        match ring.next() {
            Some(frame) => return frame,
            None => entry::yield_slice(),
        }
    }
}

/// Asks the peer for frames, by one of its own type.
fn ask_for(frames: u64) -> Result<(), Error> {
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE)?;
    memory::write_bytes(at, &peer::HEADER);
    for (index, word) in [peer::FLOOD, frames, 60].into_iter().enumerate() {
        memory::write(at + peer::WORDS + 8 * index as u64, word);
    }
    let piece = Piece {
        place: u64::from(page) << 12,
        length: 60,
        capability: 0,
    };
    calls::send(&[piece])?;
    pages::free(page)
}
