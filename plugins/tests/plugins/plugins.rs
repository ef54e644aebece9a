//! Plugins by HTTP, and pictures that pass through them.

use crate::site::{Answer, Serving, example_plugins, folder, request};
use image::{DynamicImage, ImageFormat, RgbImage};
use serde_json::Value;
use std::io::Cursor;
use std::sync::LazyLock;

pub const ALICE: &str = "alice-0123456789abcdef";
pub const BOB: &str = "bob-0123456789abcdefgh";
/// What every example begins with.
pub const H: &str = "#include \"picture.h\"\n";

pub const SETTINGS: &str = r#"
transcode = true
[plugins]
guests = true
guests_most = 4
instances = 3
call_ms = 400
picture_bytes = 4_000_000
body_bytes = 2_000_000
clients = [
    { name = "alice", token = "alice-0123456789abcdef" },
    { name = "bob", token = "bob-0123456789abcdefgh", plugins = 2, source_bytes = 2000, code_bytes = 8192, memory_bytes = 8192, requests = 1 },
]
"#;

/// A site with the plugins of the example, and pictures.
pub fn site(settings: &str) -> Serving {
    let folder = folder();
    example_plugins(folder.path());
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join("public").join(name), bytes).unwrap()
    };
    put("a.png", &encoded(&photo(60, 40), ImageFormat::Png));
    put("a.jpg", &encoded(&photo(60, 40), ImageFormat::Jpeg));
    put("a.ppm", &ppm(&photo(60, 40)));
    Serving::of(folder, settings)
}

pub static SERVING: LazyLock<Serving> = LazyLock::new(|| site(SETTINGS));

/// Something with edges and slopes in all colours.
pub fn photo(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let edge = if (x / 7 + y / 5) % 2 == 0 { 90 } else { 0 };
        image::Rgb([(x * 3 + edge) as u8, (y * 5 + edge) as u8, (x * y) as u8])
    })
}

pub fn encoded(image: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

pub fn ppm(image: &RgbImage) -> Vec<u8> {
    let mut bytes = format!("P6\n{} {}\n255\n", image.width(), image.height()).into_bytes();
    bytes.extend_from_slice(image);
    bytes
}

pub fn ask(serving: &Serving, method: &str, path: &str, token: &str, body: &[u8]) -> Answer {
    let who = match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let headers = format!("Content-Length: {}\r\n{who}", body.len());
    serving.send(request(method, path, &headers, body))
}

pub fn put(name: &str, token: &str, source: &str) -> Answer {
    ask(
        &SERVING,
        "PUT",
        &format!("/plugins/{name}"),
        token,
        source.as_bytes(),
    )
}

pub fn transcode(query: &str, token: &str, picture: &[u8]) -> Answer {
    ask(
        &SERVING,
        "POST",
        &format!("/transcode?{query}"),
        token,
        picture,
    )
}

pub fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|e| panic!("{e}: {answer:?}"))
}

pub fn decoded(answer: &Answer) -> DynamicImage {
    assert_eq!(answer.status, Some(200), "{}", answer.text());
    image::load_from_memory(&answer.body).unwrap()
}

pub fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let lines = answer.head.lines();
    let mut values = lines.filter_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    });
    values.next()
}

/// Others are served, whatever happened.
pub fn goes_on() {
    let picture = ppm(&photo(16, 16));
    assert_eq!(transcode("through=gray", "", &picture).status, Some(200));
    assert_eq!(transcode("through=gray", BOB, &picture).status, Some(200));
    assert_eq!(SERVING.get("/").status, Some(200));
}

