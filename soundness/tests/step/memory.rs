//! Calls of the memory gate, one after the other, in each way that it has.

use crate::fixture::*;
use postern::testing::{Vectors, choose_memory_gate};
use postern::{Domain, FaultKind, Image, Placement};
use postern_image::ImageBuilder;

/// From so many bytes on by the processor's own copies, which are stepped byte by byte.
const BY_STRING: u64 = 300;

/// A function of the gate, two words (offsets in the data, where they are places), and a length.
type Call = (u32, u32, u32, u32);

const MOVE: u32 = 0;
const FILL: u32 = 1;
const COMPARE: u32 = 2;
const LENGTH: u32 = 3;
const FIND: u32 = 4;

/// The classes of sizes, disjoint and both ways of overlapping.
pub const MOVES: &[Call] = &[
    (MOVE, 0, 1024, 0),
    (MOVE, 0, 1024, 5),
    (MOVE, 2, 0, 5),
    (MOVE, 0, 1024, 20),
    (MOVE, 0, 1024, 40),
    (MOVE, 0, 1024, 100),
    (MOVE, 0, 1024, 200),
    (MOVE, 0, 1024, 270),
    (MOVE, 8, 0, 270),
];
pub const LONG_MOVES: &[Call] = &[(MOVE, 0, 1024, 300), (MOVE, 0, 8, 300)];
pub const FILLS: &[Call] = &[
    (FILL, 0, 7, 5),
    (FILL, 0, 7, 20),
    (FILL, 0, 7, 40),
    (FILL, 0, 7, 100),
    (FILL, 0, 7, 200),
    (FILL, 0, 7, 270),
    (FILL, 0, 7, 300),
];
pub const COMPARISONS: &[Call] = &[
    (COMPARE, 0, 1024, 5),
    (COMPARE, 0, 1024, 270),
    // A byte that differs is in each quarter of what is looked at in one go.
    (COMPARE, 0, 2048 - 3, 300),
    (COMPARE, 0, 2048 - 40, 300),
    (COMPARE, 0, 2048 - 80, 300),
    (COMPARE, 0, 2048 - 100, 300),
    (COMPARE, 2048, 0, 3),
];
pub const SEARCHES: &[Call] = &[
    (FIND, 0, 9, 0),
    (FIND, 0, 9, 260),
    (FIND, 2000, 9, 200),
    (FIND, 1920, 9, 600),
    (FIND, 1792, 9, 600),
    (FIND, 1792 + 30, 9, 0xffff_ffff),
    (FIND, 1792 + 90, 9, 600),
    (FIND, 2048, 9, 600),
    (FIND, 2049, 9, 5),
    (LENGTH, 2049, 0, 0),
];
/// A range that ends above the window.
pub const BEYOND: &[Call] = &[(MOVE, 0, 1024, 0xffff_ffff)];
/// A fault in the middle of a copy.
pub const ABSENT: &[Call] = &[(MOVE, 16 << 10, 0, 270)];

/// A domain whose `f` makes these calls and returns 42.
pub fn memory(calls: &[Call], vectors: Vectors, expected: Expected) -> Fixture {
    let image = |data: u32| {
        let mut builder = ImageBuilder::new([]);
        for (name, signature) in [
            ("__postern_memmove", "p(ppL)"),
            ("__postern_memset", "p(piL)"),
            ("__postern_memcmp", "i(ppL)"),
            ("__postern_strlen", "L(pL)"),
            ("__postern_memchr", "p(piL)"),
        ] {
            builder.import(name, Some(signature.parse().unwrap()));
        }
        let mut text = Vec::new();
        for &(function, a, b, n) in calls {
            let b = match function {
                MOVE | COMPARE => data + b,
                _ => b,
            };
            // mov $a, %edi; mov $b, %esi; mov $n, %edx; call slot
            for (opcode, value) in [(0xbf, data + a), (0xbe, b), (0xba, n)] {
                text.push(opcode);
                text.extend(value.to_le_bytes());
            }
            text.push(0xe8);
            let next = builder.text_offset() + text.len() as u32 + 4;
            let slot = builder.slot_offset(function);
            text.extend(slot.wrapping_sub(next).to_le_bytes());
        }
        text.extend([0xb8, 42, 0, 0, 0, 0xc3]);
        let mut bytes = vec![0; 4096];
        bytes[2048] = 9;
        bytes[2049..2300].fill(1);
        builder.text(text).data(bytes, 0);
        builder.export("f", 0, Some("i(i)".parse().unwrap()));
        builder
    };
    let data = image(0x10_0000).layout().unwrap().data;
    let image = Image::from_bytes(&image(data).build().unwrap()).unwrap();
    let domain = Domain::builder(&image)
        .limits(limits())
        .placement(Placement::Cold)
        .build()
        .unwrap();
    let mut fixture = fixture(domain, &[1], &[], expected);
    // The bytes are as they were, whatever the call before wrote; and the thread, which chose for
    // itself at its first call, steps through this way.
    fixture.prepare = match vectors {
        Vectors::Sse2 => |domain| prepare(domain, Vectors::Sse2),
        Vectors::Avx2 => |domain| prepare(domain, Vectors::best()),
    };
    fixture
}

fn prepare(domain: &Domain, vectors: Vectors) {
    domain.reset().unwrap();
    choose_memory_gate(vectors, BY_STRING);
}

pub const RETURNS: Expected = Expected::Integer(42);
pub const LEAVES: Expected = Expected::Fault(FaultKind::NullPointer);
pub const FAULTS: Expected = Expected::Fault(FaultKind::HeapLimit);
