//! One state in several domains and processes, and files that are no such memory.

use crate::support;
use crate::*;

#[test]
fn two_domains_of_a_process_have_one_state() {
    let memory = CommonMemory::new(&image()).unwrap();
    let (one, other) = (attach(&memory), attach(&memory));
    put(&one, 3);
    assert_eq!(get(&other), 3);
    // The constructors ran once; text and heap are at the same offsets.
    assert_eq!(call(&one, "begun").unwrap(), 8);
    assert_eq!(call(&other, "begun").unwrap(), 8);
    let heap = one.image().tables().layout.heap_start;
    one.write(Offset(heap), &9u32.to_le_bytes()).unwrap();
    let peek = other.func::<fn(Offset) -> i32>("peek").unwrap();
    assert_eq!(peek.call(Offset(heap)).unwrap(), 9);
    // Stacks are at offsets that the other does not have.
    let stack = |domain: &Domain| domain.func::<fn() -> u32>("stack").unwrap().call().unwrap();
    let (its, others) = (stack(&one), stack(&other));
    assert_ne!(its, others);
    let fault = peek.call(Offset(its - 64)).unwrap_err();
    assert_eq!(fault.fault().unwrap().kind, FaultKind::Read);
}

#[test]
fn memory_of_one_client_is_no_others() {
    let memory = CommonMemory::new(&image()).unwrap();
    let (one, other) = (attach(&memory), attach(&memory));
    let private = one.own_memory(5000).unwrap();
    let others = other.own_memory(5000).unwrap();
    assert_ne!(private, others);
    one.write(private, &7u32.to_le_bytes()).unwrap();
    one.write(Offset(private.0 + 4096), &8u32.to_le_bytes())
        .unwrap();
    let peek = |domain: &Domain, at: u32| {
        let peek = domain.func::<fn(Offset) -> i32>("peek").unwrap();
        peek.call(Offset(at))
    };
    assert_eq!(peek(&one, private.0).unwrap(), 7);
    assert_eq!(peek(&other, others.0).unwrap(), 0);
    assert!(other.read_vec(private, 4).is_err());
    // Nothing lies beside it.
    for at in [private.0 - 4, private.0 + 8192] {
        assert!(one.read_vec(Offset(at), 4).is_err());
    }
    let fault = peek(&other, private.0).unwrap_err();
    assert_eq!(fault.fault().unwrap().kind, FaultKind::Read);
    until("the reset", || one.reset().is_ok());
    assert_eq!(peek(&one, private.0).unwrap(), 0);
    for bytes in [0, 1 << 31, 1 << 40] {
        assert!(one.own_memory(bytes).is_err());
    }
    let plain = Domain::builder(&image()).service("s", |_: &postern::Caller<'_>| 7);
    assert!(plain.build().unwrap().own_memory(1).is_err());
    // It goes on until the seat's share is used up, and the data stacks have none left.
    while one.own_memory(1 << 20).is_ok() {}
    assert_eq!(get(&one), 0);
    let thread = std::thread::scope(|scope| scope.spawn(|| call(&one, "get")).join().unwrap());
    println!("{thread:?}");
}

#[test]
fn two_processes_have_one_state() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "sharing::two_processes_have_one_state",
        || memory.unwrap(),
        |domain| {
            until("the first value", || get(&domain) == 5);
            assert_eq!(call(&domain, "begun").unwrap(), 8);
            put(&domain, 6);
            until("the last value", || get(&domain) == 7);
        },
    );
    let domain = domain.unwrap();
    put(&domain, 5);
    until("the other's value", || get(&domain) == 6);
    put(&domain, 7);
    attached.succeeds();
}

#[test]
fn who_comes_late_finds_what_is_there() {
    let (memory, domain) = pair();
    if let Some(domain) = &domain {
        put(domain, 1234);
    }
    drop(domain);
    Attached::begin(
        "sharing::who_comes_late_finds_what_is_there",
        || memory.unwrap(),
        |domain| {
            assert_eq!(get(&domain), 1234);
            assert_eq!(call(&domain, "begun").unwrap(), 8);
        },
    )
    .succeeds();
}

