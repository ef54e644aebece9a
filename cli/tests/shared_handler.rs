//! `examples/pages` in its three forms, and its handler as one of several servers.

use crate::program::postern;
use crate::serve::Serving;
use crate::share::Sharing;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The example, and where a copy of it is served.
struct Pages {
    folder: tempfile::TempDir,
    sharing: Sharing,
}

/// A site with the handler in a domain that all servers have.
const SHARED: &str = r#"listen = "127.0.0.1:0"
[log]
access = ""
error = "error.log"
[[handler]]
path = "/shared"
program = "pages.px"
share = "./pages.socket"
files = ["public"]
instances = 3
"#;

/// The other two forms.
const OTHERS: &str = r#"
[[handler]]
path = "/own"
program = "pages.c"
sources = ["xml.c"]
files = ["public"]
[[handler]]
path = "/fastcgi"
program = "pages.c"
sources = ["xml.c"]
run = "fastcgi"
instances = 1
"#;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/pages")
}

impl Pages {
    fn new(name: &str) -> Pages {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("public/documents")).unwrap();
        for file in fs::read_dir(example().join("handlers")).unwrap() {
            let file = file.unwrap();
            let is_source = file
                .path()
                .extension()
                .is_some_and(|e| e == "c" || e == "h");
            if is_source {
                fs::copy(file.path(), at(file.file_name().to_str().unwrap())).unwrap();
            }
        }
        let autumn = "public/documents/autumn.xml";
        fs::copy(example().join(autumn), at(autumn)).unwrap();
        fs::write(at("libcgi.h"), postern(&["serve", "--header"]).good()).unwrap();
        let path = |name: &str| at(name).to_str().unwrap().to_owned();
        let here = folder.path().to_str().unwrap();
        let compile = ["cc", "-O2", "-g", "-I", here, "-o"].map(str::to_owned);
        let files = ["pages.px", "pages.c", "xml.c"].map(path);
        let built = postern(&[&compile[..], &files].concat());
        assert_eq!(built.code, 0, "{built:?}");
        let image = path("pages.px");
        let sharing = Sharing::at(at("pages.socket"), name, &image, &[]);
        let pages = Pages { folder, sharing };
        pages.write("serve.toml", SHARED);
        pages
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    fn document(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.write(&format!("public/documents/{name}.xml"), bytes);
    }

    fn serve(&self) -> Serving {
        Serving::begin(self.folder.path())
    }

    /// What `postern top` says of the domain.
    fn top(&self) -> Value {
        let socket = self.sharing.socket.to_str().unwrap();
        let all = postern(&["top", "--socket", socket, "--json", "-n", "1"]).json(0);
        all["domains"][0].clone()
    }
}

/// A status, and what follows the head; no answer at all is none.
fn ask(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let timeout = Some(Duration::from_secs(60));
    stream.set_read_timeout(timeout).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    // Pieces are those of the way, and not of the page.
    let body = match head.to_ascii_lowercase().contains("transfer-encoding") {
        true => {
            let mut lines = body;
            let mut whole = String::new();
            loop {
                let (size, rest) = lines.split_once("\r\n")?;
                let size = usize::from_str_radix(size, 16).ok()?;
                if size == 0 {
                    break whole;
                }
                whole.push_str(rest.get(..size)?);
                lines = rest.get(size + 2..)?;
            }
        }
        false => body.to_owned(),
    };
    Some((status, body))
}

/// Documents, and whether they are well-formed.
const DOCUMENTS: [(&str, bool, &str); 24] = [
    ("small", true, "<catalogue/>"),
    (
        "plain",
        true,
        "<em a='1' b=\"&quot;2&#x22;\">t&amp;&lt;&gt; &#233; &#x1F511;</em>",
    ),
    ("cdata", true, "<note><![CDATA[<b>&amp;]]] ]]>x</note>"),
    (
        "kinds",
        true,
        "\u{feff}<?xml version='1.0'?>\r\n<!DOCTYPE a [<!ELEMENT a ANY> <!-- ]> ' -->]>\r\n<a><?do it?><!-- - -->x\r\ny\rz</a>\n<!-- end -->",
    ),
    ("spaces", true, "<a b = 'x\ty\r\nz'  >\n</a >"),
    ("letters", true, "<zähler größe='1'>Ω</zähler>"),
    ("empty", false, ""),
    ("text", false, "text"),
    ("open", false, "<a>\n<b>\n"),
    ("crossed", false, "<a><b></a></b>"),
    ("two", false, "<a/><b/>"),
    ("twice", false, "<a b='1' b='2'/>"),
    ("bare", false, "<a b=1/>"),
    ("less", false, "<a b='<'/>"),
    ("near", false, "<a b='1'c='2'/>"),
    ("entity", false, "<a>&nbsp;</a>"),
    ("ampersand", false, "<a>x & y</a>"),
    ("number", false, "<a>&#0;</a>"),
    ("large", false, "<a>&#x99999999999999999999;</a>"),
    ("brackets", false, "<a>]]></a>"),
    ("comment", false, "<a><!-- -- --></a>"),
    ("endless", false, "<a><![CDATA[</a>"),
    ("late", false, "<a/><?xml version='1.0'?>"),
    ("zero", false, "<a>\0</a>"),
];

