//! Events of one process interrupt threads of others.
//!
//! Where bpf(2) is refused nothing is interrupted, and these say so.

use crate::support::code;
use crate::*;
use postern::{Doorbell, Event, Subscription, Way, Ways};
use std::sync::LazyLock;

fn handlers() -> &'static Image {
    static IMAGE: LazyLock<Image> = LazyLock::new(|| {
        let source = ".data
             .balign 8
             total: .quad 0
             last: .quad 0
             told: .quad 0
             .text
             who: lock addq %rsi,%gs:total(,%eiz,1)
                 movl %edi,%edi
                 movq %rdi,%gs:told(,%eiz,1)
                 call __postern_upcall_client
                 cltq
                 movq %rax,%gs:last(,%eiz,1)
                 ret
             wakes: movl %esi,%edi
                 call __postern_upcall_wake
                 cltq
                 movq %rax,%gs:last(,%eiz,1)
                 ret
             hangs: call __postern_upcall_client
                 testl %eax,%eax
                 js 2f
                 lock incq %gs:total(,%eiz,1)
             1:  jmp 1b
             2:  ret
             total_of: movq %gs:total(,%eiz,1),%rax
                 ret
             last_of: movq %gs:last(,%eiz,1),%rax
                 ret
             told_of: movq %gs:told(,%eiz,1),%rax
                 ret";
        let acts = [
            ("__postern_upcall_client", "i()"),
            ("__postern_upcall_wake", "i(I)"),
        ];
        let handlers = ["who", "wakes", "hangs"].map(|name| (name, "v(IL)"));
        let looks = ["total_of", "last_of", "told_of"].map(|name| (name, "L()"));
        code(&acts, &[&handlers[..], &looks].concat(), source).image()
    });
    &IMAGE
}

fn with_ways(memory: &CommonMemory, ways: Ways) -> Domain {
    let builder = Domain::builder(handlers()).common(memory).ways(ways);
    builder.deadline(None).build().unwrap()
}

fn domain(memory: &CommonMemory) -> Domain {
    with_ways(memory, Ways::BEST)
}

fn number(domain: &Domain, name: &str) -> u64 {
    domain.func::<fn() -> u64>(name).unwrap().call().unwrap()
}

fn handled(event: &Subscription) -> u64 {
    let counters = event.counters();
    counters.by_current + counters.by_dispatcher
}

const RINGS: u64 = 200;
const DOORBELL: &str = "POSTERN_TEST_DOORBELL";

/// What this process has of the domain, and a process that rings its doorbell; `None` where threads
/// are not interrupted.
fn rung(
    test: &str,
    handler: &str,
    body: impl FnOnce(Domain, Doorbell),
) -> Option<(Domain, Subscription, Attached)> {
    if is_child() {
        let child = |memory: &CommonMemory| {
            let number: i32 = std::env::var(DOORBELL).unwrap().parse().unwrap();
            let doorbell = Doorbell::from(unsafe { OwnedFd::from_raw_fd(number) });
            body(domain(memory), doorbell);
        };
        Attached::begin_with(test, || unreachable!(), child);
    }
    let memory = CommonMemory::new(handlers()).unwrap();
    let domain = domain(&memory);
    let event = domain.on(Event::doorbell(), handler).unwrap();
    if event.way().way != Way::Current {
        eprintln!("NOT TESTED here: {}", event.way());
        return None;
    }
    let bell = OwnedFd::from(event.doorbell().unwrap());
    let inherited = unsafe { libc::dup(bell.as_raw_fd()) };
    let environment = [(DOORBELL, inherited.to_string())];
    let attached = Attached::begin_in(test, &environment, || memory, |_| unreachable!());
    drop(unsafe { OwnedFd::from_raw_fd(inherited) });
    Some((domain, event, attached))
}

#[test]
fn whoever_is_current_is_interrupted() {
    let rings = |domain: Domain, doorbell: Doorbell| {
        let client = domain.attach().unwrap();
        assert!(client.is_interrupted());
        // The other process looks who is there.
        let mut told = 0;
        until("it is interrupted", || {
            doorbell.ring(1).unwrap();
            told += 1;
            until("the handler", || number(&domain, "total_of") == told);
            client.counters().delivered != 0
        });
        let before = client.counters().delivered;
        for ring in 1..=RINGS {
            doorbell.ring(1).unwrap();
            until("the handler", || number(&domain, "total_of") == told + ring);
        }
        let here = client.counters().delivered - before;
        assert!(here > RINGS / 2, "{here} of {RINGS}");
        assert!(client.number() >= 64);
        until("it was here", || {
            number(&domain, "last_of") == u64::from(client.number())
        });
    };
    let Some((domain, event, attached)) =
        rung("upcalls::whoever_is_current_is_interrupted", "who", rings)
    else {
        return;
    };
    attached.succeeds();
    let total = number(&domain, "total_of");
    until("all is counted", || {
        handled(&event) + event.counters().coalesced == total
    });
    assert!(event.counters().by_current > RINGS / 2, "{event:?}");
    assert_eq!(number(&domain, "told_of"), u64::from(event.number()));
}

