//! What a decision about a call costs: by nobody, by a closure of the host, by another domain;
//! beside what the kernel offers for it.
//!
//! The extension's functions are jumps to their imports. A decision is the difference that a
//! decider makes; the extension's call and the service itself are the same in all rows.

use crate::trusted::supervise;
use postern::{Caller, Decider, Domain, Func, Image, Placement, Policy, Question, Verdict};
use postern_figures::clock::best_of;
use postern_figures::figure::{Figure, Goal};
use postern_figures::trusted::process;
use postern_image::{ImageBuilder, Signature};
use postern_verifier::window;
use std::hint::black_box;

const CALLS: u32 = 5_000;
const ROUNDS: usize = 40;
/// The kernel's ways take microseconds.
const SLOW_CALLS: u32 = 2_000;
const SLOW_ROUNDS: usize = 10;

fn signature(text: &str) -> Result<Signature, String> {
    text.parse().map_err(|e| format!("{e}"))
}

/// An image whose exports jump to a service and to `sys`.
fn caller() -> Result<Image, String> {
    let text_offset = window::text_start(2);
    let mut text = Vec::new();
    for slot in 0..2 {
        text.resize(64 * slot as usize, window::FILL);
        let next = text_offset + text.len() as u32 + 5;
        text.push(0xe9); // jmp
        text.extend(window::slot(slot).wrapping_sub(next).to_le_bytes());
    }
    let mut builder = ImageBuilder::new(text);
    let (one, six) = (signature("i(i)")?, signature("l(llllll)")?);
    builder.import("service", Some(one));
    builder.import("sys", Some(six));
    builder.export("call", 0, Some(one));
    builder.export("system", 64, Some(six));
    let file = builder.build().map_err(|e| e.to_string())?;
    Image::from_bytes(&file).map_err(|e| e.to_string())
}

/// A module that looks at the call's number and allows.
fn module() -> Result<Domain, String> {
    // mov %gs:8(%edi), %rax; xor %eax, %eax; ret
    let text = [0x65, 0x67, 0x48, 0x8b, 0x47, 0x08, 0x31, 0xc0, 0xc3];
    let mut builder = ImageBuilder::new(text);
    builder.export("decide", 0, Some(signature("l(p)")?));
    let file = builder.build().map_err(|e| e.to_string())?;
    let image = Image::from_bytes(&file).map_err(|e| e.to_string())?;
    Domain::builder(&image)
        .placement(Placement::Cold)
        .build()
        .map_err(|e| e.to_string())
}

type SystemCall = fn(i64, i64, i64, i64, i64, i64) -> i64;

struct Decided {
    service: Func<fn(i32) -> i32>,
    system: Func<SystemCall>,
}

impl Decided {
    fn new(image: &Image, decider: Option<Decider>) -> Result<Decided, String> {
        let domain = Domain::builder(image)
            .placement(Placement::Cold)
            .policy(Policy::compute())
            .service("service", |_: &Caller<'_>, x: i32| x.wrapping_add(1))
            .build()
            .map_err(|e| e.to_string())?;
        domain.set_decider(decider);
        Ok(Decided {
            service: domain.func("call").map_err(|e| e.to_string())?,
            system: domain.func("system").map_err(|e| e.to_string())?,
        })
    }

    fn services(&self) {
        let mut x = 0;
        for _ in 0..CALLS {
            x = self.service.call(x).unwrap_or(i32::MIN);
        }
        assert_eq!(black_box(x), CALLS as i32);
    }

    fn system_calls(&self) {
        const GETPID: i64 = 39;
        for _ in 0..CALLS {
            let _ = black_box(self.system.call(GETPID, 0, 0, 0, 0, 0));
        }
    }
}

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let image = caller()?;
    let closure = Decider::closure(|_: &Caller<'_>, question: &Question<'_>| {
        black_box(question);
        Verdict::Allow
    });
    let module = Decider::module(&module()?).map_err(|e| e.to_string())?;
    let nobody = Decided::new(&image, None)?;
    let closure = Decided::new(&image, Some(closure))?;
    let module = Decided::new(&image, Some(module))?;
    let mut times = best_of(
        ROUNDS,
        [
            &mut || nobody.services(),
            &mut || closure.services(),
            &mut || module.services(),
            &mut || nobody.system_calls(),
            &mut || closure.system_calls(),
            &mut || module.system_calls(),
            &mut || process::system_calls(CALLS.into()),
        ],
    );
    times = times.map(|time| time / f64::from(CALLS) * 1e9);
    let [
        free,
        by_closure,
        by_module,
        sys,
        sys_closure,
        sys_module,
        plain,
    ] = times;
    let row = |name: &str, value: f64, over: f64, how: &str| {
        Figure::plain(format!("policy.{name}"), value - over, "ns", how).on_top_of(over)
    };
    let goal = Goal::AtMost(100.0);
    let mut figures = vec![
        row(
            "service.closure",
            by_closure,
            free,
            "an allowed call of a service, over one that nobody decides about",
        )
        .goal(goal),
        row(
            "service.module",
            by_module,
            free,
            "as above, by another domain",
        )
        .goal(goal),
        row(
            "sys.closure",
            sys_closure,
            sys,
            "an allowed getpid of the policy `compute`, over one that nobody decides about",
        )
        .goal(goal),
        row("sys.module", sys_module, sys, "as above, by another domain").goal(goal),
    ];
    let kernel = [
        (
            "seccomp",
            supervise::notified(SLOW_ROUNDS, SLOW_CALLS),
            "seccomp user notification: a thread is asked and answers `continue`; over the plain getppid",
        ),
        (
            "ptrace",
            supervise::traced(SLOW_ROUNDS, SLOW_CALLS),
            "ptrace: a process stops at the call and after it; over the plain getppid",
        ),
    ];
    for (name, time, how) in kernel {
        figures.push(match time {
            Ok(seconds) => row(name, seconds * 1e9, plain, how),
            Err(error) => Figure::plain(format!("policy.{name}"), f64::NAN, "ns", error),
        });
    }
    Ok(figures)
}
