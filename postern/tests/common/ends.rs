//! Faults, resets, and processes that end: inside, outside, at any instruction.

use crate::support;
use crate::*;
use std::io::Write;

#[test]
fn a_fault_closes_it_for_all_until_it_is_reset() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "ends::a_fault_closes_it_for_all_until_it_is_reset",
        || memory.unwrap(),
        |domain| {
            put(&domain, 1);
            until("go", || get(&domain) == 2);
            let trap = domain.func::<fn()>("trap").unwrap();
            assert!(trap.call().unwrap_err().fault().is_some());
            until("the reset", || call(&domain, "get").is_ok_and(|n| n == 3));
            assert_eq!(call(&domain, "begun").unwrap(), 8);
            put(&domain, 4);
        },
    );
    let domain = domain.unwrap();
    until("it is there", || get(&domain) == 1);
    put(&domain, 2);
    until("the poison", || domain.is_poisoned());
    assert!(matches!(call(&domain, "get"), Err(CallError::Poisoned)));
    let (pid, kind) = (attached.pid(), Some(FaultKind::Trap));
    assert_eq!(domain.poison(), Some(Poison::Fault { pid, kind }));
    domain.reset().unwrap();
    assert_eq!(domain.poison(), None);
    assert_eq!((get(&domain), call(&domain, "begun").unwrap()), (0, 8));
    put(&domain, 3);
    until("the other goes on", || get(&domain) == 4);
    attached.succeeds();
}

#[test]
fn no_reset_while_another_process_is_inside() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "ends::no_reset_while_another_process_is_inside",
        || memory.unwrap(),
        |domain| {
            put(&domain, 1);
            let sleep = domain.func::<fn(i32) -> i32>("sleep").unwrap();
            assert_eq!(sleep.call(0).unwrap(), 0);
            put(&domain, 3);
            until("the reset", || call(&domain, "get").is_ok_and(|n| n == 0));
            put(&domain, 4);
        },
    );
    let domain = domain.unwrap();
    until("it is there", || get(&domain) == 1);
    // It is about to sleep, or sleeps.
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..3 {
        assert!(domain.reset().is_err());
        assert_eq!(get(&domain), 1);
    }
    let wake = domain.func::<fn(i32) -> i32>("wake").unwrap();
    until("it was woken", || wake.call(1).unwrap() == 1);
    until("it is outside", || get(&domain) == 3);
    until("the reset", || domain.reset().is_ok());
    until("the other goes on", || get(&domain) == 4);
    attached.succeeds();
}

#[test]
fn who_is_killed_inside_poisons_it() {
    let (memory, domain) = pair();
    let attached = Attached::begin(
        "ends::who_is_killed_inside_poisons_it",
        || memory.unwrap(),
        |domain| {
            let hold = domain.func::<fn()>("hold").unwrap();
            hold.call().unwrap();
        },
    );
    let domain = domain.unwrap();
    let pid = attached.pid();
    until("it is inside", || get(&domain) == 2);
    let since = Instant::now();
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    while !domain.is_poisoned() {
        std::hint::spin_loop();
        assert!(since.elapsed() < Duration::from_secs(20));
    }
    println!("poisoned {:?} after the kill", since.elapsed());
    let Some(Poison::Killed {
        pid: its, function, ..
    }) = domain.poison()
    else {
        panic!("{:?}", domain.poison());
    };
    assert_eq!((its, function.as_deref()), (pid, Some("hold")));
    let words = domain.poison().unwrap().to_string();
    assert_eq!(
        words,
        format!("process {pid} ended while it was inside `hold`")
    );
    assert!(matches!(call(&domain, "get"), Err(CallError::Poisoned)));
    domain.reset().unwrap();
    assert_eq!(get(&domain), 0);
}

