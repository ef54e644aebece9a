//! What an extension finds in registers: its arguments, its own stack pointer and entry, and zeros;
//! at entry, and after a service.
//!
//! The image's function stores every register that its class of code can read, calls a service that
//! leaves secrets everywhere, and stores them all again.

use postern::{Caller, Domain, Func, FuncType, Image, Limits, Offset, Placement};
use postern_image::ImageBuilder;
use postern_soundness::host::{self, HostCall, SCRIBBLED, is_secret};

/// Bytes of one dump: sixteen general registers, then sixteen vector registers of 32 bytes.
const DUMP: usize = 128 + 16 * 32;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
    Integer,
    Sse,
    Avx,
    X87,
}

/// Stores all registers at `to`. Nothing is changed.
fn dump(class: Class, to: u32) -> Vec<u8> {
    let mut code = Vec::new();
    for i in (0..16u8).filter(|&i| i != 4) {
        code.extend([
            0x65,
            0x67,
            0x48 | i >> 3 << 2,
            0x89,
            0x04 | (i & 7) << 3,
            0x25,
        ]);
        code.extend((to + 8 * u32::from(i)).to_le_bytes());
    }
    for i in 0..16u8 {
        match class {
            Class::Integer | Class::X87 => break,
            Class::Sse => code.extend([0x65, 0x67, 0x40 | i >> 3 << 2, 0x0f, 0x11]),
            Class::Avx => code.extend([0x65, 0x67, 0xc5, 0xfc & !(i >> 3 << 7), 0x11]),
        }
        code.extend([0x04 | (i & 7) << 3, 0x25]);
        code.extend((to + 128 + 32 * u32::from(i)).to_le_bytes());
    }
    code
}

struct Subject {
    domain: Domain,
    data: u32,
    class: Class,
    /// What a call went through, for messages.
    name: String,
}

impl Subject {
    fn new(class: Class, signature: &str, result: char, depth: Option<u32>) -> Subject {
        let service = format!("{result}(i)");
        let build = |data: u32| {
            let mut builder = ImageBuilder::new([]);
            builder.import("scribble", Some(service.parse().unwrap()));
            let mut text = dump(class, data);
            if class == Class::X87 {
                text.extend([0xd9, 0xe8, 0xd9, 0xe8]); // fld1, twice: the stack stays dirty
            }
            let end = text.len() as u32 + 5;
            text.push(0xe8);
            text.extend(
                0x1_1000u32
                    .wrapping_sub(builder.text_offset() + end)
                    .to_le_bytes(),
            );
            text.extend(dump(class, data + DUMP as u32));
            text.push(0xc3);
            builder.text(text).data(vec![0xff; 2 * DUMP], 0).x87(true);
            builder.export("f", 0, Some(signature.parse().unwrap()));
            builder
        };
        let data = build(0x10_0000).layout().unwrap().data;
        let image = Image::from_bytes(&build(data).build().unwrap()).unwrap();
        let mut limits = Limits::default();
        limits.call_depth = depth;
        // SAFETY: the function takes anything, from any thread, and only returns.
        let domain = unsafe {
            Domain::builder(&image).service_c(
                "scribble",
                host::scribbler(),
                service.parse().unwrap(),
                4096,
            )
        };
        Subject {
            // Its base is looked at, so it must not be moved.
            domain: domain
                .limits(limits)
                .placement(Placement::Cold)
                .build()
                .unwrap(),
            data,
            class,
            name: format!("{class:?} {signature} service {service} depth {depth:?}"),
        }
    }

