//! A site to serve: files of several sizes, one user, and a request as a browser makes it.

use crate::server::Files;

/// The user `reader` with the password `swordfish`: salt, and the hash that `auth.c` computes.
pub const SECRETS: &[(&str, &str)] = &[(
    "reader",
    "sixteen bytes ..04fce9427dd3ba5f7683e9c9a11357a3f05ba77f5fb534ed92c1b5fbdc0c1ebe",
)];

/// Bytes of text that differ with the file.
fn text(size: usize, seed: usize) -> Vec<u8> {
    let mut text = format!("<!DOCTYPE html>\n<title>Page {seed}</title>\n").into_bytes();
    let words = [
        "domain", "window", "gate", "service", "module", "request", "server", "page",
    ];
    let mut k = seed;
    while text.len() < size {
        k = k.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
        text.extend_from_slice(words[k >> 60 & 7].as_bytes());
        text.push(if k >> 40 & 15 == 0 { b'\n' } else { b' ' });
    }
    text.truncate(size);
    text
}

/// The files; `/srv/docs/SIZE/index.html` has so many KiB.
pub fn files() -> Files {
    let mut files = Files::new();
    for size in [1, 4, 16, 64, 128, 256] {
        let name = format!("/srv/docs/{size}/index.html");
        files.insert(name.into_bytes(), text(size << 10, size));
    }
    files.insert(b"/srv/www/index.html".to_vec(), text(2000, 7));
    files.insert(
        b"/srv/www/private/plan.txt".to_vec(),
        b"none yet\n".to_vec(),
    );
    files.insert(b"/srv/www/a.cgi".to_vec(), Vec::new());
    files.insert(
        b"/srv/www/hello.asis".to_vec(),
        b"X-Own: yes\nContent-Type: text/plain\n\nas it is\n".to_vec(),
    );
    files.insert(
        b"/srv/www/click.map".to_vec(),
        b"0 0 9 9 /left\n10 0 19 9 /right\n".to_vec(),
    );
    files.insert(
        b"/srv/images/dot.png".to_vec(),
        b"\x89PNG\r\n\x1a\n".to_vec(),
    );
    files
}

/// A request for a file of so many KiB, as a browser makes it.
pub fn request(size: usize) -> Vec<u8> {
    format!(
        "GET /old/{size}/ HTTP/1.1\r\nHost: www.example.org\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
         Accept-Language: de-AT,de;q=0.8,en-US;q=0.5,en;q=0.3\r\nAccept-Encoding: gzip, deflate, br\r\n\
         Referer: http://www.example.org/index.html\r\nConnection: keep-alive\r\nUpgrade-Insecure-Requests: 1\r\n\
         Cookie: theme=dark; visit=0123456789abcdef0123456789abcdef\r\n\
         Authorization: Basic cmVhZGVyOnN3b3JkZmlzaA==\r\n\r\n"
    )
    .into_bytes()
}
