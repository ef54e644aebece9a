//! The page's files, and what the status says of plugins.

use crate::plugins::{ask, photo, ppm};
use crate::site::{Serving, request};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
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
