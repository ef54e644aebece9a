//! The memory gate against Rust's own functions: random places, lengths and overlaps, the edges of
//! pages and of the window, pages that are read-only, absent or taken meanwhile, and what it leaves
//! in registers.
//!
//! `POSTERN_SOUNDNESS_SECONDS=n` goes on for n seconds with other seeds.

use fastrand::Rng;
use postern::testing::{Vectors, choose_memory_gate};
use postern::{CallError, Domain, Fault, FaultKind, Func, Image, Offset, Placement, Prot, Shared};
use postern_image::ImageBuilder;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The imports, in the order of the slots, with their types.
const FUNCTIONS: [(&str, &str); 5] = [
    ("__postern_memmove", "p(ppL)"),
    ("__postern_memset", "p(piL)"),
    ("__postern_memcmp", "i(ppL)"),
    ("__postern_strlen", "L(pL)"),
    ("__postern_memchr", "p(piL)"),
];
const NEVER: u64 = u64::MAX;
/// Bytes of bss that the tests work in.
const ROOM: usize = 256 << 10;
const PAGE: u32 = 4096;

type Call = fn(u64, u64, u64) -> u64;

/// A domain whose functions `jump0`, … are jumps to the slots, and `call0`, … calls of them.
struct Subject {
    domain: Domain,
    calls: Vec<Func<Call>>,
    jumps: Vec<Func<Call>>,
    /// First byte of the room, and the one behind its last, where nothing is mapped.
    room: u32,
    end: u32,
    text: u32,
}

/// Text that ends with a branch to a slot.
fn to_slot(builder: &ImageBuilder, text: &mut Vec<u8>, opcode: u8, slot: u32) {
    text.push(opcode);
    let next = builder.text_offset() + text.len() as u32 + 4;
    text.extend(builder.slot_offset(slot).wrapping_sub(next).to_le_bytes());
}

fn subject(placement: Placement, before: &[u8]) -> Subject {
    let mut builder = ImageBuilder::new([]);
    for (name, signature) in FUNCTIONS {
        builder.import(name, Some(signature.parse().unwrap()));
    }
    let mut text = Vec::new();
    for slot in 0..FUNCTIONS.len() as u32 {
        builder.export(format!("jump{slot}"), text.len() as u32, None);
        to_slot(&builder, &mut text, 0xe9, slot);
        builder.export(format!("call{slot}"), text.len() as u32, None);
        text.extend(before);
        to_slot(&builder, &mut text, 0xe8, slot);
        text.push(0xc3);
    }
    builder.text(text).data(vec![1; 16], ROOM as u64);
    let layout = builder.layout().unwrap();
    let image = Image::from_bytes(&builder.build().unwrap()).unwrap();
    let domain = Domain::builder(&image)
        .placement(placement)
        .heap(PAGE.into())
        .build()
        .unwrap();
    let functions = |kind: &str| {
        let one = |k| {
            domain
                .func_unchecked::<Call>(&format!("{kind}{k}"))
                .unwrap()
        };
        (0..FUNCTIONS.len()).map(one).collect()
    };
    let end = layout.heap_start + PAGE;
    Subject {
        calls: functions("call"),
        jumps: functions("jump"),
        room: end - ROOM as u32,
        end,
        text: layout.text,
        domain,
    }
}

/// Every way in which the gate can work here, with a name.
fn ways() -> Vec<(Vectors, u64)> {
    let mut ways = vec![(Vectors::Sse2, NEVER), (Vectors::Sse2, 300)];
    if Vectors::best() == Vectors::Avx2 {
        ways.extend([(Vectors::Avx2, NEVER), (Vectors::Avx2, 600)]);
    }
    ways
}

/// A length: often one at which the gate changes its way.
fn length(random: &mut Rng) -> usize {
    match random.u32(0..8) {
        0..3 => random.usize(0..80),
        3..6 => {
            let around = [16, 32, 64, 128, 256, 300, 512, 600, 1024, 4096];
            (around[random.usize(0..around.len())] + random.usize(0..9)).saturating_sub(4)
        }
        _ => random.usize(0..20_000),
    }
}

