//! A platform: pages that are vectors, a wire that keeps frames, a site with bytes that everybody
//! can compute.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use postern_exos_web::http::request::{Method, Request};
use postern_exos_web::keyed::Key;
use postern_exos_web::objects::{HEAD, Memory, Objects};
use postern_exos_web::piece::{Piece, Sent, Wire};
use postern_exos_web::server::{Answer, Asked, Content, Site, Web};
use postern_exos_web::sum::Sum;
use postern_exos_web::tcp::Own;

pub const STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const ADDRESS: u32 = 0x0a00_020f;
pub const PORT: u16 = 80;

/// The byte of a file of some length at a place.
pub fn byte(file: u64, at: u64) -> u8 {
    ((at ^ file).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

pub fn bytes(length: u64) -> Vec<u8> {
    (0..length).map(|at| byte(length, at)).collect()
}

/// Pages by number.
pub type Pages = Rc<RefCell<Vec<Vec<u8>>>>;

pub struct Memories {
    pages: Pages,
    heads: usize,
    /// Bytes that were looked at for sums.
    pub summed: Rc<Cell<u64>>,
    /// Pages whose numbers mean nothing any more.
    pub lost: Rc<Cell<bool>>,
}

impl Memory for Memories {
    fn page(&mut self, file: u64, index: u64) -> Option<(u32, u64)> {
        let first = index * 4096;
        let page = (first..first + 4096).map(|at| byte(file, at)).collect();
        let mut pages = self.pages.borrow_mut();
        pages.push(page);
        Some((pages.len() as u32 - 1, 77))
    }

    fn sum(
        &mut self,
        _of: Option<(u64, u64)>,
        (page, _): (u32, u64),
        offset: usize,
        length: usize,
    ) -> Option<Sum> {
        if self.lost.get() {
            return None;
        }
        self.summed.set(self.summed.get() + length as u64);
        let pages = self.pages.borrow();
        Some(Sum::of(&pages[page as usize][offset..offset + length]))
    }

    fn forget(&mut self, _file: u64) {}

    fn head(&mut self, head: usize, bytes: &[u8]) -> Option<u64> {
        let mut pages = self.pages.borrow_mut();
        let place = head * HEAD;
        assert!(head < self.heads);
        pages[place / 4096][place % 4096..][..bytes.len()].copy_from_slice(bytes);
        Some(place as u64)
    }
}

/// Frames that were sent, assembled from where their pieces stand at that time.
pub struct Frames {
    pages: Pages,
    pub sent: Rc<RefCell<VecDeque<Vec<u8>>>>,
    /// How many more it takes.
    pub room: Rc<Cell<usize>>,
}

impl Wire for Frames {
    fn send(&mut self, headers: &[u8], pieces: &[Piece]) -> Sent {
        if self.room.get() == 0 {
            return Sent::Later;
        }
        self.room.set(self.room.get() - 1);
        let pages = self.pages.borrow();
        let mut frame = headers.to_vec();
        for piece in pieces {
            let page = &pages[(piece.place >> 12) as usize];
            frame.extend(&page[piece.place as usize % 4096..][..piece.length]);
        }
        assert!(frame.len() <= 1514 && pieces.len() <= 6);
        self.sent.borrow_mut().push_back(frame);
        Sent::Yes
    }
}

/// `/LENGTH` is so many bytes; `PUT` is answered by the body's length in bytes of a file.
#[derive(Default)]
pub struct Files {
    cache: Vec<(u64, u32)>,
    pub lines: Vec<String>,
}

impl Site for Files {
    type Memory = Memories;

    fn answer(&mut self, asked: &Asked<'_>, objects: &mut Objects<Memories>) -> Answer {
        let request = asked.request;
        if request.method == Method::Put {
            let fine = asked.body.iter().zip(0..).all(|(b, at)| *b == byte(1, at));
            return Answer::words(if fine { 201 } else { 400 }, "taken\n");
        }
        let path = std::str::from_utf8(&request.path[1..]).unwrap_or("");
        let Ok(length) = path.parse::<u64>() else {
            return Answer::refusal(404);
        };
        let found = self.cache.iter().find(|(kept, _)| *kept == length);
        let object = match found {
            Some((_, object)) => *object,
            None => {
                let object = objects.add(length, length).expect("memory");
                self.cache.push((length, object));
                object
            }
        };
        objects.retain(object);
        Answer {
            status: 200,
            kind: "application/octet-stream",
            version: length + 1,
            allows: "",
            more: Vec::new(),
            content: Content::Object(object, length),
        }
    }

    fn body(&mut self, request: &Request<'_>) -> u64 {
        match request.method {
            Method::Put => 40_000,
            _ => 0,
        }
    }

    fn log(&mut self, line: &[u8], status: u16, bytes: u64) {
        let line = String::from_utf8_lossy(line);
        self.lines.push(format!("{line} {status} {bytes}"));
    }

    fn seconds(&mut self) -> u64 {
        1_000_000_000
    }
}

pub struct Server {
    pub web: Web<Frames, Files>,
    pub sent: Rc<RefCell<VecDeque<Vec<u8>>>>,
    pub room: Rc<Cell<usize>>,
    pub summed: Rc<Cell<u64>>,
}

pub fn server(connections: usize, half_open: usize) -> Server {
    let heads = connections * 2;
    let pages: Pages = Rc::new(RefCell::new(vec![vec![0; 4096]; heads.div_ceil(8)]));
    let (sent, room, summed, lost): (Rc<RefCell<VecDeque<_>>>, _, _, _) = Default::default();
    let room: Rc<Cell<usize>> = room;
    room.set(usize::MAX);
    let own = Own {
        station: STATION,
        address: ADDRESS,
        port: PORT,
        connections,
        half_open,
        room: 0,
        patience: 0,
    };
    let wire = Frames {
        pages: pages.clone(),
        sent: sent.clone(),
        room: room.clone(),
    };
    let summed: Rc<Cell<u64>> = summed;
    let lost: Rc<Cell<bool>> = lost;
    let memory = Memories {
        pages,
        heads,
        summed: summed.clone(),
        lost: lost.clone(),
    };
    let web = Web::new(own, Key([1, 2]), wire, memory, Files::default());
    Server {
        web,
        sent,
        room,
        summed,
    }
}
