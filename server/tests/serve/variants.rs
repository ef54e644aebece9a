//! One source, four ways to run it, the same answers.

use crate::site::{Serving, handler, parse, request};
use std::io::{Read, Write};
use std::sync::LazyLock;

pub const ALL: [&str; 4] = ["protected", "unprotected", "fastcgi", "cgi"];

static SERVING: LazyLock<Serving> = LazyLock::new(|| {
    let more =
        "instances = 3\nbody_bytes = 8000000\nbuffer_bytes = 65536\nenv = { SITE = \"here\" }";
    let handlers = ALL.map(|run| handler(&format!("/{run}"), run, more));
    Serving::new(&handlers.concat())
});

fn each(check: impl Fn(&Serving, &str)) {
    for run in ALL {
        check(&SERVING, &format!("/{run}"));
    }
}

#[test]
fn a_small_answer() {
    each(|serving, path| {
        // More often than a program must have been quick to be called on a worker thread.
        for _ in 0..10 {
            let answer = serving.get(&format!("{path}/hello"));
            assert_eq!(answer.status, Some(200), "{path}: {answer:?}");
            assert_eq!(answer.text(), "<p>Hello\n", "{path}");
            assert!(
                answer.head.contains("content-type: text/html\r\n"),
                "{}",
                answer.head
            );
            // What a process writes may come in two parts.
            if path.ends_with("protected") {
                assert!(answer.head.contains("content-length: 9"), "{}", answer.head);
            }
        }
    });
}

#[test]
fn what_a_client_sent_is_no_markup() {
    each(|serving, path| {
        let answer = serving.get(&format!("{path}/html?a&'b"));
        assert_eq!(
            answer.text(),
            "a&amp;&#39;b&lt;a href=&quot;b&quot;&gt;&amp;&#39;c&#39;",
            "{path}"
        );
    });
}

#[test]
fn variables_are_those_of_cgi() {
    each(|serving, path| {
        let answer = serving.send(request(
            "POST",
            &format!("{path}/env?a=b%20c"),
            "X-A: 1\r\nContent-Type: text/x\r\nProxy: evil\r\n",
            b"",
        ));
        let expected = format!(
            "REQUEST_METHOD=POST\nSCRIPT_NAME={path}\nPATH_INFO=/env\nQUERY_STRING=a=b%20c\nCONTENT_TYPE=text/x\nHTTP_X_A=1\nSITE=here\n"
        );
        assert_eq!(answer.text(), expected);
    });
}

#[test]
fn variables_of_a_program_stay_but_in_cgi() {
    each(|serving, path| {
        let counts: Vec<u32> = (0..8)
            .map(|_| {
                serving
                    .get(&format!("{path}/count"))
                    .text()
                    .parse()
                    .unwrap()
            })
            .collect();
        match path {
            "/cgi" => assert_eq!(counts, [1; 8]),
            // Eight requests of three instances: one at least had three.
            _ => assert!(counts.iter().any(|count| *count >= 3), "{path}: {counts:?}"),
        }
    });
}

#[test]
fn bodies_large_and_small_come_back() {
    each(|serving, path| {
        for size in [0, 1, 1000, 65536, 65537, 3_000_000] {
            let body: Vec<u8> = (0..size).map(|i| (i * 7 % 251) as u8).collect();
            let answer = serving.post(&format!("{path}/echo"), &body);
            assert_eq!(answer.status, Some(200), "{path} {size}: {}", answer.head);
            assert!(
                answer.whole && answer.body == body,
                "{path} {size}: {} bytes",
                answer.body.len()
            );
        }
        let answer = serving.post(&format!("{path}/read"), &[2; 1234]);
        assert_eq!(answer.text(), "2468 0");
    });
}

#[test]
fn chunked_bodies() {
    each(|serving, path| {
        let body = b"5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n";
        let answer = serving.send(request(
            "POST",
            &format!("{path}/echo"),
            "Transfer-Encoding: chunked\r\n",
            body,
        ));
        assert_eq!(answer.text(), "hello, world", "{path}");
    });
}