/// Two places for so many bytes, that often overlap, or touch the end of a page or of the room.
fn places(random: &mut Rng, n: usize) -> (usize, usize) {
    let most = ROOM - n;
    let mut one = |other: usize| match random.u32(0..4) {
        0 => random.usize(0..=most),
        1 => most - random.usize(0..3).min(most),
        2 => (random.usize(0..=most) / 4096 * 4096 + 4096 - n % 4096).min(most),
        _ => (other + random.usize(0..400)).saturating_sub(200).min(most),
    };
    let from = one(most / 2);
    (one(from), from)
}

impl Subject {
    fn at(&self, place: usize) -> u64 {
        u64::from(self.room) + place as u64
    }

    /// One call of each function with random arguments, beside Rust's.
    fn round(&self, random: &mut Rng, copy: &mut [u8]) {
        // Whatever the upper halves of arguments hold, offsets have 32 bits.
        let high = u64::from(random.u32(..)) * u64::from(random.bool());
        let ask = |k: usize, jump: bool, a: u64, b: u64, n: u64| {
            let functions = if jump { &self.jumps } else { &self.calls };
            functions[k].call(a, b, n).unwrap()
        };
        let n = length(random);
        let (to, from) = places(random, n);
        let jump = random.bool();
        // Few different bytes, so that comparisons and searches find some.
        let most = [1, 2, 255][random.usize(0..3)];
        for _ in 0..3 {
            let (start, bytes) = (random.usize(0..ROOM - 64), random.usize(0..64));
            for (k, byte) in copy[start..start + bytes].iter_mut().enumerate() {
                *byte = random.u8(0..=most);
                let at = Offset(self.room + (start + k) as u32);
                self.domain.write(at, &[*byte]).unwrap();
            }
        }
        let (at_to, at_from) = (self.at(to) | (high << 32), self.at(from));
        match random.u32(0..5) {
            0 => {
                assert_eq!(ask(0, jump, at_to, at_from, n as u64), at_to);
                copy.copy_within(from..from + n, to);
            }
            1 => {
                let byte = random.u32(..);
                assert_eq!(ask(1, jump, at_to, byte.into(), n as u64), at_to);
                copy[to..to + n].fill(byte as u8);
            }
            2 => {
                let wanted = copy[to..to + n].cmp(&copy[from..from + n]) as i32;
                let found = ask(2, jump, at_to, at_from, n as u64) as i32;
                assert_eq!(found.signum(), wanted, "memcmp of {n} bytes");
            }
            3 => {
                let Some(wanted) = copy[to..].iter().position(|&b| b == 0) else {
                    return;
                };
                let known = random.usize(0..=wanted) as u64;
                assert_eq!(
                    ask(3, jump, at_to, known, 0),
                    wanted as u64,
                    "strlen at {to}"
                );
            }
            _ => {
                let byte = random.u32(..);
                let end = (to + n).min(ROOM);
                let found = copy[to..end].iter().position(|&b| b == byte as u8);
                let wanted = found.map_or(0, |k| self.at(to + k));
                // The length may say more than there is, if it is there.
                let said = match found {
                    Some(_) if random.bool() => NEVER >> random.u32(0..40),
                    _ => n as u64,
                };
                let said = said.max(n as u64);
                assert_eq!(
                    ask(4, jump, at_to, byte.into(), said),
                    wanted,
                    "memchr of {n}"
                );
            }
        }
        let whole = random.u32(0..16) == 0;
        let looked_at = if whole {
            0..ROOM
        } else {
            to.saturating_sub(64)..(to + n + 64).min(ROOM)
        };
        let at = Offset(self.room + looked_at.start as u32);
        let bytes = self.domain.read_vec(at, looked_at.len()).unwrap();
        assert!(bytes == copy[looked_at], "{n} bytes, {from} to {to}");
    }

    fn fault(&self, k: usize, a: u64, b: u64, n: u64) -> Fault {
        let result = self.calls[k].call(a, b, n);
        self.domain.reset().unwrap();
        match result {
            Err(CallError::Fault(fault)) => Fault::clone(&fault),
            other => panic!("function {k} of {a:#x}, {b:#x}, {n:#x}: {other:?}"),
        }
    }
}

#[test]
fn results_are_those_of_the_host() {
    let seconds = std::env::var("POSTERN_SOUNDNESS_SECONDS");
    let seconds: u64 = seconds.map_or(0, |s| s.parse().unwrap());
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut seed = 1;
    for placement in [Placement::Hot, Placement::Cold] {
        let subject = subject(placement, &[]);
        let mut copy = vec![0; ROOM];
        subject.domain.write(Offset(subject.room), &copy).unwrap();
        // A first call makes the thread known, which chooses for itself.
        subject.calls[0].call(0, 0, 0).unwrap();
        for (vectors, by_string) in ways() {
            choose_memory_gate(vectors, by_string);
            let mut rounds = 0;
            while rounds < 4000 || Instant::now() < until {
                subject.round(&mut Rng::with_seed(seed), &mut copy);
                (seed, rounds) = (seed + 1, rounds + 1);
            }
        }
    }
}

