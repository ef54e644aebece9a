//! Answers of bytes that are made for one request.

use alloc::format;
use alloc::string::String;

use postern_exos_web::http::phrase;
use postern_exos_web::json;
use postern_exos_web::objects::Objects;
use postern_exos_web::server::{Answer, Content};

use crate::web::calls::Failed;
use crate::web::memory::Memories;

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

/// What a program did not answer: the client has the number that the log has.
pub fn failed(failed: &Failed, objects: &mut Objects<Memories>) -> Answer {
    let (status, id) = (failed.status, failed.id);
    let text = format!("{status} {}\nid {id}\n", phrase(status));
    made(objects, (status, "text/plain"), text.as_bytes())
}

/// A problem (RFC 9457), with members besides, each with a comma before it.
pub fn problem(objects: &mut Objects<Memories>, status: u16, detail: &str, more: &str) -> Answer {
    let (title, detail) = (json::string(phrase(status)), json::string(detail));
    let text: String =
        format!("{{\"title\":{title},\"status\":{status},\"detail\":{detail}{more}}}\n");
    made(
        objects,
        (status, "application/problem+json"),
        text.as_bytes(),
    )
}
