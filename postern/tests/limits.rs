//! Limits of the system: whoever meets one gets an error that names it, and the host goes on. Each
//! test in a process of its own.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;
use postern::{
    Domain, Image, InstantiateError, LoadError, MapError, Module, Namespace, Pool, Prot,
    ShareError, Shared, SystemLimit,
};
use support::{cold, succeeds_in_child};

fn image(number: u32) -> Image {
    support::image(
        &[("one", "i(i)")],
        &format!(
            "one: leal {number}(%rdi),%eax
             ret"
        ),
    )
}

fn set(resource: libc::__rlimit_resource_t, value: u64) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    assert_eq!(unsafe { libc::getrlimit(resource, &mut limit) }, 0);
    limit.rlim_cur = value.min(limit.rlim_max);
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

/// Which limit of the system an error names, whoever wrapped it.
fn says(error: &dyn std::fmt::Display, what: &str) {
    let text = error.to_string();
    assert!(text.contains(what), "{text}");
}

/// Tries until it is refused: what others mapped is noticed a little later.
fn refused<T, E: std::fmt::Display>(mut attempt: impl FnMut() -> Result<T, E>, what: &str) {
    let mut kept = Vec::new();
    for _ in 0..400 {
        match attempt() {
            Ok(got) => kept.push(got),
            Err(error) => return says(&error, what),
        }
    }
    panic!("never refused");
}

#[test]
fn at_the_limit_of_mappings_every_entry_point_has_an_error() {
    succeeds_in_child(
        "at_the_limit_of_mappings_every_entry_point_has_an_error",
        || {
            /// Mappings that are left to the host.
            const LEFT: usize = 400;
            let what = "vm.max_map_count";
            let (image, other) = (image(1), image(2));
            let domain = cold(&image).build().unwrap();
            let one = domain.func::<fn(i32) -> i32>("one").unwrap();
            assert_eq!(one.call(1).unwrap(), 2);
            let area = Shared::new(64 << 12).unwrap();
            let spare = Shared::new(4096).unwrap();
            domain.share(&area, Prot::Read).unwrap();
            let module = Module::new(&image, |builder| builder).unwrap();
            let space = Namespace::builder().build().unwrap();
            space.create("p", "int f(void) { return 1; }").unwrap();
            let f = space.func::<fn() -> i32>("f").unwrap();
            assert_eq!(f.call().unwrap(), 1);

            let fill = support::fill_mappings();
            fill.less(LEFT / 2);
            refused(|| cold(&image).build(), what);
            refused(|| cold(&image).heap(1 << 20).build(), what);
            refused(|| cold(&other).build(), what);
            let pool = || {
                let image = other.clone();
                Pool::builder(move || cold(&image).build()).size(2).build()
            };
            refused(pool, what);
            refused(|| Shared::new(4096), what);
            refused(|| domain.share(&spare, Prot::Read), what);
            let page = |n: usize| n * 2 * 4096..(n * 2 + 1) * 4096;
            refused(|| area.protect(&domain, page(3), Prot::ReadWrite), what);
            refused(|| module.replace(&other), what);
            refused(|| Namespace::builder().build(), what);
            refused(
                || domain.function_pointer("one", &domain.signature("one").unwrap()),
                what,
            );
            // More text than is mapped already.
            let long = format!(
                "int g(int x) {{ {} return x; }}",
                "x = x * 3 + (x >> 2);".repeat(20_000)
            );
            let created = space.create("long", &long);
            assert!(created.is_err());
            // A thread that has no data stack yet is refused; what needs no mapping goes on.
            let inside = std::thread::scope(|s| s.spawn(|| one.call(1)).join().unwrap());
            says(&inside.unwrap_err(), "no memory");
            assert_eq!(one.call(1).unwrap(), 2);
            assert_eq!(f.call().unwrap(), 1);
            domain.reset().unwrap();
            assert_eq!(one.call(1).unwrap(), 2);
            // The host has what it needs.
            let host: Vec<Vec<u8>> = (0..100).map(|_| vec![1; 1 << 20]).collect();
            assert_eq!(host.len(), 100);
            let error = cold(&other).build().unwrap_err();
            assert!(matches!(
                error.cause(),
                InstantiateError::Map(MapError::Refused {
                    limit: SystemLimit::Mappings,
                    ..
                })
            ));
            drop(fill);
            assert!(cold(&other).build().is_ok());
            domain.share(&spare, Prot::Read).unwrap();
            assert!(module.replace(&other).is_ok() && Namespace::builder().build().is_ok());
            assert!(
                domain
                    .function_pointer("one", &domain.signature("one").unwrap())
                    .is_ok()
            );
            let inside = std::thread::scope(|s| s.spawn(|| one.call(1)).join().unwrap());
            assert_eq!(inside.unwrap(), 2);
        },
    );
}