#[test]
fn no_range_leaves_the_window() {
    let subject = subject(Placement::Cold, &[]);
    subject.calls[0].call(0, 0, 0).unwrap();
    let (here, end, all) = (subject.at(0), u64::from(subject.end), 1u64 << 32);
    // A range and a length that wraps, one way or another; each is also given as the other range.
    let outside = [
        (here, all),
        (here, all - 1),
        (here, all - here),
        (here, all - here - 1),
        (here, NEVER),
        (here, NEVER - here),
        (here, 1 << 63),
        (here, 1 << 33),
        (all - 1, 1),
        (all - 1, 2),
        (all - 1, all),
        (0xffff_0000, 0x1_0000),
        (0xffff_ffff_ffff_ffff, 1),
        (0, 1),
        (0, NEVER),
        (end, 1),
        (end - 1, 2),
    ];
    // None of nothing, wherever.
    let nowhere = [0, 1, all - 1, all, NEVER, 0xffff_0000, end, here];
    for (vectors, by_string) in ways() {
        choose_memory_gate(vectors, by_string);
        for (at, n) in outside {
            for (k, a, b) in [
                (0, at, here),
                (0, here, at),
                (1, at, 7),
                (2, at, here),
                (2, here, at),
            ] {
                subject.fault(k, a, b, n);
            }
            let first = subject.fault(4, at, 0x55, n);
            assert!(matches!(
                first.kind,
                FaultKind::NullPointer | FaultKind::HeapLimit | FaultKind::Read
            ));
        }
        for at in [0, end, all - 1, 0xffff_0000] {
            subject.fault(3, at, 0, 0);
        }
        for a in nowhere {
            for b in nowhere {
                assert_eq!(subject.calls[0].call(a, b, 0).unwrap(), a);
                assert_eq!(subject.calls[1].call(a, b, 0).unwrap(), a);
                assert_eq!(subject.calls[2].call(a, b, 0).unwrap() as u32, 0);
                assert_eq!(subject.calls[4].call(a, b, 0).unwrap(), 0);
            }
        }
        // The room's last bytes, and a string without an end.
        let last = Offset(subject.end - 300);
        subject.domain.write(last, &[1; 300]).unwrap();
        let one = subject.fault(3, end - 300, 0, 0);
        assert_eq!(
            (one.kind, one.address),
            (FaultKind::HeapLimit, Some(Offset(subject.end)))
        );
    }
}

#[test]
fn faults_are_the_extensions_with_the_place_of_its_call() {
    let subject = subject(Placement::Cold, &[]);
    subject.calls[0].call(0, 0, 0).unwrap();
    let (here, end) = (subject.at(0), u64::from(subject.end));
    let text = u64::from(subject.text);
    for (vectors, by_string) in ways() {
        choose_memory_gate(vectors, by_string);
        for n in [1, 40, 100, 200, 1000, 9000u64] {
            let write = subject.fault(1, end - n / 2, 1, n);
            assert_eq!(write.kind, FaultKind::HeapLimit, "{n} bytes");
            let address = write.address.unwrap().0;
            assert!(
                (subject.end..subject.end + 9000).contains(&address),
                "{address:#x}"
            );
            // call1 is behind jump0, call0 and jump1, of 5, 6 and 5 bytes.
            assert_eq!(write.offset, Some(Offset(subject.text + 16)));
            assert!(
                write.backtrace.is_empty(),
                "the gate's own return address is none"
            );
            let read_only = subject.fault(0, text, here, n);
            assert_eq!(read_only.kind, FaultKind::ReadOnly);
            assert_eq!(read_only.offset, Some(Offset(subject.text + 5)));
            assert_eq!(
                subject.fault(0, here, end - n / 2, n).kind,
                FaultKind::HeapLimit
            );
            assert_eq!(subject.fault(0, here, 5, n).kind, FaultKind::NullPointer);
            // Text may be read, as with the extension's own operands.
            assert_eq!(subject.calls[0].call(here, text, n.min(40)).unwrap(), here);
        }
        let jumped = subject.jumps[1].call(end, 1, 600).unwrap_err();
        subject.domain.reset().unwrap();
        assert_eq!(jumped.fault().unwrap().kind, FaultKind::HeapLimit);
    }
}