#[test]
fn three_forms_and_another_reader_say_the_same() {
    let pages = Pages::new("forms");
    pages.write("serve.toml", format!("{SHARED}{OTHERS}"));
    let serving = pages.serve();
    for (name, _, document) in DOCUMENTS {
        pages.document(name, document);
    }
    let deep = |depth| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    pages.document("deep", deep(64));
    pages.document("deeper", deep(65));
    pages.document("latin", b"<a>\xe9</a>");
    pages.document("long", format!("<a>{}</a>", "\"".repeat(1 << 17)));
    let whole = DOCUMENTS.map(|(name, good, _)| (name, good));
    let more = [
        ("autumn", true),
        ("deep", true),
        ("latin", false),
        ("long", true),
    ];
    let python = Command::new("python3").arg("-V").output().is_ok();
    for (name, good) in whole.iter().chain(&more) {
        let get = |way: &str, query: &str| {
            let path = format!("/{way}/{name}{query}");
            ask(&serving.address, &path).unwrap_or_else(|| panic!("{path}: no answer"))
        };
        let (status, page) = get("own", "");
        assert_eq!(status, if *good { 200 } else { 500 }, "{name}: {page}");
        assert!(*good || page.starts_with("line "), "{name}: {page}");
        for way in ["own", "fastcgi", "shared"] {
            for query in ["", "?fresh"] {
                assert_eq!(get(way, query), (status, page.clone()), "{way} {name}");
            }
        }
        if python {
            let file = pages
                .folder
                .path()
                .join(format!("public/documents/{name}.xml"));
            let script = example().join("page.py");
            let other = Command::new("python3")
                .arg(script)
                .arg(file)
                .output()
                .unwrap();
            assert_eq!(other.status.success(), *good, "{name}: {other:?}");
            assert!(!good || other.stdout == page.as_bytes(), "{name}: {page}");
        }
    }
    let (status, page) = ask(&serving.address, "/own/open").unwrap();
    assert_eq!(
        (status, &*page),
        (500, "line 3: the document ends inside of an element\n")
    );
    // A limit of this reader's own.
    assert_eq!(ask(&serving.address, "/shared/deeper").unwrap().0, 500);
    for path in [
        "",
        "/",
        "/none",
        "/../autumn",
        "/%00",
        "/a/b",
        "/autumn.xml",
    ] {
        let (status, page) = ask(&serving.address, &format!("/shared{path}")).unwrap();
        assert!(status == 404 || status == 400, "{path}: {status} {page}");
    }
}

