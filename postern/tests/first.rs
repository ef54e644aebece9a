//! The thinnest path: bytes, image, domain, call, service, fault, deadline.
use postern::{CallError, Caller, Domain, FaultKind, Image, Offset};
use postern_image::ImageBuilder;
use std::time::Duration;

fn image(text: &[u8], imports: &[(&str, &str)], exports: &[(&str, u32, &str)]) -> Image {
    let mut b = ImageBuilder::new(text);
    for (n, s) in imports {
        b.import(*n, Some(s.parse().unwrap()));
    }
    for (n, o, s) in exports {
        b.export(*n, *o, Some(s.parse().unwrap()));
    }
    Image::from_bytes(&b.build().unwrap()).unwrap()
}

#[test]
fn call_and_return() {
    let i = image(
        &[0x8d, 0x04, 0x37, 0x48, 0x98, 0xc3],
        &[],
        &[("add", 0, "l(ii)")],
    );
    let d = Domain::builder(&i).build().unwrap();
    let add = d.func::<fn(i32, i32) -> i64>("add").unwrap();
    assert_eq!(add.call(2, 3).unwrap(), 5);
    assert_eq!(add.call(-2, -3).unwrap(), -5);
    for n in 0..1000 {
        assert_eq!(add.call(n, 1).unwrap(), i64::from(n) + 1);
    }
    assert_eq!(d.counters().calls, 1002);
}

#[test]
fn service_call() {
    // call slot 0 (GATES); add $1,%eax; ret
    let text_off = 0x12000u32;
    let rel = (0x11000i32 - (text_off as i32 + 5)).to_le_bytes();
    let mut t = vec![0xe8];
    t.extend(rel);
    t.extend([0x83, 0xc0, 0x01, 0xc3]);
    let i = image(&t, &[("twice", "i(i)")], &[("f", 0, "i(i)")]);
    let d = Domain::builder(&i)
        .service("twice", |_: &Caller<'_>, x: i32| x * 2)
        .build()
        .unwrap();
    let f = d.func::<fn(i32) -> i32>("f").unwrap();
    assert_eq!(f.call(20).unwrap(), 41);
    assert_eq!(f.call(-20).unwrap(), -39);
    let d = Domain::builder(&i)
        .service("twice", |_: &Caller<'_>, x: i32| -> i32 {
            panic!("no {x}")
        })
        .build()
        .unwrap();
    let f = d.func::<fn(i32) -> i32>("f").unwrap();
    let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f.call(20)));
    assert_eq!(*r.unwrap_err().downcast::<String>().unwrap(), "no 20");
}

#[test]
fn slots_and_text_may_begin_higher() {
    for shift in [0, 1, 127] {
        let mut b = ImageBuilder::new([]);
        b.shift(shift);
        let slot = b.import("twice", Some("i(i)".parse().unwrap()));
        // call the slot; add $1,%eax; ret; mov %gs:(%edi),%eax; ret; mov %edi,%gs:(%edi); ret
        let mut text = vec![0xe8];
        let next = b.text_offset() + 5;
        text.extend(b.slot_offset(slot).wrapping_sub(next).to_le_bytes());
        text.extend([0x83, 0xc0, 0x01, 0xc3, 0x65, 0x67, 0x8b, 0x07, 0xc3]);
        text.extend([0x65, 0x67, 0x89, 0x3f, 0xc3]);
        b.text(text);
        b.export("f", 0, Some("i(i)".parse().unwrap()));
        b.export("load", 9, Some("i(p)".parse().unwrap()));
        b.export("store", 14, Some("v(p)".parse().unwrap()));
        b.data(vec![7; 100], 100);
        let (layout, file) = (b.layout().unwrap(), b.build().unwrap());
        assert_eq!(layout.gates, 0x1_1000 + shift * 4096);
        let i = Image::from_bytes(&file).unwrap();
        assert_eq!(i.tables().layout, layout);
        let d = Domain::builder(&i)
            .service("twice", |_: &Caller<'_>, x: i32| x * 2)
            .build()
            .unwrap();
        let load = d.func::<fn(Offset) -> i32>("load").unwrap();
        assert_eq!(d.func::<fn(i32) -> i32>("f").unwrap().call(20).unwrap(), 41);
        assert_eq!(load.call(Offset(layout.data)).unwrap(), 0x0707_0707);
        let pad = i32::from_le_bytes([0x0f, 0x1f, 0x84, 0x20]);
        assert_eq!(load.call(Offset(layout.gates)).unwrap(), pad);
        // Between the info page and the slots are zeros that nobody can write, and nobody can run.
        let store = d.func::<fn(Offset)>("store").unwrap();
        for between in (0x1_1000..layout.gates).step_by(4096) {
            assert_eq!(load.call(Offset(between)).unwrap(), 0);
            assert!(d.func_at::<fn()>(Offset(between)).is_err());
        }
        let last = layout.gates - 8;
        match store.call(Offset(last)) {
            Err(CallError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::ReadOnly),
            other => panic!("{other:?}"),
        }
        d.reset().unwrap();
        assert_eq!(load.call(Offset(layout.data)).unwrap(), 0x0707_0707);
    }
}

#[test]
fn faults() {
    // 0: mov %gs:(%edi),%eax ; ret       5: jmp .
    let t = [0x65, 0x67, 0x8b, 0x07, 0xc3, 0xeb, 0xfe, 0xcc];
    let i = image(&t, &[], &[("load", 0, "i(p)"), ("spin", 5, "v()")]);
    let d = Domain::builder(&i)
        .deadline(Some(Duration::from_millis(20)))
        .build()
        .unwrap();
    let load = d.func::<fn(Offset) -> i32>("load").unwrap();
    let e = load.call(Offset(16)).unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::NullPointer, "{e}");
    assert!(matches!(
        load.call(Offset(0x12000)),
        Err(CallError::Poisoned)
    ));
    d.reset().unwrap();
    load.call(Offset(0x12000)).unwrap();
    let e = load.call(Offset(0xf000_0000)).unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Read, "{e}");
    d.reset().unwrap();
    let spin = d.func::<fn()>("spin").unwrap();
    let e = spin.call().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline, "{e}");
    d.reset().unwrap();
    load.call(Offset(0x12000)).unwrap();
    // Zero is a deadline, and over at once; it is not none.
    let d = Domain::builder(&i).deadline(Some(Duration::ZERO));
    let d = d.build().unwrap();
    let e = d.func::<fn()>("spin").unwrap().call().unwrap_err();
    assert_eq!(e.fault().unwrap().kind, FaultKind::Deadline, "{e}");
}