/// Comparisons and searches touch no page behind the byte that decides, and no page before the
/// first.
#[test]
fn no_page_is_touched_that_need_not_be() {
    let subject = subject(Placement::Cold, &[]);
    subject.calls[0].call(0, 0, 0).unwrap();
    let area = Shared::builder().zeroed(3 * PAGE as usize).unwrap();
    let middle = subject.domain.share(&area, Prot::ReadWrite).unwrap().0 + PAGE;
    for page in [0, 2usize] {
        area.protect(
            &subject.domain,
            page * PAGE as usize..(page + 1) * PAGE as usize,
            Prot::None,
        )
        .unwrap();
    }
    area.write(PAGE as usize, &[7; PAGE as usize]).unwrap();
    for (vectors, by_string) in ways() {
        choose_memory_gate(vectors, by_string);
        for start in (0..300).chain(3700..4095) {
            for last in [start, start + 1, start + 200, 4095].map(|l| l.min(4095)) {
                area.write(PAGE as usize + last as usize, &[0]).unwrap();
                let (at, n) = (u64::from(middle + start), u64::from(last - start));
                let length = subject.calls[3].call(at, 0, 0).unwrap();
                assert_eq!(length, n);
                let found = subject.calls[4].call(at, 0, 1 << 20).unwrap();
                assert_eq!(found, at + n);
                assert_eq!(subject.calls[4].call(at, 1, n + 1).unwrap(), 0);
                assert_eq!(subject.calls[2].call(at, at, n + 1).unwrap() as u32, 0);
                area.write(PAGE as usize + last as usize, &[7]).unwrap();
            }
        }
    }
}

/// A page goes and comes, and bytes change, while the gate works on them: each call ends with a
/// result or a fault of the extension's.
#[test]
fn races_with_protection_end_in_results_or_faults() {
    let subject = subject(Placement::Cold, &[]);
    subject.calls[0].call(0, 0, 0).unwrap();
    let area = Shared::builder().zeroed(16 * PAGE as usize).unwrap();
    let at = u64::from(subject.domain.share(&area, Prot::ReadWrite).unwrap().0);
    let here = subject.at(0);
    let over = AtomicBool::new(false);
    let (mut ended, mut returned) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Rng::with_seed(9);
            while !over.load(Ordering::Relaxed) {
                let page = random.usize(0..16) * PAGE as usize;
                let prot = [Prot::None, Prot::Read, Prot::ReadWrite][random.usize(0..3)];
                area.protect(&subject.domain, page..page + PAGE as usize, prot)
                    .unwrap();
                let _ = area.write(random.usize(0..16 * PAGE as usize - 1), &[random.u8(..)]);
                if random.u32(0..4) == 0 {
                    area.protect(&subject.domain, .., Prot::ReadWrite).unwrap();
                }
            }
        });
        let mut random = Rng::with_seed(8);
        let until = Instant::now() + Duration::from_secs(30);
        let mut turns = 0..;
        while let Some(turn) = turns.next()
            && (turn < 6000 || ended == 0 && Instant::now() < until)
        {
            let (vectors, by_string) = ways()[turn % ways().len()];
            choose_memory_gate(vectors, by_string);
            let n = random.u64(0..u64::from(PAGE) * 16);
            let (k, a, b) = match random.u32(0..6) {
                0 => (0, at, here),
                1 => (0, here, at),
                2 => (1, at, 0),
                3 => (2, at, here),
                4 => (3, at, 0),
                _ => (4, at, 0xee),
            };
            match subject.calls[k].call(a, b, n) {
                Ok(_) => returned += 1,
                Err(CallError::Fault(fault)) => {
                    let kinds = [FaultKind::Read, FaultKind::Write, FaultKind::ReadOnly];
                    // It may be allowed again when it is looked up.
                    assert!(kinds.contains(&fault.kind), "{fault}");
                    assert!(fault.offset.is_some());
                    ended += 1;
                    subject.domain.reset().unwrap();
                }
                Err(other) => panic!("{other}"),
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(
        ended > 0 && returned > 0,
        "{ended} ended, {returned} returned"
    );
}
