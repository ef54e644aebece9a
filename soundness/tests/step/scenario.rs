//! The calls that are stepped through: every class of gate, with and without services, nesting, stacks and faults.

use postern::testing::{self, ThreadAddresses};
use postern::{
    CallError, Caller, Domain, DomainBuilder, Fault, FaultKind, Image, Limits, Placement,
};
use postern_image::ImageBuilder;
use postern_soundness::host::{self, HostCall};
use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// In a report: the call ended as it would without interruption. Other values are request kinds, or this one's neighbours.
pub const AS_USUAL: u32 = 100;
const WRONG: u32 = 101;

/// What a child tells its debugger, in shared memory.
#[repr(transparent)]
pub struct Report(UnsafeCell<Contents>);

#[repr(C)]
struct Contents {
    started: u32,
    kind: u32,
    signal: i32,
    length: u32,
    message: [u8; 2000],
    thread: [usize; 6],
    texts: [(u64, u64); 4],
}

impl Report {
    /// A new one, shared with children.
    pub fn map() -> &'static Report {
        // SAFETY: a new shared mapping, never unmapped; zero is a valid Report.
        unsafe {
            let p = libc::mmap(
                std::ptr::null_mut(),
                size_of::<Report>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(p, libc::MAP_FAILED);
            &*p.cast()
        }
    }

    fn update(&self, change: impl FnOnce(&mut Contents)) {
        // SAFETY: only the child writes, only while the parent waits for it; both go through this pointer afresh.
        unsafe {
            let mut copy = std::ptr::read_volatile(self.0.get());
            change(&mut copy);
            std::ptr::write_volatile(self.0.get(), copy);
        }
    }

    fn get(&self) -> Contents {
        // SAFETY: as in `update`.
        unsafe { std::ptr::read_volatile(self.0.get()) }
    }

    pub fn started(&self) -> bool {
        self.get().started != 0
    }

    pub fn signal(&self) -> i32 {
        self.get().signal
    }

    pub fn texts(&self) -> [(u64, u64); 4] {
        self.get().texts
    }

    pub fn thread(&self) -> ThreadAddresses {
        let [mark, sequence, nested, control, request, request_kind] = self.get().thread;
        ThreadAddresses {
            mark,
            sequence,
            nested,
            control,
            request,
            request_kind,
        }
    }

    pub fn read(&self) -> (u32, String) {
        let report = self.get();
        let bytes = &report.message[..report.length as usize];
        (report.kind, String::from_utf8_lossy(bytes).into_owned())
    }
}

/// One call, to be made again and again.
pub struct Scenario {
    pub name: &'static str,
    make: fn() -> Fixture,
    /// Build the domain anew before each call.
    fresh: bool,
    /// Instead of asking for the end of the call, deliver a signal of the host's whose handler uses the current stack.
    pub host_signal: bool,
}

/// What a call needs.
struct Fixture {
    domain: Domain,
    /// Called by services.
    inner: Vec<Domain>,
    integers: Vec<u64>,
    floats: Vec<f64>,
    /// What the call returns (in rax, or as a float), or how it fails.
    expected: Expected,
    /// Before each call.
    prepare: fn(&Domain),
}

#[derive(Clone, Copy)]
enum Expected {
    Integer(u64),
    /// Or a fault, where there was no room for the host's handler.
    IntegerOrNoRoom(u64),
    Float(f64),
    Fault(FaultKind),
    Poisoned,
}

/// How an inner call, made by a service, failed: a request kind.
static INNER: AtomicU32 = AtomicU32::new(0);

fn request_kind(error: &CallError) -> u32 {
    error.fault().map_or(WRONG, |fault| fault_kind(fault.kind))
}

fn fault_kind(kind: FaultKind) -> u32 {
    match kind {
        FaultKind::Deadline => testing::DEADLINE,
        FaultKind::Interrupted => testing::INTERRUPT,
        _ => WRONG,
    }
}

