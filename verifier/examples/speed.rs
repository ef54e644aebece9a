//! How fast the verifier judges text: `cargo run --release -p postern-verifier --example speed
//! [TEXT]`.
//!
//! TEXT is a file of bare machine code without calls to gate slots; without it, a text with the
//! instruction mix of confined gcc output is made up.

use std::time::Instant;

use postern_verifier::{Layout, Profile, buffer_len, verify};

fn main() {
    let text = match std::env::args().nth(1) {
        Some(path) => std::fs::read(path).expect("the file of machine code"),
        None => invent(1 << 19),
    };
    let layout = Layout::new(4096);
    let mut buffer = vec![0; buffer_len(text.len())];
    let facts = verify(&text, &layout, Profile::User, &mut buffer).expect("accepted text");
    let mut best = f64::INFINITY;
    let mut cycle = f64::INFINITY;
    for _ in 0..200 {
        cycle = cycle.min(chain());
        let start = Instant::now();
        std::hint::black_box(verify(
            std::hint::black_box(&text),
            &layout,
            Profile::User,
            &mut buffer,
        ))
        .expect("the same");
        best = best.min(start.elapsed().as_secs_f64());
    }
    let instructions = f64::from(facts.instructions);
    println!(
        "{} bytes, {:.2} bytes an instruction: {:.0} MB/s, {:.1} cycles an instruction at {:.2} GHz",
        text.len(),
        text.len() as f64 / instructions,
        text.len() as f64 / best / 1e6,
        best / cycle / instructions,
        1e-9 / cycle,
    );
}

/// Seconds of a cycle: one step of a chain of dependent additions.
fn chain() -> f64 {
    let start = Instant::now();
    let mut sum = std::hint::black_box(1u64);
    for _ in 0..1000 {
        for _ in 0..100 {
            sum = sum.wrapping_add(std::hint::black_box(sum));
        }
    }
    std::hint::black_box(sum);
    start.elapsed().as_secs_f64() / 100_000.0
}

/// Instructions with how often each comes, in a thousand.
const MIX: &[(u32, &[u8])] = &[
    (60, &[0x89, 0xc3]),                                           // mov eax, ebx
    (60, &[0x48, 0x89, 0xdf]),                                     // mov rbx, rdi
    (60, &[0x65, 0x67, 0x8b, 0x47, 0x08]),                         // mov gs:8(edi), eax
    (60, &[0x65, 0x67, 0x48, 0x8b, 0x53, 0x10]),                   // mov gs:16(ebx), rdx
    (40, &[0x65, 0x67, 0x49, 0x8b, 0x47, 0x18]),                   // mov gs:24(r15d), rax
    (30, &[0x65, 0x67, 0x41, 0x0f, 0xb6, 0x14, 0x04]),             // movzx gs:(r12d,eax), edx
    (20, &[0x65, 0x67, 0x8b, 0x04, 0x85, 0x00, 0x30, 0x04, 0x00]), // mov gs:table(,eax,4), eax
    (50, &[0x65, 0x67, 0x49, 0x89, 0x5f, 0x28]),                   // mov rbx, gs:40(r15d)
    (40, &[0x65, 0x67, 0x89, 0x03]),                               // mov eax, gs:(ebx)
    (20, &[0x65, 0x67, 0xc7, 0x43, 0x04, 1, 0, 0, 0]),             // mov 1, gs:4(ebx)
    (30, &[0x31, 0xc0]),                                           // xor eax, eax
    (30, &[0x48, 0x83, 0xc3, 0x08]),                               // add 8, rbx
    (25, &[0x01, 0xd0]),                                           // add edx, eax
    (40, &[0x85, 0xc0]),                                           // test eax, eax
    (30, &[0x48, 0x39, 0xd8]),                                     // cmp rbx, rax
    (30, &[0x83, 0xf8, 0x05]),                                     // cmp 5, eax
    (20, &[0x3d, 0xff, 0x0f, 0, 0]),                               // cmp 4095, eax
    (20, &[0xc1, 0xe0, 0x04]),                                     // shl 4, eax
    (20, &[0x0f, 0xb6, 0xc0]),                                     // movzx al, eax
    (40, &[0x8d, 0x14, 0x85, 0x01, 0, 0, 0]),                      // lea 1(,rax,4), edx
    (30, &[0x4d, 0x8d, 0x7f, 0xc8]),                               // lea -56(r15), r15
    (20, &[0xb8, 0x2a, 0, 0, 0]),                                  // mov 42, eax
    (10, &[0x65, 0x67, 0x0f, 0x10, 0x07]),                         // movups gs:(edi), xmm0
    (10, &[0x65, 0x67, 0xf2, 0x0f, 0x10, 0x47, 0x08]),             // movsd gs:8(edi), xmm0
    (10, &[0xf2, 0x0f, 0x59, 0xc1]),                               // mulsd xmm1, xmm0
    (5, &[0x66, 0x0f, 0xef, 0xc0]),                                // pxor xmm0, xmm0
    (15, &[0xc3]),                                                 // ret
    (10, &[0x0f, 0x1f, 0x40, 0x00]),                               // nop
    (5, &[0x0f, 0x1f, 0x84, 0x20, 0, 0, 0, 0]),                    // landing pad
];

/// About `size` bytes with that mix, branches between their instructions, and a few guarded
/// sequences.
fn invent(size: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(size + 64);
    let mut recent = [0usize; 64];
    let mut numbers = fastrand::Rng::with_seed(1);
    let mut count = 0;
    while text.len() < size {
        let random = numbers.u32(..);
        recent[count % 64] = text.len();
        count += 1;
        let back = recent[(random >> 20) as usize % 64];
        match random % 1000 {
            0..90 if text.len() - back < 100 => {
                let at = text.len();
                text.extend([
                    0x74 + (random >> 10 & 1) as u8,
                    back.wrapping_sub(at + 2) as u8,
                ]);
            }
            90..130 => {
                let at = text.len();
                text.extend([0x0f, 0x84]);
                text.extend((back.wrapping_sub(at + 6) as i32).to_le_bytes());
            }
            130..180 => {
                let at = text.len();
                text.push(0xe8);
                text.extend((back.wrapping_sub(at + 5) as i32).to_le_bytes());
            }
            180..185 => {
                text.extend([
                    0x41, 0x89, 0xc3, 0x65, 0x67, 0x49, 0x81, 0x3b, 0x0f, 0x1f, 0x84, 0x20, 0x75,
                    13,
                ]);
                text.extend([
                    0x65, 0x67, 0x4c, 0x0b, 0x1c, 0x25, 0, 0, 1, 0, 0x41, 0xff, 0xe3, 0xcc,
                ]);
            }
            _ => {
                let total: u32 = MIX.iter().map(|(weight, _)| weight).sum();
                let mut pick = numbers.u32(..total);
                for (weight, bytes) in MIX {
                    if pick < *weight {
                        text.extend(*bytes);
                        break;
                    }
                    pick -= weight;
                }
            }
        }
    }
    text.push(0xcc);
    text
}