#[test]
fn a_plugin_is_brought_used_shown_replaced_and_deleted() {
    let invert = format!(
        "{H}int first(struct picture *p)\n{{\n\tunsigned long n = (unsigned long)p->width * p->height * p->channels;\n\
         \tfor (unsigned long i = 0; i < n; i++)\n\t\tp->out[i] = 255 - p->pixels[i];\n\treturn PICTURE_DONE;\n}}\n"
    );
    let made = put("first", ALICE, &invert);
    assert_eq!(made.status, Some(201), "{}", made.text());
    let said = json(&made);
    assert_eq!(said["kind"], "ecode");
    assert_eq!(said["functions"][0], "first");
    assert_eq!(said["source_bytes"], invert.len());
    for number in ["compile_ns", "verify_ns", "code_bytes"] {
        assert!(said[number].as_u64().unwrap() > 0, "{said}");
    }
    assert!(said["facts"]["instructions"].as_u64().unwrap() > 10);
    let picture = photo(60, 40);
    let png = encoded(&picture, ImageFormat::Png);
    let answer = transcode("through=first", ALICE, &png);
    let after = decoded(&answer).into_rgb8();
    assert!(after.iter().zip(picture.iter()).all(|(a, b)| *a == 255 - b));
    assert_eq!(header(&answer, "postern-picture"), Some("60x40"));
    assert_eq!(header(&answer, "content-type"), Some("image/png"));
    let timing = header(&answer, "server-timing").unwrap();
    let names: Vec<&str> = timing
        .split(", ")
        .map(|t| t.split(";dur=").next().unwrap())
        .collect();
    assert_eq!(names, ["decode", "first", "encode"]);
    assert!(
        timing
            .split(";dur=")
            .skip(1)
            .all(|t| t.split(',').next().unwrap().parse::<f64>().is_ok())
    );

    let shown = ask(&SERVING, "GET", "/plugins/first", ALICE, b"");
    assert_eq!(shown.text(), invert);
    assert!(
        header(&shown, "content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    let code = ask(&SERVING, "GET", "/plugins/first/code", ALICE, b"").text();
    assert!(
        code.contains("first:") && code.contains("255 - p->pixels[i]") && code.contains("ret"),
        "{code}"
    );
    // Nothing in front of the function, nor behind its end.
    assert!(code.starts_with("first:"), "{code}");
    assert!(code.lines().count() < 200, "{code}");
    let last = code.lines().last().unwrap();
    assert!(
        !["int3", "nop", "hlt"]
            .iter()
            .any(|fill| last.contains(fill)),
        "{code}"
    );
    let facts = json(&ask(&SERVING, "GET", "/plugins/first/facts", ALICE, b""));
    assert_eq!(facts["owner"], "client");
    let list = json(&ask(&SERVING, "GET", "/plugins/", ALICE, b""));
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"first") && names.contains(&"gray"),
        "{names:?}"
    );

    // Nobody else sees it.
    assert_eq!(
        ask(&SERVING, "GET", "/plugins/first", BOB, b"").status,
        Some(404)
    );
    assert_eq!(
        ask(&SERVING, "GET", "/plugins/first", "", b"").status,
        Some(404)
    );
    assert_eq!(transcode("through=first", BOB, &png).status, Some(404));

    let other =
        format!("{H}int first(struct picture *p) {{ p->pixels[0] = 7; return PICTURE_IN_PLACE; }}");
    assert_eq!(put("first", ALICE, &other).status, Some(200));
    let after = decoded(&transcode("through=first", ALICE, &png)).into_rgb8();
    assert_eq!(
        (after.as_raw()[0], &after.as_raw()[1..]),
        (7, &picture.as_raw()[1..])
    );
    assert_eq!(
        ask(&SERVING, "DELETE", "/plugins/first", ALICE, b"").status,
        Some(204)
    );
    assert_eq!(
        ask(&SERVING, "DELETE", "/plugins/first", ALICE, b"").status,
        Some(404)
    );
    assert_eq!(transcode("through=first", ALICE, &png).status, Some(404));
}

#[test]
fn static_pictures_pass_through_the_sites_plugins() {
    let before = photo(60, 40);
    for (file, kind) in [
        ("a.png", "image/png"),
        ("a.jpg", "image/jpeg"),
        ("a.ppm", "image/x-portable-graymap"),
    ] {
        let answer = SERVING.get(&format!("/{file}?through=gray,scale2"));
        assert_eq!(answer.status, Some(200), "{}", answer.text());
        assert_eq!(header(&answer, "content-type"), Some(kind));
        assert_eq!(header(&answer, "postern-picture"), Some("30x20"));
    }
    let as_png = SERVING.get("/a.ppm?format=png");
    assert_eq!(decoded(&as_png).into_rgb8(), before);
    assert_eq!(
        SERVING.get("/a.png").body,
        std::fs::read(SERVING.path().join("public/a.png")).unwrap()
    );
    for (path, status) in [
        ("/nothing.png?through=gray", 404),
        ("/index.html?through=gray", 415),
        ("/sub/?through=gray", 404),
        ("/../secret.txt?through=gray", 404),
        ("/a.png?through=nobody", 404),
        ("/a.png?through=a(", 400),
        ("/a.png?through=roi(1)", 422),
        ("/a.png?through=deflate,gray", 400),
        ("/a.png?through=deflate&format=png", 400),
        ("/a.png?format=bmp", 400),
    ] {
        let answer = SERVING.get(path);
        assert_eq!(answer.status, Some(status), "{path}: {}", answer.text());
    }
}

