//! Areas as they should be used.
use super::*;
use postern::{FaultKind, MemoryError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn each_domain_has_its_own_protection_for_each_page() {
    let i = image();
    let [a, b, c] = ["writer", "reader", "stranger"].map(|name| named(&i, name));
    let area = Shared::builder().name("config").zeroed(4 * P).unwrap();
    assert_eq!((area.name(), area.len()), ("config", 4 * P));
    let at = a.share(&area, Prot::ReadWrite).unwrap().0;
    assert_eq!(b.share(&area, Prot::Read).unwrap().0, at);
    store(&a, at + 4, 17).unwrap();
    assert_eq!(load(&b, at + 4).unwrap(), 17);
    // The proof that reading is all: a fault that says whose, where and why.
    let f = fault(&b, store(&b, at + 2 * PAGE + 8, 1));
    assert_eq!(
        (f.kind, f.address),
        (FaultKind::ReadOnly, Some(Offset(at + 2 * PAGE + 8)))
    );
    let page = f.shared.as_ref().unwrap();
    assert_eq!(
        (&*page.area, page.page, page.protection),
        ("config", 2, Prot::Read)
    );
    assert_eq!(page.start, area.offset());
    let text = f.to_string();
    assert!(
        text.contains("page 2 of area `config`, domain `reader`, which may read it"),
        "{text}"
    );
    assert!(f.report().contains("area `config`"), "{}", f.report());
    for write in [false, true] {
        let (f, kind) = match write {
            false => (fault(&c, load(&c, at)), FaultKind::Read),
            true => (fault(&c, store(&c, at, 1)), FaultKind::Write),
        };
        assert_eq!(
            (f.kind, f.shared.as_ref().unwrap().protection),
            (kind, Prot::None)
        );
        assert!(
            f.to_string().contains("`stranger`, which has no access"),
            "{f}"
        );
    }

    // Ranges of pages, changed while it lives.
    area.protect(&b, P..2 * P, Prot::ReadWrite).unwrap();
    area.protect(&b, 3 * P.., Prot::None).unwrap();
    area.protect(&c, ..=P - 1, Prot::Read).unwrap();
    use Prot::{None, Read, ReadWrite};
    for (d, expected) in [
        (&a, [ReadWrite; 4]),
        (&b, [Read, ReadWrite, Read, None]),
        (&c, [Read, None, None, None]),
    ] {
        for (page, expected) in expected.into_iter().enumerate() {
            let name = d.name();
            assert_eq!(area.protection(d, page * P + 5), expected, "{name} {page}");
            assert_eq!(tried(d, &area, page * P + 8), expected, "{name} {page}");
            let offset = Offset(at + (page * P) as u32);
            assert_eq!(
                d.read_vec(offset, P).is_ok(),
                expected != None,
                "{name} {page}"
            );
            assert_eq!(
                d.clear(Offset(offset.0 + 100), P - 100).is_ok(),
                expected == ReadWrite
            );
        }
    }
    // Copies over pages of several protections need what is asked for on all of them.
    assert!(
        b.read_vec(area.offset(), 3 * P).is_ok() && b.read_vec(area.offset(), 3 * P + 1).is_err()
    );
    let across = Offset(at + 2 * PAGE - 2);
    assert!(b.read_vec(across, 4).is_ok() && b.write(across, b"1234").is_err());
    assert!(b.write(across, b"12").is_ok());
    assert_eq!(area.protection(&a, 4 * P), None);

    // Everything at once, and nothing.
    area.protect(&b, .., ReadWrite).unwrap();
    assert_eq!(tried(&b, &area, 3 * P), ReadWrite);
    b.unshare(&area).unwrap();
    b.unshare(&area).unwrap();
    let f = fault(&b, load(&b, at));
    assert!(
        f.to_string().contains("`config`") && f.to_string().contains("no access"),
        "{f}"
    );
    b.share(&area, Read).unwrap();
    assert_eq!(tried(&b, &area, 0), Read);
}

#[test]
fn the_host_reads_writes_and_converts() {
    let i = image();
    let d = named(&i, "d");
    let area = Shared::new(P + 100).unwrap();
    assert!(area.name().starts_with("area#"));
    let at = d.share(&area, Prot::ReadWrite).unwrap().0;
    area.write(P + 96, &7i32.to_le_bytes()).unwrap();
    assert_eq!(load(&d, at + PAGE + 96).unwrap(), 7);
    let mut four = [0; 4];
    area.read(P + 96, &mut four).unwrap();
    assert_eq!(i32::from_le_bytes(four), 7);
    area.read(P + 100, &mut []).unwrap();
    for beyond in [P + 97, P + 100, P + 101, usize::MAX, usize::MAX - 3] {
        let read = area.read(beyond, &mut four);
        assert!(
            matches!(read, Err(MemoryError::BeyondArea { .. })),
            "{beyond:#x}"
        );
        assert!(area.write(beyond, &four).is_err());
    }
    // Host pointers, extensions' pointers, and everything else.
    let host = area.as_ptr() as u64;
    assert_eq!(host as u32, at);
    for pointer in [
        host + 8,
        u64::from(at) + 8,
        0xdead_0000_0000_0000 | (u64::from(at) + 8),
    ] {
        assert_eq!(area.at(pointer, 4).unwrap() as u64, host + 8);
    }
    assert_eq!(area.at(host, P + 100).unwrap(), area.as_ptr());
    for (pointer, len) in [
        (host, P + 101),
        (host - 1, 1),
        (host + P as u64 + 100, 1),
        (host + 4, usize::MAX),
        (0, 0),
        (0, 4),
    ] {
        assert_eq!(area.at(pointer, len), None, "{pointer:#x} {len:#x}");
    }
    assert!(area.at(host + P as u64 + 100, 0).is_some());
}

#[test]
fn protections_change_while_threads_are_inside() {
    let i = image();
    let area = Shared::builder().name("moving").zeroed(2 * P).unwrap();
    let [reader, neighbour] = ["reader", "neighbour"].map(|name| named(&i, name));
    let at = reader.share(&area, Prot::Read).unwrap().0;
    neighbour.share(&area, Prot::ReadWrite).unwrap();
    area.write(0, &[5; 2 * P]).unwrap();
    let (faults, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let finished = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (reader, faults, stop, finished) = (&reader, &faults, &stop, &finished);
            scope.spawn(move || {
                let watch = reader.func::<fn(Offset)>("watch").unwrap();
                while !stop.load(Ordering::SeqCst) {
                    // The second thread watches a page whose rights never change, and is thrown out
                    // with the first.
                    let result = watch.call(Offset(at + thread * PAGE));
                    let error = result.unwrap_err();
                    if let CallError::Fault(fault) = &error
                        && fault.kind == FaultKind::Read
                    {
                        assert_eq!(thread, 0);
                        let page = fault.shared.as_ref().unwrap();
                        assert_eq!((&*page.area, page.page), ("moving", 0));
                        faults.fetch_add(1, Ordering::SeqCst);
                    }
                    let known = match &error {
                        CallError::Fault(fault) => matches!(
                            fault.kind,
                            FaultKind::Read | FaultKind::AnotherThread | FaultKind::Interrupted
                        ),
                        error => matches!(error, CallError::Poisoned | CallError::Busy),
                    };
                    assert!(known, "{error}");
                    let _ = reader.reset();
                }
                finished.fetch_add(1, Ordering::SeqCst);
            });
        }
        let mut round = 0;
        while faults.load(Ordering::SeqCst) < 50 {
            let protection = [Prot::Read, Prot::ReadWrite, Prot::None][round % 3];
            area.protect(&reader, ..P, protection).unwrap();
            assert_eq!(area.protection(&reader, 0), protection);
            // The host's checked copies go through, or are errors.
            let _ = reader.read_vec(Offset(at), 64);
            assert_eq!(load(&neighbour, at + 4).unwrap(), 0x0505_0505);
            round += 1;
        }
        stop.store(true, Ordering::SeqCst);
        while finished.load(Ordering::SeqCst) < 2 {
            reader.interrupt();
            std::thread::yield_now();
        }
    });
}

