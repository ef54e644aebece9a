//! The calls that are stepped through: every class of gate, with and without services, nesting,
//! stacks and faults.

use crate::fixture::*;
use crate::memory::*;
use crate::peers::*;
use crate::report::Report;
use postern::testing::{self, Vectors};
use postern::{Domain, FaultKind, Placement};
use postern_soundness::host;

/// One call, to be made again and again.
pub struct Scenario {
    pub name: &'static str,
    make: fn() -> Fixture,
    /// Build the domain anew before each call.
    fresh: bool,
    /// Instead of asking for the end of the call, deliver a signal of the host's.
    pub host_signal: bool,
}

impl Scenario {
    /// The child's life.
    pub fn child(&self, report: &'static Report) {
        self.child_with(report, |_| {});
    }

    /// The same; `between` runs before the first call, and before each one that is stepped through.
    pub fn child_with(&self, report: &'static Report, mut between: impl FnMut(&Report)) {
        let mut fixture = (self.make)();
        // Register the thread, start the watchdog, warm the allocator.
        let _ = fixture.once(false);
        between(report);
        if self.host_signal {
            extern "C" fn nothing(_: i32) {}
            // SAFETY: the handler does nothing.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = nothing as *const () as usize;
                action.sa_flags = libc::SA_ONSTACK;
                libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
            }
        }
        let thread = testing::thread_addresses();
        report.update(|r| {
            r.signal = testing::abort_signal();
            r.thread = [
                thread.call_state,
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
                    // A reset takes it back, and without one the next call is the slow path's.
                    testing::give_data_stack(domain);
                }
            }
            (fixture.prepare)(&fixture.domain);
            between(report);
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
    scenario("SSE without floating point", || {
        let text = [&MOVE[..], &INCREMENT[..]].concat();
        fixture(plain(&text, "i(i)"), &[41], &[], Expected::Integer(42))
    }),
    scenario("AVX without floating point", || {
        let text = [&DOUBLE_AVX[4..8], &INCREMENT[..]].concat();
        fixture(plain(&text, "i(i)"), &[41], &[], Expected::Integer(42))
    }),
    scenario("common, integers", || {
        fixture(
            common(&INCREMENT, "i(i)"),
            &[41],
            &[],
            Expected::Integer(42),
        )
    }),
    scenario("common, SSE", || {
        fixture(common(&DOUBLE, "d(d)"), &[], &[21.0], Expected::Float(42.0))
    }),
    scenario("common, AVX", || {
        let domain = common(&DOUBLE_AVX, "d(d)");
        fixture(domain, &[], &[21.0], Expected::Float(42.0))
    }),
    scenario("common, SSE without floating point", || {
        let text = [&MOVE[..], &INCREMENT[..]].concat();
        fixture(common(&text, "i(i)"), &[41], &[], Expected::Integer(42))
    }),
    scenario("common, AVX without floating point", || {
        let text = [&DOUBLE_AVX[4..8], &INCREMENT[..]].concat();
        fixture(common(&text, "i(i)"), &[41], &[], Expected::Integer(42))
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
    scenario("peer, floating point called by SSE without", || {
        let outer: &[&[u8]] = &[&CALL_SLOT, &MOVE, &PLUS_ONE];
        let inner: &[&[u8]] = &[&DOUBLE[..4], &INCREMENT];
        let expected = Expected::Integer(22);
        peers("i(i)", (outer, None), (inner, None), expected)
    }),
    scenario(
        "peer, SSE without floating point called by such with",
        || {
            let outer: &[&[u8]] = &[&CALL_SLOT, &DOUBLE[..4], &PLUS_ONE];
            let inner: &[&[u8]] = &[&MOVE, &INCREMENT];
            let expected = Expected::Integer(22);
            peers("i(i)", (outer, None), (inner, None), expected)
        },
    ),
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
    // The way back of the peer gate finds the wish in the caller's record. The domain stays open,
    // so the watchdog, which asks for the end of calls in closed ones, is not there before it.
    scenario("peer that interrupts its caller", || {
        peer_whose_service(Domain::interrupt, Expected::InterruptedByService)
    }),
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
    scenario("memory gate, SSE2, moves", || {
        memory(MOVES, Vectors::Sse2, RETURNS)
    }),
    scenario("memory gate, SSE2, long moves", || {
        memory(LONG_MOVES, Vectors::Sse2, RETURNS)
    }),
    scenario("memory gate, SSE2, fills", || {
        memory(FILLS, Vectors::Sse2, RETURNS)
    }),
    scenario("memory gate, SSE2, comparisons", || {
        memory(COMPARISONS, Vectors::Sse2, RETURNS)
    }),
    scenario("memory gate, SSE2, searches", || {
        memory(SEARCHES, Vectors::Sse2, RETURNS)
    }),
    scenario("memory gate, SSE2, beyond the window", || {
        memory(BEYOND, Vectors::Sse2, LEAVES)
    }),
    scenario("memory gate, SSE2, a page that is not there", || {
        memory(ABSENT, Vectors::Sse2, FAULTS)
    }),
    scenario("memory gate, AVX2, moves", || {
        memory(MOVES, Vectors::Avx2, RETURNS)
    }),
    scenario("memory gate, AVX2, long moves", || {
        memory(LONG_MOVES, Vectors::Avx2, RETURNS)
    }),
    scenario("memory gate, AVX2, fills", || {
        memory(FILLS, Vectors::Avx2, RETURNS)
    }),
    scenario("memory gate, AVX2, comparisons", || {
        memory(COMPARISONS, Vectors::Avx2, RETURNS)
    }),
    scenario("memory gate, AVX2, searches", || {
        memory(SEARCHES, Vectors::Avx2, RETURNS)
    }),
    scenario("memory gate, AVX2, beyond the window", || {
        memory(BEYOND, Vectors::Avx2, LEAVES)
    }),
    scenario("memory gate, AVX2, a page that is not there", || {
        memory(ABSENT, Vectors::Avx2, FAULTS)
    }),
    Scenario {
        name: "signals of the host in the memory gate",
        make: || memory(MOVES, Vectors::Avx2, RETURNS),
        fresh: false,
        host_signal: true,
    },
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
