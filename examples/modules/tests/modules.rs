//! Both ways give the same answers, the modules do what they say, and one that misbehaves is alone
//! with it.

use postern_example_modules::modules::{Built, build};
use postern_example_modules::{Server, Way, site};
use postern_toolchain::{Build, Language};
use std::path::Path;
use std::sync::OnceLock;

fn built() -> &'static [Built] {
    static BUILT: OnceLock<Vec<Built>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("modules");
        build(&folder, false).unwrap_or_else(|error| panic!("{error}"))
    })
}

fn server(way: Way) -> Server {
    Server::new(way, built(), site::files(), site::SECRETS).expect("all modules load")
}

const NOW: u64 = 1_700_000_000;

fn get(server: &mut Server, request: &str) -> String {
    let mut answer = Vec::new();
    server.serve(request.as_bytes(), "10.1.2.3", NOW, &mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn plain(uri: &str, headers: &str) -> String {
    format!("GET {uri} HTTP/1.1\r\nHost: example.org\r\n{headers}\r\n")
}

const PASSWORD: &str = "Authorization: Basic cmVhZGVyOnN3b3JkZmlzaA==\r\n";

#[test]
fn both_ways_answer_the_same() {
    let (mut native, mut confined) = (server(Way::Native), server(Way::Confined));
    let mut requests: Vec<Vec<u8>> = [1, 4, 64, 256].map(site::request).into();
    for (uri, headers) in [
        ("/index.html", ""),
        ("/INDEX.html", ""),
        ("/nothing.html", ""),
        ("/docs/1/", ""),
        ("/docs/1/", PASSWORD),
        ("/docs/1/", "Authorization: Basic cmVhZGVyOndyb25n\r\n"),
        ("/private/plan.txt", "From: somebody@example.org\r\n"),
        ("/images/dot.png", "User-Agent: Googlebot/2.1\r\n"),
        ("/private/", "User-Agent: Googlebot/2.1\r\n"),
        ("/index.html", "X-Forwarded-For: 203.0.113.7\r\n"),
        ("/a.cgi", ""),
        ("/hello.asis", ""),
        ("/click.map?12,3", ""),
        ("/click.map?99,99", ""),
        ("/images/", ""),
        ("/server-status", ""),
        ("/server-info", "Accept: */*\r\n"),
        ("http://example.com/x", ""),
        ("/~root/x", ""),
        ("/en/index.html", "Accept-Language: fr;q=0.2, ja;q=0.9\r\n"),
        ("/index.html", "Bad_Name: 1\r\n"),
    ] {
        requests.push(plain(uri, headers).into_bytes());
    }
    requests.push(b"GET\r\n\r\n".to_vec());
    requests.push(b"no lines".to_vec());
    requests.push(plain("/", &"X: y\r\n".repeat(100)).into_bytes());
    requests.push(plain(&"/a".repeat(20_000), "").into_bytes());
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for request in &requests {
        one.clear();
        two.clear();
        native.serve(request, "10.1.2.3", NOW, &mut one);
        confined.serve(request, "10.1.2.3", NOW, &mut two);
        let text = String::from_utf8_lossy(&request[..request.len().min(200)]);
        assert!(one.starts_with(b"HTTP/1.1 "), "{text}");
        assert_eq!(
            String::from_utf8_lossy(&one),
            String::from_utf8_lossy(&two),
            "{text}"
        );
        assert_eq!(native.log(), confined.log(), "{text}");
    }
    assert_eq!(native.calls(), confined.calls());
    assert!(confined.off().is_empty());
}

#[test]
fn modules_do_what_they_say() {
    let server = &mut server(Way::Confined);
    let status = |answer: &str| answer[9..12].to_owned();
    let page = get(server, &plain("/docs/4/", PASSWORD));
    assert_eq!(status(&page), "200");
    for line in [
        "Content-Type: text/html\r\n",
        "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n",
        "Expires: Tue, 14 Nov 2023 23:13:20 GMT\r\n",
        "Content-Length: 4096\r\n",
        "Server: postern-modules/1\r\n",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    // The password is wrong, or there is none.
    assert_eq!(status(&get(server, &plain("/docs/4/", ""))), "401");
    let wrong = "Authorization: Basic cmVhZGVyOndyb25n\r\n";
    assert_eq!(status(&get(server, &plain("/docs/4/", wrong))), "401");
    // Who has the page already does not get it again.
    let at = page.find("ETag: ").expect("a tag") + 6;
    let tag = &page[at..at + page[at..].find('\r').expect("a line")];
    let again = plain("/docs/4/", &format!("{PASSWORD}If-None-Match: {tag}\r\n"));
    assert_eq!(status(&get(server, &again)), "304");
    // A cookie that the server gave is known again; one that somebody made up is not.
    let at = page.find("visit=").expect("a cookie");
    let cookie = &page[at..at + 38];
    let known = get(
        server,
        &plain("/index.html", &format!("Cookie: {cookie}\r\n")),
    );
    assert!(!known.contains("Set-Cookie"), "{known}");
    let made_up = format!("Cookie: {}0\r\n", &cookie[..37]);
    if !cookie.ends_with('0') {
        assert!(get(server, &plain("/index.html", &made_up)).contains("Set-Cookie"));
    }
    assert!(get(server, &plain("/click.map?12,3", "")).contains("Location: /right\r\n"));
    for (uri, text) in [
        ("/server-status", "requests: "),
        ("/images/", "Index of /images/"),
        ("/a.cgi", "GATEWAY_INTERFACE=CGI/1.1\n"),
        ("/hello.asis", "as it is\n"),
        ("http://example.com/x", "would ask example.com\n"),
        ("/server-info", "Host\n"),
    ] {
        let answer = get(server, &plain(uri, ""));
        assert_eq!(status(&answer), "200", "{uri}");
        assert!(answer.contains(text), "{uri}: {answer}");
    }
    assert_eq!(status(&get(server, &plain("/nothing.html", ""))), "404");
    let behind = plain("/index.html", "X-Forwarded-For: 203.0.113.7\r\n");
    assert_eq!(status(&get(server, &behind)), "403");
}

/// As often as in the paper's table of calls.
#[test]
fn a_request_makes_71_calls_and_59_back() {
    for way in [Way::Native, Way::Confined] {
        let mut server = server(way);
        let mut answer = Vec::new();
        server.serve(&site::request(64), "10.1.2.3", NOW, &mut answer);
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_eq!(server.calls(), (71, 59), "{way:?}");
    }
}

#[test]
fn a_module_that_writes_the_request_is_switched_off_and_the_others_go_on() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("modules-bad");
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = folder.join("bad.c");
    let text = "#include \"module.h\"\nPOSTERN_EXPORT int post_read(const struct request *r)\n\
                { *(char *)r->uri.at = 'x'; return DECLINED; }\n";
    std::fs::write(&source, text).expect("a file");
    let extension = Build::new(Language::C)
        .file(&source)
        .flags(["-O1", "-nolibc", "-fpostern-heap=4K", "-I"])
        .flag(postern_example_modules::modules::sources())
        .output(folder.join("bad.px"))
        .run()
        .expect("it builds");
    let mut all = built().to_vec();
    all[1].extension = extension;
    let mut server = Server::new(Way::Confined, &all, site::files(), &[]).expect("it loads");
    let first = get(&mut server, &plain("/index.html", ""));
    assert!(first.starts_with("HTTP/1.1 500 "), "{first}");
    assert_eq!(server.off(), ["unique_id"]);
    let second = get(&mut server, &plain("/index.html", ""));
    assert!(second.starts_with("HTTP/1.1 200 "), "{second}");
}