#[test]
fn errors_name_the_limit_of_files() {
    succeeds_in_child("errors_name_the_limit_of_files", || {
        let (first, file) = (image(1), support::code(&[], &[("two", "i(i)")], "two: ret"));
        let file = file.builder.build().unwrap();
        drop(cold(&first).build().unwrap());
        set(libc::RLIMIT_NOFILE, 3);
        let error = Image::from_bytes(&file).unwrap_err();
        assert!(matches!(error, LoadError::Memory(_)));
        says(&error, "ulimit -n");
        says(&Shared::new(4096).unwrap_err(), "ulimit -n");
        says(&Namespace::builder().build().unwrap_err(), "ulimit -n");
        // A domain of an image that is there needs none, nor do its pointers after the first.
        cold(&first).build().unwrap();
    });
}

/// The kernel's answer to a file that is too large is a signal that ends the process.
#[test]
fn errors_name_the_limit_of_file_sizes() {
    succeeds_in_child("errors_name_the_limit_of_file_sizes", || {
        let file = support::code(&[], &[("two", "i(i)")], "two: ret");
        let file = file.builder.build().unwrap();
        // So that it is not the table for other processes that is refused.
        drop(image(1));
        set(libc::RLIMIT_FSIZE, 4096);
        says(&Image::from_bytes(&file).unwrap_err(), "ulimit -f");
        says(&Shared::new(1 << 20).unwrap_err(), "ulimit -f");
        says(&Namespace::builder().build().unwrap_err(), "ulimit -f");
    });
}

#[test]
fn errors_name_the_limit_of_private_memory() {
    succeeds_in_child("errors_name_the_limit_of_private_memory", || {
        let image = image(1);
        set(libc::RLIMIT_DATA, 96 << 20);
        refused(|| cold(&image).build(), "ulimit -d");
        set(libc::RLIMIT_DATA, libc::RLIM_INFINITY);
        assert!(cold(&image).build().is_ok());
    });
}

/// Postern does not start where it can make no thread, says why, and starts when it can.
#[test]
fn a_start_that_met_a_limit_can_be_tried_again() {
    succeeds_in_child("a_start_that_met_a_limit_can_be_tried_again", || {
        let start = || postern::init(postern::Config::default());
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages = statm.split(' ').next().unwrap().parse::<u64>().unwrap();
        // Room for no thread's stack.
        set(libc::RLIMIT_AS, pages * 4096 + (1 << 20));
        let error = start().unwrap_err();
        set(libc::RLIMIT_AS, libc::RLIM_INFINITY);
        says(&error, "make a thread");
        says(&error, "ulimit -u");
        start().unwrap();
        assert!(cold(&image(1)).build().is_ok());
    });
}

/// What the system that promises no more memory than it has would count against its promise.
fn charged() -> u64 {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut size, mut sum) = (0, 0);
    for line in smaps.lines() {
        if let Some(kib) = line.strip_prefix("Size:") {
            size = kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
        } else if let Some(flags) = line.strip_prefix("VmFlags:") {
            let has = |flag| flags.split_whitespace().any(|f| f == flag);
            // Private and writable; what is called accountable, and what is not only because the
            // system does not count.
            if has("wr") && !has("sh") {
                sum += size << 10;
            }
        }
    }
    sum
}

