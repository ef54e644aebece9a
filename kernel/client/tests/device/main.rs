//! The crate against a device that is none: what it asks, and what it makes of answers.

mod fake;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use postern_image::{ImageBuilder, Segment};
use postern_kernel::abi;
use postern_kernel::*;
use postern_kernel_judge as judge;

use fake::Fake;

/// An image whose text is `code`, for the kernel.
fn image(code: &[u8]) -> Image {
    let mut builder = ImageBuilder::new(code);
    builder.segment(Segment::Fs).stack_log2(12);
    builder.export("f", 0, "l(ii)".parse().ok());
    Image::new(builder.build().expect("an image"), "small")
}

#[test]
fn what_is_loaded_has_a_number() {
    let fake = Fake::default();
    fake.set(|answers| answers.id = 5);
    let options = LoadOptions {
        rights: Rights::LOG | Rights::SEE_PACKETS,
        limit: Some(Duration::from_micros(1500)),
        one_window: true,
        ..LoadOptions::named("packets")
    };
    let loaded = fake
        .device()
        .load(&image(&[0xc3]), &options)
        .expect("it loads");
    assert_eq!(loaded.id, Id(5));
    assert_eq!(loaded.verdict, image(&[0xc3]).judged());
    let asked = fake.asked();
    for part in [
        "name: \"packets\"",
        "rights: 9,",
        "limit: 2,",
        "on_fault: 1",
        "flags: 1,",
        "shared: 0",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    // Without a name it has the image's.
    let _ = fake.device().load(&image(&[0xc3]), &LoadOptions::default());
    assert!(fake.asked().contains("name: \"small\""), "{}", fake.asked());
    for bad in ["a\nb", "a b", "é", &"x".repeat(64), "a\0b"] {
        let error = fake
            .device()
            .load(&image(&[0xc3]), &LoadOptions::named(bad));
        assert!(matches!(error, Err(Error::Name { .. })), "{error:?}");
    }
}

/// A source, compiled for the kernel.
fn compiled(source: &str) -> Image {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, image) = (folder.path().join("text.c"), folder.path().join("text.pst"));
    std::fs::write(&file, source).expect("the source");
    let arguments: [std::ffi::OsString; 6] = [
        "--kernel".into(),
        "-g".into(),
        "-O1".into(),
        "-o".into(),
        image.clone().into(),
        file.into(),
    ];
    postern_toolchain::run(postern_toolchain::Language::C, &arguments).expect("it compiles");
    Image::read(image).expect("the image")
}

#[test]
fn the_shared_area_is_a_variable_of_whole_pages() {
    let fake = Fake::default();
    fake.set(|answers| answers.id = 1);
    let load = |image: &Image, shared| {
        let options = LoadOptions {
            shared,
            ..LoadOptions::default()
        };
        fake.device().load(image, &options).map(|_| fake.asked())
    };
    let source = |declaration: &str| {
        format!("{declaration}\nlong get(long at) {{ return postern_shared[at]; }}\n")
    };
    let whole = source("__attribute__((aligned(4096))) unsigned char postern_shared[8192];");
    let whole = compiled(&whole);
    let place = whole.variable(SHARED).expect("the variable");
    assert_eq!((place.start % 4096, place.len()), (0, 8192));
    let asked = load(&whole, SharedArea::BySymbol).expect("it loads");
    assert!(
        asked.contains(&format!("shared: {}, shared_size: 8192", place.start)),
        "{asked}"
    );
    let asked = load(&whole, SharedArea::None).expect("it loads");
    assert!(asked.contains("shared: 0, shared_size: 0"), "{asked}");
    let part = compiled(&source("unsigned char postern_shared[100];"));
    let error = load(&part, SharedArea::BySymbol).expect_err("part of a page");
    assert!(error.to_string().contains("aligned(4096)"), "{error}");
    // What cannot be written is none.
    let fixed = source("const unsigned char postern_shared[4096] __attribute__((used)) = {1};");
    assert_eq!(compiled(&fixed).variable(SHARED), None);
    // Whatever the bytes, an answer or none.
    let (mut bytes, mut random) = (whole.bytes().to_vec(), fastrand::Rng::with_seed(1));
    for _ in 0..3000 {
        let at = random.usize(..bytes.len());
        let old = std::mem::replace(&mut bytes[at], random.u8(..));
        let _ = postern_image::debug::variable(&bytes, SHARED);
        let _ = postern_image::debug::variable(&bytes[..at], SHARED);
        bytes[at] = old;
    }
}

