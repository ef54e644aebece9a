//! TCP and HTTP together: requests as they come, answers as heads and pages, in the order in which
//! they were asked for. What is in the pages, a [`Site`] says.

use alloc::vec::Vec;

use crate::http::head::{self, Head};
use crate::http::heads::Heads;
use crate::http::request::{self, HEAD, Method, Refusal, Request};
use crate::keyed::Key;
use crate::objects::{FIRST_HEAD, HEADS, Memory, Objects};
use crate::piece::Wire;
use crate::tcp::connection::Stretch;
use crate::tcp::{self, Arrived, Own, Tcp};

/// Microseconds for a head, for a body, and until the next request.
const HEAD_TIME: u64 = 10_000_000;
const BODY_TIME: u64 = 30_000_000;
const IDLE: u64 = 15_000_000;
/// Bytes of requests that are not whole, of all connections.
const BUFFERED: usize = 4 << 20;
/// Bytes that may come on a connection before they are taken.
pub const ROOM: u16 = 16 << 10;
/// What a client hears that waits for a word.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What is behind a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Nothing,
    /// Some words, no more than a head has room for.
    Words(&'static str),
    /// Bytes of an object, of which the answer is a user, from the first one on.
    Object(u32, u64),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The media type.
    pub kind: &'static str,
    /// A tag of what is sent; 0: none.
    pub version: u64,
    /// Methods that are allowed; empty: nothing is said.
    pub allows: &'static str,
    /// More lines of the head, each with its end; at most [`head::MORE`] bytes, or they are lost.
    pub more: Vec<u8>,
    /// What is sent.
    pub content: Content,
}

impl Answer {
    /// Words.
    pub const fn words(status: u16, words: &'static str) -> Answer {
        Answer {
            status,
            kind: "text/plain",
            version: 0,
            allows: "",
            more: Vec::new(),
            content: Content::Words(words),
        }
    }

    /// Why not, in words that say no more than the status does.
    pub const fn refusal(status: u16) -> Answer {
        Answer::words(
            status,
            match status {
                400 => "the request is not one of HTTP/1.1\n",
                403 => "this may not be read\n",
                404 => "there is nothing of this name\n",
                405 => "not with this method\n",
                408 => "the request took too long\n",
                413 => "the body is too long\n",
                414 => "the target is too long\n",
                416 => "there are no such bytes\n",
                431 => "the head is too long\n",
                501 => "there is no such method or coding here\n",
                503 => "too much is going on\n",
                505 => "this is HTTP/1.1\n",
                _ => "it cannot be done\n",
            },
        )
    }
}

/// What there was so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests.
    pub requests: u64,
    /// Of those, refused as requests.
    pub refused: u64,
    /// Bytes that were answered, without heads.
    pub bytes: u64,
}

/// What is asked, and what a site may want to know.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The head.
    pub request: &'a Request<'a>,
    /// The body.
    pub body: &'a [u8],
    /// Requests so far.
    pub counts: Counts,
    /// Segments so far.
    pub tcp: tcp::Counts,
    /// Connections now.
    pub connections: usize,
    /// The client's address.
    pub client: u32,
}

