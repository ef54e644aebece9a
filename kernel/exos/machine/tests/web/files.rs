//! Files of the archive, as curl and others have them.

use std::process::Command;

use crate::guest::{Guest, ask};

fn bytes(count: usize) -> Vec<u8> {
    let mut state = count as u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    (0..count).map(|_| next()).collect()
}

const SIZES: [usize; 9] = [0, 1, 1000, 1366, 4096, 4097, 20_000, 102_400, 3_000_001];

#[test]
fn files_are_sent_as_they_are() {
    let mut files: Vec<_> = SIZES
        .iter()
        .map(|size| (format!("www/{size}.bin"), bytes(*size)))
        .collect();
    files.push(("www/index.html".to_owned(), b"<p>Hello.\n".to_vec()));
    files.push(("www/a b.txt".to_owned(), b"a blank\n".to_vec()));
    files.push(("www/.secret".to_owned(), b"secret\n".to_vec()));
    let Some(guest) = Guest::serving("-l", files) else {
        return;
    };
    // Through one connection, and once more, for which nothing is summed again.
    let mut stream = guest.connect();
    let mut computed = Vec::new();
    for _ in 0..2 {
        for size in SIZES {
            let answer = ask(&mut stream, &format!("GET /{size}.bin"), b"");
            assert_eq!(answer.status, 200, "{size}");
            assert!(answer.body == bytes(size), "{size} bytes are others");
        }
        let status = ask(&mut stream, "GET /status", b"").text();
        let sums = status.split_once("\"computed\":").expect("sums").1;
        let sums = sums.split_once('}').expect("their end").0;
        computed.push(sums.parse::<u64>().expect("a number"));
    }
    // Of the second round, the text of the first look at the status, and segments that were sent
    // again.
    assert!(computed[1] <= computed[0] + 8, "{computed:?}");

    let answer = guest.ask("GET /", b"");
    assert_eq!(answer.text(), "<p>Hello.\n");
    assert_eq!(
        answer.field("Content-Type"),
        Some("text/html; charset=utf-8")
    );
    let tag = answer.field("ETag").expect("a tag").to_owned();
    let answer = guest.ask(&format!("GET /\nIf-None-Match: {tag}"), b"");
    assert_eq!((answer.status, answer.body.len()), (304, 0));
    let answer = guest.ask("GET /20000.bin\nRange: bytes=4000-4999", b"");
    assert_eq!(answer.status, 206);
    assert!(answer.body == bytes(20_000)[4000..5000]);
    assert_eq!(guest.ask("HEAD /20000.bin", b"").status, 200);
    assert_eq!(guest.ask("GET /a%20b.txt", b"").text(), "a blank\n");
    for missing in ["/.secret", "/none", "/../init", "/%2e%2e/init", "/1.bin/"] {
        assert_eq!(
            guest.ask(&format!("GET {missing}"), b"").status,
            404,
            "{missing}"
        );
    }
    assert_eq!(guest.ask("PUT /x", b"x").status, 413);
    assert_eq!(guest.ask("DELETE /", b"").status, 405);

    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "30"])
        .arg(guest.url("/102400.bin"))
        .output();
    match output {
        Ok(output) => assert!(output.stdout == bytes(102_400), "{output:?}"),
        Err(_) => println!("SKIPPED: no curl"),
    }
    guest.ends();
}
