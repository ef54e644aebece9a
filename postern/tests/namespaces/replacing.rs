//! Functions that are replaced while others run them: old or new, and freed when nobody can be
//! inside.

use crate::empty;
use postern::{Caller, Capacity, CreateError, FaultKind, Namespace, Offset};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Calls of `f` by other threads while `work` runs in this one; their results.
fn meanwhile(space: &Namespace, name: &str, work: impl FnOnce()) -> Vec<(i32, u64)> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let f = space.func::<fn(i32) -> i32>(name).unwrap();
                    let mut seen = std::collections::BTreeMap::new();
                    while !stop.load(Ordering::Relaxed) {
                        *seen.entry(f.call(1).unwrap()).or_insert(0u64) += 1;
                    }
                    seen
                })
            })
            .collect();
        work();
        stop.store(true, Ordering::Relaxed);
        let all = threads.into_iter().flat_map(|t| t.join().unwrap());
        let mut sums = std::collections::BTreeMap::new();
        all.for_each(|(value, count)| *sums.entry(value).or_insert(0) += count);
        sums.into_iter().collect()
    })
}

#[test]
fn callers_see_the_old_function_or_the_new_one_whole() {
    let space = empty();
    // Bodies of many lengths, each with a value that is computed all over it.
    let body = |n: i32| {
        let steps: String = (0..n % 37)
            .map(|i| format!("x = x * 3 + {i}; y = y + x - x;"))
            .collect();
        format!("int f(int a) {{ int x = a, y = {n}; {steps} return y + 7 * y; }}")
    };
    space.create("f", &body(0)).unwrap();
    space
        .create("g", "int f(int); int g(int a) { int s = 0; for (int i = 0; i < 5; i++) s += f(a) % 8; return s; }")
        .unwrap();
    let seen = meanwhile(&space, "f", || {
        for n in 1..400 {
            space.create("f", &body(n)).unwrap();
        }
    });
    for (value, _) in &seen {
        assert!(*value % 8 == 0 && (0..8 * 400).contains(value), "{value}");
    }
    // Also where the caller is a function of the namespace.
    let seen = meanwhile(&space, "g", || {
        for n in 1..200 {
            space.create("f", &body(n)).unwrap();
        }
    });
    assert!(seen.iter().all(|(value, _)| *value == 0), "{seen:?}");
    assert!(space.collect());
    let counters = space.counters();
    assert_eq!((counters.names, counters.units), (2, 2));
    assert_eq!(counters.freed, 598);
}

/// A namespace whose `f` says that it is inside, and stays there until it is told to leave.
fn one_that_waits() -> (Namespace, Receiver<()>, Sender<()>) {
    let (entered, is_in) = channel();
    let (leave, may_leave) = channel::<()>();
    let channels = std::sync::Mutex::new((entered, may_leave));
    let space = Namespace::builder()
        .quantum(None)
        .service("wait", move |_: &Caller<'_>| {
            let channels = channels.lock().unwrap();
            channels.0.send(()).unwrap();
            channels.1.recv().unwrap();
        })
        .build()
        .unwrap();
    space
        .create(
            "a",
            "void wait(void); int f(int x) { wait(); return x + 1; }",
        )
        .unwrap();
    (space, is_in, leave)
}

#[test]
fn a_body_is_freed_when_who_was_inside_has_left() {
    let (space, is_in, leave) = one_that_waits();
    let f = space.func::<fn(i32) -> i32>("f").unwrap();
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| f.call(41).unwrap());
        is_in.recv().unwrap();
        space.create("a", "int f(int x) { return x; }").unwrap();
        assert!(!space.collect(), "somebody is in the old body");
        assert_eq!(space.counters().units, 2);
        // Who comes later is not waited for.
        assert_eq!(f.call(5).unwrap(), 5);
        leave.send(()).unwrap();
        assert_eq!(inside.join().unwrap(), 42);
        assert!(space.collect());
    });
    assert_eq!(space.counters().units, 1);
    assert!(space.delete("f") && space.collect());
    assert_eq!(space.counters().units, 0);
}

