//! Domains for the scenarios, one call of them, and whether it went as it must.

use crate::report::{AS_USUAL, WRONG};
use postern::testing;
use postern::{CallError, Caller, CommonMemory, Domain, FaultKind, Image, Limits, Placement};
use postern_image::ImageBuilder;
use postern_soundness::host::HostCall;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What a call needs.
pub struct Fixture {
    pub domain: Domain,
    /// Called by services.
    pub inner: Vec<Domain>,
    pub integers: Vec<u64>,
    pub floats: Vec<f64>,
    /// What the call returns (in rax, or as a float), or how it fails.
    pub expected: Expected,
    /// Before each call.
    pub prepare: fn(&Domain),
}

#[derive(Clone, Copy)]
pub enum Expected {
    Integer(u64),
    /// Or a fault, where there was no room for the host's handler.
    IntegerOrNoRoom(u64),
    Float(f64),
    Fault(FaultKind),
    Poisoned,
    /// A service that the call reaches interrupts it.
    InterruptedByService,
}

/// How an inner call, made by a service, failed: a request kind.
pub static INNER: AtomicU32 = AtomicU32::new(0);

/// A service has done what it is there for in this call.
pub static ACTED: AtomicBool = AtomicBool::new(false);

pub fn request_kind(error: &CallError) -> u32 {
    error.fault().map_or(WRONG, |fault| fault_kind(fault.kind))
}

pub fn fault_kind(kind: FaultKind) -> u32 {
    match kind {
        FaultKind::Deadline => testing::DEADLINE,
        FaultKind::Interrupted => testing::INTERRUPT,
        _ => WRONG,
    }
}

impl Fixture {
    /// One call whose result is an integer.
    pub fn call(&self) -> i32 {
        let f = self.domain.func::<fn(i32) -> i32>("f").unwrap();
        f.call(self.integers[0] as i32).unwrap()
    }

    /// One call: request kind or [`AS_USUAL`], and what happened in words.
    pub fn once(&self, stepped: bool) -> (u32, String) {
        // Registers are all that `HostCall` gives, whatever the signature.
        let signature = self.domain.signature("f").expect("f is typed");
        let pointer = self
            .domain
            .function_pointer("f", &signature)
            .expect("f is exported");
        let mut call = HostCall::new(pointer, &self.integers, &self.floats);
        postern::clear_last_error();
        INNER.store(0, Ordering::Relaxed);
        ACTED.store(false, Ordering::Relaxed);
        // SAFETY: the pointer is to a stub for a function whose arguments are in registers or, for
        // the scenario with arguments on the stack, are the known words there; the debugger takes
        // the traps.
        unsafe {
            if stepped {
                call.run_stepped()
            } else {
                call.run()
            }
        }
        if let Err(what) = call.intact() {
            return (WRONG, what);
        }
        if call_state() != testing::OUTSIDE {
            return (WRONG, "the thread is still in a call".into());
        }
        let inner = INNER.load(Ordering::Relaxed);
        let error = postern::last_error();
        match (&error, self.expected) {
            (None, _) if inner != 0 => (inner, "in the inner call".into()),
            // The innermost of three is the outermost's domain, and so poisons it.
            (Some(CallError::Fault(fault)), _)
                if inner != 0 && fault.kind == FaultKind::AnotherThread =>
            {
                (inner, "in the inner call".into())
            }
            (None, Expected::IntegerOrNoRoom(value)) if call.integer() == value => {
                (AS_USUAL, String::new())
            }
            (Some(CallError::Fault(_)), Expected::IntegerOrNoRoom(_)) => (AS_USUAL, String::new()),
            (None, Expected::Integer(value)) if call.integer() == value => {
                (AS_USUAL, String::new())
            }
            (None, Expected::Float(value)) if call.float() == value => (AS_USUAL, String::new()),
            // The watchdog may see the call before the gate has looked at the domain's state.
            (Some(CallError::Fault(fault)), Expected::Poisoned)
                if fault.kind == FaultKind::AnotherThread =>
            {
                (AS_USUAL, String::new())
            }
            // The wish was for both, or for the inner call, and the outer one ends by its own
            // service.
            (Some(CallError::Fault(fault)), Expected::InterruptedByService)
                if inner != 0 && fault.kind == FaultKind::Interrupted =>
            {
                (inner, "in the inner call".into())
            }
            // Before the service acted, it is the debugger's wish.
            (Some(CallError::Fault(fault)), Expected::InterruptedByService)
                if ACTED.load(Ordering::Relaxed) && fault.kind == FaultKind::Interrupted =>
            {
                (AS_USUAL, String::new())
            }
            (Some(CallError::Poisoned), Expected::Poisoned) => (AS_USUAL, String::new()),
            (Some(CallError::Fault(fault)), Expected::Fault(kind)) if fault.kind == kind => {
                (AS_USUAL, String::new())
            }
            (Some(error), _) => (request_kind(error), format!("{error}")),
            (None, _) => (
                WRONG,
                format!("returned {:#x}, {}", call.integer(), call.float()),
            ),
        }
    }
}

fn call_state() -> u32 {
    // SAFETY: the calling thread's own word.
    unsafe { *(testing::thread_addresses().call_state as *const u32) }
}