#[test]
fn faults_have_function_and_line() {
    let image = compiled(
        "long first(long *p)\n{\n\treturn *p;\n}\nlong second(void)\n{\n\t__builtin_trap();\n}\n",
    );
    let file = postern_image::ImageFile::parse(image.bytes()).expect("an image");
    let offset = |name: &str| {
        let export = file.exports().iter().find(|export| export.name == name);
        export.expect("an export").offset
    };
    let ended = |kind, offset| {
        let outcome = abi::Outcome {
            kind,
            offset,
            ..Default::default()
        };
        match Ended::new(&outcome, 0).expect("an end").located(&image) {
            Ended::Fault(fault) => fault,
            other => panic!("{other:?}"),
        }
    };
    let fault = ended(abi::TRAP, offset("second"));
    assert_eq!(
        (fault.symbol.as_deref(), fault.line),
        (Some("second"), Some(7))
    );
    assert!(
        fault.to_string().starts_with("trap, in second ("),
        "{fault}"
    );
    assert!(fault.to_string().contains("text.c:7)"), "{fault}");
    let fault = ended(abi::PAGE_FAULT, offset("first"));
    assert_eq!(
        (fault.symbol.as_deref(), fault.line),
        (Some("first"), Some(3))
    );
    // Nowhere.
    let fault = ended(abi::TRAP, 0);
    assert_eq!((fault.symbol, fault.line), (None, None));
}

#[test]
fn refusals_have_the_words_of_verify() {
    let device = Fake::default().device();
    let refused = |image: &Image| match device.load(image, &LoadOptions::default()) {
        Err(Error::Refused(refusal)) => *refusal,
        other => panic!("{other:?}"),
    };
    let refusal = refused(&image(&[0x0f, 0x05, 0xc3]));
    assert_eq!(refusal.rule, Some("not-allowed"));
    let place = refusal.place.as_deref().expect("a place");
    assert!(place.ends_with(" in f"), "{place}");
    assert!(
        refusal
            .to_string()
            .contains("This instruction is not on the allow list"),
        "{refusal}"
    );
    // What is no image is told as the parser of this process tells it.
    let mut bytes = image(&[0xc3]).bytes().to_vec();
    bytes[18] = 3;
    let here = postern_image::ImageFile::parse(&bytes).expect_err("no image");
    let refusal = refused(&Image::new(bytes, "other"));
    assert_eq!(refusal.reason, here.to_string());
    assert!(refusal.place.is_none() && refusal.rule.is_none());
}

