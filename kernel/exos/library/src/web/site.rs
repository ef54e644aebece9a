//! What answers: files, and what the server says of itself.

use alloc::format;

use postern_aegis::{println, time};
use postern_exos_web::http::request::{Method, Request};
use postern_exos_web::objects::Objects;
use postern_exos_web::server::{Answer, Asked, Content, Site};

use crate::web::files::Files;
use crate::web::memory::Memories;

/// A site.
#[derive(Debug)]
pub struct Own {
    /// Its files.
    pub files: Files,
    /// Whether there is a line for each request.
    pub logs: bool,
}

const READS: &str = "GET, HEAD";

/// Bytes that are made for one answer.
pub fn made(
    objects: &mut Objects<Memories>,
    (status, kind): (u16, &'static str),
    bytes: &[u8],
) -> Answer {
    let length = bytes.len() as u64;
    let source = objects.memory.keep(bytes);
    match source.and_then(|source| objects.add(source, length)) {
        Some(object) => Answer {
            status,
            kind,
            content: Content::Object(object, length),
            ..Answer::words(status, "")
        },
        None => Answer::refusal(503),
    }
}

fn status(asked: &Asked<'_>, objects: &mut Objects<Memories>) -> Answer {
    let (tcp, [kept, computed]) = (asked.tcp, objects.sums);
    let text = format!(
        "{{\"requests\":{},\"refused\":{},\"bytes\":{},\"connections\":{},\"opened\":{},\
         \"by_cookie\":{},\"lost\":{},\"segments\":{{\"arrived\":{},\"wrong\":{},\"sent\":{},\
         \"again\":{},\"disordered\":{}}},\"sums\":{{\"kept\":{kept},\"computed\":{computed}}},\
         \"objects\":{}}}\n",
        asked.counts.requests,
        asked.counts.refused,
        asked.counts.bytes,
        asked.connections,
        tcp.opened,
        tcp.by_cookie,
        tcp.lost,
        tcp.arrived,
        tcp.wrong,
        tcp.sent,
        tcp.again,
        tcp.disordered,
        objects.count(),
    );
    made(objects, (200, "application/json"), text.as_bytes())
}

impl Site for Own {
    type Memory = Memories;

    fn answer(&mut self, asked: &Asked<'_>, objects: &mut Objects<Memories>) -> Answer {
        let request = asked.request;
        if !matches!(request.method, Method::Get | Method::Head) {
            return Answer {
                allows: READS,
                ..Answer::refusal(405)
            };
        }
        if let Some(found) = self.files.find(request.path, objects) {
            objects.retain(found.object);
            return Answer {
                kind: found.kind,
                version: found.version,
                content: Content::Object(found.object, found.length),
                ..Answer::words(200, "")
            };
        }
        match request.path {
            b"/status" => status(asked, objects),
            _ => Answer::refusal(404),
        }
    }

    fn body(&mut self, _request: &Request<'_>) -> u64 {
        0
    }

    fn log(&mut self, line: &[u8], status: u16, bytes: u64) {
        if self.logs {
            let line = core::str::from_utf8(line).unwrap_or("-");
            println!("www: {status} {bytes} {line}");
        }
    }

    fn seconds(&mut self) -> u64 {
        time::now()
    }
}