/// `call slot 0`, at the start of a text behind one page of slots.
pub const CALL_SLOT: [u8; 5] = [0xe8, 0xfb, 0xef, 0xff, 0xff];
/// `lea 1(%rdi), %eax; ret`
pub const INCREMENT: [u8; 4] = [0x8d, 0x47, 0x01, 0xc3];
/// `add $1, %eax; ret`
pub const PLUS_ONE: [u8; 4] = [0x83, 0xc0, 0x01, 0xc3];
/// `addsd %xmm0, %xmm0; ret`
pub const DOUBLE: [u8; 5] = [0xf2, 0x0f, 0x58, 0xc0, 0xc3];
/// `vaddsd %xmm0, %xmm0, %xmm0; vxorps %ymm1, %ymm1, %ymm1; ret`
pub const DOUBLE_AVX: [u8; 9] = [0xc5, 0xfb, 0x58, 0xc0, 0xc5, 0xf4, 0x57, 0xc9, 0xc3];
/// `movaps %xmm1, %xmm1`: vector registers without floating point.
pub const MOVE: [u8; 3] = [0x0f, 0x28, 0xc9];
/// `fld1; fstp %st(0)`
pub const X87: [u8; 4] = [0xd9, 0xe8, 0xdd, 0xd8];

pub fn image(text: &[u8], import: Option<&str>, signature: &str) -> Image {
    let mut builder = ImageBuilder::new(text);
    if let Some(import) = import {
        builder.import("s", Some(import.parse().unwrap()));
    }
    builder.export("f", 0, Some(signature.parse().unwrap()));
    builder.x87(true);
    Image::from_bytes(&builder.build().unwrap()).unwrap()
}

pub fn limits() -> Limits {
    // The watchdog must not interfere.
    let mut limits = Limits::default();
    limits.deadline = None;
    limits.heap = Some(4096);
    limits
}

pub fn fixture(domain: Domain, integers: &[u64], floats: &[f64], expected: Expected) -> Fixture {
    Fixture {
        domain,
        inner: Vec::new(),
        integers: integers.to_vec(),
        floats: floats.to_vec(),
        expected,
        prepare: |_| {},
    }
}

pub fn plain(text: &[u8], signature: &str) -> Domain {
    Domain::builder(&image(text, None, signature))
        .limits(limits())
        .placement(Placement::Cold)
        .build()
        .unwrap()
}

/// The same, as a domain that other processes could have, too.
pub fn common(text: &[u8], signature: &str) -> Domain {
    let image = image(text, None, signature);
    let memory = CommonMemory::with(&image, &limits()).unwrap();
    Domain::builder(&image)
        .limits(limits())
        .common(&memory)
        .build()
        .unwrap()
}

pub fn with_service(text: &[&[u8]], depth: Option<u32>) -> Domain {
    let mut limits = limits();
    limits.call_depth = depth;
    Domain::builder(&image(&text.concat(), Some("i(i)"), "i(i)"))
        .limits(limits)
        .placement(Placement::Cold)
        .service("s", |_: &Caller<'_>, x: i32| x * 2)
        .build()
        .unwrap()
}

/// `f` calls a function that calls one that jumps back, to where the first one would return.
pub fn with_longjmp(depth: Option<u32>) -> Domain {
    let text = [
        &[0xe8, 4, 0, 0, 0][..], // f: call g
        &PLUS_ONE,
        &[0xe8, 2, 0, 0, 0], // g: call h
        &[0x0f, 0x0b],
        &[0xbf, 16, 0, 0, 0],            // h: mov $16, %edi
        &[0xe8, 0xe6, 0xef, 0xff, 0xff], // call slot 0
        &[0xb8, 41, 0, 0, 0, 0xc3],      // mov $41, %eax; ret
    ];
    let mut builder = ImageBuilder::new(text.concat());
    builder.import("__postern_longjmp", Some("v(i)".parse().unwrap()));
    builder.export("f", 0, Some("i(i)".parse().unwrap()));
    let mut limits = limits();
    limits.call_depth = depth;
    Domain::builder(&Image::from_bytes(&builder.build().unwrap()).unwrap())
        .limits(limits)
        .placement(Placement::Cold)
        .build()
        .unwrap()
}

pub fn with_float_service(text: &[&[u8]]) -> Domain {
    Domain::builder(&image(&text.concat(), Some("d(d)"), "d(d)"))
        .limits(limits())
        .placement(Placement::Cold)
        .service("s", |_: &Caller<'_>, x: f64| x + 0.5)
        .build()
        .unwrap()
}

pub fn nested(outer: &[&[u8]], inner: Domain, depth: Option<u32>) -> Fixture {
    let mut limits = limits();
    limits.call_depth = depth;
    let f = inner.func::<fn(i32) -> i32>("f").unwrap();
    let domain = Domain::builder(&image(&outer.concat(), Some("i(i)"), "i(i)"))
        .limits(limits)
        .placement(Placement::Cold)
        .service("s", move |_: &Caller<'_>, x: i32| match f.call(x) {
            Ok(value) => value,
            Err(error) => {
                INNER.store(request_kind(&error), Ordering::Relaxed);
                0
            }
        })
        .build()
        .unwrap();
    let mut fixture = fixture(domain, &[20], &[], Expected::Integer(42));
    fixture.inner.push(inner);
    fixture
}
