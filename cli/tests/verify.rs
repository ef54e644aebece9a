//! `postern verify`: verdicts, exit codes, what is shown of a violation.

use crate::program;

use postern_image::ImageBuilder;
use program::{file, postern};

const RET: u8 = 0xc3;

/// An image whose second function is not confined.
fn bad_image() -> Vec<u8> {
    // ret; mov %rax,%rcx; mov (%rdi),%rax; ret
    let mut builder = ImageBuilder::new([RET, 0x48, 0x89, 0xc1, 0x48, 0x8b, 0x07, RET]);
    builder
        .export("good", 0, None)
        .export("bad", 1, None)
        .build()
        .expect("legal")
}

#[test]
fn accepted_images_show_their_facts() {
    // xorps %xmm0,%xmm0; ret
    file(
        "good.px",
        ImageBuilder::new([0x0f, 0x57, 0xc0, RET])
            .build()
            .expect("legal"),
    );
    // The linker's fill counts, too: it is mapped and judged.
    let text = postern(&["verify", "good.px"]).good();
    assert!(
        text.starts_with("good.px: accepted: ") && text.contains("uses xmm"),
        "{text}"
    );
    let json = postern(&["verify", "--json", "--time", "good.px"]).json(0);
    assert_eq!(json[0]["verdict"], "accepted");
    assert_eq!(json[0]["facts"]["xmm"], true);
    assert_eq!(json[0]["facts"]["ymm"], false);
    assert!(json[0]["megabytes_per_second"].as_f64().expect("a number") > 0.0);
}

