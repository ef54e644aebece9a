//! Grants that are taken back: asked for, then taken, then on the repossession list; and nobody
//! else notices.

mod under_way;

use crate::guest::{compile, guest, sum, sys};
use crate::support::{self, Directory};
use postern::policy::Input;
use postern::{
    Access, Asked, CallError, Caller, Decider, Domain, FaultKind, Grant, Image, Offset, Policy,
    Prot, Question, Reluctance, RevokeError, Revoked, Rules, Shared, Verdict,
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// An extension that gives back as its `mode` says, and can read its repossession list.
const SOURCE: &str = r#"
#include <postern/policy.h>
extern int add(int, int);
extern long sys(long, long, long, long, long, long);
static int mode, kind_asked;
static char asked[64], name[64], buffer[64];
void set(int m) { mode = m; }
char *memory(void) { return buffer; }
char *last_asked(void) { return asked; }
int last_kind(void) { return kind_asked; }
char *lost_name(void) { return name; }
long lost(unsigned index) { return __postern_repossessed(index, name, 10); }
long lost_at(unsigned index, char *where) { return __postern_repossessed(index, where, 10); }
int sum(int a, int b) { return add(a, b); }
long call(long n, long a, long b, long c, long d, long e) { return sys(n, a, b, c, d, e); }
static volatile int stop;
void go_on(void) { while (!stop) add(1, 1); }
void finish(void) { stop = 1; }
int read_all(volatile unsigned char *p) { int sum = 0; for (int i = 0; i < 8192; i++) sum += p[i]; return sum; }
void read_for_ever(volatile unsigned char *p) { add(1, 1); for (;;) (void)*p; }

int __postern_revoke(const char *what, int kind, unsigned long microseconds)
{
	char *to = asked;
	while ((*to++ = *what++)) ;
	kind_asked = kind;
	if (!microseconds) return 9;
	switch (mode) {
	case 0: return 0;
	case 1: return -3;
	case 2: for (;;) ;
	case 3: *(volatile int *)8 = 0; return 0;
	case 4: sys(3, 3, 0, 0, 0, 0); return 0; /* close(3) */
	case 5: return add(5, 6) - 11;
	}
	return 1;
}
"#;

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| compile(SOURCE))
}