impl Scenario {
    /// The child's life.
    pub fn child(&self, report: &'static Report) {
        let mut fixture = (self.make)();
        // Register the thread, start the watchdog, warm the allocator.
        let _ = fixture.once(false);
        if self.host_signal {
            extern "C" fn nothing(_: i32) {}
            // SAFETY: the handler does nothing.
            unsafe { libc::signal(libc::SIGUSR1, nothing as *const () as usize) };
        }
        let thread = testing::thread_addresses();
        report.update(|r| {
            r.signal = testing::abort_signal();
            r.thread = [
                thread.mark,
                thread.sequence,
                thread.nested,
                thread.control,
                thread.request,
                thread.request_kind,
            ];
        });
        loop {
            if self.fresh {
                fixture = (self.make)();
            }
            for domain in fixture.inner.iter().chain([&fixture.domain]) {
                if domain.is_poisoned() {
                    domain.reset().expect("nobody is inside");
                }
            }
            (fixture.prepare)(&fixture.domain);
            let mut texts = [(0, 0); 4];
            for (place, domain) in texts
                .iter_mut()
                .zip(fixture.inner.iter().chain([&fixture.domain]))
            {
                *place = (domain.base() + 0x1_1000, domain.base() + 0x1_3000);
            }
            report.update(|r| {
                r.started = 1;
                r.texts = texts;
            });
            let (kind, message) = fixture.once(true);
            report.update(|r| {
                r.kind = kind;
                r.length = message.len().min(r.message.len()) as u32;
                r.message[..r.length as usize]
                    .copy_from_slice(&message.as_bytes()[..r.length as usize]);
            });
            // SAFETY: the debugger is there.
            unsafe { host::breakpoint() };
        }
    }
}

impl Fixture {
    /// One call whose result is an integer.
    fn call(&self) -> i32 {
        let f = self.domain.func::<fn(i32) -> i32>("f").unwrap();
        f.call(self.integers[0] as i32).unwrap()
    }

