//! Loading: what is refused, with which place and rule, and that nothing else happens.
mod support;
use postern::{Bounds, Domain, Image, LoadError, ReadError};
use postern_image::ImageBuilder;
use support::code;

#[test]
fn refused_code_names_the_place_and_the_rule() {
    for (bytes, at) in [
        (&[0x90, 0x0f, 0x05, 0xc3][..], 1),
        (&[0xcd, 0x80, 0xc3], 0),
        (&[0x90, 0x90, 0x8b, 0x07, 0xc3], 2),
        (&[0x54, 0xc3], 0),
        (&[0x0f, 0x01, 0xf9, 0xc3], 0),
        (&[0xeb, 0xfd, 0xc3], 0),
        (&[0xff, 0xe0], 0),
        (&[0x65, 0x67, 0x8b], 0),
    ] {
        let mut b = ImageBuilder::new(bytes);
        b.export("f", 0, Some("v()".parse().unwrap()));
        match Image::from_bytes(&b.build().unwrap()) {
            Err(LoadError::Refused {
                offset, violation, ..
            }) => {
                assert_eq!(offset, b.text_offset() + at, "{bytes:x?}");
                assert_eq!(violation.offset, offset);
                assert!(!violation.to_string().is_empty());
            }
            other => panic!("{bytes:x?}: {other:?}"),
        }
    }
    let c = code(&[], &[("f", "v()")], "f: nop\nsyscall\nret");
    let e = c.load().unwrap_err().to_string();
    assert!(e.contains("f+0x1"), "{e}");
}