fn tenant(policy: Policy) -> Domain {
    support::cold(image())
        .name("tenant")
        .policy(policy)
        .service("add", |_: &Caller<'_>, x: i32, y: i32| x.wrapping_add(y))
        .build()
        .unwrap()
}

const LONG: Duration = Duration::from_secs(600);

fn set(domain: &Domain, mode: i32) {
    domain.func::<fn(i32)>("set").unwrap().call(mode).unwrap();
}

fn text(domain: &Domain, function: &str) -> String {
    let place = domain.func::<fn() -> Offset>(function).unwrap();
    domain.read_c_string(place.call().unwrap(), 64).unwrap()
}

/// The list as the extension sees it.
fn lost(domain: &Domain) -> Vec<(i64, String)> {
    let lost = domain.func::<fn(u32) -> i64>("lost").unwrap();
    let mut all = Vec::new();
    loop {
        match lost.call(all.len() as u32).unwrap() {
            0 => return all,
            kind => all.push((kind, text(domain, "lost_name"))),
        }
    }
}

fn add() -> Grant {
    Grant::Service("add".into())
}

fn taken(revoked: Result<Revoked, RevokeError>) -> Reluctance {
    match revoked.unwrap() {
        Revoked::Taken(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_given_back_is_gone_and_not_on_the_list() {
    let domain = tenant(Policy::none());
    assert_eq!(sum(&domain, 1, 2).unwrap(), 3);
    let revoked = domain.revoke(&add(), LONG).unwrap();
    assert!(matches!(revoked, Revoked::Returned), "{revoked:?}");
    assert_eq!(text(&domain, "last_asked"), "add");
    let kind = domain.func::<fn() -> i32>("last_kind").unwrap();
    assert_eq!(kind.call().unwrap(), 1);
    assert_eq!(sum(&domain, 1, 2).unwrap(), 0);
    assert_eq!(domain.counters().denied_services["add"], 1);
    assert!(domain.repossessed().is_empty() && lost(&domain).is_empty());
    assert_eq!(
        domain.revoke(&add(), LONG).unwrap_err(),
        RevokeError::NotGranted(add())
    );
    domain.restore(&add()).unwrap();
    assert_eq!(sum(&domain, 1, 2).unwrap(), 3);
    assert_eq!(
        domain.restore(&add()).unwrap_err(),
        RevokeError::NotRevoked(add())
    );
}

#[test]
fn what_is_not_given_back_is_taken_and_on_the_list() {
    for mode in [1, 2, 3, 6] {
        let domain = tenant(Policy::none());
        set(&domain, mode);
        let deadline = match mode {
            2 => Duration::from_millis(10),
            _ => LONG,
        };
        let why = taken(domain.revoke(&add(), deadline));
        match mode {
            1 => assert!(matches!(why, Reluctance::Refused(-3)), "{why}"),
            2 => assert!(matches!(why, Reluctance::Late), "{why}"),
            3 => {
                assert!(
                    matches!(&why, Reluctance::Failed(CallError::Fault(fault))
                        if fault.kind == FaultKind::NullPointer),
                    "{why}"
                );
                // The extension is broken, as after any fault; what was taken stays so.
                assert!(domain.is_poisoned());
                assert_eq!(domain.repossessed().len(), 1);
                domain.reset().unwrap();
                assert_eq!(sum(&domain, 1, 2).unwrap(), 0);
                continue;
            }
            _ => assert!(matches!(why, Reluctance::Refused(1)), "{why}"),
        }
        // Whoever is late is interrupted, not broken.
        assert!(!domain.is_poisoned());
        assert_eq!(sum(&domain, 1, 2).unwrap(), 0);
        let list = domain.repossessed();
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].grant, add());
        assert_eq!(list[0].why.to_string(), why.to_string());
        assert_eq!(lost(&domain), [(1, "add".to_owned())]);
        domain.reset().unwrap();
        assert!(domain.repossessed().is_empty() && lost(&domain).is_empty());
        assert_eq!(sum(&domain, 1, 2).unwrap(), 0);
    }
}

#[test]
fn without_an_upcall_or_time_nobody_is_asked() {
    let (builder, _) = guest();
    let plain = builder.build().unwrap();
    let why = taken(plain.revoke(&add(), LONG));
    assert!(matches!(why, Reluctance::NoUpcall), "{why}");
    let domain = tenant(Policy::none());
    let why = taken(domain.revoke(&add(), Duration::ZERO));
    assert!(matches!(why, Reluctance::NotAsked), "{why}");
    assert_eq!(text(&domain, "last_asked"), "");
    let wrong = compile(
        "extern int add(int, int); int sum(int a, int b) { return add(a, b); } double __postern_revoke(void) { return 0; }",
    );
    let wrong = support::cold(&wrong)
        .service("add", |_: &Caller<'_>, x: i32, y: i32| x + y)
        .build()
        .unwrap();
    let why = taken(wrong.revoke(&add(), LONG));
    assert!(matches!(why, Reluctance::Unusable(_)), "{why}");
    assert_eq!(sum(&wrong, 1, 2).unwrap(), 0);
}

#[test]
fn what_was_never_granted_cannot_be_revoked() {
    let domain = tenant(Policy::none());
    for grant in [
        Grant::Service("subtract".into()),
        Grant::Service("__postern_repossessed".into()),
        Grant::Directory("/data".into()),
        Grant::Descriptor(7),
        Grant::Descriptor(-1),
    ] {
        let error = domain.revoke(&grant, LONG).unwrap_err();
        assert_eq!(error, RevokeError::NotGranted(grant.clone()));
        assert!(error.to_string().contains(&grant.to_string()), "{error}");
    }
    assert_eq!(text(&domain, "last_asked"), "");
}

#[test]
fn system_calls_can_be_revoked_but_for_the_end() {
    let domain = tenant(Policy::compute());
    assert!(sys(&domain, libc::SYS_getpid, [0; 5]).unwrap() > 0);
    domain.revoke(&Grant::Service("sys".into()), LONG).unwrap();
    let gone = sys(&domain, libc::SYS_getpid, [0; 5]).unwrap();
    assert_eq!(gone, -i64::from(libc::ECANCELED));
    assert_eq!(domain.counters().denied_services["sys"], 1);
    let ended = sys(&domain, libc::SYS_exit_group, [3, 0, 0, 0, 0]);
    assert!(matches!(ended, Err(CallError::Exited(3))));
}

/// A directory of the host's with a file, granted at `/data` and `/other`.
fn files() -> (Directory, Policy) {
    let directory = Directory::new();
    std::fs::write(directory.path("file"), "contents").unwrap();
    let rules = Rules::new()
        .grant("/data", directory.path(""), Access::ReadWrite)
        .and_then(|rules| rules.grant("/other", directory.path(""), Access::Read))
        .unwrap();
    (directory, Policy::files(rules).stdin(Input::bytes("input")))
}

fn open(domain: &Domain, path: &str) -> i64 {
    let memory = domain.func::<fn() -> Offset>("memory").unwrap();
    let memory = memory.call().unwrap();
    let mut bytes = path.as_bytes().to_vec();
    bytes.push(0);
    domain.write(memory, &bytes).unwrap();
    sys(domain, libc::SYS_open, [memory.0.into(), 0, 0, 0, 0]).unwrap()
}

fn read(domain: &Domain, file: i64) -> i64 {
    let memory = domain.func::<fn() -> Offset>("memory").unwrap();
    let place = memory.call().unwrap().0.into();
    sys(domain, libc::SYS_read, [file, place, 4, 0, 0]).unwrap()
}

#[test]
fn a_directory_goes_with_all_that_is_open_below_it() {
    let (_directory, policy) = files();
    // A policy may serve several domains: what one loses the other keeps.
    let (domain, other) = (tenant(policy.clone()), tenant(policy));
    let below = open(&domain, "/data/file");
    let copy = sys(&domain, libc::SYS_dup, [below, 0, 0, 0, 0]).unwrap();
    let listed = open(&domain, "/data");
    let beside = open(&domain, "/other/file");
    let kept = open(&other, "/data/file");
    assert_eq!((below, copy, listed, beside, kept), (3, 4, 5, 6, 3));
    let why = taken(domain.revoke(&Grant::Directory("/data".into()), LONG));
    assert!(matches!(why, Reluctance::Kept), "{why}");
    for file in [below, copy, listed] {
        assert_eq!(read(&domain, file), -i64::from(libc::EBADF));
    }
    assert_eq!(read(&domain, beside), 4);
    assert_eq!(read(&domain, 0), 4);
    assert_eq!(open(&domain, "/data/file"), -i64::from(libc::ENOENT));
    assert_eq!(open(&domain, "/other/file"), below);
    assert_eq!(read(&other, kept), 4);
    assert_eq!(open(&other, "/data/file"), 4);
    assert_eq!(lost(&domain), [(2, "/data".to_owned())]);
    // Nothing was open below the other one: asking was enough.
    let (_directory, policy) = files();
    let domain = tenant(policy);
    let revoked = domain.revoke(&Grant::Directory("/other/".into()), LONG);
    assert!(matches!(revoked, Ok(Revoked::Returned)), "{revoked:?}");
    assert!(matches!(
        domain.revoke(&Grant::Directory("/other".into()), LONG),
        Err(RevokeError::NotGranted(_))
    ));
}

#[test]
fn a_descriptor_is_closed_by_the_extension_or_by_force() {
    let (_directory, policy) = files();
    let domain = tenant(policy);
    assert_eq!(open(&domain, "/data/file"), 3);
    set(&domain, 4);
    let revoked = domain.revoke(&Grant::Descriptor(3), LONG).unwrap();
    assert!(matches!(revoked, Revoked::Returned), "{revoked:?}");
    assert_eq!(text(&domain, "last_asked"), "3");
    assert_eq!(open(&domain, "/data/file"), 3);
    let copy = sys(&domain, libc::SYS_dup, [3, 0, 0, 0, 0]).unwrap();
    set(&domain, 1);
    let why = taken(domain.revoke(&Grant::Descriptor(3), LONG));
    assert!(matches!(why, Reluctance::Refused(-3)), "{why}");
    assert_eq!(read(&domain, 3), -i64::from(libc::EBADF));
    assert_eq!(read(&domain, copy), -i64::from(libc::EBADF));
    assert_eq!(lost(&domain), [(3, "3".to_owned())]);
    assert_eq!(open(&domain, "/data/file"), 3);
}

#[test]
fn the_list_is_cut_to_the_extensions_buffer_and_checked() {
    let directory = Directory::new();
    let rules = Rules::new()
        .grant("/a/rather/long/path", directory.path(""), Access::Read)
        .unwrap();
    let domain = tenant(Policy::files(rules));
    let grant = Grant::Directory("/a/rather/long/path".into());
    domain.revoke(&grant, Duration::ZERO).unwrap();
    assert_eq!(lost(&domain), [(2, "/a/rather".to_owned())]);
    let at = domain.func::<fn(u32, Offset) -> i64>("lost_at").unwrap();
    assert_eq!(at.call(0, Offset(8)).unwrap(), -1);
    assert_eq!(at.call(0, Offset(u32::MAX - 3)).unwrap(), -1);
    assert_eq!(at.call(1, Offset(8)).unwrap(), 0);
    assert_eq!(at.call(u32::MAX, Offset(8)).unwrap(), 0);
}

#[test]
fn the_upcall_may_use_what_it_is_asked_for() {
    let domain = tenant(Policy::none());
    set(&domain, 5);
    let revoked = domain.revoke(&add(), LONG).unwrap();
    assert!(matches!(revoked, Revoked::Returned), "{revoked:?}");
}

#[test]
fn grants_are_listed_for_each_domain() {
    let (_directory, policy) = files();
    let decide = Decider::closure(
        |_: &Caller<'_>, question: &Question<'_>| match question.call {
            Asked::Service { .. } => Verdict::Allow,
            _ => Verdict::Deny(1),
        },
    );
    let domain = support::cold(image())
        .name("tenant")
        .heap(1 << 20)
        .policy(policy)
        .decider(decide)
        .service("add", |_: &Caller<'_>, x: i32, y: i32| x + y)
        .build()
        .unwrap();
    domain.revoke(&add(), LONG).unwrap();
    domain
        .revoke(&Grant::Directory("/data".into()), LONG)
        .unwrap();
    let grants = domain.grants();
    assert_eq!(grants.directories, [("/other".to_owned(), Access::Read)]);
    let mut lines: Vec<String> = grants.to_string().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "decider   closure",
            "directory /other (read)",
            "domain    tenant",
            "heap      1048576 bytes",
            "policy    files",
            "service   add (revoked)",
            "service   sys",
        ]
    );
    let none = tenant(Policy::none()).grants();
    assert!(none.directories.is_empty() && none.decider.is_none() && none.policy == "none");
}
