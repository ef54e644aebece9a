//! Plugins that break a rule, and pictures that lie.

use crate::plugins::{H, decoded_ppm, encoded, fault, goes_on, json, photo, ppm, put, transcode};
use image::ImageFormat;

#[test]
fn plugins_that_break_a_rule_end_their_request_and_nothing_else() {
    let token = "breaker-0123456789abcdef";
    let picture = ppm(&photo(16, 16));
    for (name, status, kind, line, body) in [
        (
            "wild",
            500,
            "write",
            4,
            "int *w = (int *)0x40000000;\n\t*w = 1;\n\treturn 0;",
        ),
        ("null", 500, "null-pointer", 3, "return *(int *)0;"),
        (
            "beyond",
            500,
            "write",
            4,
            "for (unsigned long i = 0; ; i++)\n\t\tp->out[i] = 1;\n\treturn 0;",
        ),
        (
            "divide",
            500,
            "arithmetic",
            3,
            "return 1 / (p->width - p->width);",
        ),
        (
            "deep",
            500,
            "data-stack-overflow",
            3,
            "char room[4000]; room[p->width] = 1; return deep(p) + room[1];",
        ),
        (
            "jump",
            500,
            "bad-jump",
            3,
            "int (*f)(void) = (int (*)(void))(p->width + 0x20000); return f();",
        ),
        ("loop", 504, "deadline", 3, "for (;;)\n\t\tp->count++;"),
    ] {
        let source = format!("{H}int {name}(struct picture *p) {{\n\t{body}\n}}\n");
        let made = put(name, token, &source);
        assert_eq!(made.status, Some(201), "{}", made.text());
        for _ in 0..2 {
            let said = fault(
                &transcode(&format!("through={name}"), token, &picture),
                status,
            );
            assert_eq!(said["kind"], kind, "{said}");
            assert_eq!(
                (&said["plugin"], &said["function"]),
                (&name.into(), &name.into()),
                "{said}"
            );
            let at = said["line"].as_u64().unwrap_or_else(|| panic!("{said}"));
            assert!((line..line + 2).contains(&at), "{said}");
        }
    }
    // Its namespace began anew, with all that is in it.
    assert_eq!(transcode("through=gray", token, &picture).status, Some(200));
    let count = format!(
        "{H}int calls; int count(struct picture *p) {{ p->pixels[0] = ++calls; return 1; }}"
    );
    assert_eq!(put("count", token, &count).status, Some(201));
    let first = |query: &str| decoded_ppm(&transcode(query, token, &picture))[0];
    assert_eq!((first("through=count"), first("through=count")), (1, 2));
    assert_eq!(transcode("through=null", token, &picture).status, Some(500));
    assert_eq!(first("through=count"), 1);
    goes_on();
}

#[test]
fn what_plugins_leave_is_judged() {
    let token = "liar-0123456789abcdefghi";
    let picture = ppm(&photo(16, 16));
    for (name, status, body) in [
        ("none", 502, "p->width = 0; return 0;"),
        (
            "large",
            502,
            "p->width = 60000; p->height = 60000; return 0;",
        ),
        (
            "overflow",
            502,
            "p->width = 0x80000000u; p->height = 2; p->channels = 1; return 0;",
        ),
        ("many", 502, "p->channels = 5; return 0;"),
        ("flat", 502, "p->channels = 0; return 0;"),
        ("kind", 502, "p->answer = 9; return 0;"),
        (
            "size",
            502,
            "p->answer = 3; p->size = p->room + 1; return 0;",
        ),
        (
            "huge",
            502,
            "p->answer = 3; p->size = 0xffffffffffffffff; return 0;",
        ),
        ("refuse", 422, "return -7;"),
        ("other", 422, "return 3;"),
        (
            "pointers",
            200,
            "p->pixels = 0; p->out = 0; p->room = 0; p->count = 99; return 1;",
        ),
        ("larger", 200, "p->width = 100; p->height = 200; return 0;"),
    ] {
        let source = format!("{H}int {name}(struct picture *p) {{ {body} }}\n");
        assert_eq!(put(name, token, &source).status, Some(201), "{name}");
        let answer = transcode(&format!("through={name}"), token, &picture);
        assert_eq!(answer.status, Some(status), "{name}: {}", answer.text());
    }
    let said = json(&transcode("through=refuse", token, &picture));
    assert!(said["detail"].as_str().unwrap().contains("-7"), "{said}");
    let bytes = format!(
        "{H}int bytes(struct picture *p) {{ p->out[0] = 'x'; p->answer = PICTURE_BYTES; p->size = 1; return 0; }}"
    );
    assert_eq!(put("bytes", token, &bytes).status, Some(201));
    let answer = transcode("through=bytes", token, &picture);
    assert_eq!((answer.status, answer.text()), (Some(200), "x".to_owned()));
    goes_on();
}

#[test]
fn pictures_that_lie() {
    let png = encoded(&photo(60, 40), ImageFormat::Png);
    let jpeg = encoded(&photo(60, 40), ImageFormat::Jpeg);
    let mut bomb = png.clone();
    // The head says 100000 by 100000, and its sum is right.
    bomb[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    let sum = crc(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&sum.to_be_bytes());
    let mut large = png.clone();
    large[16..24].copy_from_slice(&[0, 0, 8, 0, 0, 0, 8, 0]);
    let sum = crc(&large[12..29]);
    large[29..33].copy_from_slice(&sum.to_be_bytes());
    let mut taller = jpeg.clone();
    let frame = taller.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    taller[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    for (what, picture, statuses) in [
        ("a bomb", &bomb[..], &[413, 422][..]),
        ("a large one", &large, &[413]),
        ("a JPEG's bomb", &taller, &[413, 422]),
        ("half a PNG", &png[..png.len() / 2], &[422]),
        ("a PNG's head", &png[..33], &[422]),
        ("half a JPEG", &jpeg[..jpeg.len() / 2], &[200, 422]),
        ("a JPEG's head", &jpeg[..20], &[422]),
        ("a short PPM", b"P6\n100 100\n255\nabc", &[422]),
        ("a long PPM", b"P6\n65535 65535\n255\nabc", &[413]),
        ("a negative PPM", b"P6\n-1 -1\n255\nabc", &[422]),
        ("deep samples", b"P6\n1 1\n65535\nabcdef", &[415]),
        ("a GIF", b"GIF89a\x01\0\x01\0", &[415]),
        ("nothing", b"", &[415]),
    ] {
        for query in ["through=gray", "through=gray&format=jpeg", ""] {
            let answer = transcode(query, "", picture);
            assert!(
                statuses.contains(&answer.status.unwrap()),
                "{what}: {}",
                answer.text()
            );
        }
    }
    let long = vec![b'x'; 2_000_001];
    assert_eq!(transcode("through=gray", "", &long).status, Some(413));
    goes_on();
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        let mut sum = sum ^ u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 {
                sum >> 1 ^ 0xedb8_8320
            } else {
                sum >> 1
            };
        }
        sum
    };
    !bytes.iter().fold(!0, step)
}