#[test]
fn verdicts_of_another_version_are_told_as_such() {
    let fake = Fake::default();
    for verdict in [
        judge::Verdict {
            verdict: judge::REFUSED,
            rule: 1000,
            ..Default::default()
        },
        judge::Verdict {
            verdict: judge::NO_IMAGE,
            rule: 1000,
            ..Default::default()
        },
        judge::Verdict {
            verdict: 99,
            ..Default::default()
        },
        judge::Verdict {
            verdict: judge::EXPORT_MISPLACED,
            at: u64::MAX,
            ..Default::default()
        },
        judge::Verdict {
            verdict: abi::NO_SERVICE,
            at: 3,
            ..Default::default()
        },
        judge::Verdict {
            verdict: judge::OUT_OF_MEMORY,
            ..Default::default()
        },
    ] {
        fake.set(|answers| answers.verdict = Some(verdict));
        match fake.device().load(&image(&[0xc3]), &LoadOptions::default()) {
            Err(Error::Refused(refusal)) => assert!(refusal.to_string().starts_with("small: ")),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn calls_end_in_all_ways() {
    let fake = Fake::default();
    let image = image(&[0xc3]);
    let call = |kind, value| {
        fake.set(|answers| {
            answers.outcome = abi::Outcome {
                kind,
                offset: 0x11000,
                address: 0x10,
                service: 0,
            };
            answers.value = value;
        });
        fake.device().call(Id(1), "f", &[7, 8])
    };
    assert_eq!(
        call(abi::RETURNED, 42).expect("an end"),
        Ended::Returned(42)
    );
    assert!(
        fake.asked().contains("arguments: [7, 8, 0, 0, 0, 0]"),
        "{}",
        fake.asked()
    );
    for kind in 1..abi::KINDS as u32 {
        let ended = call(kind, 1).expect("an end");
        assert_eq!(ended.number(), kind);
        assert_eq!(ended.name(), KINDS[kind as usize]);
        assert!(!ended.told(Some(&image)).is_empty());
    }
    let Ended::Fault(fault) = call(abi::PAGE_FAULT, 0).expect("an end").located(&image) else {
        panic!("no fault")
    };
    assert_eq!(fault.kind, Kind::PageFault);
    assert!(
        fault
            .to_string()
            .starts_with("access to 0x10, which is not there"),
        "{fault}"
    );
    assert!(matches!(call(10, 0), Err(Error::Answer { .. })));
    let seven = fake.device().call(Id(1), "f", &[0; 7]);
    assert!(matches!(seven, Err(Error::Arguments { count: 7 })));
}

#[test]
fn errors_name_place_and_remedy() {
    let fake = Fake::default();
    let told = |number: i32| {
        fake.set(|answers| answers.error = Some(number));
        fake.device()
            .unload(Id(3))
            .expect_err("an error")
            .to_string()
    };
    assert!(told(libc::ENOENT).contains("extension 3 is not there"));
    assert!(told(libc::EPERM).contains("CAP_SYS_ADMIN"));
    assert!(told(libc::ENOTTY).contains("another version"));
    assert!(told(libc::ENOMEM).contains("no memory"));
    for number in 1..134 {
        assert!(
            told(number).starts_with("unloading extension 3: "),
            "{}",
            told(number)
        );
    }
    let missing = Device::open_at("/dev/no-such-device")
        .expect_err("no device")
        .to_string();
    assert!(missing.contains("modprobe postern"), "{missing}");
    // Whose bytes never end.
    let zero = Device::open_at("/dev/zero").expect("it can be opened");
    assert!(matches!(zero.list(), Err(Error::OtherVersion { .. })));
    // A file, and a device of somebody else.
    assert!(matches!(
        Device::open_at("/etc/hostname"),
        Err(Error::OtherVersion { .. } | Error::NotPermitted { .. })
    ));
    let null = Device::open_at("/dev/null").expect("it can be opened");
    assert!(matches!(
        null.unload(Id(1)),
        Err(Error::OtherVersion { .. })
    ));
}

#[test]
fn lists_and_names() {
    let fake = Fake::default();
    fake.set(|answers| answers.list = "1 rules 12 3 0 99\n7 a b 4 0 4 0\n9 7 1 0 1 0\n".into());
    let device = fake.device();
    let list = device.list().expect("a list");
    assert_eq!(
        (list[0].id, &*list[0].name, list[0].longest_path),
        (Id(1), "rules", None)
    );
    assert_eq!(
        (&*list[1].name, list[1].longest_path, list[1].calls),
        ("a b", Some(4), 0)
    );
    assert_eq!(device.find("a b").expect("by name"), Id(7));
    assert_eq!(device.find("1").expect("by number"), Id(1));
    // A name goes before a number.
    assert_eq!(device.find("7").expect("by name"), Id(9));
    assert!(matches!(device.find("x"), Err(Error::Absent { .. })));
    for nonsense in [
        "",
        "1",
        "1 a",
        "1 a 2 3 4",
        "x a 1 2 3 4",
        "1 a 2 3 4 x",
        "1 a 99999999999 1 1 1",
    ] {
        fake.set(|answers| answers.list = format!("{nonsense}\n"));
        let list = device.list();
        assert!(
            matches!(list, Err(Error::Answer { .. })),
            "{nonsense}: {list:?}"
        );
    }
}

#[test]
fn hooks_come_back_as_they_were_asked_for() {
    let fake = Fake::default();
    let hooks = [
        Hook::Netfilter {
            hook: Hook::netfilter("output").expect("a hook"),
            family: Family::Ipv6,
            priority: -5,
            capture: 64,
            otherwise: Otherwise::Accept,
        },
        Hook::Tracepoint("sched_switch".into()),
        Hook::Kprobe {
            symbol: "do_exit".into(),
            offset: 4,
        },
        Hook::Timer(Duration::from_millis(10)),
    ];
    let device = fake.device();
    for hook in &hooks {
        let number = device.attach(Id(2), "f", hook).expect("attached");
        assert_eq!(number, AttachmentId(17));
    }
    assert!(fake.asked().contains("number: 10000"), "{}", fake.asked());
    let attach = abi::Attach {
        id: 2,
        hook: abi::KPROBE,
        function: abi::Name::new("f").expect("a name"),
        target: abi::Name::new("do_exit").expect("a name"),
        number: 4,
        ..Default::default()
    };
    let row = |attachment| abi::Attachment {
        attachment,
        how: attach,
        ..Default::default()
    };
    fake.set(|answers| answers.attachments = vec![row(3), row(8)]);
    let all = device.attachments().expect("attachments");
    assert_eq!(all.iter().map(|a| a.number.0).collect::<Vec<_>>(), [3, 8]);
    assert_eq!(all[0].hook, hooks[2]);
    assert_eq!(device.attachment(AttachmentId(8)).expect("one"), all[1]);
    assert!(matches!(
        device.attachment(AttachmentId(4)),
        Err(Error::Absent { .. })
    ));
    // A device whose numbers do not grow does not keep anybody for ever.
    fake.set(|answers| answers.attachments = vec![row(3), row(3)]);
    assert_eq!(device.attachments().expect("attachments").len(), 1);
}

#[test]
fn maps_are_read_and_written() {
    let fake = Fake::default();
    let device = fake.device();
    let sizes = MapSizes {
        key: 4,
        value: 6,
        entries: 100,
    };
    device.make_map(Id(1), 2, sizes).expect("made");
    let map = device.map(Id(1), 2).expect("there");
    assert_eq!(map.sizes(), sizes);
    for key in 0..10u32 {
        map.set(&key.to_be_bytes(), &[key as u8; 6]).expect("set");
    }
    assert_eq!(
        map.get(&3u32.to_be_bytes()).expect("read"),
        Some(vec![3; 6])
    );
    assert!(map.remove(&3u32.to_be_bytes()).expect("removed"));
    assert!(!map.remove(&3u32.to_be_bytes()).expect("removed"));
    assert_eq!(map.get(&3u32.to_be_bytes()).expect("read"), None);
    let entries: Vec<Entry> = map.iter().collect::<Result<_, _>>().expect("entries");
    assert_eq!(entries.len(), 9);
    assert!(entries.iter().all(|(key, value)| key[3] == value[0]));
    assert!(matches!(
        map.get(b"abc"),
        Err(Error::Size {
            given: 3,
            wanted: 4,
            ..
        })
    ));
    assert!(matches!(
        map.set(b"abcd", b""),
        Err(Error::Size { part: "value", .. })
    ));
    // Sizes that no buffer here has are not believed.
    fake.set(|answers| answers.map.value_size = 5000);
    assert!(matches!(device.map(Id(1), 2), Err(Error::Answer { .. })));
}

#[test]
fn the_area_is_shared_and_checked() {
    let fake = Fake::default();
    let file = tempfile::tempfile().expect("a file");
    file.set_len(8192).expect("its size");
    let descriptor = OwnedFd::from(file.try_clone().expect("a copy"));
    fake.set(|answers| {
        answers.statistics = abi::Statistics {
            id: 1,
            shared_size: 8192,
            ..Default::default()
        };
        answers.descriptor = Some(descriptor);
    });
    let opened = fake.device().opened(Id(1)).expect("opened");
    let area = opened.area().expect("an area");
    assert_eq!(area.size(), 8192);
    let (mut model, mut random) = (vec![0u8; 8192], fastrand::Rng::with_seed(1));
    for _ in 0..2000 {
        let (at, length) = (random.usize(..8300), random.usize(..40));
        let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
            .take(length)
            .collect();
        let fits = at + length <= 8192;
        assert_eq!(area.write(at, &bytes), fits, "{at} {length}");
        if fits {
            model[at..at + length].copy_from_slice(&bytes);
        }
        let (at, length) = (random.usize(..8300), random.usize(..40));
        let mut found = vec![0; length];
        let fits = at + length <= 8192;
        assert_eq!(area.read(at, &mut found), fits);
        assert!(!fits || found == model[at..at + length], "{at} {length}");
    }
    assert!(!area.read(usize::MAX, &mut [0]));
    let mut all = vec![0; 8192];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut all, 0).expect("read");
    assert_eq!(all, model);
}

#[test]
fn entries_come_from_the_ring() {
    use std::io::Write;
    let fake = Fake::default();
    let (reader, mut writer) = io::pipe().expect("a pipe");
    fake.set(|answers| answers.descriptor = Some(reader.into()));
    let mut opened = fake.device().opened(Id(1)).expect("opened");
    assert!(opened.area().is_none());
    assert_eq!(opened.next_entry().expect("none"), None);
    assert!(!opened.wait(Some(Duration::from_millis(1))).expect("none"));
    for text in ["one", "two is longer"] {
        let mut entry = (text.len() as u32).to_ne_bytes().to_vec();
        entry.extend(text.as_bytes());
        entry.resize(entry.len().next_multiple_of(8), 0);
        writer.write_all(&entry).expect("written");
    }
    let first = opened.events(Some(Duration::ZERO)).next();
    assert_eq!(first.expect("one").expect("an entry"), b"one");
    drop(writer);
    // When the extension is gone what was written is read, and then it is over.
    let events = opened.events(None).collect::<io::Result<Vec<_>>>();
    assert_eq!(events.expect("entries"), [b"two is longer".to_vec()]);
    assert!(opened.is_over());
}

#[test]
fn a_name_has_an_end() {
    assert_eq!(
        abi::Name([b'x'; abi::NAME]).to_string(),
        "x".repeat(abi::NAME)
    );
    assert_eq!(
        abi::Name::new("rules").expect("a name").to_string(),
        "rules"
    );
}
