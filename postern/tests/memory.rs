//! The host's hands in a window: every edge, every overflow.
mod support;
use postern::{AllocError, CallError, Domain, MemoryError, Offset};
use postern_verifier::window::{INFO, LIMIT};
use support::{code, cold};

fn domain() -> (Domain, u32, u32) {
    let d = cold(&support::image(
        &[("f", "v()")],
        ".data\n.long 1\n.text\nf: ret",
    ))
    .heap(1 << 16)
    .build()
    .unwrap();
    let layout = d.image().tables().layout;
    (d, layout.stack, layout.heap_start + (1 << 16))
}

#[test]
fn reads_and_writes_at_every_edge() {
    let (d, stack, end) = domain();
    let mut four = [0; 4];
    let outside = |r: Result<(), MemoryError>| matches!(r, Err(MemoryError::Outside { .. }));
    for (offset, readable, writable) in [
        (0, false, false),
        (INFO - 4, false, false),
        (INFO - 2, false, false),
        (INFO, true, false),
        (0x11000, true, false),
        (stack - 4, true, false),
        (stack - 2, true, false),
        (stack, true, true),
        (end - 4, true, true),
        (end - 3, false, false),
        (end, false, false),
        (0x8000_0000, false, false),
        (LIMIT, false, false),
        (u32::MAX - 3, false, false),
        (u32::MAX, false, false),
    ] {
        let o = Offset(offset);
        assert_eq!(d.read(o, &mut four).is_ok(), readable, "{o}");
        assert_eq!(d.read_vec(o, 4).is_ok(), readable, "{o}");
        assert_eq!(d.clear(o, 4).is_ok(), writable, "{o}");
        assert_eq!(d.write(o, b"abcd").is_ok(), writable, "{o}");
        if writable {
            assert_eq!(d.read_vec(o, 4).unwrap(), b"abcd");
        }
    }
    // Everything at once, and lengths whose sum with the offset overflows any integer.
    let all = (end - stack) as usize;
    assert_eq!(
        d.read_vec(Offset(INFO), (end - INFO) as usize)
            .unwrap()
            .len(),
        (end - INFO) as usize
    );
    d.write(Offset(stack), &vec![7; all]).unwrap();
    assert!(outside(d.write(Offset(stack), &vec![7; all + 1])));
    d.clear(Offset(stack), all).unwrap();
    let huge = [
        usize::MAX,
        usize::MAX - stack as usize,
        usize::MAX - stack as usize + 1,
        1 << 32,
        (1 << 32) - stack as usize,
        all + 1,
    ];
    for len in huge {
        assert!(outside(d.clear(Offset(stack), len)), "{len:#x}");
        assert!(d.read_vec(Offset(stack), len).is_err(), "{len:#x}");
    }
    // Nothing is read or written with length 0, where the place is the domain's.
    d.read(Offset(end), &mut []).unwrap();
    d.write(Offset(stack), &[]).unwrap();
    let e = d.write(Offset(0x1234), b"x").unwrap_err();
    assert!(
        e.to_string().contains("0x1234") && e.to_string().contains("writable"),
        "{e}"
    );
}

#[test]
fn strings_at_every_edge() {
    let (d, stack, end) = domain();
    d.write(Offset(stack), &vec![b'x'; (end - stack) as usize])
        .unwrap();
    // To the last byte, over pages, and without an end.
    let missing = d.read_c_string(Offset(end - 10), 100);
    assert!(
        matches!(missing, Err(MemoryError::Outside { .. })),
        "{missing:?}"
    );
    let long = d.read_c_string(Offset(stack), 5000);
    assert!(
        matches!(long, Err(MemoryError::Unterminated { limit: 5000, .. })),
        "{long:?}"
    );
    d.write(Offset(end - 1), &[0]).unwrap();
    assert_eq!(d.read_c_string(Offset(end - 10), 100).unwrap(), "xxxxxxxxx");
    assert_eq!(d.read_c_string(Offset(end - 1), 100).unwrap(), "");
    assert_eq!(d.read_c_string(Offset(end - 10), 10).unwrap().len(), 9);
    assert!(d.read_c_string(Offset(end - 10), 9).is_err());
    assert!(d.read_c_string(Offset(end - 10), 0).is_err());
    assert_eq!(
        d.read_c_string(Offset(end - 9001), 10_000).unwrap().len(),
        9000
    );
    for nowhere in [0, end, u32::MAX, 0x8000_0000] {
        assert!(matches!(
            d.read_c_string(Offset(nowhere), 10),
            Err(MemoryError::Outside { .. })
        ));
    }
    d.write(Offset(stack), b"a\xffb\0").unwrap();
    assert_eq!(d.read_c_string(Offset(stack), 10).unwrap(), "a\u{fffd}b");
    assert_eq!(Offset(u32::MAX).checked_add(1), None);
}