    /// One call: request kind or [`AS_USUAL`], and what happened in words.
    fn once(&self, stepped: bool) -> (u32, String) {
        let pointer = self
            .domain
            .function_pointer("f", None)
            .expect("f is exported");
        let mut call = HostCall::new(pointer, &self.integers, &self.floats);
        postern::clear_last_error();
        INNER.store(0, Ordering::Relaxed);
        // SAFETY: the pointer is to a stub for a function whose arguments are in registers or, for the scenario with
        // arguments on the stack, are the known words there; the debugger takes the traps.
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
        if testing_mark() != 0 {
            return (WRONG, "the thread is still marked".into());
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

fn testing_mark() -> u32 {
    // SAFETY: the calling thread's own word.
    unsafe { *(testing::thread_addresses().mark as *const u32) }
}

/// `call slot 0`, at the start of a text behind one page of slots.
const CALL_SLOT: [u8; 5] = [0xe8, 0xfb, 0xef, 0xff, 0xff];
/// `lea 1(%rdi), %eax; ret`
const INCREMENT: [u8; 4] = [0x8d, 0x47, 0x01, 0xc3];
/// `add $1, %eax; ret`
const PLUS_ONE: [u8; 4] = [0x83, 0xc0, 0x01, 0xc3];
/// `addsd %xmm0, %xmm0; ret`
const DOUBLE: [u8; 5] = [0xf2, 0x0f, 0x58, 0xc0, 0xc3];
/// `vaddsd %xmm0, %xmm0, %xmm0; vxorps %ymm1, %ymm1, %ymm1; ret`
const DOUBLE_AVX: [u8; 9] = [0xc5, 0xfb, 0x58, 0xc0, 0xc5, 0xf4, 0x57, 0xc9, 0xc3];
/// `fld1; fstp %st(0)`
const X87: [u8; 4] = [0xd9, 0xe8, 0xdd, 0xd8];

fn image(text: &[u8], import: Option<&str>, signature: &str) -> Image {
    let mut builder = ImageBuilder::new(text);
    if let Some(import) = import {
        builder.import("s", Some(import.parse().unwrap()));
    }
    builder.export("f", 0, Some(signature.parse().unwrap()));
    builder.x87(true);
    Image::from_bytes(&builder.build().unwrap()).unwrap()
}

fn limits() -> Limits {
    // The watchdog must not interfere.
    let mut limits = Limits::default();
    limits.deadline = None;
    limits.heap = Some(4096);
    limits
}

fn fixture(domain: Domain, integers: &[u64], floats: &[f64], expected: Expected) -> Fixture {
    Fixture {
        domain,
        inner: Vec::new(),
        integers: integers.to_vec(),
        floats: floats.to_vec(),
        expected,
        prepare: |_| {},
    }
}

fn plain(text: &[u8], signature: &str) -> Domain {
    Domain::builder(&image(text, None, signature))
        .limits(limits())
        .placement(Placement::Cold)
        .build()
        .unwrap()
}

fn with_service(text: &[&[u8]], depth: Option<u32>) -> Domain {
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
fn with_longjmp(depth: Option<u32>) -> Domain {
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

fn with_float_service(text: &[&[u8]]) -> Domain {
    Domain::builder(&image(&text.concat(), Some("d(d)"), "d(d)"))
        .limits(limits())
        .placement(Placement::Cold)
        .service("s", |_: &Caller<'_>, x: f64| x + 0.5)
        .build()
        .unwrap()
}

fn nested(outer: &[&[u8]], inner: Domain, depth: Option<u32>) -> Fixture {
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

/// The caller of a peer sees a 0, and this says why. (The watchdog may see a call before the gate has looked at the domain's state.)
fn note(fault: &Fault) {
    use FaultKind::{AnotherThread, ServiceStack, Trap};
    if !matches!(fault.kind, Trap | AnotherThread | ServiceStack) {
        INNER.store(fault_kind(fault.kind), Ordering::Relaxed);
    }
}

/// A call of a domain whose import is another's `f`, each with its text and call depth.
fn peers(
    signature: &str,
    outer: (&[&[u8]], Option<u32>),
    inner: (&[&[u8]], Option<u32>),
    expected: Expected,
) -> Fixture {
    let domain = |(text, depth): (&[&[u8]], Option<u32>), import| {
        let mut limits = limits();
        limits.call_depth = depth;
        Domain::builder(&image(&text.concat(), import, signature))
            .limits(limits)
            .placement(Placement::Cold)
    };
    let inner = domain(inner, None).on_fault(note).build().unwrap();
    let outer = domain(outer, Some(signature))
        .peer("s", &inner.peer_export("f").unwrap())
        .build()
        .unwrap();
    let mut fixture = fixture(outer, &[20], &[20.0], expected);
    fixture.inner.push(inner);
    fixture
}

/// A domain whose service needs more stack than there is.
fn without_room(image: &Image) -> DomainBuilder {
    extern "C" fn never() {}
    let signature = "i(i)".parse().unwrap();
    let builder = Domain::builder(image)
        .limits(limits())
        .placement(Placement::Cold);
    // SAFETY: the function takes nothing and is never called.
    unsafe { builder.service_c("s", never as *const (), signature, 1 << 44) }
}

/// A peer whose service does something to the caller's domain.
fn peer_whose_service(acts: fn(&Domain), expected: Expected) -> Fixture {
    static OUTER: Mutex<Option<Domain>> = Mutex::new(None);
    *OUTER.lock().unwrap() = None;
    let text = [&CALL_SLOT[..], &PLUS_ONE].concat();
    let inner = Domain::builder(&image(&text, Some("i(i)"), "i(i)"))
        .limits(limits())
        .service("s", move |_: &Caller<'_>, x: i32| {
            let outer = OUTER.lock().unwrap().clone();
            outer.iter().for_each(acts);
            x
        })
        .on_fault(note)
        .build()
        .unwrap();
    let outer = Domain::builder(&image(&text, Some("i(i)"), "i(i)"))
        .limits(limits())
        .placement(Placement::Cold)
        .peer("s", &inner.peer_export("f").unwrap())
        .build()
        .unwrap();
    let mut fixture = fixture(outer, &[20], &[], expected);
    fixture.inner.push(inner);
    // Once in peace, so that the thread has its data stacks.
    assert_eq!(fixture.call(), 22);
    *OUTER.lock().unwrap() = Some(fixture.domain.clone());
    fixture
}

/// Two domains that call each other: the outer one's `f` the inner one's, that one the outer one's `h`.
fn peers_in_a_ring() -> Fixture {
    let text = [&CALL_SLOT[..], &PLUS_ONE, &INCREMENT].concat();
    let signature = || Some("i(i)".parse().unwrap());
    let mut builder = ImageBuilder::new(&*text);
    builder.import("s", signature());
    builder.export("f", 0, signature());
    builder.export("h", 9, signature());
    let image = Image::from_bytes(&builder.build().unwrap()).unwrap();
    let domain = || {
        Domain::builder(&image)
            .limits(limits())
            .placement(Placement::Cold)
            .peer_open("s")
            .on_fault(note)
            .build()
            .unwrap()
    };
    let (outer, inner) = (domain(), domain());
    outer
        .bind_peer("s", &inner.peer_export("f").unwrap())
        .unwrap();
    inner
        .bind_peer("s", &outer.peer_export("h").unwrap())
        .unwrap();
    let mut fixture = fixture(outer, &[20], &[], Expected::Integer(23));
    fixture.inner.push(inner);
    fixture
}

const fn scenario(name: &'static str, make: fn() -> Fixture) -> Scenario {
    Scenario {
        name,
        make,
        fresh: false,
        host_signal: false,
    }
}

pub const SCENARIOS: &[Scenario] = &[
    scenario("integers", || {
        fixture(plain(&INCREMENT, "i(i)"), &[41], &[], Expected::Integer(42))
    }),
    scenario("SSE", || {
        fixture(plain(&DOUBLE, "d(d)"), &[], &[21.0], Expected::Float(42.0))
    }),
    scenario("AVX", || {
        fixture(
            plain(&DOUBLE_AVX, "d(d)"),
            &[],
            &[21.0],
            Expected::Float(42.0),
        )
    }),
    scenario("AVX without floating arguments", || {
        let text = [&DOUBLE_AVX[..8], &INCREMENT[..]].concat();
        fixture(plain(&text, "i(i)"), &[41], &[], Expected::Integer(42))
    }),
    scenario("SSE without floating arguments", || {
        let text = [&DOUBLE[..4], &INCREMENT[..]].concat();
        fixture(plain(&text, "i(i)"), &[41], &[], Expected::Integer(42))
    }),
    scenario("service", || {
        fixture(
            with_service(&[&CALL_SLOT, &PLUS_ONE], None),
            &[20],
            &[],
            Expected::Integer(41),
        )
    }),
    scenario("longjmp", || {
        fixture(with_longjmp(None), &[20], &[], Expected::Integer(42))
    }),
    scenario("longjmp and call depth", || {
        fixture(with_longjmp(Some(8)), &[20], &[], Expected::Integer(42))
    }),
    scenario("SSE service", || {
        fixture(
            with_float_service(&[&CALL_SLOT, &DOUBLE]),
            &[],
            &[20.0],
            Expected::Float(41.0),
        )
    }),
    scenario("AVX service", || {
        fixture(
            with_float_service(&[&CALL_SLOT, &DOUBLE_AVX]),
            &[],
            &[20.0],
            Expected::Float(41.0),
        )
    }),
    scenario("x87", || {
        let text = [&X87[..], &INCREMENT[..]].concat();
        fixture(plain(&text, "i(i)"), &[41], &[], Expected::Integer(42))
    }),
    scenario("x87 service", || {
        fixture(
            with_service(&[&CALL_SLOT, &X87, &PLUS_ONE], None),
            &[20],
            &[],
            Expected::Integer(41),
        )
    }),
    scenario("call depth and a service", || {
        fixture(
            with_service(&[&CALL_SLOT, &PLUS_ONE], Some(8)),
            &[20],
            &[],
            Expected::Integer(41),
        )
    }),
    scenario("arguments on the stack", || {
        // mov %gs:(%r15d), %eax; ret
        let text = [0x65, 0x67, 0x41, 0x8b, 0x07, 0xc3];
        fixture(
            plain(&text, "i(iiiiiiii)"),
            &[],
            &[],
            Expected::Integer(0xaaaa_aaaa),
        )
    }),
    scenario("nested", || {
        nested(
            &[&CALL_SLOT, &PLUS_ONE],
            with_service(&[&CALL_SLOT, &PLUS_ONE], None),
            None,
        )
    }),
    scenario("nested, both with call depth", || {
        nested(
            &[&CALL_SLOT, &PLUS_ONE],
            with_service(&[&CALL_SLOT, &PLUS_ONE], Some(8)),
            Some(8),
        )
    }),
    scenario("nested x87 in AVX", || {
        nested(
            &[&CALL_SLOT, &DOUBLE_AVX[4..8], &PLUS_ONE],
            with_service(&[&CALL_SLOT, &X87, &PLUS_ONE], None),
            None,
        )
    }),
    scenario("peer", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
        let expected = Expected::Integer(22);
        peers("i(i)", (outer, None), (&[&INCREMENT], None), expected)
    }),
    scenario("peer, SSE", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &DOUBLE];
        let expected = Expected::Float(80.0);
        peers("d(d)", (outer, None), (&[&DOUBLE], None), expected)
    }),
    scenario("peer, AVX", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &DOUBLE_AVX];
        let expected = Expected::Float(80.0);
        peers("d(d)", (outer, None), (&[&DOUBLE_AVX], None), expected)
    }),
    scenario("peer, AVX called by SSE", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &DOUBLE];
        let expected = Expected::Float(80.0);
        peers("d(d)", (outer, None), (&[&DOUBLE_AVX], None), expected)
    }),
    scenario("peer, AVX called by integers", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
        let inner: &[&[u8]] = &[&DOUBLE_AVX[..8], &INCREMENT];
        let expected = Expected::Integer(22);
        peers("i(i)", (outer, None), (inner, None), expected)
    }),
    scenario("peer, integers called by SSE", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &DOUBLE[..4], &PLUS_ONE];
        let expected = Expected::Integer(22);
        peers("i(i)", (outer, None), (&[&INCREMENT], None), expected)
    }),
    scenario("peer, x87", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
        let expected = Expected::Integer(22);
        peers("i(i)", (outer, None), (&[&X87, &INCREMENT], None), expected)
    }),
    scenario("peer, the caller with call depth", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
        let expected = Expected::Integer(22);
        peers("i(i)", (outer, Some(8)), (&[&INCREMENT], None), expected)
    }),
    scenario("peer with call depth", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
        let expected = Expected::Integer(22);
        peers("i(i)", (outer, None), (&[&INCREMENT], Some(8)), expected)
    }),
    scenario("peer that traps", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
        let inner: &[&[u8]] = &[&[0x90, 0x0f, 0x0b]];
        let expected = Expected::Integer(1);
        peers("i(i)", (outer, None), (inner, None), expected)
    }),
    scenario("peer that is closed", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
        let expected = Expected::Integer(1);
        let fixture = peers("i(i)", (outer, None), (&[&INCREMENT], None), expected);
        // Once while it is open, so that the thread has its data stack there.
        assert_eq!(fixture.call(), 22);
        fixture.inner[0].close();
        fixture
    }),
    scenario("peer without room", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
        let mut fixture = peers(
            "i(i)",
            (outer, None),
            (&[&INCREMENT], None),
            Expected::Fault(FaultKind::ServiceStack),
        );
        let export = fixture.inner[0].peer_export("f").unwrap();
        fixture.domain = Domain::builder(&fixture.domain.image())
            .limits(limits())
            .peer("s", &export.stack(1 << 44))
            .build()
            .unwrap();
        fixture
    }),
    scenario("peers in a ring", peers_in_a_ring),
    Scenario {
        name: "peer that closes its caller",
        make: || {
            let expected = Expected::Fault(FaultKind::AnotherThread);
            peer_whose_service(Domain::close, expected)
        },
        fresh: true,
        host_signal: false,
    },
    scenario("peer with a service", || {
        peer_whose_service(|_| {}, Expected::Integer(22))
    }),
    scenario("peer whose service has no room", || {
        let text = [&CALL_SLOT[..], &PLUS_ONE].concat();
        let image = image(&text, Some("i(i)"), "i(i)");
        let inner = without_room(&image).on_fault(note).build().unwrap();
        let outer = Domain::builder(&image)
            .limits(limits())
            .placement(Placement::Cold)
            .peer("s", &inner.peer_export("f").unwrap())
            .build()
            .unwrap();
        let mut fixture = fixture(outer, &[20], &[], Expected::Integer(1));
        fixture.inner.push(inner);
        fixture
    }),
    Scenario {
        name: "first call of a peer",
        make: || {
            let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
            let expected = Expected::Integer(22);
            peers("i(i)", (outer, None), (&[&INCREMENT], None), expected)
        },
        fresh: true,
        host_signal: false,
    },
    Scenario {
        name: "signals of the host while a peer runs",
        make: || {
            let outer: &[&[u8]] = &[&CALL_SLOT, &PLUS_ONE];
            let expected = Expected::Integer(22);
            peers("i(i)", (outer, None), (&[&INCREMENT], None), expected)
        },
        fresh: false,
        host_signal: true,
    },
    Scenario {
        name: "first entry into a domain",
        make: || {
            fixture(
                with_service(&[&CALL_SLOT, &PLUS_ONE], None),
                &[20],
                &[],
                Expected::Integer(41),
            )
        },
        fresh: true,
        host_signal: false,
    },
    Scenario {
        name: "signals of the host, little stack",
        make: || {
            let domain = with_service(&[&CALL_SLOT, &PLUS_ONE], Some(8));
            fixture(domain, &[20], &[], Expected::IntegerOrNoRoom(41))
        },
        fresh: false,
        host_signal: true,
    },
    scenario("a service without room", || {
        let signature = "i(i)";
        let image = image(
            &[&CALL_SLOT[..], &PLUS_ONE].concat(),
            Some(signature),
            signature,
        );
        let domain = without_room(&image).build().unwrap();
        fixture(domain, &[20], &[], Expected::Fault(FaultKind::ServiceStack))
    }),
    scenario("a trap", || {
        fixture(
            plain(&[0x90, 0x0f, 0x0b], "i(i)"),
            &[1],
            &[],
            Expected::Fault(FaultKind::Trap),
        )
    }),
    scenario("a poisoned domain", || {
        let mut fixture = fixture(
            plain(&[0x85, 0xff, 0x74, 0x02, 0x0f, 0x0b, 0xc3], "i(i)"),
            &[0],
            &[],
            Expected::Poisoned,
        );
        fixture.prepare = |domain| {
            let f = domain.func::<fn(i32) -> i32>("f").unwrap();
            assert!(f.call(1).is_err());
        };
        fixture
    }),
];
