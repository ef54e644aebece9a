//! What the server says about itself, and the page's files.

use crate::plugins::{ask, photo, ppm};
use crate::site::{Serving, handler, request};
use serde_json::Value;
use std::io::Read;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn domains_and_answers_are_counted() {
    let program = handler("/p", "protected", "instances = 1\n");
    let serving = Serving::new(&format!(
        "[page]\nenabled = true\nheartbeat = \"/p\"\n{program}"
    ));
    assert_eq!(serving.get("/p/null").status, Some(500));
    assert_eq!(serving.get("/p/hello").status, Some(200));
    // A report is used for a moment, and answers are counted when they are through.
    let status = loop {
        let answer = serving.get("/status");
        assert!(
            answer.head.contains("content-type: application/json"),
            "{}",
            answer.head
        );
        let status = json(&answer.text());
        if status["answers"]["5xx"] == 1 && status["domains"][0]["calls"] == 2 {
            break status;
        }
    };
    assert!(status["requests"].as_u64().unwrap() >= 2, "{status}");
    assert_eq!(status["heartbeat"], "/p");
    assert_eq!(status["domains"].as_array().unwrap().len(), 1);
    let domain = &status["domains"][0];
    assert_eq!(domain["name"], "/p#1");
    assert_eq!(domain["kind"], "handler");
    assert_eq!(domain["owner"], "site");
    assert_eq!(domain["state"], "ready");
    assert_eq!(domain["faults"], 1);
    assert_ne!(domain["busy_us"], 0);
    assert_ne!(domain["resident_bytes"], 0);

    let id = domain["id"].as_str().unwrap();
    let window = json(&serving.get(&format!("/status/domains/{id}/window")).text());
    assert_eq!(window["name"], "/p#1");
    let areas = window["areas"].as_array().unwrap();
    let text = areas.iter().find(|area| area["protection"] == "x").unwrap();
    assert_eq!(text["what"], "gate slots and text");
    for pair in areas.windows(2) {
        assert!(pair[0]["end"].as_u64() <= pair[1]["start"].as_u64());
    }
    for wrong in ["0", "x", "ffffffffffffffffffff", ""] {
        let answer = serving.get(&format!("/status/domains/{wrong}/window"));
        assert_eq!(answer.status, Some(404), "{wrong}");
    }
    assert_eq!(serving.post("/status", b"").status, Some(405));
}

#[test]
fn reports_come_as_events_until_the_server_ends() {
    let mut serving = Serving::new("[page]\nenabled = true\n");
    let mut stream = serving.connect();
    std::io::Write::write_all(&mut stream, &request("GET", "/status/events", "", b"")).unwrap();
    let mut text = String::new();
    while text.matches("data: {\"requests\":").count() < 2 {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap();
        assert_ne!(read, 0, "{text}");
        text += &String::from_utf8_lossy(&bytes[..read]);
    }
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    serving.wait();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("0\r\n\r\n"), "{text}");
}

#[test]
fn the_page_is_there_when_the_site_says_so() {
    let serving = Serving::new("[page]\nenabled = true\n");
    let page = serving.get("/");
    assert_eq!(page.status, Some(200));
    assert!(
        page.head
            .contains("content-security-policy: default-src 'self';"),
        "{}",
        page.head
    );
    let text = page.text();
    // Each file that the page names is there, and none is elsewhere.
    let named: Vec<&str> = ["href=\"", "src=\""]
        .iter()
        .flat_map(|key| text.split(key).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(!named.is_empty());
    for name in named.iter().filter(|name| !name.starts_with('#')) {
        assert!(name.starts_with('/'), "{name}");
        assert_eq!(serving.get(name).status, Some(200), "{name}");
    }
    let tag = page.head.split("etag: ").nth(1).unwrap();
    let tag = tag.split("\r\n").next().unwrap();
    let known = serving.send(request(
        "GET",
        "/",
        &format!("If-None-Match: {tag}\r\n"),
        b"",
    ));
    assert_eq!((known.status, known.body.len()), (Some(304), 0));
    assert_eq!(serving.post("/", b"").status, Some(405));
    assert_eq!(serving.get("/_postern/nothing").status, Some(404));
    // Files of the site are where they were.
    assert_eq!(serving.get("/index.html").text(), "<h1>home</h1>\n");

    let serving = Serving::new("");
    assert_eq!(serving.get("/").text(), "<h1>home</h1>\n");
    for path in ["/status", "/_postern/page.css"] {
        assert_eq!(serving.get(path).status, Some(404), "{path}");
    }
}

#[test]
fn plugins_of_clients_are_counted_and_shown() {
    let serving = Serving::new("[page]\nenabled = true\n[plugins]\nguests = true\n");
    let token = "status-0123456789abcdef";
    let source = "#include \"picture.h\"
int dark(struct picture *p) { *p->out = 0; p->width = p->height = p->channels = 1; return PICTURE_DONE; }
";
    let wild =
        "#include \"picture.h\"\nint wild(struct picture *p) { *(char *)64 = 1; return 0; }\n";
    let put = |name: &str, source: &str| {
        let path = format!("/plugins/{name}");
        let answer = ask(&serving, "PUT", &path, token, source.as_bytes());
        assert_eq!(answer.status, Some(201), "{}", answer.text());
        json(&answer.text())
    };
    let made = put("dark", source);
    assert_eq!(put("wild", wild)["domain"], made["domain"]);
    let facts = ask(&serving, "GET", "/plugins/dark/facts", token, b"");
    assert_eq!(json(&facts.text())["domain"], made["domain"]);
    let picture = ppm(&photo(60, 40));
    for (name, status) in [("dark", 200), ("wild", 500)] {
        let path = format!("/transcode?through={name}");
        let answer = ask(&serving, "POST", &path, token, &picture);
        assert_eq!(answer.status, Some(status), "{}", answer.text());
    }
    let status = loop {
        let status = json(&serving.get("/status").text());
        // Two that came, the facts, and the picture; reports themselves are answers, too.
        if status["answers"]["5xx"] == 1 && status["answers"]["2xx"].as_u64() >= Some(4) {
            break status;
        }
    };
    let domains = status["domains"].as_array().unwrap();
    let own = domains.iter().find(|domain| domain["id"] == made["domain"]);
    let own = own.unwrap_or_else(|| panic!("{made} in {status}"));
    assert_eq!(own["kind"], "plugin");
    assert_eq!(own["owner"], made["owner"]);
    assert!(!status.to_string().contains(token));
    assert_eq!(own["faults"], 1);
    // The picture, its result, and code.
    assert!(own["resident_bytes"].as_u64().unwrap() >= 3 * 4096, "{own}");
}