/// What a core dump of the process would have, at most.
fn dumped() -> u64 {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut size, mut anonymous, mut sum) = (0, false, 0);
    let mut file = false;
    for line in smaps.lines() {
        if line
            .split('-')
            .next()
            .is_some_and(|s| u64::from_str_radix(s, 16).is_ok())
        {
            file = line.contains("/memfd:");
            anonymous = false;
        } else if let Some(kib) = line.strip_prefix("Size:") {
            size = kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
        } else if let Some(kib) = line.strip_prefix("Anonymous:") {
            anonymous = !kib.trim().starts_with("0 ");
        } else if let Some(flags) = line.strip_prefix("VmFlags:") {
            let has = |flag| flags.split_whitespace().any(|f| f == flag);
            if !has("dd") && (anonymous || (file && has("sh"))) {
                sum += size << 10;
            }
        }
    }
    sum
}

#[test]
fn namespaces_cost_no_descriptors_no_dump_and_little_promise() {
    succeeds_in_child(
        "namespaces_cost_no_descriptors_no_dump_and_little_promise",
        || {
            const HEAP: u64 = 1 << 20;
            let area = Shared::new(16 << 20).unwrap();
            area.write(0, &[1]).unwrap();
            let make = || {
                let builder = Namespace::builder().domain(|builder| builder.heap(HEAP));
                let space = builder.build().unwrap();
                space.create("p", "int f(void) { return 1; }").unwrap();
                space.domain().share(&area, Prot::ReadWrite).unwrap();
                assert_eq!(space.func::<fn() -> i32>("f").unwrap().call().unwrap(), 1);
                space
            };
            let before = charged();
            let first = make();
            let each = charged() - before;
            assert!(each < 128 << 20, "{each}");
            let (files, dump) = (support::descriptors(), dumped());
            let spaces: Vec<_> = (0..10).map(|_| make()).collect();
            assert_eq!(support::descriptors(), files);
            assert!(dumped() < dump + (1 << 20), "{} {dump}", dumped());
            drop((first, spaces));
        },
    );
}

#[test]
fn core_dumps_have_extensions_if_the_host_wants_it() {
    succeeds_in_child("core_dumps_have_extensions_if_the_host_wants_it", || {
        let mut config = postern::Config::default();
        config.dump = true;
        postern::init(config).unwrap();
        let before = dumped();
        let area = Shared::new(16 << 20).unwrap();
        let domain: Domain = cold(&image(1)).build().unwrap();
        domain.share(&area, Prot::ReadWrite).unwrap();
        assert!(dumped() >= before + (32 << 20));
    });
}

/// An image's own word about its heap counts up to the host's ceiling.
#[test]
fn wishes_end_at_the_ceiling() {
    let mut code = support::code(&[], &[("one", "i(i)")], "one: ret");
    code.builder.heap_wish(2 << 30);
    let image = code.image();
    let error = cold(&image).build().unwrap_err();
    assert!(matches!(error.cause(), InstantiateError::Wish { wish, .. } if *wish == 2 << 30));
    says(&error, "heap_ceiling");
    assert!(cold(&image).heap(1 << 20).build().is_ok());
    assert!(cold(&image).heap_ceiling(2 << 30).build().is_ok());
    code.builder.heap_wish(1 << 20);
    assert!(cold(&code.image()).heap_ceiling(1 << 19).build().is_err());
    // Without a wish there is the default, and no more than the ceiling.
    let plain = support::image(&[("one", "i(i)")], "one: ret");
    assert!(cold(&plain).heap_ceiling(1 << 20).build().is_ok());
    // Variables that begin as zero are a wish, too.
    let large = support::image(
        &[("one", "i(i)")],
        "one: ret\n.bss\n.skip 0x20000000\n.text",
    );
    let error = cold(&large).heap(1 << 20).build().unwrap_err();
    assert!(matches!(error.cause(), InstantiateError::Wish { wish, .. } if *wish >= 0x2000_0000));
    assert!(matches!(Shared::new(0), Err(ShareError::Length(0))));
}