#[test]
fn variables_stay_if_they_are_the_same() {
    let space = empty();
    let source = |by: i32| {
        format!(
            "static int hidden = 5; int count; int next(void) {{ count += {by}; hidden++; return count * 100 + hidden; }}"
        )
    };
    space.create("a", &source(1)).unwrap();
    let next = space.func::<fn() -> i32>("next").unwrap();
    assert_eq!(next.call().unwrap(), 106);
    assert!(space.create("a", &source(10)).unwrap().kept_variables);
    assert_eq!(next.call().unwrap(), 1107);
    // Another variable: all begin anew.
    let made = space
        .create(
            "a",
            "int count; int more = 3; int next(void) { count += more; return count; }",
        )
        .unwrap();
    assert!(!made.kept_variables);
    assert_eq!(next.call().unwrap(), 3);
    assert!(space.collect());
    assert_eq!(space.counters().units, 1);
}

#[test]
fn room_is_given_back() {
    let mut room = Capacity::default();
    room.functions = 1;
    (room.code, room.constants, room.variables) = (8192, 8192, 8192);
    let space = Namespace::builder().room(room).build().unwrap();
    for round in 0..300 {
        // Always another name: slots, too, serve again.
        let source = format!(
            "int data_{round}[100]; const char *text_{round} = \"{round} {round}\"; int f_{round}(int x) {{ return x + {round} + text_{round}[0] - '0'; }}"
        );
        let made = space.create("a", &source).unwrap();
        assert_eq!(made.new.len(), 1);
        let f = space.func::<fn(i32) -> i32>(&format!("f_{round}")).unwrap();
        let digit: i32 = round.to_string()[..1].parse().unwrap();
        assert_eq!(f.call(1).unwrap(), 1 + round + digit);
        assert!(space.delete(&format!("f_{round}")));
    }
    let big = format!("const char *f(void) {{ return \"{}\"; }}", "x".repeat(9000));
    assert!(matches!(
        space.create("a", &big),
        Err(CreateError::Room {
            what: "constants",
            ..
        })
    ));
    assert!(space.collect());
    assert_eq!(space.counters().units, 0);
}

#[test]
fn a_body_that_somebody_jumped_into_late_is_not_freed() {
    let (space, is_in, leave) = one_that_waits();
    space
        .create(
            "b",
            "int at(unsigned p) { return ((int (*)(int))(unsigned long)p)(41); }
             unsigned slot(void) { extern int f(int); return (unsigned)(unsigned long)f; }",
        )
        .unwrap();
    // Where the body is: the text behind the slots, whose table says it. Hostile code reads that,
    // too.
    let slot = space.func::<fn() -> u32>("slot").unwrap().call().unwrap();
    let read = |at: u32| {
        let bytes = space.domain().read_vec(Offset(at), 8).unwrap();
        u64::from_le_bytes(bytes.try_into().unwrap())
    };
    let distance = (read(slot + 8) >> 16) as u32;
    let body = (read(slot + 14 + distance) - space.domain().base()) as u32;
    assert!(
        space
            .domain()
            .func_at::<fn(i32) -> i32>(Offset(body))
            .is_err()
    );
    assert!(space.delete("f"));
    let at = space.func::<fn(u32) -> i32>("at").unwrap();
    std::thread::scope(|scope| {
        // It comes when nothing leads there any more.
        let late = scope.spawn(|| at.call(body).unwrap());
        is_in.recv().unwrap();
        let before = read(body);
        assert!(!space.collect());
        space.create("c", "int g(int x) { return x * 3; }").unwrap();
        assert_eq!(read(body), before, "somebody is in there");
        leave.send(()).unwrap();
        assert_eq!(late.join().unwrap(), 42);
    });
    assert!(space.collect());
    assert_eq!(read(body), u64::from_le_bytes([0xcc; 8]));
    let error = at.call(body).unwrap_err();
    assert_eq!(error.fault().unwrap().kind, FaultKind::BadJump);
}
