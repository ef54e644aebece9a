//! Code of others in the server: programs behind paths, and plugins that clients bring.

use std::process::Command;

use postern_exos_machine::{place, site};

use crate::guest::{Answer, Guest, ask};

fn plugin(name: &str) -> Vec<u8> {
    let path = place::repository().join(format!("examples/site/plugins/{name}.c"));
    std::fs::read(path).expect("a source")
}

fn site() -> Vec<(String, Vec<u8>)> {
    site::make().expect("the site")
}

#[track_caller]
fn is(answer: &Answer, status: u16, words: &str) {
    assert_eq!(answer.status, status, "{answer:?} {}", answer.text());
    assert!(answer.text().contains(words), "{}", answer.text());
}

#[test]
fn programs_answer_and_fail_alone() {
    let Some(guest) = Guest::serving("", site()) else {
        return;
    };
    is(
        &guest.ask("GET /cgi/guest", b""),
        200,
        "visitor 1 of this instance",
    );
    is(
        &guest.ask("GET /cgi/guest/more?x", b""),
        200,
        "visitor 2 of",
    );
    let body: Vec<u8> = (0..60_000).map(|at| (at % 251) as u8).collect();
    let answer = guest.ask("POST /cgi/guest/where", &body);
    assert!(answer.body == body, "{}", answer.head);
    assert_eq!(answer.field("X-Path"), Some("/where"));
    is(&guest.ask("GET /cgi/guest?long", b""), 200, "line 19999\n");
    is(&guest.ask("GET /cgi/guest?crash", b""), 500, "id 1");
    guest.hears(&["www: id 1: guest: null-pointer"]);
    is(&guest.ask("GET /cgi/guest", b""), 200, "visitor 1 of");
    // While one connection's request loops, others wait for no longer than the deadline.
    let mut other = guest.connect();
    is(&guest.ask("GET /cgi/guest?loop", b""), 504, "id 2");
    is(&ask(&mut other, "GET /cgi/guest", b""), 200, "visitor 1 of");
    is(&guest.ask("GET /cgi/guest?fail", b""), 500, "id 3");
    is(&guest.ask("GET /cgi/none", b""), 404, "");
    is(&guest.ask("GET /cgi/..%2fguest", b""), 404, "");
    is(&guest.ask("PUT /plugins/x", b"int x;"), 413, "");
    guest.ends();
}

const ATTACKS: [(&str, &str, u16, &str); 4] = [
    (
        "wild",
        "p->out = 0; p->out[5] = 1; return 0;",
        500,
        "null-pointer",
    ),
    ("loop", "for (;;) ; return 0;", 504, "deadline"),
    ("deep", "return deep(p) + 1;", 500, "overflow"),
    (
        "large",
        "p->width = 100000; return 0;",
        502,
        "fits its room",
    ),
];

#[test]
fn plugins_are_brought_and_called() {
    let Some(guest) = Guest::serving("-x", site()) else {
        return;
    };
    let (width, height) = site::SIZE;
    let file = site::picture();
    let gray = guest.ask("PUT /plugins/gray", &plugin("gray"));
    is(&gray, 201, "\"kind\":\"ecode\"");
    is(&guest.ask("PUT /plugins/gray", &plugin("gray")), 200, "");
    let answer = guest.ask("GET /picture.ppm?through=gray", b"");
    is(&answer, 200, "P5\n96 64\n255\n");
    let pixels = &file[file.len() - (width * height * 3) as usize..];
    let expected: Vec<u8> = pixels
        .chunks(3)
        .map(|rgb| ((77 * u32::from(rgb[0]) + 150 * u32::from(rgb[1]) + 29 * 128) >> 8) as u8)
        .collect();
    let got = &answer.body[answer.body.len() - expected.len()..];
    let differ = got
        .iter()
        .zip(&expected)
        .filter(|(a, b)| a.abs_diff(**b) > 1);
    assert_eq!(differ.count(), 0);
    assert_eq!(answer.field("Postern-Picture"), Some("96x64x1"));

    is(&guest.ask("PUT /plugins/scale", &plugin("scale")), 201, "");
    let answer = guest.ask("POST /transcode?through=scale(2),gray&format=bmp", &file);
    assert_eq!(answer.field("Postern-Picture"), Some("48x32x1"));
    assert_eq!((answer.status, &answer.body[..2]), (200, &b"BM"[..]));
    is(&guest.ask("GET /plugins/", b""), 200, "\"name\":\"scale\"");
    assert_eq!(guest.ask("GET /plugins/gray", b"").body, plugin("gray"));

    let source = b"#include \"picture.h\"\nint bad(struct picture *p) { return q; }\n";
    is(
        &guest.ask("PUT /plugins/bad", source),
        422,
        "\"line\":2,\"column\":37",
    );
    is(
        &guest.ask("PUT /plugins/bad", b"int bad(void) { return 1; }"),
        422,
        "struct picture",
    );
    is(&guest.ask("PUT /plugins/bad", b"\x7fELF nonsense"), 422, "");
    for (name, body, status, words) in ATTACKS {
        let source =
            format!("#include \"picture.h\"\nint {name}(struct picture *p)\n{{ {body} }}\n");
        is(
            &guest.ask(&format!("PUT /plugins/{name}"), source.as_bytes()),
            201,
            "",
        );
        for _ in 0..2 {
            let answer = guest.ask(&format!("GET /picture.ppm?through={name}"), b"");
            is(&answer, status, words);
        }
        is(&guest.ask("GET /picture.ppm?through=gray", b""), 200, "P5");
    }
    is(&guest.ask("GET /picture.ppm?through=none", b""), 404, "");
    is(&guest.ask("GET /picture.ppm?through=gray(", b""), 400, "");
    is(&guest.ask("GET /index.html?through=gray", b""), 415, "");
    is(
        &guest.ask("POST /transcode?through=gray", b"P6 9 9 255\n"),
        422,
        "",
    );
    is(&guest.ask("DELETE /plugins/gray", b""), 204, "");
    is(&guest.ask("GET /picture.ppm?through=gray", b""), 404, "");
    for index in 0..20 {
        let source = format!("struct picture;int p{index}(struct picture *p) {{ return 1; }}");
        let answer = guest.ask(&format!("PUT /plugins/p{index}"), source.as_bytes());
        assert_eq!(
            answer.status,
            if index < 11 { 201 } else { 429 },
            "{}",
            answer.text()
        );
    }

    // As a person would.
    let folder = tempfile::tempdir().expect("a folder");
    let (to, from) = (folder.path().join("b.ppm"), folder.path().join("p0.c"));
    let source = "#include \"picture.h\"\nint p0(struct picture *p)\n{\n\tp->pixels[0] = 7;\n\treturn PICTURE_IN_PLACE;\n}\n";
    std::fs::write(&from, source).expect("a file");
    let curl = |words: &[&std::ffi::OsStr]| {
        let quiet = ["--silent", "--show-error", "--fail", "--max-time", "30"];
        Command::new("curl").args(quiet).args(words).output()
    };
    let put = guest.url("/plugins/p0");
    match curl(&["-T".as_ref(), from.as_ref(), put.as_ref()]) {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(_) => return println!("SKIPPED: no curl"),
    }
    let get = guest.url("/picture.ppm?through=p0");
    let output = curl(&["-o".as_ref(), to.as_ref(), get.as_ref()]).expect("curl");
    assert!(output.status.success(), "{output:?}");
    let got = std::fs::read(&to).expect("a picture");
    assert_eq!((got.len(), got[got.len() - 96 * 64 * 3]), (file.len(), 7));
    guest.ends();
}
