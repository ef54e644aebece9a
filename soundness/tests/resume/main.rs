//! Single-steps a suspended handler that goes on, and at each instruction of the resume gate, and
//! at others, asks for the end of its call, or interrupts it by an upcall whose handler is
//! suspended, too.
//!
//! A child has a handler suspended again and again, and goes on with it itself, under a debugger,
//! in place of a thread of the pool. The call must end as usual or with the fault asked for (always
//! the latter where verified text or a service was interrupted), the host's registers must be as
//! they were, and the handler must find its own.
//!
//! This test has no harness: the children are forked, so the process must have one thread.

#[allow(dead_code)]
#[path = "../step/report.rs"]
mod report;

use postern::testing;
use postern::{CallError, Caller, Domain, FaultKind, Limits, Placement};
use postern_soundness::debugger::{Debugger, Stop};
use postern_soundness::host::{self, HostCall};
use report::{AS_USUAL, Report, WRONG};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Instructions outside of gates and windows that are tried.
const OTHERS: usize = 60;
const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

/// What handlers are made of besides their calls of the service.
struct Variant {
    name: &'static str,
    more: &'static [u8],
    common: bool,
}

const VARIANTS: &[Variant] = &[
    Variant {
        name: "integers",
        more: &[],
        common: false,
    },
    Variant {
        name: "AVX and x87",
        // vaddsd %xmm0, %xmm0, %xmm0; fld1; fstp %st(0)
        more: &[0xc5, 0xfb, 0x58, 0xc0, 0xd9, 0xe8, 0xdd, 0xd8],
        common: false,
    },
    Variant {
        name: "common",
        more: &[],
        common: true,
    },
];

static DOMAIN: OnceLock<Domain> = OnceLock::new();
/// How the call ended.
static ENDED: AtomicU32 = AtomicU32::new(0);
/// What the service was called with.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// The handler: calls a function, which calls the service, whose result goes to the service again.
fn handler(variant: &Variant) -> Domain {
    let mut text = vec![
        0xe8, 8, 0, 0, 0, // f: call g
        0x89, 0xc7, // mov %eax, %edi
        0xe8, 0xf4, 0xef, 0xff, 0xff, // call slot 0
        0xc3, // ret
        0xe8, 0xee, 0xef, 0xff, 0xff, // g: call slot 0
    ];
    text.extend(variant.more);
    text.push(0xc3);
    let mut builder = postern_image::ImageBuilder::new(text);
    builder.import("s", Some("i(i)".parse().unwrap()));
    builder.export("f", 0, Some("v(IL)".parse().unwrap()));
    builder.x87(!variant.more.is_empty());
    let image = postern::Image::from_bytes(&builder.build().unwrap()).unwrap();
    let mut limits = Limits::default();
    limits.deadline = None;
    limits.heap = Some(4096);
    limits.sandbox_threads = 1;
    let mut builder =
        Domain::builder(&image)
            .limits(limits.clone())
            .service("s", |_: &Caller<'_>, x: i32| {
                SEEN.store(
                    SEEN.load(Ordering::Relaxed) << 8 | x as u64,
                    Ordering::Relaxed,
                );
                x + 1
            });
    builder = match variant.common {
        true => builder
            .common(&postern::CommonMemory::with(&image, &limits).unwrap())
            .grant_to_all("s"),
        false => builder.placement(Placement::Cold),
    };
    builder.build().unwrap()
}

/// In place of a thread of the pool.
extern "C" fn goes_on() {
    let ended = testing::go_on(DOMAIN.get().expect("the child's"));
    let kind = match ended {
        Some(Ok(())) if SEEN.load(Ordering::Relaxed) == 0x0708 => AS_USUAL,
        Some(Err(CallError::Fault(fault))) => match fault.kind {
            FaultKind::Deadline => testing::DEADLINE,
            FaultKind::Interrupted => testing::INTERRUPT,
            _ => WRONG,
        },
        _ => WRONG,
    };
    ENDED.store(kind, Ordering::Relaxed);
}