#[test]
fn who_is_killed_in_a_service_or_a_nested_call_was_inside() {
    let (memory, domain) = pair();
    let attached = Attached::begin_with(
        "ends::who_is_killed_in_a_service_or_a_nested_call_was_inside",
        || memory.unwrap(),
        |memory| {
            let own = domain_that_adds();
            let served = Domain::builder(&image()).common(memory).grant_to_all("s");
            let served = served.deadline(None);
            let served = served.service("s", move |caller: &postern::Caller<'_>| -> i32 {
                // A call of the same domain, and one of another, have come and gone.
                put(&caller.domain(), 1);
                assert_eq!(call(&own, "one").unwrap(), 1);
                put(&caller.domain(), 2);
                loop {
                    std::thread::park();
                }
            });
            let domain = served.build().unwrap();
            call(&domain, "serve").unwrap();
        },
    );
    let domain = domain.unwrap();
    until("it is inside", || get(&domain) == 2);
    let pid = attached.pid();
    drop(attached);
    until("the poison", || domain.is_poisoned());
    let killed = matches!(domain.poison(), Some(Poison::Killed { pid: its, .. }) if its == pid);
    assert!(killed, "{:?}", domain.poison());
    domain.reset().unwrap();
}

/// The same, where the memory says that it goes on.
#[test]
fn where_it_survives_the_end_is_counted() {
    let memory = || CommonMemory::new(&image()).map(|memory| memory.end_inside(EndInside::Survive));
    let memory = (!is_child()).then(|| memory().unwrap());
    let attached = Attached::begin(
        "ends::where_it_survives_the_end_is_counted",
        || memory.clone().unwrap(),
        |domain| domain.func::<fn()>("hold").unwrap().call().unwrap(),
    );
    let memory = memory.unwrap();
    let domain = attach(&memory);
    until("it is inside", || get(&domain) == 2);
    drop(attached);
    until("it is counted", || memory.survived() == 1);
    assert_eq!((domain.poison(), get(&domain)), (None, 2));
    // What a fault closes is closed here, too.
    let trap = domain.func::<fn()>("trap").unwrap();
    assert!(matches!(trap.call(), Err(CallError::Fault(_))));
    assert!(domain.poison().is_some());
    domain.reset().unwrap();
    assert_eq!((get(&domain), memory.survived()), (0, 1));
}

fn domain_that_adds() -> Domain {
    domain(&[("one", "i()")], "one: movl $1,%eax\n ret")
}

#[test]
fn who_is_killed_outside_leaves_it_usable() {
    for round in 0..3 {
        let (memory, domain) = pair();
        let attached = Attached::begin(
            "ends::who_is_killed_outside_leaves_it_usable",
            || memory.unwrap(),
            |domain| {
                // Calls that return, in all ways.
                let trap = domain.func::<fn()>("trap").unwrap();
                assert!(trap.call().is_err());
                domain.reset().unwrap();
                assert_eq!(call(&domain, "serve").unwrap(), 7);
                domain
                    .read_vec(Offset(domain.image().tables().layout.data), 4)
                    .unwrap();
                put(&domain, 2);
                loop {
                    std::thread::park();
                }
            },
        );
        let domain = domain.unwrap();
        until("it was inside", || {
            call(&domain, "get").is_ok_and(|n| n == 2)
        });
        std::thread::sleep(Duration::from_millis(20 * round));
        drop(attached);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!((domain.poison(), get(&domain)), (None, 2));
        domain.reset().unwrap();
    }
}

#[test]
fn the_dead_are_found_by_who_comes_when_nobody_was_there() {
    if is_child() {
        let child = |domain: Domain| domain.func::<fn()>("hold").unwrap().call().unwrap();
        let test = "ends::the_dead_are_found_by_who_comes_when_nobody_was_there";
        Attached::begin(test, || unreachable!(), child);
    }
    let memory = CommonMemory::new(&image()).unwrap();
    let test = "ends::the_dead_are_found_by_who_comes_when_nobody_was_there";
    let attached = Attached::begin(test, || memory.clone(), |_| {});
    let layout = image().tables().layout;
    let file = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
    let n = || {
        let mut word = [0; 4];
        let length = file.metadata().unwrap().len();
        let at = length - u64::from(layout.heap_start + (64 << 20) - layout.data);
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut word, at).unwrap();
        u32::from_le_bytes(word)
    };
    until("it is inside", || n() == 2);
    drop(attached);
    let domain = attach(&memory);
    assert!(domain.is_poisoned());
    assert!(matches!(domain.poison(), Some(Poison::Killed { .. })));
    domain.reset().unwrap();
    assert_eq!(get(&domain), 0);
}