/// What answers.
pub trait Site {
    /// Where answers are.
    type Memory: Memory;
    /// The answer to a request.
    fn answer(&mut self, asked: &Asked<'_>, objects: &mut Objects<Self::Memory>) -> Answer;
    /// Bytes that a request may have behind its head.
    fn body(&mut self, request: &Request<'_>) -> u64;
    /// A request was answered: its first line, the status, bytes behind the head.
    fn log(&mut self, line: &[u8], status: u16, bytes: u64);
    /// Seconds since 1970.
    fn seconds(&mut self) -> u64;
}

/// What is known of a client.
#[derive(Clone, Debug, Default)]
struct Talk {
    /// What came of requests that are not whole.
    buffer: Vec<u8>,
    /// Bytes that are needed before it is looked at again.
    needs: usize,
    /// Heads that are in use, as bits.
    heads: u8,
    /// A word was sent that the body may come.
    continued: bool,
    /// There is more to be answered than there is room for answers.
    blocked: bool,
    /// Nothing more comes; nothing more is answered.
    ended: bool,
    closing: bool,
}

/// A server.
#[derive(Debug)]
pub struct Web<W, S: Site> {
    /// Connections.
    pub tcp: Tcp,
    /// What is sent.
    pub objects: Objects<S::Memory>,
    /// Where frames go.
    pub wire: W,
    /// What answers.
    pub site: S,
    /// What there was so far.
    pub counts: Counts,
    talks: Vec<Talk>,
    buffered: usize,
    resumed: Vec<u16>,
    heads: Heads,
}

impl<W: Wire, S: Site> Web<W, S> {
    /// A server without clients.
    pub fn new(own: Own, key: Key, wire: W, memory: S::Memory, site: S) -> Web<W, S> {
        let own = Own {
            patience: HEAD_TIME,
            room: ROOM,
            ..own
        };
        Web {
            objects: Objects::new(memory, own.connections),
            talks: alloc::vec![Talk::default(); own.connections],
            tcp: Tcp::new(own, key),
            wire,
            site,
            counts: Counts::default(),
            buffered: 0,
            resumed: Vec::with_capacity(own.connections),
            heads: Heads::default(),
        }
    }

    /// A frame came. Microseconds never go back.
    pub fn frame(&mut self, bytes: &[u8], now: u64) {
        let arrived = self.tcp.input(bytes, now);
        self.settle(now);
        if let Some(arrived) = arrived {
            self.arrived(&arrived, bytes, now);
            self.settle(now);
        }
    }

    /// Sends what waits; whether all went. To be called when frames came, the wire has room again,
    /// or time has passed.
    pub fn flush(&mut self, now: u64) -> bool {
        let all = self.tcp.flush(now, &mut self.objects, &mut self.wire);
        self.settle(now);
        all
    }

    /// Time has passed.
    pub fn tick(&mut self, now: u64) {
        self.tcp.tick(now);
        self.settle(now);
        while let Some(slot) = self.tcp.expired.pop() {
            let begun = self.talk(slot).is_some_and(|talk| !talk.buffer.is_empty());
            match begun {
                true => self.refuse(slot, Refusal(408), now),
                false => self.tcp.end(slot, now),
            }
        }
    }

    /// When [`Web::tick`] has something to do.
    pub fn next_due(&self) -> u64 {
        self.tcp.next_due()
    }

    fn talk(&mut self, slot: u16) -> Option<&mut Talk> {
        self.talks.get_mut(usize::from(slot))
    }

    fn arrived(&mut self, arrived: &Arrived, bytes: &[u8], now: u64) {
        let slot = arrived.slot;
        let Some(talk) = self.talks.get_mut(usize::from(slot)) else {
            return;
        };
        if arrived.opened {
            // The one before in this place may have ended by the same frame that told of its end.
            self.buffered -= core::mem::take(talk).buffer.len();
        }
        talk.ended |= arrived.ended;
        if talk.closing {
            // It is taken, so that the client comes to read why.
            return;
        }
        let data = bytes.get(arrived.data.clone()).unwrap_or_default();
        if talk.buffer.is_empty() && !talk.blocked {
            let used = self.serve(slot, data, now);
            let rest = data.get(used..).unwrap_or_default();
            self.keep(slot, rest, now);
        } else if !data.is_empty() {
            let looks = data.contains(&b'\n') || talk.buffer.len() + data.len() >= HEAD;
            let looks = looks || talk.needs > 0;
            self.keep(slot, data, now);
            if looks {
                self.go_on(slot, now);
            }
        }
        self.end_if_all(slot, now);
    }

    /// Keeps what cannot be answered yet.
    fn keep(&mut self, slot: u16, rest: &[u8], now: u64) {
        let Some(talk) = self.talks.get_mut(usize::from(slot)) else {
            return;
        };
        if talk.closing || rest.is_empty() {
            return;
        }
        if talk.buffer.is_empty() && !talk.blocked {
            let time = if talk.needs > 0 { BODY_TIME } else { HEAD_TIME };
            self.tcp.set_deadline(slot, now + time);
        }
        if self.buffered + rest.len() > BUFFERED || talk.buffer.try_reserve(rest.len()).is_err() {
            return self.refuse(slot, Refusal(503), now);
        }
        talk.buffer.extend_from_slice(rest);
        self.buffered += rest.len();
        self.set_room(slot);
    }

    fn set_room(&mut self, slot: u16) {
        if let Some(talk) = self.talks.get(usize::from(slot)) {
            let kept = talk.buffer.len();
            let room = match talk.needs.checked_sub(kept) {
                Some(left) if left > 0 => left.clamp(1, usize::from(ROOM)),
                _ => usize::from(ROOM).saturating_sub(kept),
            };
            self.tcp.set_room(slot, room as u16);
        }
    }

    /// Looks at what was kept.
    fn go_on(&mut self, slot: u16, now: u64) {
        let Some(talk) = self.talk(slot) else {
            return;
        };
        if talk.buffer.len() < talk.needs || talk.buffer.is_empty() {
            self.set_room(slot);
            return;
        }
        let mut buffer = core::mem::take(&mut talk.buffer);
        let used = self.serve(slot, &buffer, now);
        buffer.drain(..used);
        self.buffered -= used;
        if let Some(talk) = self.talk(slot) {
            if talk.closing {
                self.buffered -= buffer.len();
            } else if !buffer.is_empty() {
                talk.buffer = buffer;
            }
        }
        self.set_room(slot);
    }

    /// Nothing more comes, and nothing is left to be answered.
    fn end_if_all(&mut self, slot: u16, now: u64) {
        if let Some(talk) = self.talk(slot)
            && talk.ended
            && !talk.closing
            && !talk.blocked
        {
            talk.closing = true;
            let kept = core::mem::take(&mut talk.buffer).len();
            self.buffered -= kept;
            self.tcp.end(slot, now);
        }
    }

    /// Answers requests; how many bytes they were.
    fn serve(&mut self, slot: u16, bytes: &[u8], now: u64) -> usize {
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let places = self.tcp.places(slot);
            let Some(talk) = self.talk(slot) else {
                return used;
            };
            talk.needs = 0;
            if talk.closing || rest.is_empty() {
                return used;
            }
            talk.blocked = places < 2 || talk.heads == (1 << HEADS) - 1;
            if talk.blocked {
                return used;
            }
            let request = match request::read(rest) {
                Ok(Some(request)) => request,
                Ok(None) => return used,
                Err(refusal) => {
                    self.refuse(slot, refusal, now);
                    return used;
                }
            };
            if request.body > self.site.body(&request) {
                self.refuse(slot, Refusal(413), now);
                return used;
            }
            let length = request.length + request.body as usize;
            let Some(whole) = rest.get(..length) else {
                self.wait_for_body(slot, length, request.expects, now);
                return used;
            };
            used += length;
            let body = whole.get(request.length..).unwrap_or_default();
            self.one(slot, &request, body, now);
        }
    }

    fn wait_for_body(&mut self, slot: u16, length: usize, expects: bool, now: u64) {
        let Some(talk) = self.talk(slot) else {
            return;
        };
        talk.needs = length;
        if expects && !talk.continued {
            talk.continued = true;
            // Nobody misses it: a client sends the body after a while, too (RFC 9110, section
            // 10.1.1).
            if let Some(head) = self.free_head(slot)
                && let Some(object) = self.objects.put_head(head, CONTINUE)
            {
                self.send(slot, head, object, CONTINUE.len(), now);
            }
        }
    }

    fn free_head(&mut self, slot: u16) -> Option<usize> {
        let talk = self.talk(slot)?;
        let free = (0..HEADS).find(|head| talk.heads & 1 << head == 0)?;
        Some(usize::from(slot) * HEADS + free)
    }

    fn send(&mut self, slot: u16, head: usize, object: u32, length: usize, now: u64) -> bool {
        if let Some(talk) = self.talk(slot) {
            talk.heads |= 1 << (head % HEADS);
        }
        let stretch = Stretch {
            object,
            from: 0,
            length: length as u64,
        };
        self.tcp.send(slot, stretch, now)
    }

    fn one(&mut self, slot: u16, request: &Request<'_>, body: &[u8], now: u64) {
        self.counts.requests += 1;
        let asked = Asked {
            request,
            body,
            counts: self.counts,
            tcp: self.tcp.counts,
            connections: self.tcp.count(),
            client: self.tcp.client(slot),
        };
        let answer = self.site.answer(&asked, &mut self.objects);
        if let Some(talk) = self.talk(slot) {
            talk.continued = false;
        }
        self.answer(slot, Some(request), answer, now);
    }

    /// Answers with a status, and ends the connection: where the next request begins is not known.
    fn refuse(&mut self, slot: u16, refusal: Refusal, now: u64) {
        self.counts.refused += 1;
        if let Some(talk) = self.talk(slot) {
            let kept = core::mem::take(&mut talk.buffer).len();
            self.buffered -= kept;
        }
        self.answer(slot, None, Answer::refusal(refusal.0), now);
    }

    fn answer(&mut self, slot: u16, request: Option<&Request<'_>>, answer: Answer, now: u64) {
        let closes = request.is_none_or(|request| request.closes);
        let is_head = request.is_some_and(|request| request.method == Method::Head);
        let mut head = Head {
            status: answer.status,
            kind: answer.kind,
            version: answer.version,
            allows: answer.allows,
            more: &answer.more,
            closes,
            ..Head::default()
        };
        let mut stretch = Stretch::default();
        let mut words = "";
        match answer.content {
            Content::Nothing => {}
            Content::Words(text) => {
                words = text;
                head.length = text.len() as u64;
            }
            Content::Object(object, length) => {
                stretch = Stretch {
                    object,
                    from: 0,
                    length,
                };
                head.length = length;
                if let Some(request) = request {
                    partly(request, &mut head, &mut stretch);
                }
            }
        }
        if is_head || head.status == 304 {
            words = "";
        }
        if is_head {
            stretch.length = 0;
        }
        let is_object = matches!(answer.content, Content::Object(..));
        let place = self.free_head(slot);
        let text = self.heads.bytes(&head, words, self.site.seconds());
        let length = text.len();
        let put = place.and_then(|place| Some((place, self.objects.put_head(place, text)?)));
        let sent = put.is_some_and(|(place, object)| self.send(slot, place, object, length, now));
        if is_object {
            // A stretch that has no place is released by the connection.
            match sent && stretch.length > 0 {
                true => _ = self.tcp.send(slot, stretch, now),
                false => self.objects.release(stretch.object),
            }
        }
        if !sent {
            self.tcp.abort(slot);
            return;
        }
        self.counts.bytes += stretch.length;
        match closes {
            true => {
                if let Some(talk) = self.talk(slot) {
                    talk.closing = true;
                }
                self.tcp.end(slot, now);
            }
            false => self.tcp.set_deadline(slot, now + IDLE),
        }
        let line = request.map_or(&b"-"[..], |request| request.line);
        self.site.log(line, head.status, stretch.length);
    }

    /// Gives back what connections need no more, and answers what had no room for its answer.
    fn settle(&mut self, now: u64) {
        loop {
            while let Some(object) = self.tcp.released.pop() {
                match object.checked_sub(FIRST_HEAD) {
                    None => self.objects.release(object),
                    Some(head) => {
                        let slot = (head as usize / HEADS) as u16;
                        if let Some(talk) = self.talk(slot) {
                            talk.heads &= !(1 << (head as usize % HEADS));
                            if talk.blocked {
                                self.resumed.push(slot);
                            }
                        }
                    }
                }
            }
            while let Some(slot) = self.tcp.gone.pop() {
                if let Some(talk) = self.talk(slot) {
                    let kept = core::mem::take(talk).buffer.len();
                    self.buffered -= kept;
                }
            }
            let Some(slot) = self.resumed.pop() else {
                return;
            };
            if let Some(talk) = self.talk(slot)
                && talk.blocked
            {
                talk.blocked = false;
                self.go_on(slot, now);
                self.end_if_all(slot, now);
            }
        }
    }
}

/// What of an object a client wants that has asked for a part, or has it already.
fn partly(request: &Request<'_>, head: &mut Head<'_>, stretch: &mut Stretch) {
    let reads = matches!(request.method, Method::Get | Method::Head);
    if !reads || head.status != 200 || head.version == 0 {
        return;
    }
    if request
        .has
        .is_some_and(|tags| head::has(tags, head.version))
    {
        (head.status, head.length, stretch.length) = (304, 0, 0);
        return;
    }
    if request.method == Method::Get && request.range.is_some() {
        let whole = stretch.length;
        let (from, length, status) = head::part(request.range, whole);
        (stretch.from, stretch.length) = (from, length);
        (head.status, head.length) = (status, length);
        head.range = Some((from, whole));
    }
}
