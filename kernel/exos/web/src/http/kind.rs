//! Media types, by how names end.

const KINDS: [(&[u8], &str); 18] = [
    (b"html", "text/html; charset=utf-8"),
    (b"htm", "text/html; charset=utf-8"),
    (b"css", "text/css; charset=utf-8"),
    (b"js", "text/javascript; charset=utf-8"),
    (b"json", "application/json"),
    (b"txt", "text/plain; charset=utf-8"),
    (b"md", "text/markdown; charset=utf-8"),
    (b"c", "text/plain; charset=utf-8"),
    (b"h", "text/plain; charset=utf-8"),
    (b"png", "image/png"),
    (b"jpg", "image/jpeg"),
    (b"jpeg", "image/jpeg"),
    (b"gif", "image/gif"),
    (b"svg", "image/svg+xml"),
    (b"bmp", "image/bmp"),
    (b"ico", "image/x-icon"),
    (b"wasm", "application/wasm"),
    (b"pdf", "application/pdf"),
];

/// The media type of a file.
pub fn of(name: &[u8]) -> &'static str {
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let ending = name.iter().rposition(|byte| *byte == b'.');
    let ending = ending
        .and_then(|dot| name.get(dot + 1..))
        .unwrap_or_default();
    let found = KINDS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(ending));
    found.map_or("application/octet-stream", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn endings_are_of_the_last_name() {
        assert_eq!(of(b"a/b.HTML"), "text/html; charset=utf-8");
        for other in [&b"html"[..], b"a.html/b", b"", b".", b"a.x"] {
            assert_eq!(of(other), "application/octet-stream");
        }
    }
}