/// Two counters that a call makes equal: killed at any instruction, it leaves them so, or the
/// domain says that it was inside.
#[test]
fn who_is_killed_at_any_instruction_leaves_it_usable_or_poisoned() {
    let source = source();
    let image = source.image();
    let memory = CommonMemory::new(&image).unwrap();
    let attach = || {
        let builder = Domain::builder(&image).common(&memory).grant_to_all("s");
        let builder = builder.deadline(None);
        let builder = builder.service("s", |_: &postern::Caller<'_>| 7);
        builder.build().unwrap()
    };
    let domain = attach();
    let counters = || {
        [source.at("one"), source.at("two")].map(|at| {
            let mut word = [0; 4];
            domain.read(Offset(at), &mut word).unwrap();
            u32::from_le_bytes(word)
        })
    };
    let mut found = String::new();
    for steps in 0.. {
        assert!(steps < 20_000, "it does not return");
        let before = counters();
        assert_eq!(before[0], before[1]);
        let (complete, pid) = unsafe {
            match libc::fork() {
                0 => {
                    // What it says goes past the harness, which shows only what its own process
                    // printed.
                    std::panic::set_hook(Box::new(|panic| {
                        let _ = writeln!(std::io::stderr(), "the child: {panic}");
                    }));
                    let called = std::panic::catch_unwind(|| {
                        let domain = attach();
                        let both = domain.func::<fn()>("both").unwrap();
                        // The first call is another way in.
                        both.call().unwrap();
                        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                        libc::raise(libc::SIGSTOP);
                        both.call().unwrap();
                        libc::raise(libc::SIGSTOP);
                    });
                    libc::_exit(if called.is_ok() { 0 } else { 9 })
                }
                child => {
                    assert!(child > 0);
                    let mut status = 0;
                    let mut stop = || {
                        assert_eq!(libc::waitpid(child, &mut status, 0), child);
                        assert!(libc::WIFSTOPPED(status), "{status:#x}");
                        libc::WSTOPSIG(status)
                    };
                    assert_eq!(stop(), libc::SIGSTOP);
                    let step = || libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) == 0;
                    let mut complete = false;
                    for _ in 0..steps {
                        assert!(step());
                        complete |= stop() == libc::SIGSTOP;
                        if complete {
                            break;
                        }
                    }
                    assert_eq!(libc::kill(child, libc::SIGKILL), 0);
                    assert_eq!(libc::waitpid(child, &mut status, libc::__WALL), child);
                    (complete, child as u32)
                }
            }
        };
        // Whoever attaches looks what the dead have left, unless somebody else just does.
        drop(attach());
        until("it is looked at", || {
            let members = memory.view(None).members;
            members.iter().all(|member| member.pid != pid)
        });
        let after = counters();
        match domain.poison() {
            None => {
                assert_eq!(after[0], after[1], "after {steps} steps");
                found.push('.');
            }
            Some(Poison::Killed {
                pid: its, function, ..
            }) => {
                assert_eq!((its, function.as_deref()), (pid, Some("both")));
                until("the poison", || domain.is_poisoned());
                until("the reset", || domain.reset().is_ok());
                found.push('x');
            }
            other => panic!("{other:?}"),
        }
        if complete {
            break;
        }
    }
    // Outside, inside, outside. Some calls take the slow path, which is longer: the watchdog had
    // gone to rest.
    let inside = found.matches('x').count();
    assert!(inside > 20, "{found}");
    assert!(found.starts_with('.') && found.ends_with('.'), "{found}");
}