/// The numbers that `?state` says: requests, hits, transformed.
fn state(serving: &Serving) -> [u64; 3] {
    let (status, text) = ask(&serving.address, "/shared?state").unwrap();
    assert_eq!(status, 200, "{text}");
    let numbers = text.lines().map(|line| line.rsplit(' ').next().unwrap());
    let numbers: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn servers_have_one_state_of_a_shared_handler() {
    let pages = Pages::new("one-state");
    let (one, other) = (pages.serve(), pages.serve());
    assert_eq!(state(&one), [0, 0, 0]);
    let page = ask(&one.address, "/shared/autumn").unwrap();
    assert_eq!(state(&other), [1, 0, 1]);
    // Both at once, in several threads each.
    std::thread::scope(|scope| {
        for serving in [&one, &other, &one, &other] {
            let page = &page;
            scope.spawn(move || {
                for _ in 0..25 {
                    assert_eq!(ask(&serving.address, "/shared/autumn").as_ref(), Some(page));
                }
            });
        }
    });
    assert_eq!(state(&one), [101, 100, 1]);
    assert_eq!(state(&other), state(&one));
    let seen = pages.top();
    let mut servers: Vec<u64> = seen["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["pid"].as_u64().unwrap())
        .collect();
    servers.dedup();
    servers.sort_unstable();
    servers.dedup();
    let mut pids = [&one, &other].map(|serving| u64::from(serving.child.id()));
    pids.sort_unstable();
    assert_eq!(servers, pids, "{seen}");
}

/// A program that faults closes the domain of all, and the next request opens it.
#[test]
fn a_fault_is_one_request_and_the_state_of_all() {
    let pages = Pages::new("fault");
    let guest = example().join("../site/handlers/guest.c");
    let at = |name: &str| pages.folder.path().join(name).to_str().unwrap().to_owned();
    let (image, here) = (at("guest.px"), at(""));
    let compile = [
        "cc",
        "-O2",
        "-g",
        "-I",
        &here,
        "-o",
        &image,
        guest.to_str().unwrap(),
    ];
    assert_eq!(postern(&compile).code, 0);
    let sharing = Sharing::at(at("guest.socket").into(), "guest", &image, &[]);
    let toml = SHARED
        .replace("pages.px", "guest.px")
        .replace("pages.socket", "guest.socket");
    pages.write("serve.toml", toml);
    let (one, other) = (pages.serve(), pages.serve());
    let visitor = |serving: &Serving| {
        let (status, text) = ask(&serving.address, "/shared").unwrap();
        assert_eq!(status, 200, "{text}");
        text.trim_end().to_owned()
    };
    assert!(visitor(&one).contains("visitor 1 of"));
    assert!(visitor(&other).contains("visitor 2 of"));
    let (status, text) = ask(&one.address, "/shared?crash").unwrap();
    assert_eq!(status, 500, "{text}");
    // It is told to the other server at once, and noticed by it a moment later.
    let began = Instant::now();
    while !ask(&other.address, "/shared")
        .unwrap()
        .1
        .contains("visitor 1 of")
    {
        assert!(began.elapsed() < Duration::from_secs(60), "it stays closed");
    }
    assert!(visitor(&one).contains("visitor 2 of"));
    assert!(visitor(&other).contains("visitor 3 of"));
    let socket = sharing.socket.to_str().unwrap();
    let seen = postern(&["top", "--socket", socket, "--json", "-n", "1"]).json(0);
    assert_eq!(seen["domains"][0]["resets"], 1);
}

/// Whoever was inside at the end of another gets 503, and everybody else goes on.
#[test]
fn a_server_that_is_killed_takes_no_other_with_it() {
    let pages = Pages::new("killed");
    let long: String = (0..20_000)
        .map(|n| format!("<item>{n} &amp; more</item>"))
        .collect();
    pages.document("long", format!("<list>{long}</list>"));
    let stays = pages.serve();
    let page = ask(&stays.address, "/shared/autumn").unwrap();
    assert_eq!(page.0, 200);
    let began = Instant::now();
    while pages.top()["resets"] == 0 {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "nobody was inside"
        );
        let mut dies = pages.serve();
        let (over, busy) = (AtomicBool::new(false), AtomicBool::new(false));
        let killed = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while ask(&dies.address, "/shared/long?fresh").is_some() {
                        busy.store(true, SeqCst);
                    }
                });
            }
            let asks = scope.spawn(|| {
                while !over.load(SeqCst) {
                    let answer = ask(&stays.address, "/shared/autumn?fresh").unwrap();
                    assert!(answer == page || answer.0 == 503, "{answer:?}");
                }
            });
            while !busy.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let id = dies.child.id().to_string();
            let killed = Command::new("kill").args(["-KILL", &id]).status().unwrap();
            // It is open again, by whichever request came next.
            let since = Instant::now();
            while ask(&stays.address, "/shared/autumn").unwrap() != page {
                assert!(since.elapsed() < Duration::from_secs(30), "it stays closed");
            }
            over.store(true, SeqCst);
            asks.join().unwrap();
            killed
        });
        assert!(killed.success());
        dies.child.wait().unwrap();
    }
    // What was closed is known to all a moment later.
    while ask(&stays.address, "/shared/autumn").unwrap() != page {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "it stays closed"
        );
    }
    let log = fs::read_to_string(pages.folder.path().join("error.log")).unwrap_or_default();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn what_cannot_be_shared_is_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("p.c"), "int x;").unwrap();
    fs::write(folder.path().join("p.px"), "").unwrap();
    let wrong = |keys: &str| {
        let toml = format!("[[handler]]\npath = \"/p\"\n{keys}\n");
        fs::write(folder.path().join("serve.toml"), toml).unwrap();
        postern(&["serve", "--check", folder.path().to_str().unwrap()])
    };
    for (keys, said) in [
        (
            "program = \"p.c\"\nshare = \"n\"",
            "must be an image that was built",
        ),
        (
            "program = \"p.px\"\nshare = \"n\"\nrecycle = \"reset\"",
            "a reset is one for all",
        ),
        (
            "program = \"p.px\"\nshare = \"n\"\nheap_bytes = 65536",
            "postern share --heap",
        ),
        (
            "program = \"p.px\"\nshare = \"n\"\nrun = \"cgi\"",
            "only a domain has it",
        ),
        (
            "program = \"p.px\"\nshare = \"a b\"",
            "cannot name a shared domain",
        ),
    ] {
        let complaint = wrong(keys).bad(2);
        assert!(complaint.contains(said), "{complaint}");
    }
}