#[test]
fn what_the_processor_lacks_is_named() {
    let load = |names: &[&str]| {
        let mut builder = ImageBuilder::new([0xc3]);
        for name in names {
            builder.need(*name);
        }
        Image::from_bytes(&builder.build().unwrap())
    };
    assert!(load(&[]).is_ok());
    match load(&["frobnicate", "avx1024"]) {
        Err(error @ LoadError::Machine(_)) => {
            let text = error.to_string();
            assert!(
                text.contains("frobnicate, avx1024, which this processor lacks"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(load(&["aes"]).is_ok(), is_x86_feature_detected!("aes"));
    assert_eq!(load(&["gfni"]).is_ok(), is_x86_feature_detected!("gfni"));
}

#[test]
fn exports_must_be_instruction_starts() {
    let text = [0x8d, 0x47, 0x02, 0xc3];
    for position in [1, 2] {
        let mut b = ImageBuilder::new(text);
        b.export("in_the_middle", position, None);
        let e = Image::from_bytes(&b.build().unwrap()).unwrap_err();
        assert!(
            matches!(&e, LoadError::Export { name, offset } if name == "in_the_middle" && *offset == b.text_offset() + position),
            "{e}"
        );
    }
    // Not inside a guarded sequence either: its second instruction begins six bytes in.
    let c = code(
        &[],
        &[("inside", "")],
        "f: GUARDED %edi, jmp\n.set inside, f+3\nret",
    );
    assert!(matches!(c.load(), Err(LoadError::Export { .. })));
    let c = code(
        &[],
        &[("inside", "")],
        "f: GUARDED %edi, jmp\n.set inside, f+24\nret",
    );
    assert!(c.load().is_err());
}

#[test]
fn truncated_and_damaged_bytes_are_errors() {
    // Alone, because descriptors are counted.
    support::succeeds_in_child("truncated_and_damaged_bytes_are_errors", damaged);
}

fn damaged() {
    let c = code(
        &[("s", "v()")],
        &[("f", "i(i)")],
        ".data\n.long 7\n.text\nf: leal 1(%rdi),%eax\nret",
    );
    let good = c.builder.build().unwrap();
    for len in (0..good.len().min(2000)).chain((2000..good.len()).step_by(97)) {
        assert!(Image::from_bytes(&good[..len]).is_err(), "{len}");
    }
    // Every bit of the headers and notes, one at a time: refused, or an image that works or is
    // refused later.
    let before = support::descriptors();
    let mut random = fastrand::Rng::with_seed(12345);
    for i in 0..3000usize {
        let mut bad = good.clone();
        let place = if i < 8 * 400 && i % 2 == 0 {
            i / 2 % 400
        } else {
            random.usize(..bad.len())
        };
        bad[place] ^= 1 << random.u32(..8);
        if let Ok(image) = Image::from_bytes(&bad)
            && let Ok(d) = Domain::builder(&image)
                .service("s", |_: &postern::Caller<'_>| {})
                .build()
            && let Ok(f) = d.func_unchecked::<fn(i32) -> i32>("f")
        {
            let _ = f.call(1);
        }
    }
    assert!(support::descriptors() <= before);
    for junk in [
        &b""[..],
        b"\x7fELF",
        &[0; 5000],
        &[0xff; 5000],
        b"#!/bin/sh\n",
    ] {
        assert!(matches!(Image::from_bytes(junk), Err(LoadError::Image(_))));
    }
}

#[test]
fn images_that_end_by_themselves_say_after_how_much() {
    // Each function calls the next one twice.
    let doubling = |functions: usize| {
        let calls = (0..functions).map(|i| format!("f{i}: call f{0}; call f{0}; ret\n", i + 1));
        calls.collect::<String>() + &format!("f{functions}: ret")
    };
    let load = |source: &str, export| support::image(&[(export, "v()")], source);
    let image = load(&doubling(3), "f0");
    assert_eq!(image.facts().longest_path, None);
    let bounds = |instructions, call_depth| Bounds {
        instructions,
        call_depth,
    };
    let facts = image.bounded(bounds(29, 3)).unwrap();
    assert_eq!((facts.longest_path, facts.call_depth), (Some(29), Some(3)));
    let refused = |image: &Image, bounds| {
        let error = image.bounded(bounds).unwrap_err();
        let LoadError::Refused { violation, .. } = &error else {
            panic!("{error}");
        };
        violation.rule.name()
    };
    assert_eq!(refused(&image, bounds(28, 3)), "bounded-path");
    assert_eq!(refused(&image, bounds(29, 2)), "bounded-depth");
    let sixty = load(&doubling(60), "f0");
    assert_eq!(refused(&sixty, Bounds::MAX), "bounded-path");
    // A length is not bounded by a number of instructions.
    let copies = support::code(
        &[("__postern_memmove", "p(ppL)")],
        &[("f", "v()")],
        "f: jmp __postern_memmove",
    )
    .image();
    let error = copies.bounded(Bounds::MAX).unwrap_err();
    assert!(matches!(error, LoadError::MemoryGate), "{error}");
    let endless = load("f: jmp f", "f");
    assert_eq!(refused(&endless, Bounds::MAX), "bounded-backward");
    // It is an image all the same.
    let domain = Domain::builder(&image).build().unwrap();
    domain.func::<fn()>("f0").unwrap().call().unwrap();
}

#[test]
fn files_and_the_cache() {
    let e = Image::load("/nonexistent/x.px").unwrap_err();
    assert!(
        matches!(&e, LoadError::Read { .. }) && e.to_string().contains("/nonexistent/x.px"),
        "{e}"
    );
    // What has no end is not begun.
    for (path, what) in [("/", "a directory"), ("/dev/zero", "a device")] {
        let e = Image::load(path).unwrap_err();
        let LoadError::Read { source, .. } = &e else {
            panic!("{e}");
        };
        assert!(
            matches!(source, ReadError::Kind(found) if *found == what),
            "{e}"
        );
        assert!(e.to_string().contains(path), "{e}");
    }
    let folder = support::Directory::new();
    let sparse = folder.path("sparse.px");
    std::fs::File::create(&sparse)
        .unwrap()
        .set_len(6 << 30)
        .unwrap();
    let e = Image::load(&sparse).unwrap_err();
    assert!(
        e.to_string().contains("sparse.px: it has 6442450944 bytes"),
        "{e}"
    );
    let c = code(&[], &[("f", "v()")], "f: ret");
    let bytes = c.builder.build().unwrap();
    let small = folder.path("small.px");
    std::fs::write(&small, &bytes).unwrap();
    let size = bytes.len() as u64;
    assert!(Image::load_limited(&small, size).is_ok());
    let e = Image::load_limited(&small, size - 1).unwrap_err();
    assert!(
        matches!(
            e,
            LoadError::Read {
                source: ReadError::TooLarge { .. },
                ..
            }
        ),
        "{e}"
    );
    let (a, b) = (
        Image::from_bytes(&bytes).unwrap(),
        Image::from_bytes(&bytes).unwrap(),
    );
    assert_eq!(a.hash(), b.hash());
    // Shared: the same tables at the same address.
    assert!(std::ptr::eq(a.tables(), b.tables()));
    let path = std::env::temp_dir().join(format!("postern-load-{}.px", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let from_file = Image::load(&path).unwrap();
    assert!(std::ptr::eq(a.tables(), from_file.tables()));
    std::fs::remove_file(&path).unwrap();
    let other = code(&[], &[("f", "v()")], "f: nop\nret").image();
    assert_ne!(a.hash(), other.hash());
}

#[test]
fn an_image_without_exports_is_an_image() {
    let c = code(&[], &[], "ret");
    let d = Domain::builder(&c.image()).build().unwrap();
    assert!(d.func::<fn()>("anything").is_err());
    d.reset().unwrap();
}

/// Code that wants the other segment register says so; an initialisation that fails names the
/// failure.
#[test]
fn what_an_image_may_be_refused_for_later() {
    let mut b = ImageBuilder::new([0xc3]);
    b.segment(postern_image::Segment::Fs);
    assert!(matches!(
        Image::from_bytes(&b.build().unwrap()),
        Err(LoadError::Segment)
    ));
    let i = code(&[], &[("__postern_init", "v()")], "__postern_init: ud2").image();
    let e = Domain::builder(&i).build().unwrap_err();
    assert!(
        matches!(e.cause(), postern::InstantiateError::Initialisation(_))
            && e.to_string().contains("trap"),
        "{e}"
    );
}