/// Many random changes: what the runtime says, what the host's copies do, and what the kernel has,
/// are the same.
#[test]
fn the_list_the_copies_and_the_kernel_agree() {
    let mut numbers = fastrand::Rng::with_seed(1);
    let mut random = |below: usize| numbers.usize(..below);
    let i = image();
    let domains: Vec<Domain> = (0..4).map(|n| named(&i, &format!("random {n}"))).collect();
    let areas: Vec<Shared> = [1, 3, 8, 17]
        .map(|pages| Shared::new(pages * P).unwrap())
        .into();
    let rights = [Prot::None, Prot::Read, Prot::ReadWrite];
    let mut model = vec![vec![Vec::new(); areas.len()]; domains.len()];
    for (d, _) in domains.iter().enumerate() {
        for (a, area) in areas.iter().enumerate() {
            model[d][a] = vec![Prot::None; area.len() / P];
        }
    }
    for round in 0..600 {
        let (d, a) = (random(domains.len()), random(areas.len()));
        let pages = model[d][a].len();
        let from = random(pages + 1);
        let to = from + random(pages + 1 - from);
        let to = if random(8) == 0 { pages } else { to };
        let (from, to) = if random(10) == 0 {
            (0, pages)
        } else {
            (from, to)
        };
        let right = rights[random(3)];
        areas[a]
            .protect(&domains[d], from * P..to * P, right)
            .unwrap();
        model[d][a][from..to].fill(right);
        if random(20) == 0 {
            domains[d].reset().unwrap();
        }
        if round % 20 != 0 {
            continue;
        }
        let kernel = support::protections();
        let table = postern::memory_table().unwrap();
        for (d, domain) in domains.iter().enumerate() {
            for (a, area) in areas.iter().enumerate() {
                for (page, &expected) in model[d][a].iter().enumerate() {
                    let at = Offset(area.offset().0 + (page * P) as u32);
                    assert_eq!(area.protection(domain, page * P), expected);
                    let read = domain.read_vec(at, P).is_ok();
                    let write = domain.clear(at, P).is_ok();
                    let allowed = (expected != Prot::None, expected == Prot::ReadWrite);
                    assert_eq!((read, write), allowed, "round {round}, page {page}");
                    assert_eq!(kernel(domain.base() + u64::from(at.0)), allowed);
                    let cell = super::table::cell(&table, domain.name(), at.0);
                    assert_eq!(
                        (cell.read, cell.write, cell.execute),
                        (allowed.0, allowed.1, false)
                    );
                }
                // The page above belongs to nobody.
                let above = u64::from(area.offset().0) + area.len() as u64;
                assert_eq!(kernel(domain.base() + above), (false, false));
            }
        }
    }
}