fn child(variant: &Variant, report: &'static Report) {
    let domain = DOMAIN.get_or_init(|| handler(variant));
    let attachment = domain.upcall("f").unwrap().longest(HOUR).attach().unwrap();
    testing::end_sandbox_threads(domain);
    let thread = testing::thread_addresses();
    for round in 0u64.. {
        if domain.is_poisoned() {
            domain.reset().expect("nobody is inside");
            testing::end_sandbox_threads(domain);
        }
        // Those of upcalls.
        while testing::go_on(domain).is_some() {}
        SEEN.store(0, Ordering::Relaxed);
        attachment.send(7, round);
        report.update(|r| {
            r.started = 1;
            r.signal = testing::abort_signal();
            r.thread = [
                thread.call_state,
                thread.sequence,
                thread.nested,
                thread.control,
                thread.request,
                thread.request_kind,
            ];
            r.texts = [(domain.base() + 0x1_1000, domain.base() + 0x1_3000); 4];
            r.upcalls.signal = testing::upcall_signal();
            r.upcalls.counts[0] = attachment.counters().promoted;
        });
        let mut call = HostCall::new(goes_on as *const (), &[], &[]);
        // SAFETY: a function without arguments; the debugger takes the traps.
        unsafe { call.run_stepped() };
        let (mut kind, mut message) = (ENDED.swap(0, Ordering::Relaxed), String::new());
        if let Err(what) = call.intact() {
            (kind, message) = (WRONG, what);
        }
        message += &format!("; {:#x}", SEEN.load(Ordering::Relaxed));
        report.update(|r| {
            r.kind = kind;
            r.length = message.len().min(r.message.len()) as u32;
            r.message[..r.length as usize]
                .copy_from_slice(&message.as_bytes()[..r.length as usize]);
            r.upcalls.counts[1] = attachment.counters().promoted;
        });
        // SAFETY: the debugger is there.
        unsafe { host::breakpoint() };
    }
}

/// What comes at an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Comes {
    Wish(u32),
    Upcall,
}

fn main() {
    let only = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let wanted = |v: &&Variant| only.as_ref().is_none_or(|name| v.name.contains(name));
    VARIANTS.iter().filter(wanted).for_each(run);
}

fn run(variant: &'static Variant) {
    let report = Report::map();
    // SAFETY: this process has one thread; the parent never starts Postern.
    let child = unsafe { Debugger::fork(|| child(variant, report)) }.expect("fork");
    let session = Session {
        child,
        report,
        name: variant.name,
    };
    // Not the first ones, which make what is missing.
    for _ in 0..3 {
        session.to_begin();
        session.to_report();
    }
    session.to_begin();
    let path = session.path();
    session.to_report();
    assert_eq!(report.read().0, AS_USUAL, "{}", report.read().1);
    let gate = testing::resume_gate();
    let labels = testing::labels();
    let gates = (labels[0].1 as u64, labels[labels.len() - 1].1 as u64);
    let in_resume = |pc: u64| (gate.0 as u64..gate.1 as u64).contains(&pc);
    let close =
        |pc: u64| in_resume(pc) || session.in_window(pc) || (gates.0..gates.1).contains(&pc);
    let stride = path
        .iter()
        .filter(|&&pc| !close(pc))
        .count()
        .div_ceil(OTHERS)
        .max(1);
    let (mut tried, mut ended, mut stepped) = (0, 0, BTreeSet::new());
    for (k, &pc) in path.iter().enumerate() {
        if !close(pc) && k % stride != 0 {
            continue;
        }
        if in_resume(pc) {
            stepped.insert(pc);
        }
        let wish = match k % 2 {
            0 => testing::DEADLINE,
            _ => testing::INTERRUPT,
        };
        for comes in [Comes::Wish(wish), Comes::Upcall] {
            session.to_begin();
            ended += u32::from(session.interrupt_at(&path[..=k], comes));
            tried += 1;
        }
    }
    // All but the way out of those that are refused.
    assert!(
        stepped.len() > 40,
        "{} instructions of the gate",
        stepped.len()
    );
    assert!(ended > 30, "{ended}");
    println!(
        "{}: {} instructions, {} of the resume gate; {tried} tries, {ended} calls ended",
        variant.name,
        path.len(),
        stepped.len()
    );
}