/// Who has another process's event and is killed in its handler was inside.
#[test]
fn who_is_killed_in_a_handler_was_inside() {
    let test = "upcalls::who_is_killed_in_a_handler_was_inside";
    let rings = |domain: Domain, doorbell: Doorbell| {
        let client = domain.client().longest(Duration::from_secs(600));
        let client = client.attach().unwrap();
        // Until it is in the handler.
        loop {
            doorbell.ring(1).unwrap();
            assert!(client.is_interrupted());
        }
    };
    let Some((domain, event, attached)) = rung(test, "hangs", rings) else {
        return;
    };
    until("the handler", || number(&domain, "total_of") == 1);
    let pid = attached.pid();
    drop(attached);
    until("the poison", || domain.is_poisoned());
    let killed = matches!(domain.poison(), Some(Poison::Killed { pid: its, .. }) if its == pid);
    assert!(killed, "{:?}", domain.poison());
    until("it is counted", || event.counters().dropped == 1);
    domain.reset().unwrap();
}

/// A thread that blocks the signal is given nothing that others could not do.
#[test]
fn what_is_not_taken_comes_back() {
    let test = "upcalls::what_is_not_taken_comes_back";
    let rings = |domain: Domain, doorbell: Doorbell| {
        let client = domain.attach().unwrap();
        until("it is known", || {
            doorbell.ring(1).unwrap();
            std::thread::sleep(Duration::from_millis(1));
            client.counters().delivered != 0
        });
        let total = number(&domain, "total_of");
        let before = client.counters().delivered;
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
        }
        for ring in 1..=20 {
            doorbell.ring(1).unwrap();
            until("the handler", || {
                number(&domain, "total_of") == total + ring
            });
        }
        assert_eq!(client.counters().delivered, before);
    };
    let Some((domain, event, attached)) = rung(test, "who", rings) else {
        return;
    };
    attached.succeeds();
    assert!(event.counters().by_dispatcher >= 20, "{event:?}");
    // Those who are there no more leave nothing.
    let bell = event.doorbell().unwrap();
    let total = number(&domain, "total_of");
    bell.ring(1).unwrap();
    until("the handler", || number(&domain, "total_of") == total + 1);
}

/// A handler wakes a client of another process by its number.
#[test]
fn clients_of_all_processes_are_woken() {
    let test = "upcalls::clients_of_all_processes_are_woken";
    let waits = |domain: Domain, doorbell: Doorbell| {
        let client = domain.attach().unwrap();
        doorbell.ring(u64::from(client.number())).unwrap();
        assert_eq!(client.wait(Duration::from_secs(20)), 1);
    };
    let Some((domain, event, attached)) = rung(test, "wakes", waits) else {
        return;
    };
    attached.succeeds();
    assert_eq!(number(&domain, "last_of"), 0);
    // Nobody has it any more.
    event.doorbell().unwrap().ring(64).unwrap();
    let nobody = -i64::from(libc::ESRCH);
    until("it is refused", || {
        number(&domain, "last_of") as i64 == nobody
    });
}

/// Several processes have events and clients at once, come and go, and are killed: no ring of a
/// process that stays is lost.
#[test]
fn processes_that_come_and_go_lose_nothing_of_others() {
    let test = "upcalls::processes_that_come_and_go_lose_nothing_of_others";
    if is_child() {
        let child = |memory: &CommonMemory| {
            let domain = domain(memory);
            let event = domain.on(Event::every(Duration::from_millis(1)), "who");
            let _clients = (domain.attach().unwrap(), event.unwrap());
            // A loop that is interrupted everywhere, and ends with the test.
            loop {
                std::hint::spin_loop();
            }
        };
        Attached::begin_with(test, || unreachable!(), child);
    }
    let memory = CommonMemory::new(handlers()).unwrap();
    let memory = memory.end_inside(postern::EndInside::Survive);
    let domain = domain(&memory);
    let event = domain.on(Event::doorbell(), "who").unwrap();
    let bell = event.doorbell().unwrap();
    let mut rung = 0;
    for round in 0..6 {
        let others: Vec<_> = (0..2)
            .map(|_| Attached::begin(test, || memory.clone(), |_| unreachable!()))
            .collect();
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(150 + 20 * round) {
            bell.ring(1).unwrap();
            rung += 1;
            std::thread::sleep(Duration::from_micros(300));
        }
        drop(others);
    }
    until("all is handled", || {
        let counters = event.counters();
        let lost = counters.dropped + counters.skipped + counters.faults;
        handled(&event) + counters.coalesced + lost >= rung
    });
    assert_eq!(event.counters().faults, 0, "{event:?}");
    assert!(!domain.is_poisoned());
}