    /// Checks both dumps. `integers` and `floats` are what the argument registers may hold.
    fn check(&self, integers: &[u64], floats: &[u64], result: char) {
        let bytes = self.domain.read_vec(Offset(self.data), 2 * DUMP).unwrap();
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|c| u64::from_le_bytes(c.try_into().unwrap()))
            .collect();
        let (entry, after) = words.split_at(DUMP / 8);
        const NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15",
        ];
        const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];
        for (i, name) in NAMES.iter().enumerate() {
            let argument = ARGUMENTS
                .iter()
                .position(|&a| a == i)
                .and_then(|a| integers.get(a));
            let expected = match i {
                4 => continue,
                // The function's own address, and the data stack.
                11 => self.domain.base() + 0x1_2000,
                15 => entry[15] & 0xffff_fff0,
                _ => argument.copied().unwrap_or(0),
            };
            assert_eq!(entry[i], expected, "{}: {name} at entry", self.name);
            let mask = match result {
                'i' => u64::from(u32::MAX),
                'l' => u64::MAX,
                _ => 0,
            };
            let expected = match i {
                0 => SCRIBBLED & mask,
                15 => entry[15],
                _ => 0,
            };
            assert_eq!(
                after[i], expected,
                "{}: {name} after the service",
                self.name
            );
        }
        let lanes = match self.class {
            Class::Integer | Class::X87 => 0,
            Class::Sse => 2,
            Class::Avx => 4,
        };
        for (i, (before, behind)) in entry[16..].chunks(4).zip(after[16..].chunks(4)).enumerate() {
            for lane in 0..lanes {
                let expected = if lane == 0 {
                    floats.get(i).copied().unwrap_or(0)
                } else {
                    0
                };
                assert_eq!(
                    before[lane], expected,
                    "{}: xmm{i}[{lane}] at entry",
                    self.name
                );
                let expected = match (i, lane, result) {
                    (0, 0, 'f') => u64::from(SCRIBBLED as u32),
                    (0, 0, 'd') => SCRIBBLED,
                    _ => 0,
                };
                assert_eq!(
                    behind[lane], expected,
                    "{}: xmm{i}[{lane}] after the service",
                    self.name
                );
            }
        }
        self.domain.reset().unwrap();
    }

    fn call_from_c(&self, integers: &[u64], floats: &[f64]) {
        let pointer = self
            .domain
            .function_pointer("f", &self.domain.signature("f").unwrap())
            .unwrap();
        let mut call = HostCall::new(pointer, integers, floats);
        // SAFETY: the stub takes all arguments in registers.
        unsafe { call.run() };
        if let Err(what) = call.intact() {
            panic!("{}: {what}", self.name);
        }
        assert!(
            postern::last_error().is_none(),
            "{}: {:?}",
            self.name,
            postern::last_error()
        );
    }

    fn func<F: FuncType>(&self) -> Func<F> {
        self.domain.func::<F>("f").unwrap()
    }
}

const CLASSES: [Class; 4] = [Class::Integer, Class::Sse, Class::Avx, Class::X87];
/// A word none of whose halves is zero.
const WORD: u64 = 0x1234_5678_9abc_def0;

#[test]
fn from_c_with_registers_full_of_secrets() {
    for class in CLASSES {
        for depth in [None, Some(16)] {
            for result in ['i', 'l', 'v', 'd', 'f'] {
                // Every argument is cut to its type, although the caller left the upper bits dirty.
                let subject = Subject::new(class, "i(bHIpl)", result, depth);
                for _ in 0..3 {
                    subject.call_from_c(&[WORD; 5], &[]);
                    subject.check(&[0xf0, 0xdef0, 0x9abc_def0, 0x9abc_def0, WORD], &[], result);
                }
                let subject = Subject::new(class, "v(ifdi)", result, depth);
                for _ in 0..3 {
                    let float = f64::from_bits(WORD);
                    subject.call_from_c(&[WORD; 2], &[float; 2]);
                    subject.check(&[0x9abc_def0; 2], &[0x9abc_def0, WORD], result);
                }
            }
        }
    }
}

#[test]
fn from_rust() {
    for class in CLASSES {
        for depth in [None, Some(16)] {
            let subject = Subject::new(class, "i(iIl)", 'i', depth);
            for _ in 0..3 {
                subject
                    .func::<fn(i32, u32, i64) -> i32>()
                    .call(7, 8, 9)
                    .unwrap();
                subject.check(&[7, 8, 9], &[], 'i');
            }
            let subject = Subject::new(class, "v(fid)", 'd', depth);
            for _ in 0..3 {
                subject
                    .func::<fn(f32, i32, f64)>()
                    .call(1.5, 6, 2.5)
                    .unwrap();
                subject.check(&[6], &[1.5f32.to_bits().into(), 2.5f64.to_bits()], 'd');
            }
        }
    }
}

/// A nested call finds no more than an outer one, and the outer one finds nothing of the nested
/// one.
#[test]
fn nested() {
    for class in CLASSES {
        let inner = Subject::new(class, "i(i)", 'i', None);
        let f = inner.func::<fn(i32) -> i32>();
        let text = [0xe8, 0xfb, 0xef, 0xff, 0xff, 0xc3];
        let mut builder = ImageBuilder::new(text);
        builder.import("s", Some("i(i)".parse().unwrap()));
        builder.export("f", 0, Some("i(i)".parse().unwrap()));
        let image = Image::from_bytes(&builder.build().unwrap()).unwrap();
        let outer = Domain::builder(&image)
            .service("s", move |_: &Caller<'_>, x: i32| f.call(x + 1).unwrap())
            .build()
            .unwrap();
        for _ in 0..3 {
            let mut call = HostCall::new(
                outer
                    .function_pointer("f", &"i(i)".parse().unwrap())
                    .unwrap(),
                &[WORD & !(1 << 31)],
                &[],
            );
            // SAFETY: the stub takes its argument in a register.
            unsafe { call.run() };
            call.intact().unwrap();
            inner.check(&[0x1abc_def1], &[], 'i');
        }
    }
}

#[test]
fn secrets_are_recognised() {
    assert!(is_secret(SCRIBBLED) && is_secret(0x5ec2_e7aa_aaaa_aaaa) && !is_secret(WORD));
}