/// `alloc` believes nothing that the extension's malloc says.
#[test]
fn allocation_through_the_extension() {
    let source = "
        .data
        next: .long 0
        .text
        malloc: movl %gs:next(,%eiz,1),%eax
            testl %eax,%eax
            jne 1f
            movl %gs:0x10010(,%eiz,1),%eax
         1: leal (%rax,%rdi),%ecx
            cmpl %gs:0x10014(,%eiz,1),%ecx
            ja 2f
            movl %ecx,%gs:next(,%eiz,1)
            ret
         2: xorl %eax,%eax
            ret
        free: ret
        lie: ret";
    let c = code(&[], &[("malloc", "p(L)"), ("free", "v(p)")], source);
    let d = cold(&c.image()).heap(8192).build().unwrap();
    let a = d.alloc(100).unwrap();
    let b = d.alloc_from(b"hello").unwrap();
    assert_eq!(b.0, a.0 + 100);
    assert_eq!(d.read_vec(b, 5).unwrap(), b"hello");
    d.free(b).unwrap();
    assert!(matches!(
        d.alloc(8192),
        Err(AllocError::Memory(MemoryError::NoRoom(8192)))
    ));
    assert!(d.alloc(usize::MAX).is_err());
    // A malloc that returns host-looking rubbish, read-only memory, or a range that is too short.
    for answer in ["0x20", "0x11000", "0xfffffff0", "0x7fffffff"] {
        let d = support::domain(
            &[("malloc", "p(L)")],
            &format!("malloc: movl ${answer},%eax\nret"),
        );
        assert!(
            matches!(
                d.alloc(16),
                Err(AllocError::Memory(MemoryError::NoRoom(16)))
            ),
            "{answer}"
        );
    }
    // No malloc; one that faults.
    let d = support::domain(&[("f", "v()")], "f: ret");
    assert!(matches!(
        d.alloc(16),
        Err(AllocError::Memory(MemoryError::NoRoom(16)))
    ));
    d.free(Offset(0)).unwrap();
    let d = support::domain(
        &[("malloc", "p(L)"), ("free", "v(p)")],
        "malloc: ud2\nfree: ud2",
    );
    let faulted = d.alloc(16);
    assert!(
        matches!(faulted, Err(AllocError::Call(CallError::Fault(_)))),
        "{faulted:?}"
    );
    assert!(d.is_poisoned());
    d.reset().unwrap();
    assert!(d.free(Offset(8)).is_err());
}

/// Reset drops what was written, and nothing of one domain is seen in the next one of the same
/// window.
#[test]
fn windows_are_wiped() {
    for _ in 0..50 {
        let (d, stack, end) = domain();
        let all = (end - stack) as usize;
        let fresh = d.read_vec(Offset(stack), all).unwrap();
        assert_eq!(fresh.iter().map(|&b| u64::from(b)).sum::<u64>(), 1);
        d.write(Offset(stack), &vec![0xaa; all]).unwrap();
        d.reset().unwrap();
        assert_eq!(d.read_vec(Offset(stack), all).unwrap(), fresh);
        d.write(Offset(stack), &vec![0xbb; all]).unwrap();
    }
}
