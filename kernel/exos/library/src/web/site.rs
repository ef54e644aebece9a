//! What answers: files, and what the server says of itself.

use alloc::format;

use postern_aegis::{println, time};
use postern_exos_web::http::request::{Method, Request};
use postern_exos_web::objects::Objects;
use postern_exos_web::server::{Answer, Asked, Content, Site};
use postern_exos_web::{picture, through};

use crate::web::answers::{made, problem};
use crate::web::files::Files;
use crate::web::memory::Memories;
use crate::web::plugins::{self, Plugins};
use crate::web::programs::{self, Programs};

/// Bytes of a program's request, and of a picture's file: headers of files are shorter than a page.
const BODY: u64 = postern_exos_web::program::MOST as u64;
const PICTURE: u64 = (picture::MOST / 3 * 4 + 4096) as u64;

/// A site.
pub struct Own {
    /// Its files.
    pub files: Files,
    /// Its programs.
    pub programs: Programs,
    /// What clients have brought; none: they may not.
    pub plugins: Option<Plugins>,
    /// Whether there is a line for each request.
    pub logs: bool,
}

const READS: &str = "GET, HEAD";

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
        if request.path.starts_with(programs::PATH) {
            return self.programs.answer(self.files.folder(), asked, objects);
        }
        if let Some(plugins) = &mut self.plugins {
            if request.path.starts_with(plugins::PATH) {
                return plugins.answer(asked, objects);
            }
            if request.path == b"/transcode" {
                return match (request.method, through::read(request.query)) {
                    (Method::Post, Ok(Some(through))) => {
                        plugins.pass(&through, asked.body, objects)
                    }
                    (Method::Post, Ok(None)) => problem(objects, 400, "through= names plugins", ""),
                    (Method::Post, Err(words)) => problem(objects, 400, words, ""),
                    _ => Answer {
                        allows: "POST",
                        ..Answer::refusal(405)
                    },
                };
            }
        }
        if !matches!(request.method, Method::Get | Method::Head) {
            return Answer {
                allows: READS,
                ..Answer::refusal(405)
            };
        }
        let found = self.files.find(request.path, objects);
        if let Ok(found) = found {
            if !request.query.is_empty()
                && let Some(plugins) = &mut self.plugins
            {
                match through::read(request.query) {
                    Ok(None) => {}
                    Err(words) => return problem(objects, 400, words, ""),
                    Ok(Some(_)) if found.length > PICTURE => {
                        return problem(objects, 413, "the picture is too large", "");
                    }
                    Ok(Some(through)) => {
                        return match objects.memory.bytes(found.source, found.length) {
                            Some(file) => plugins.pass(&through, &file, objects),
                            None => Answer::refusal(503),
                        };
                    }
                }
            }
            objects.retain(found.object);
            return Answer {
                kind: found.kind,
                version: found.version,
                content: Content::Object(found.object, found.length),
                ..Answer::words(200, "")
            };
        }
        match (request.path, found) {
            (b"/status", _) => status(asked, objects),
            (_, Err(status)) => Answer::refusal(status),
            _ => Answer::refusal(404),
        }
    }

    fn body(&mut self, request: &Request<'_>) -> u64 {
        match request.path {
            path if path.starts_with(programs::PATH) => BODY,
            _ if self.plugins.is_none() => 0,
            b"/transcode" => PICTURE,
            path if path.starts_with(plugins::PATH) => plugins::SOURCE,
            _ => 0,
        }
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