#[test]
fn who_may_do_what() {
    let nothing = "int x(void) { return 1; }";
    for (method, path, token, status) in [
        ("PUT", "/plugins/a", "", 401),
        ("PUT", "/plugins/a", "short", 401),
        ("DELETE", "/plugins/gray", ALICE, 403),
        ("DELETE", "/plugins/gray", "", 403),
        ("DELETE", "/plugins/nothing", "", 404),
        ("PUT", "/plugins/a.b", ALICE, 400),
        ("PUT", "/plugins/%2e%2e", ALICE, 400),
        ("PUT", "/plugins/a/b", ALICE, 405),
        ("POST", "/plugins/a", ALICE, 405),
        ("POST", "/plugins/", ALICE, 405),
        ("GET", "/transcode", ALICE, 405),
        ("GET", "/plugins/gray/nothing", "", 404),
        ("GET", "/plugins/gray", "", 200),
        ("GET", "/plugins/gray/code", "", 200),
        ("GET", "/plugins", "", 200),
    ] {
        let answer = ask(&SERVING, method, path, token, nothing.as_bytes());
        assert_eq!(
            answer.status,
            Some(status),
            "{method} {path} {token}: {}",
            answer.text()
        );
        if status >= 400 {
            assert_eq!(
                header(&answer, "content-type"),
                Some("application/problem+json")
            );
            assert_eq!(json(&answer)["status"], status);
        }
        assert_eq!(header(&answer, "allow").is_some(), status == 405);
        assert_eq!(header(&answer, "www-authenticate").is_some(), status == 401);
    }
    let basic = SERVING.send(request(
        "GET",
        "/plugins/",
        "Authorization: Basic abc\r\n",
        b"",
    ));
    assert_eq!(basic.status, Some(401));
}

#[test]
fn wrong_sources_are_told_with_their_places() {
    let wrong = put(
        "wrong",
        ALICE,
        &format!("{H}int wrong(struct picture *p)\n{{\n\treturn p->widht;\n}}\n"),
    );
    assert_eq!(wrong.status, Some(422));
    let said = json(&wrong);
    let first = &said["diagnostics"][0];
    assert_eq!(
        (&first["line"], &first["severity"]),
        (&Value::from(4), &Value::from("error")),
        "{said}"
    );
    assert!(
        first["remedy"].as_str().unwrap().contains("width"),
        "{said}"
    );
    assert!(first["end_column"].as_u64() > first["column"].as_u64());
    for (source, status) in [
        ("int wrong(int a) { return a; }", 422),
        ("int wrong(struct nothing *p) { return absent(p); }", 422),
        ("long wrong(void *p) { return 0; }", 422),
        ("static int a;", 422),
        ("", 422),
        ("int f(void); int wrong(void *p) { return f(); }", 422),
        ("\u{0}\u{1}", 422),
    ] {
        let answer = put("wrong", ALICE, source);
        assert_eq!(answer.status, Some(status), "{source}: {}", answer.text());
    }
    for bytes in [
        &b"\xff\xfe"[..],
        b"\x7fELF",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x3e\0",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0",
    ] {
        let answer = ask(&SERVING, "PUT", "/plugins/wrong", ALICE, bytes);
        assert_eq!(answer.status, Some(422), "{bytes:?}: {}", answer.text());
    }
    assert_eq!(
        ask(&SERVING, "GET", "/plugins/wrong", ALICE, b"").status,
        Some(404)
    );
    goes_on();
}

pub fn fault(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, Some(status), "{}", answer.text());
    let said = json(answer);
    let id = said["id"].as_str().expect("an id");
    let log = SERVING.errors.get();
    assert!(
        log.lines().any(|line| line.contains(id)),
        "{id} is not in the log: {log}"
    );
    said["fault"].clone()
}