/// Processes come, call, reset and are killed. Whenever the domain is open and nobody is there any
/// more, its counters are equal; and nothing of anybody stays.
#[test]
fn whatever_processes_do_it_is_usable_or_poisoned() {
    let test = "ends::whatever_processes_do_it_is_usable_or_poisoned";
    support::succeeds_in_child(test, chaos);
}

fn chaos() {
    let source = source();
    let image = source.image();
    let memory = CommonMemory::new(&image).unwrap();
    let attach = || {
        let builder = Domain::builder(&image).common(&memory).grant_to_all("s");
        let builder = builder.deadline(None);
        builder.service("s", |_: &postern::Caller<'_>| 7).build()
    };
    let client = |seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        loop {
            // While somebody resets it for long, there is no way in.
            let Ok(domain) = attach() else { continue };
            for _ in 0..random.u32(1..200) {
                let _ = domain.func::<fn()>("both").unwrap().call();
            }
            match random.u32(0..4) {
                0 => drop(domain.reset()),
                1 if domain.poison().is_some() => drop(domain.reset()),
                _ => {}
            }
        }
    };
    let seconds = std::env::var("POSTERN_CHAOS_SECONDS").ok();
    let longest = Duration::from_secs(seconds.map_or(10, |s| s.parse().unwrap()));
    let seed = std::env::var("POSTERN_CHAOS_SEED").ok();
    let mut random = fastrand::Rng::with_seed(seed.map_or(23, |s| s.parse().unwrap()));
    let mut alive = Vec::new();
    let (mut usable, mut poisoned) = (0, 0);
    let since = Instant::now();
    for round in 0.. {
        while alive.len() < 3 {
            let seed = random.u64(..);
            match unsafe { libc::fork() } {
                0 => {
                    let _ = std::panic::catch_unwind(|| client(seed));
                    unsafe { libc::_exit(9) }
                }
                child => alive.push(child),
            }
        }
        std::thread::sleep(Duration::from_millis(random.u64(0..12)));
        let all = round % 8 == 7;
        while !alive.is_empty() {
            let child = alive.swap_remove(random.usize(..alive.len()));
            let mut status = 0;
            unsafe {
                assert_eq!(libc::kill(child, libc::SIGKILL), 0);
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
            }
            assert!(libc::WIFSIGNALED(status), "{status:#x}");
            if !all {
                break;
            }
        }
        if !all {
            continue;
        }
        if since.elapsed() > longest {
            break;
        }
        let domain = attach().unwrap();
        let counters = [source.at("one"), source.at("two")].map(|at| {
            let mut word = [0; 4];
            domain.read(Offset(at), &mut word).unwrap();
            u32::from_le_bytes(word)
        });
        match domain.poison() {
            None => {
                assert_eq!(counters[0], counters[1]);
                usable += 1;
            }
            Some(_) => {
                domain.reset().unwrap();
                poisoned += 1;
            }
        }
        assert_eq!(get(&domain), 0);
        assert_eq!(call(&domain, "begun").unwrap(), 8);
    }
    println!("{usable} times usable, {poisoned} times poisoned");
    let (descriptors, threads) = (support::descriptors(), support::threads());
    drop(attach().unwrap());
    until("threads ended", || support::threads() <= threads);
    assert!(support::descriptors() <= descriptors);
}

#[test]
fn resets_of_several_processes_are_one_after_the_other() {
    let (memory, domain) = pair();
    let work = |domain: &Domain| {
        let (mut done, since) = (0, Instant::now());
        while done < 20 {
            assert!(since.elapsed() < Duration::from_secs(60), "{done} resets");
            done += i32::from(domain.reset().is_ok());
            // A reset of the other's may be under way; after it the constructors have run once.
            if let Ok(begun) = call(domain, "begun") {
                assert_eq!(begun, 8);
            }
        }
    };
    let attached = Attached::begin(
        "ends::resets_of_several_processes_are_one_after_the_other",
        || memory.unwrap(),
        |domain| {
            put(&domain, 1);
            work(&domain);
        },
    );
    work(&domain.unwrap());
    attached.succeeds();
}
