//! Deciders that are domains: what they are shown, what they may answer, and that a broken one
//! denies and harms nobody.

use crate::guest::{Made, compile, guest, sum, sys};
use crate::support;
use postern::{
    CallError, Caller, Decider, DecisionError, Domain, FaultKind, Image, Offset, Policy, Question,
    RestartPolicy, SymbolError, Verdict,
};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A module that answers as its `mode` says, and remembers what it was shown.
const SOURCE: &str = r#"
#include <postern/policy.h>
extern int nested(int);
static int mode;
static char seen[512];
static const char denied[] = "not with me";
static char data[] = "module";
void set(int m) { mode = m; }
char *shown(void) { return seen; }

static char *put(char *to, const char *text)
{
	while (text && *text) *to++ = *text++;
	*to++ = ' ';
	*to = 0;
	return to;
}
static char *number(char *to, unsigned long n)
{
	char digits[24], *d = digits + 23;
	*d = 0;
	do *--d = '0' + n % 10; while (n /= 10);
	return put(to, d);
}
static int same(const char *a, const char *b)
{
	while (*a && *a == *b) a++, b++;
	return *a == *b;
}
__attribute__((noinline)) static int deeper(volatile int n) { return deeper(n + 1) + n; }

long decide(struct postern_request *r)
{
	switch (mode) {
	case 0: { /* note everything, allow */
		char *p = number(seen, r->kind);
		p = put(p, postern_text(r, r->domain));
		p = put(p, postern_text(r, r->name));
		p = number(p, r->number);
		for (unsigned i = 0; i < r->integer_count; i++) p = number(p, r->integers[i]);
		for (unsigned i = 0; i < r->float_count; i++) p = number(p, (unsigned long)(r->floats[i] * 100));
		p = put(p, postern_text(r, r->path));
		p = put(p, postern_text(r, r->second_path));
		return POSTERN_ALLOW;
	}
	case 1: return 13;
	case 2: r->value = -6; return POSTERN_EMULATE;
	case 3: r->reason = denied; return POSTERN_KILL;
	case 4: return POSTERN_KILL;
	case 5: r->value = 3; r->bytes = data; r->length = 100; return POSTERN_EMULATE;
	case 6: return 4096; /* no errno */
	case 7: return -77;
	case 8: *(volatile int *)8 = 1; return 0;
	case 9: for (;;) ;
	case 10: return deeper(0);
	case 11: __builtin_trap();
	case 12: r->reason = (char *)0xfffffff0; return POSTERN_KILL;
	case 13: r->value = 1; r->bytes = (void *)0xf0000000; r->length = 1; return POSTERN_EMULATE;
	case 14: return nested(5) == 6 ? POSTERN_ALLOW : 1;
	case 15: return same(postern_text(r, r->name), "add") ? 1 : POSTERN_ALLOW;
	}
	return 1;
}
"#;

const BROKEN: [(i32, Option<FaultKind>); 7] = [
    (8, Some(FaultKind::NullPointer)),
    (9, Some(FaultKind::Deadline)),
    (10, None), // control or data stack, whatever the compiler made of it
    (11, Some(FaultKind::Trap)),
    (6, None),
    (7, None),
    (12, None),
];

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| compile(SOURCE))
}