pub fn decoded_ppm(answer: &Answer) -> Vec<u8> {
    assert_eq!(answer.status, Some(200), "{}", answer.text());
    let head = answer
        .body
        .windows(5)
        .position(|w| w == b"\n255\n")
        .unwrap();
    answer.body[head + 5..].to_vec()
}

#[test]
fn a_changed_plugin_of_the_site_is_read_again_and_a_wrong_one_is_not() {
    let serving = site(SETTINGS);
    let picture = ppm(&photo(8, 8));
    let first = || {
        decoded_ppm(&ask(
            &serving,
            "POST",
            "/transcode?through=fresh",
            "",
            &picture,
        ))[0]
    };
    let path = serving.path().join("plugins/fresh.c");
    let write = |body: &str| {
        std::fs::write(
            &path,
            format!("{H}int fresh(struct picture *p) {{ {body} }}\n"),
        )
        .unwrap()
    };
    write("p->pixels[0] = 5; return PICTURE_IN_PLACE;");
    serving.wait_for(|log| log.matches("plugins: reloaded").count() == 1);
    assert_eq!(first(), 5);
    write("p->pixels[0] = no; return 1;");
    serving.wait_for(|log| log.contains("fresh.c") && log.contains("former plugins"));
    assert_eq!(first(), 5);
    write("p->pixels[0] = 66; return PICTURE_IN_PLACE;");
    serving.wait_for(|log| log.matches("plugins: reloaded").count() == 2);
    assert_eq!(first(), 66);
}

#[test]
fn objects_and_images_of_other_compilers() {
    let token = "objects-0123456789abcdef";
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("built.c");
    let text = format!(
        "{H}int built(struct picture *p) {{ if (p->count) return *(volatile int *)0; p->pixels[0] = 9; return PICTURE_IN_PLACE; }}\n"
    );
    std::fs::write(&source, text).unwrap();
    std::fs::write(folder.path().join("picture.h"), postern_plugins::PICTURE_H).unwrap();
    let picture = ppm(&photo(8, 8));
    for (kind, option) in [("object", "-c"), ("image", "-g")] {
        let output = folder.path().join(kind);
        let words = [
            "-O2",
            option,
            "-o",
            output.to_str().unwrap(),
            source.to_str().unwrap(),
        ];
        let words: Vec<std::ffi::OsString> = words.map(Into::into).to_vec();
        postern_toolchain::driver::run_captured(postern_toolchain::Language::C, &words).unwrap();
        let file = std::fs::read(output).unwrap();
        let made = ask(&SERVING, "PUT", &format!("/plugins/{kind}"), token, &file);
        // Its function has another name.
        assert_eq!(made.status, Some(422), "{}", made.text());
        let made = ask(&SERVING, "PUT", "/plugins/built", token, &file);
        assert!(
            [200, 201].contains(&made.status.unwrap()),
            "{}",
            made.text()
        );
        assert_eq!(json(&made)["kind"], kind);
        let code = ask(&SERVING, "GET", "/plugins/built/code", token, b"");
        assert_eq!(code.status, Some(if kind == "image" { 200 } else { 406 }));
        assert_eq!(
            ask(&SERVING, "GET", "/plugins/built", token, b"").status,
            Some(406)
        );
        let marked = |query: &str| decoded_ppm(&transcode(query, token, &picture))[0];
        assert_eq!(marked("through=built"), 9);
        let said = fault(&transcode("through=built(1)", token, &picture), 500);
        assert_eq!(
            (&said["kind"], &said["function"]),
            (&"null-pointer".into(), &"built".into()),
            "{said}"
        );
        assert_eq!(marked("through=gray,built"), 9);
        // The beginning of a file is none.
        let half = ask(&SERVING, "PUT", "/plugins/built", token, &file[..1000]);
        assert_eq!(half.status, Some(422), "{}", half.text());
        assert_eq!(marked("through=built"), 9);
    }
    // E-code in its place, and the other way round.
    let plain = format!("{H}int built(struct picture *p) {{ p->pixels[0] = 3; return 1; }}");
    assert_eq!(put("built", token, &plain).status, Some(200));
    assert_eq!(
        decoded_ppm(&transcode("through=built", token, &picture))[0],
        3
    );
    goes_on();
}