#[test]
fn one_process_wakes_another() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "sharing::one_process_wakes_another",
        || memory.unwrap(),
        |domain| {
            let sleep = domain.func::<fn(i32) -> i32>("sleep").unwrap();
            put(&domain, 1);
            // While the word is 0.
            assert_eq!(sleep.call(0).unwrap(), 0);
            put(&domain, 2);
        },
    );
    let domain = domain.unwrap();
    until("the sleeper", || get(&domain) == 1);
    let wake = domain.func::<fn(i32) -> i32>("wake").unwrap();
    until("somebody was woken", || wake.call(0).unwrap() == 1);
    until("it went on", || get(&domain) == 2);
    attached.succeeds();
}

#[test]
fn files_that_are_none_are_refused() {
    fn cause(refused: Result<CommonMemory, InstantiateError>) -> CommonError {
        match refused {
            Err(InstantiateError::Common(error)) => error,
            other => panic!("{other:?}"),
        }
    }
    fn file(bytes: u64, seals: i32) -> OwnedFd {
        unsafe {
            let fd = libc::memfd_create(c"x".as_ptr(), libc::MFD_ALLOW_SEALING);
            assert!(fd >= 0 && libc::ftruncate(fd, bytes as i64) == 0);
            assert!(seals == 0 || libc::fcntl(fd, libc::F_ADD_SEALS, seals) == 0);
            OwnedFd::from_raw_fd(fd)
        }
    }
    let memory = CommonMemory::new(&image()).unwrap();
    let length = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
    let length = length.metadata().unwrap().len();
    let size = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    for (bytes, seals) in [
        (length, 0),
        (length, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW),
        (length, libc::F_SEAL_GROW | libc::F_SEAL_SEAL),
        (length, size | libc::F_SEAL_WRITE),
        (4096, size),
        (0, size),
    ] {
        let error = cause(CommonMemory::join(file(bytes, seals)));
        assert!(
            matches!(error, CommonError::Map(MapError::Unsealed)),
            "{error}"
        );
    }
    let error = cause(CommonMemory::join(file(length, size)));
    assert!(matches!(error, CommonError::Foreign(_)), "{error}");
    let other = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let error = cause(CommonMemory::join(other.into()));
    assert!(
        matches!(error, CommonError::Map(MapError::Unsealed)),
        "{error}"
    );
}

#[test]
fn layouts_that_are_none_are_refused() {
    let memory = CommonMemory::new(&image()).unwrap();
    let header = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
    let mut page = vec![0u8; 4096];
    std::os::unix::fs::FileExt::read_exact_at(&header, &mut page, 0).unwrap();
    let join = |page: &[u8]| {
        std::os::unix::fs::FileExt::write_all_at(&header, page, 0).unwrap();
        CommonMemory::join(memory.descriptor().try_clone_to_owned().unwrap())
    };
    assert!(join(&page).is_ok());
    let mut random = fastrand::Rng::with_seed(23);
    for word in 16..23 {
        for _ in 0..50 {
            let mut forged = page.clone();
            let value = match random.u32(0..3) {
                0 => random.u32(..),
                1 => 1 << random.u32(0..32),
                _ => random.u32(0..1 << 20) << 12,
            };
            let own = &mut forged[4 * word..4 * word + 4];
            if own == value.to_le_bytes() {
                continue;
            }
            own.copy_from_slice(&value.to_le_bytes());
            // What is possible, but not this image's, is found when it is attached.
            if let Ok(joined) = join(&forged) {
                let built = builder(&joined).build();
                assert!(built.is_err() || word > 19, "word {word}, {value:#x}");
            }
        }
    }
    assert!(join(&page).is_ok());
    assert_eq!(get(&attach(&memory)), 0);
}

#[test]
fn the_state_of_another_image_is_refused() {
    let other = domain(&[("one", "i()")], "one: movl $1,%eax\n ret").image();
    let memory = CommonMemory::new(&image()).unwrap();
    let error = Domain::builder(&other).common(&memory).build().unwrap_err();
    let is = matches!(
        error.cause(),
        InstantiateError::Common(CommonError::Image { .. })
    );
    assert!(is, "{error}");
}