#[test]
fn large_answers() {
    each(|serving, path| {
        for size in [0, 28, 1024, 10240, 65536, 102_400, 5_000_000] {
            let answer = serving.get(&format!("{path}/big?{size}"));
            assert!(answer.whole, "{path} {size}");
            assert_eq!(answer.body.len(), size, "{path}");
            let expected = |(at, byte): (usize, &u8)| *byte == b'a' + (at / 1000 % 26) as u8;
            assert!(
                answer.body.iter().enumerate().all(expected),
                "{path} {size}"
            );
        }
        let answer = serving.get(&format!("{path}/room"));
        assert!(
            answer.whole && answer.body.len() > 60_000 && answer.body.iter().all(|b| *b == b'r'),
            "{path}"
        );
    });
}

#[test]
fn a_head_in_parts_and_a_body_that_comes_early() {
    each(|serving, path| {
        let answer = serving.get(&format!("{path}/early"));
        assert!(
            answer.head.contains("x-first: 1\r\n"),
            "{path} {}",
            answer.head
        );
        assert!(
            answer.head.contains("x-second: 2\r\n"),
            "{path} {}",
            answer.head
        );
        assert_eq!(answer.text(), "one two", "{path}");
    });
}

#[test]
fn a_program_answers_while_the_body_comes() {
    each(|serving, path| {
        let mut stream = serving.connect();
        let head = request(
            "POST",
            &format!("{path}/echo"),
            "Transfer-Encoding: chunked\r\n",
            b"",
        );
        stream.write_all(&head).unwrap();
        // More than any buffer on the way holds must come back before the body ends.
        let piece = [b"10000\r\n", &vec![b'x'; 65536][..], b"\r\n"].concat();
        let mut got = Vec::new();
        let mut buffer = vec![0; 65536];
        for _ in 0..8 {
            stream.write_all(&piece).unwrap();
        }
        while got.len() < 4 * 65536 {
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "{path}");
            got.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        stream.read_to_end(&mut got).unwrap();
        let answer = parse(&got);
        assert!(answer.whole && answer.body.len() == 8 * 65536, "{path}");
    });
}

#[test]
fn statuses_and_headers() {
    each(|serving, path| {
        let answer = serving.get(&format!("{path}/status"));
        assert_eq!(
            (answer.status, &*answer.text()),
            (Some(404), "not here"),
            "{path}"
        );
        let answer = serving.get(&format!("{path}/move"));
        assert_eq!(answer.status, Some(302), "{path}");
        assert!(answer.head.contains("location: /elsewhere"), "{path}");
        assert_eq!(
            serving.get(&format!("{path}/header")).text(),
            "-1 -1",
            "{path}"
        );
        let answer = serving.send(request("HEAD", &format!("{path}/hello"), "", b""));
        assert_eq!((answer.status, answer.body.len()), (Some(200), 0), "{path}");
    });
}

#[test]
fn a_head_alone_says_how_long_the_body_would_be() {
    each(|serving, path| {
        // In one piece; with the head first; and from a program that sends its body all the same.
        for (what, length) in [
            ("sized", 5),
            ("sized?1", 5),
            ("length", 3),
            ("big?300000", 0),
        ] {
            let path = format!("{path}/{what}");
            let answer = serving.send(request("HEAD", &path, "", b""));
            assert_eq!(answer.status, Some(200), "{path}: {answer:?}");
            assert!(answer.body.is_empty(), "{path}: {answer:?}");
            let expected = format!("content-length: {length}");
            assert!(
                length == 0 || answer.head.lines().any(|line| line == expected),
                "{path}: {answer:?}"
            );
        }
        for what in ["sized", "sized?1"] {
            let answer = serving.get(&format!("{path}/{what}"));
            assert!(
                answer.whole && answer.text() == "five!",
                "{path}/{what}: {answer:?}"
            );
        }
        assert!(!serving.errors.get().contains("bytes long"), "{path}");
    });
}

#[test]
fn what_programs_say_is_logged_in_one_line() {
    each(|serving, path| {
        assert_eq!(serving.get(&format!("{path}/log")).status, Some(200));
        let expected = format!("postern: {path}: a line");
        // A process's words come on a way of their own.
        while !serving.errors.get().contains(&expected) {
            std::thread::yield_now();
        }
        assert!(
            !serving
                .errors
                .get()
                .lines()
                .any(|line| line.starts_with("and no")),
            "{path}"
        );
    });
}