fn module() -> Domain {
    support::cold(image())
        .name("judge")
        .deadline(Some(Duration::from_millis(20)))
        .service("nested", |_: &Caller<'_>, x: i32| x + 1)
        .build()
        .unwrap()
}

/// A guest about whose calls, also those of the system, the module decides; and how often its
/// services were really called.
fn judged(module: &Domain) -> (Domain, Made) {
    let (builder, made) = guest();
    let builder = builder.policy(Policy::compute());
    let decider = Decider::module(module).unwrap();
    (builder.decider(decider).build().unwrap(), made)
}

fn set(module: &Domain, mode: i32) {
    module.func::<fn(i32)>("set").unwrap().call(mode).unwrap();
}

fn shown(module: &Domain) -> String {
    let shown = module.func::<fn() -> Offset>("shown").unwrap();
    module.read_c_string(shown.call().unwrap(), 512).unwrap()
}

#[test]
fn a_module_sees_who_calls_what_with_which_arguments() {
    let module = module();
    let (domain, made) = judged(&module);
    assert_eq!(sum(&domain, 40, -2).unwrap(), 38);
    assert_eq!(shown(&module), "1 guest add 0 40 4294967294   ");
    let scaled = domain.func::<fn(f64, f32, i64) -> f64>("scaled").unwrap();
    assert_eq!(scaled.call(1.5, 2.0, 4).unwrap(), 7.0);
    // A float's 32 bits are the low half of a tiny double.
    let image = domain.image();
    let imports = &image.tables().imports;
    let number = imports.iter().position(|i| &*i.name == "scale").unwrap();
    let wanted = format!("1 guest scale {number} 4 150 0   ");
    assert_eq!(shown(&module), wanted);
    let memory = domain.func::<fn() -> Offset>("memory").unwrap();
    let place = i64::from(memory.call().unwrap().0);
    sys(&domain, libc::SYS_open, [place, 1, 2, 3, 4]).unwrap();
    assert_eq!(
        shown(&module),
        format!("2 guest open 2 {place} 1 2 3 4 /etc/passwd  ")
    );
    sys(&domain, libc::SYS_rename, [place, place + 4, 0, 0, 0]).unwrap();
    let text = shown(&module);
    assert!(text.ends_with("/etc/passwd /passwd "), "{text}");
    assert_eq!(made.load(Ordering::Relaxed), 2);
    assert_eq!(domain.counters().decision_failures, 0);
}

#[test]
fn a_module_denies_emulates_and_kills() {
    let module = module();
    let (domain, made) = judged(&module);
    set(&module, 1);
    assert_eq!(sum(&domain, 40, 2).unwrap(), 0);
    assert_eq!(sys(&domain, libc::SYS_getpid, [0; 5]).unwrap(), -13);
    assert_eq!(domain.counters().denied_services["add"], 1);
    assert_eq!(domain.counters().refused_system_calls, 1);
    set(&module, 2);
    assert_eq!(sum(&domain, 40, 2).unwrap(), -6);
    set(&module, 5);
    let memory = domain.func::<fn() -> Offset>("memory").unwrap();
    let memory = memory.call().unwrap();
    let read = [0, memory.0.into(), 4, 0, 0];
    assert_eq!(sys(&domain, libc::SYS_read, read).unwrap(), 3);
    assert_eq!(domain.read_vec(memory, 6).unwrap(), b"modu/p");
    set(&module, 14);
    assert_eq!(sum(&domain, 40, 2).unwrap(), 42);
    set(&module, 15);
    assert_eq!(sum(&domain, 40, 2).unwrap(), 0);
    for (mode, reason) in [(3, "not with me"), (4, "the policy module `judge` says no")] {
        set(&module, mode);
        let error = sum(&domain, 1, 1).unwrap_err();
        let fault = error.fault().unwrap();
        assert_eq!(fault.kind, FaultKind::Killed);
        assert_eq!(fault.message.as_deref(), Some(reason));
        domain.reset().unwrap();
    }
    assert_eq!(domain.counters().decision_failures, 0);
    assert_eq!(made.load(Ordering::Relaxed), 1);
}

#[test]
fn a_broken_module_denies_is_counted_and_harms_nobody() {
    for (mode, kind) in BROKEN {
        let module = module();
        let (domain, made) = judged(&module);
        let (free, _) = guest();
        let free = free.build().unwrap();
        set(&module, mode);
        let twice = domain.func::<fn(i32, i32) -> i32>("twice").unwrap();
        assert_eq!(twice.call(40, 2).unwrap(), 0, "{mode}");
        assert_eq!(made.load(Ordering::Relaxed), 0);
        let counters = domain.counters();
        assert_eq!(counters.decision_failures, 2, "{mode}");
        assert_eq!(counters.denied_services["add"], 2);
        assert!(counters.faults.is_empty(), "{mode}: {:?}", counters.faults);
        let error = domain.last_decision_error().unwrap();
        assert!(error.to_string().contains("judge"), "{error}");
        let faults = module.counters().faults;
        match (error, kind) {
            (DecisionError::Nonsense { answer, .. }, None) => {
                assert!(matches!(answer, 4096 | -77 | -2), "{answer}");
            }
            // The second question found the module closed.
            (DecisionError::Unanswered { error, .. }, _) => {
                assert!(matches!(error, CallError::Poisoned), "{mode}: {error}");
                assert_eq!(faults.values().sum::<u64>(), 1);
                assert!(kind.is_none_or(|kind| faults.contains_key(kind.name())));
            }
            (error, _) => panic!("{mode}: {error}"),
        }
        assert!(!domain.is_poisoned());
        assert_eq!(sum(&free, 40, 2).unwrap(), 42);
        // A reset makes the module good again, and with it the domain.
        module.reset().unwrap();
        assert_eq!(sum(&domain, 40, 2).unwrap(), 42);
    }
}

#[test]
fn a_module_may_begin_anew_by_its_own_restart_policy() {
    let module = support::cold(image())
        .restart(RestartPolicy::Immediate)
        .service("nested", |_: &Caller<'_>, x: i32| x)
        .build()
        .unwrap();
    let (domain, _) = judged(&module);
    for failures in 1..=3 {
        set(&module, 11);
        // Denied once; the next question finds the module in its first state.
        assert_eq!(sum(&domain, 40, 2).unwrap(), 0);
        assert_eq!(sum(&domain, 40, 2).unwrap(), 42);
        assert_eq!(domain.counters().decision_failures, failures);
    }
}

#[test]
fn emulated_bytes_that_are_not_there_are_nonsense() {
    let module = module();
    let (domain, _) = judged(&module);
    set(&module, 13);
    let memory = domain.func::<fn() -> Offset>("memory").unwrap();
    let place = i64::from(memory.call().unwrap().0);
    let refused = sys(&domain, libc::SYS_read, [0, place, 4, 0, 0]).unwrap();
    assert_eq!(refused, -i64::from(libc::EPERM));
    assert!(matches!(
        domain.last_decision_error(),
        Some(DecisionError::Nonsense { answer: -1, .. })
    ));
}

#[test]
fn the_callers_own_deadline_stays() {
    let module = support::cold(image())
        .deadline(Some(Duration::from_secs(60)))
        .service("nested", |_: &Caller<'_>, x: i32| x)
        .build()
        .unwrap();
    set(&module, 9);
    let (builder, made) = guest();
    let domain = builder
        .deadline(Some(Duration::from_millis(20)))
        .decider(Decider::module(&module).unwrap())
        .build()
        .unwrap();
    // The module would go on for a minute; when it is interrupted, its caller is long over its own
    // time.
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| sum(&domain, 1, 1));
        support::watched(&module, Duration::from_millis(20));
        module.interrupt();
        let error = caller.join().unwrap().unwrap_err();
        assert_eq!(error.fault().unwrap().kind, FaultKind::Deadline);
    });
    assert_eq!(made.load(Ordering::Relaxed), 0);
    assert!(!module.is_poisoned());
}

