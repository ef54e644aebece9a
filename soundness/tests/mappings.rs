//! The address space while domains live: nothing in a window is both writable and executable, text
//! comes from a file, its range cannot be made writable, and the guards around every window are
//! there.

mod maps;

use maps::{mappings, protections};
use postern::{Caller, Domain, HotWindow, Image, Offset, Placement};
use postern_image::{ImageBuilder, MemoryLayout};
use postern_verifier::window::{INFO, NULL_GUARD, WINDOW_SIZE};
use std::fs;

fn image(text: &[u8]) -> (Image, MemoryLayout) {
    shifted_image(text, 0)
}

fn shifted_image(text: &[u8], shift: u32) -> (Image, MemoryLayout) {
    let mut builder = ImageBuilder::new(text);
    builder.shift(shift);
    builder.import("s", Some("i(i)".parse().unwrap()));
    builder.export("f", 0, Some("i(i)".parse().unwrap()));
    builder.data(vec![1; 5000], 10_000);
    (
        Image::from_bytes(&builder.build().unwrap()).unwrap(),
        builder.layout().unwrap(),
    )
}

fn domain(image: &Image, placement: Placement) -> Domain {
    Domain::builder(image)
        .service("s", |_: &Caller<'_>, x: i32| x)
        .placement(placement)
        .build()
        .unwrap()
}

fn check(domain: &Domain, layout: &MemoryLayout) {
    let (base, all) = (domain.base(), mappings());
    let at = |offset: u32| base + u64::from(offset);
    let one = |start, end, expected: &str| {
        assert_eq!(
            protections(&all, start, end),
            [expected],
            "[{start:#x}, {end:#x}) of {domain:?}"
        );
    };
    // Below the lowest address that may be mapped, nothing can be.
    let lowest = fs::read_to_string("/proc/sys/vm/mmap_min_addr")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    if base != 0 {
        one(base, at(INFO), "---p");
    } else if lowest < u64::from(NULL_GUARD) {
        one(lowest, at(INFO), "---p");
    }
    one(at(INFO), at(layout.gates), "r--p");
    one(at(layout.gates), at(layout.text_end), "r-xp");
    one(at(layout.text_end), at(layout.stack), "r--p");
    one(at(layout.stack), at(layout.heap_start), "rw-p");
    let end = base + WINDOW_SIZE;
    one(
        end - u64::from(NULL_GUARD),
        end + u64::from(NULL_GUARD),
        "---p",
    );
    for mapping in all.iter().filter(|m| m.end > base && m.start < end) {
        assert!(!mapping.protection.contains("wx"), "{mapping:?}");
        let text = mapping.start == at(layout.gates);
        assert_eq!(mapping.protection.contains('x'), text, "{mapping:?}");
        if text {
            assert!(mapping.name.contains("memfd:postern-image"), "{mapping:?}");
        }
    }
    let unmapped = protections(&all, at(INFO), end);
    assert!(
        !unmapped.contains(&"unmapped".to_string()),
        "a hole in the window: {unmapped:?}"
    );
    let files: Vec<_> = all
        .iter()
        .filter(|m| m.name.contains("memfd:postern-image"))
        .collect();
    for file in files {
        assert!(
            !file.protection.ends_with('s'),
            "a shared mapping could be written through: {file:?}"
        );
    }
}

#[test]
fn windows_hold_nothing_writable_and_executable() {
    // call slot 0; ret
    let (image, layout) = image(&[0xe8, 0xfb, 0xef, 0xff, 0xff, 0xc3]);
    let hot = domain(&image, Placement::Hot);
    assert!(hot.is_hot() || postern::hot_window() != HotWindow::Taken);
    let cold: Vec<_> = (0..80).map(|_| domain(&image, Placement::Cold)).collect();
    {
        let (shifted, its_layout) = shifted_image(&[0xe8, 0xfb, 0xef, 0xff, 0xff, 0xc3], 9);
        check(&domain(&shifted, Placement::Cold), &its_layout);
    }
    for domain in cold.iter().chain([&hot]) {
        check(domain, &layout);
    }
    // Calls from several threads add data stacks, and must leave no hole and nothing executable.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for domain in [&hot, &cold[0]] {
                    assert_eq!(
                        domain.func::<fn(i32) -> i32>("f").unwrap().call(5).unwrap(),
                        5
                    );
                }
            });
        }
    });
    for domain in [&hot, &cold[0]] {
        check(domain, &layout);
        domain.reset().unwrap();
        check(domain, &layout);
    }
    // The image's file is sealed: neither writing nor a shared writable mapping is possible.
    let mut sealed = 0;
    for entry in fs::read_dir("/proc/self/fd").unwrap() {
        let path = entry.unwrap().path();
        let Ok(target) = fs::read_link(&path) else {
            continue;
        };
        if target.to_string_lossy().contains("memfd:postern-image") {
            sealed += 1;
            let fd: i32 = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
            // SAFETY: queries a descriptor's seals.
            let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
            let all =
                libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
            assert_eq!(seals & all, all, "{target:?}");
            let opened = fs::OpenOptions::new().write(true).open(&path);
            if let Ok(mut file) = opened {
                assert!(std::io::Write::write(&mut file, b"x").is_err());
            }
        }
    }
    assert_eq!(sealed, 1);
    // What a domain wrote is gone with it, though its window may serve the same image again.
    let place = Offset(layout.data);
    let first = cold[0].read_vec(place, 20_000).unwrap();
    let bases: Vec<u64> = cold.iter().map(Domain::base).collect();
    for old in cold {
        old.write(place, &vec![0xee; 20_000]).unwrap();
        drop(old);
        let new = domain(&image, Placement::Cold);
        assert_eq!(new.read_vec(place, 20_000).unwrap(), first);
        check(&new, &layout);
    }
    // With the image, everything goes.
    drop((hot, image));
    let all = mappings();
    for base in bases {
        assert_eq!(
            protections(&all, base, base + WINDOW_SIZE + u64::from(NULL_GUARD)),
            ["---p"]
        );
    }
}