#[test]
fn a_seat_is_free_again_and_there_are_so_many() {
    let memory = CommonMemory::new(&image()).unwrap();
    for _ in 0..3 {
        // A domain's own thread may be just looking at it, and is then the last to have it.
        until("its seats are free", || {
            let members = memory.view(None).members;
            members.iter().all(|member| !member.alive)
        });
        let all: Vec<_> = (0..64).map(|_| attach(&memory)).collect();
        put(&all[63], 4);
        assert_eq!(get(&all[0]), 4);
        let error = builder(&memory).build().unwrap_err();
        let full = matches!(
            error.cause(),
            InstantiateError::Common(CommonError::Full(64))
        );
        assert!(full, "{error}");
    }
}

/// What a process grants, all processes could use: so it says which services those may be.
#[test]
fn services_are_granted_to_all_or_not_at_all() {
    let memory = CommonMemory::new(&image()).unwrap();
    let granting = || {
        let builder = Domain::builder(&image()).common(&memory);
        builder.service("s", |_: &postern::Caller<'_>| 7)
    };
    let refused = |builder: DomainBuilder| {
        let error = builder.build().unwrap_err();
        match error.cause() {
            InstantiateError::Common(CommonError::NotToAll(names)) => names.clone(),
            _ => panic!("{error}"),
        }
    };
    assert_eq!(refused(granting()), ["s"]);
    assert_eq!(refused(granting().grant_to_all("other")), ["s"]);
    granting().grant_to_all("s").build().unwrap();
    // What only ends a call is nobody's to use.
    let builder = Domain::builder(&image()).common(&memory);
    builder.stand_in_for_missing().build().unwrap();
    let source = "f: call sys\n ret";
    let calls = code(&[("sys", "l(lLLLLL)")], &[("f", "v()")], source).image();
    let memory = CommonMemory::new(&calls).unwrap();
    let builder = |policy| Domain::builder(&calls).common(&memory).policy(policy);
    assert_eq!(refused(builder(postern::Policy::compute())), ["sys"]);
    builder(postern::Policy::none()).build().unwrap();
    let builder = builder(postern::Policy::compute()).grant_to_all("sys");
    builder.build().unwrap();
}

/// What calls cost beside those of a domain of its own: `--ignored --nocapture` shows it.
#[test]
#[ignore = "shows a figure"]
fn what_a_call_costs() {
    let memory = CommonMemory::new(&image()).unwrap();
    let plain = Domain::builder(&image()).service("s", |_: &postern::Caller<'_>| 7);
    let plain = plain.placement(postern::Placement::Cold).deadline(None);
    let domains = [plain.build().unwrap(), attach(&memory)];
    let calls = domains
        .each_ref()
        .map(|d| d.func::<fn() -> i32>("get").unwrap());
    let mut best = [u64::MAX; 2];
    for _ in 0..200 {
        for (best, call) in best.iter_mut().zip(&calls) {
            let begin = unsafe { std::arch::x86_64::_rdtsc() };
            for _ in 0..1000 {
                call.call().unwrap();
            }
            let taken = unsafe { std::arch::x86_64::_rdtsc() } - begin;
            *best = taken.min(*best);
        }
    }
    println!(
        "cycles of 1000 calls: private {}, common {}: {:.2}",
        best[0],
        best[1],
        best[1] as f64 / best[0] as f64
    );
}

#[test]
fn a_child_has_it_no_more_and_the_parent_goes_on() {
    let memory = CommonMemory::new(&image()).unwrap();
    let domain = attach(&memory);
    put(&domain, 5);
    let status = fork(|| {
        assert!(matches!(call(&domain, "get"), Err(CallError::Closed)));
        // But it may attach, as anybody who has the descriptor.
        let again = attach(&memory);
        put(&again, 6);
        drop(again);
        drop(domain.clone());
        true
    });
    assert_eq!(status, 0);
    assert_eq!(get(&domain), 6);
    domain.reset().unwrap();
    assert_eq!(get(&domain), 0);
}

#[test]
fn nothing_stays_behind() {
    support::succeeds_in_child("sharing::nothing_stays_behind", attach_and_drop);
}

fn attach_and_drop() {
    let memory = CommonMemory::new(&image()).unwrap();
    drop(attach(&memory));
    let (descriptors, threads) = (support::descriptors(), support::threads());
    for _ in 0..10 {
        drop((attach(&memory), attach(&memory)));
    }
    until("threads ended", || support::threads() <= threads);
    assert!(support::descriptors() <= descriptors);
}