#[test]
fn modules_that_decide_about_each_other_end_in_a_denial() {
    let (a, b) = (module(), module());
    let (domain, _) = judged(&a);
    set(&a, 14); // calls a service, and allows if that answers
    set(&b, 14);
    a.set_decider(Some(Decider::module(&b).unwrap()));
    b.set_decider(Some(Decider::module(&a).unwrap()));
    assert_eq!(sum(&domain, 1, 2).unwrap(), 0);
    assert!(matches!(
        b.last_decision_error(),
        Some(DecisionError::Circular { module }) if module == "judge"
    ));
    // Its own judge.
    b.set_decider(None);
    a.set_decider(Some(Decider::module(&a).unwrap()));
    assert_eq!(sum(&domain, 1, 2).unwrap(), 0);
    assert!(a.last_decision_error().is_some());
    a.set_decider(None);
    assert_eq!(sum(&domain, 1, 2).unwrap(), 3);
}

#[test]
fn one_module_serves_threads_and_domains_at_once() {
    let module = module();
    set(&module, 15);
    let decider = Decider::module(&module).unwrap();
    let domains: Vec<Domain> = (0..3)
        .map(|_| guest().0.decider(decider.clone()).build().unwrap())
        .collect();
    std::thread::scope(|scope| {
        for domain in &domains {
            for _ in 0..2 {
                scope.spawn(move || {
                    for i in 0..500 {
                        assert_eq!(sum(domain, i, 1).unwrap(), 0);
                        let noted = domain.func::<fn(i32, i32) -> i32>("noted").unwrap();
                        assert_eq!(noted.call(1, 2).unwrap(), 7);
                    }
                });
            }
        }
    });
    for domain in &domains {
        let counters = domain.counters();
        assert_eq!(counters.decision_failures, 0);
        assert_eq!(counters.denied_services["add"], 1000);
        assert!(!counters.denied_services.contains_key("note"));
    }
}