#[test]
fn violations_show_place_rule_and_code() {
    file("bad.px", bad_image());
    let run = postern(&["verify", "bad.px"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout
            .starts_with("bad.px: refused at 0x11004 in bad+0x3\n  unconfined: "),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("     11001:  48 89 c1  "),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("\n>    11004:  48 8b 07  "),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("mov (%rdi),%rax\n"), "{}", run.stdout);
    assert!(!run.stdout.contains('\x1b'), "colours are for terminals");
    let json = postern(&["verify", "--json", "bad.px"]).json(1);
    let violation = &json[0]["violation"];
    assert_eq!(
        (violation["offset"].as_u64(), violation["rule"].as_str()),
        (Some(0x1_1004), Some("unconfined"))
    );
    assert_eq!(violation["symbol"], "bad+0x3");
    assert_eq!(violation["code"][1]["bytes"], "488b07");
}

#[test]
fn exports_inside_instructions_are_refused() {
    let mut builder = ImageBuilder::new([0x8d, 0x47, 0x02, RET]);
    file(
        "inside.px",
        builder.export("f", 1, None).build().expect("legal form"),
    );
    let json = postern(&["verify", "--json", "inside.px"]).json(1);
    assert_eq!(json[0]["violation"]["rule"], "export");
    assert_eq!(json[0]["violation"]["offset"], 0x1_1001);
}

#[test]
fn bare_code_is_judged_as_told() {
    file("ret.bin", [RET]);
    file("loop.bin", [0xeb, 0xfe]);
    file("kernel.bin", [0x64, 0x67, 0x8b, 0x07, RET]);
    file("system.bin", [0x0f, 0x05, RET]);
    // call slot 1, which lies at 0x11020; text is at 0x12000.
    file(
        "slot.bin",
        [&[0xe8][..], &(0x1_1020i32 - 0x1_2005).to_le_bytes(), &[RET]].concat(),
    );
    for (arguments, code) in [
        (&["ret.bin"][..], 0),
        (&["loop.bin"], 0),
        (&["loop.bin", "--bounded"], 1),
        (&["kernel.bin"], 1),
        (&["kernel.bin", "--segment", "fs"], 0),
        (&["system.bin"], 1),
        (&["kernel.bin", "--kernel"], 0),
        (&["kernel.bin", "--kernel", "--segment", "gs"], 1),
        (&["loop.bin", "--kernel"], 0),
        (&["slot.bin", "--imports", "2"], 0),
        (&["slot.bin", "--imports", "1"], 1),
        (&["slot.bin", "--imports", "2", "--offset", "0x13000"], 1),
        (&["ret.bin", "--offset", "0xfffffff0"], 1),
        (&["ret.bin", "system.bin"], 1),
        (&["ret.bin", "none.bin", "system.bin"], 2),
    ] {
        let run = postern(&[&["verify", "--raw"], arguments].concat());
        assert_eq!(run.code, code, "{arguments:?}: {run:?}");
    }
    let json = postern(&["verify", "--raw", "--bounded", "--json", "ret.bin"]).json(0);
    assert_eq!(json[0]["facts"]["longest_path"], 1);
    assert_eq!(json[0]["facts"]["call_depth"], 0);
    // Sixty functions that each call the next one twice, then two.
    let doubling = |functions| {
        let calls = [0xe8, 6, 0, 0, 0, 0xe8, 1, 0, 0, 0, RET].repeat(functions);
        [&calls[..], &[RET]].concat()
    };
    file("sixty.bin", doubling(60));
    file("two.bin", doubling(2));
    let json = postern(&["verify", "--raw", "--bounded", "--json", "sixty.bin"]).json(1);
    assert_eq!(json[0]["violation"]["rule"], "bounded-path");
    let run = postern(&["verify", "--raw", "--bounded", "two.bin"]);
    let said = "at most 13 instructions a call, calls nested at most 2 deep";
    assert!(run.code == 0 && run.stdout.contains(said), "{run:?}");
    for (most, code) in [
        (["--most-instructions", "13"], 0),
        (["--most-instructions", "12"], 1),
        (["--most-depth", "2"], 0),
        (["--most-depth", "1"], 1),
    ] {
        let run = postern(&[&["verify", "--raw", "--bounded", "two.bin"][..], &most].concat());
        assert_eq!(run.code, code, "{most:?}: {run:?}");
    }
    postern(&["verify", "--raw", "two.bin", "--most-depth", "2"]).bad(2);
    // Sixty calls deep, and longer than can be counted.
    let json = postern(&["verify", "--raw", "--kernel", "--json", "sixty.bin"]).json(0);
    assert_eq!(json[0]["facts"]["call_depth"], 60);
    assert!(json[0]["facts"]["longest_path"].is_null());
    postern(&["verify", "--raw", "--kernel", "--bounded", "two.bin"]).bad(2);
}

#[test]
fn what_cannot_be_judged_is_said_to_be_so() {
    file("text.px", "no extension");
    let complaint = postern(&["verify", "text.px"]).bad(2);
    assert!(
        complaint.contains("text.px: ELF header: not an ELF file (give a linked extension"),
        "{complaint}"
    );
    let complaint = postern(&["verify", "none.px"]).bad(2);
    assert!(
        complaint.contains("none.px: cannot read it: No such file"),
        "{complaint}"
    );
    let mut cut = bad_image();
    cut.truncate(5000);
    file("cut.px", cut);
    let json = postern(&["verify", "--json", "cut.px"]).json(2);
    assert_eq!(json[0]["verdict"], "unreadable");
    assert!(
        json[0]["error"]
            .as_str()
            .expect("a sentence")
            .contains("program header 1"),
        "{json}"
    );
    assert_eq!(postern(&["verify"]).code, 2);
    assert_eq!(
        postern(&["verify", "--imports", "1", "cut.px"]).code,
        2,
        "only with --raw"
    );
    assert_eq!(
        postern(&["verify", "--raw", "--imports", "4097", "cut.px"]).code,
        2
    );
}

#[test]
fn every_cut_and_every_flipped_byte_of_an_image_has_a_verdict() {
    // The library's tests try all; the command must not lose what they promise.
    let whole = bad_image();
    for (index, at) in (0..300).step_by(7).enumerate() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        damaged.truncate(whole.len() - index * 100);
        file("damaged.px", &damaged);
        let run = postern(&["verify", "damaged.px"]);
        assert!((1..=2).contains(&run.code), "{at}: {run:?}");
        assert!(run.stdout.len() + run.stderr.len() > 20, "{at}: {run:?}");
        assert!(!run.stderr.contains("panicked"), "{at}: {run:?}");
    }
}