struct Session {
    child: Debugger,
    report: &'static Report,
    name: &'static str,
}

impl Session {
    fn await_trap(&self, what: &str) {
        loop {
            match self.child.wait() {
                Stop::Signal(libc::SIGTRAP) => return,
                Stop::Signal(other) => self.child.go(other),
                Stop::Gone(status) => {
                    panic!("{}: {what}: the child is gone with {status:#x}", self.name)
                }
            }
        }
    }

    fn to_begin(&self) {
        if self.child.pc() != host::stops().0 {
            if self.report.started() {
                self.child.go(0);
            }
            self.await_trap("before a call");
        }
        assert_eq!(self.child.pc(), host::stops().0, "{}", self.name);
    }

    fn to_report(&self) {
        if self.child.pc() != host::stops().1 {
            self.child.go(0);
            self.await_trap("in a call");
        }
        assert_eq!(self.child.pc(), host::stops().1, "{}", self.name);
        self.child.go(0);
        self.await_trap("after a call");
    }

    fn path(&self) -> Vec<u64> {
        let mut path = Vec::new();
        while self.child.pc() != host::stops().1 {
            path.push(self.child.pc());
            self.step();
        }
        path
    }

    fn step(&self) {
        let mut stop = self.child.step();
        while let Stop::Signal(signal) = stop {
            if signal == libc::SIGTRAP {
                return;
            }
            self.child.go(signal);
            stop = self.child.wait();
        }
        panic!("{}: {stop:?}", self.name);
    }

    fn in_window(&self, pc: u64) -> bool {
        let texts = self.report.texts();
        texts.iter().any(|&(start, end)| (start..end).contains(&pc))
    }

    /// Lets it come at the last instruction of a call that goes this path. Whether the call was
    /// ended by it.
    fn interrupt_at(&self, path: &[u64], comes: Comes) -> bool {
        // Allocation is not the same each time, so the place is found by its address.
        let pc = path[path.len() - 1];
        let near = self.child.follow(path, host::stops().1, |signal| signal);
        let near = near.unwrap_or_else(|stop| panic!("{}: {stop:?} on the way", self.name));
        let passes = |from: &[u64]| from.iter().filter(|&&p| p == pc).count();
        let mut left = passes(&path[near..path.len() - 1]);
        while self.child.pc() != pc || left > 0 {
            if self.child.pc() == host::stops().1 {
                // It went another way.
                self.to_report();
                return false;
            }
            left -= usize::from(self.child.pc() == pc);
            self.step();
        }
        let at = self.report.thread();
        let call_state = self.child.read(at.call_state) as u32;
        match comes {
            Comes::Wish(kind) => {
                self.child.write(at.request, self.child.read(at.sequence));
                let word = self.child.read(at.request_kind) & !0xffff_ffff;
                self.child.write(at.request_kind, word | u64::from(kind));
                self.child.go_from_itself(self.report.signal());
            }
            Comes::Upcall => self.child.go_with(self.report.upcalls().signal, 7),
        }
        self.await_trap("in a call");
        self.to_report();
        let (kind, message) = self.report.read();
        let context = format!("{}, {comes:?} at {pc:#x}: {message}", self.name);
        match comes {
            Comes::Wish(wanted) => {
                let must = self.in_window(pc) || call_state == testing::IN_SERVICE;
                assert!(
                    kind == wanted || kind == AS_USUAL && !must,
                    "{context}: {kind}"
                );
            }
            Comes::Upcall => {
                assert_eq!(kind, AS_USUAL, "{context}");
                let [before, after, ..] = self.report.upcalls().counts;
                assert_eq!(after, before + 1, "{context}");
            }
        }
        kind != AS_USUAL
    }
}