#[test]
fn one_thread_that_kills_a_module_does_not_stop_the_others() {
    let module = module();
    let (domain, _) = judged(&module);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..300 {
                    // Allowed, or denied because the module was just then broken.
                    assert!(matches!(sum(&domain, 1, 2).unwrap(), 3 | 0));
                }
            });
        }
        for _ in 0..20 {
            let set = module.func::<fn(i32)>("set").unwrap();
            let _ = set.call(11);
            std::thread::yield_now();
            while module.reset().is_err() {}
        }
    });
    assert!(!domain.is_poisoned());
    while module.reset().is_err() {}
    assert_eq!(sum(&domain, 1, 2).unwrap(), 3);
}

#[test]
fn a_policy_of_system_calls_may_be_a_modules_alone() {
    // The closure of `Policy::custom` is asked after the decider, and only about what that allows.
    let module = module();
    set(&module, 1);
    let (builder, _) = guest();
    let custom = Policy::custom(Policy::none(), |_: &Caller<'_>, _: &_| {
        Verdict::Emulate(123, Vec::new())
    });
    let domain = builder
        .policy(custom)
        .decider(Decider::module(&module).unwrap())
        .build()
        .unwrap();
    assert_eq!(sys(&domain, libc::SYS_getpid, [0; 5]).unwrap(), -13);
    set(&module, 0);
    assert_eq!(sys(&domain, libc::SYS_getpid, [0; 5]).unwrap(), 123);
}

#[test]
fn a_domain_without_the_entry_is_no_module() {
    let (builder, _) = guest();
    let domain = builder.build().unwrap();
    assert!(matches!(
        Decider::module(&domain),
        Err(SymbolError::Missing { .. })
    ));
    let wrong = compile("double decide(int x) { return x; }");
    let wrong = support::cold(&wrong).build().unwrap();
    assert!(matches!(
        Decider::module(&wrong),
        Err(SymbolError::Signature { .. })
    ));
}

#[test]
fn a_name_too_long_for_the_modules_stack_is_a_denial() {
    let module = module();
    let (builder, _) = guest();
    let domain = builder
        .name("x".repeat(1 << 20))
        .decider(Decider::module(&module).unwrap())
        .build()
        .unwrap();
    assert_eq!(sum(&domain, 1, 2).unwrap(), 0);
    assert!(matches!(
        domain.last_decision_error(),
        Some(DecisionError::Unanswered {
            error: CallError::NoDataStack,
            ..
        })
    ));
}

#[test]
fn a_closure_may_ask_a_module() {
    let module = module();
    set(&module, 15);
    let (builder, _) = guest();
    let nested = module.clone();
    let domain = builder
        .decider(Decider::closure(move |_: &Caller<'_>, _: &Question<'_>| {
            set(&nested, 1);
            Verdict::Allow
        }))
        .build()
        .unwrap();
    assert_eq!(sum(&domain, 1, 2).unwrap(), 3);
}
