//! Static files, and all that is not among them.

use crate::site::{Serving, folder, request};
use std::sync::LazyLock;

static SERVING: LazyLock<Serving> = LazyLock::new(|| {
    let folder = folder();
    let public = folder.path().join("public");
    std::os::unix::fs::symlink("../secret.txt", public.join("out.txt")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", public.join("far.txt")).unwrap();
    std::os::unix::fs::symlink("index.html", public.join("in.html")).unwrap();
    std::fs::write(public.join("large"), vec![b'l'; 1_000_000]).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        public.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    Serving::of(folder, "")
});

#[test]
fn files_with_type_and_length() {
    let answer = SERVING.get("/");
    assert_eq!(
        (answer.status, &*answer.text()),
        (Some(200), "<h1>home</h1>\n")
    );
    assert!(
        answer.head.contains("content-type: text/html"),
        "{}",
        answer.head
    );
    assert!(
        answer.head.contains("content-length: 14"),
        "{}",
        answer.head
    );
    assert_eq!(SERVING.get("/a%20b.txt").text(), "a file\n");
    assert_eq!(SERVING.get("/sub/").text(), "below\n");
    assert_eq!(SERVING.get("/in.html").text(), "<h1>home</h1>\n");
    let answer = SERVING.get("/large");
    assert!(answer.whole && answer.body == vec![b'l'; 1_000_000]);
}

#[test]
fn a_folder_has_a_slash() {
    let answer = SERVING.get("/sub?x=y");
    assert_eq!(answer.status, Some(301));
    assert!(
        answer.head.contains("location: /sub/?x=y"),
        "{}",
        answer.head
    );
}

#[test]
fn head_and_what_is_known() {
    let answer = SERVING.send(request("HEAD", "/", "", b""));
    assert!(
        answer.body.is_empty() && answer.head.contains("content-length: 14"),
        "{}",
        answer.head
    );
    let tag = answer
        .head
        .split("etag: ")
        .nth(1)
        .unwrap()
        .split("\r\n")
        .next()
        .unwrap();
    let date = answer
        .head
        .split("last-modified: ")
        .nth(1)
        .unwrap()
        .split("\r\n")
        .next()
        .unwrap();
    for header in [
        format!("If-None-Match: \"x\", {tag}\r\n"),
        format!("If-Modified-Since: {date}\r\n"),
    ] {
        let answer = SERVING.send(request("GET", "/", &header, b""));
        assert_eq!(
            (answer.status, answer.body.len()),
            (Some(304), 0),
            "{header}"
        );
    }
    let answer = SERVING.send(request("GET", "/", "If-None-Match: \"x\"\r\n", b""));
    assert_eq!(answer.status, Some(200));
    let answer = SERVING.send(request("DELETE", "/", "", b""));
    assert_eq!(answer.status, Some(405));
    assert!(answer.head.contains("allow: GET, HEAD"), "{}", answer.head);
}

#[test]
fn parts_of_files_are_served() {
    let ask = |method, path, headers: &str| SERVING.send(request(method, path, headers, b""));
    let whole = ask("GET", "/", "");
    let size = whole.body.len();
    assert!(
        whole.head.contains("accept-ranges: bytes"),
        "{}",
        whole.head
    );
    let part = ask("GET", "/", "Range: bytes=1-4\r\n");
    assert_eq!(
        (part.status, &part.body[..]),
        (Some(206), &whole.body[1..5])
    );
    let place = format!("content-range: bytes 1-4/{size}\r\n");
    assert!(part.head.contains(&place), "{}", part.head);
    assert!(part.head.contains("content-length: 4\r\n"), "{}", part.head);
    let end = ask("GET", "/", "Range: bytes=-3\r\n");
    assert_eq!(
        (end.status, &end.body[..]),
        (Some(206), &whole.body[size - 3..])
    );
    // Longer than what is read at once.
    let long = ask("GET", "/large", "Range: bytes=100000-\r\n");
    assert_eq!((long.status, long.body), (Some(206), vec![b'l'; 900_000]));
    let beyond = ask("GET", "/large", "Range: bytes=1000000-\r\n");
    assert_eq!((beyond.status, beyond.body.len()), (Some(416), 0));
    let place = "content-range: bytes */1000000\r\n";
    assert!(beyond.head.contains(place), "{}", beyond.head);
    for headers in [
        "Range: bytes=1-4, 7-8\r\n",
        "Range: bytes=1-4\r\nIf-Range: \"x\"\r\n",
        "Range: pages=1-4\r\n",
    ] {
        let answer = ask("GET", "/", headers);
        assert_eq!(
            (answer.status, answer.body.len()),
            (Some(200), size),
            "{headers}"
        );
    }
    let head = ask("HEAD", "/large", "Range: bytes=1-4\r\n");
    assert_eq!((head.status, head.body.len()), (Some(200), 0));
    assert!(
        head.head.contains("content-length: 1000000\r\n"),
        "{}",
        head.head
    );
}

#[test]
fn nothing_outside_is_served() {
    for path in [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/sub/../../secret.txt",
        "/sub/..%2f..%2fsecret.txt",
        "/%2e%2e%2f%2e%2e%2fetc/passwd",
        "//etc/passwd",
        "/out.txt",
        "/far.txt",
        "/.hidden",
        "/sub/.%2e/.hidden",
        "/pipe",
        "/nothing",
        "/index.html/",
        "/..\\secret.txt",
    ] {
        let answer = SERVING.get(path);
        assert_eq!(answer.status, Some(404), "{path}: {answer:?}");
        assert!(
            !answer.text().contains("secret\n") && !answer.text().contains("root:"),
            "{path}"
        );
    }
    for path in ["/%00", "/a%", "/%zz", "/index.html%00.txt"] {
        assert_eq!(SERVING.get(path).status, Some(400), "{path}");
    }
}

#[test]
fn what_the_file_system_says_is_told_apart() {
    let public = SERVING.path().join("public");
    std::os::unix::fs::symlink("loop", public.join("loop")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(public.join("socket")).unwrap();
    let long = format!("/{}", "a".repeat(300));
    for path in ["/loop", "/socket", "/index.html/below", &long] {
        assert_eq!(SERVING.get(path).status, Some(404), "{path}");
    }
    drop(socket);
    // Root may read what nobody may.
    if !rustix::process::geteuid().is_root() {
        use std::os::unix::fs::PermissionsExt;
        let path = public.join("mine.txt");
        std::fs::write(&path, "mine").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
        assert_eq!(SERVING.get("/mine.txt").status, Some(403));
    }
}
