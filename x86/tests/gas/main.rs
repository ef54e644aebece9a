//! Every method against gas and iced: the text of an instruction, which the test makes on its own,
//! becomes the method's bytes when gas assembles it, and the bytes become the text when iced reads
//! them. Over all registers, widths, displacements' sizes, and conditions.

mod support;

use postern_x86::{
    Alu, Assembler, Cond, FloatOp, Gpr, Precision, Rm, Scale, Shift, Symbol, Width, Xmm,
};
use support::*;

/// All registers and [`memories`], with their texts.
fn operands(width: Width) -> Vec<(Rm<Gpr>, String)> {
    let registers = Gpr::ALL.map(|r| (Rm::Reg(r), gpr(r, width)));
    let memories = memories().into_iter().map(|(m, text)| (Rm::Mem(m), text));
    registers.into_iter().chain(memories).collect()
}

fn vectors() -> Vec<(Rm<Xmm>, String)> {
    let registers = Xmm::ALL.map(|r| (Rm::Reg(r), xmm(r)));
    let memories = memories().into_iter().map(|(m, text)| (Rm::Mem(m), text));
    registers.into_iter().chain(memories).collect()
}

/// Each pair of registers, and each memory operand with some register.
fn pairs<R: Copy>(operands: Vec<(Rm<R>, String)>) -> Vec<(u8, Rm<R>, String)> {
    let mut list = Vec::new();
    for (number, (rm, text)) in operands.into_iter().enumerate() {
        match rm {
            Rm::Reg(_) => list.extend((0..16).map(|register| (register, rm, text.clone()))),
            Rm::Mem(_) => list.push((number as u8 & 15, rm, text)),
        }
    }
    list
}

/// An instruction that reads register or memory and writes a register: its name, `from` the width
/// of the one to the other.
fn reads(cases: &mut Cases, name: &str, from: Width, to: Width, method: Method) {
    for (register, rm, text) in pairs(operands(from)) {
        let register = Gpr::from_number(register);
        let text = format!("{name} {text},{}", gpr(register, to));
        cases.add(text, |asm| method(asm, to, register, rm)).load();
    }
}

type Method = fn(&mut Assembler, Width, Gpr, Rm<Gpr>);

/// The same of vector registers.
fn reads_vector(cases: &mut Cases, name: &str, method: impl Fn(&mut Assembler, Xmm, Rm<Xmm>)) {
    for (register, rm, text) in pairs(vectors()) {
        let register = Xmm::from_number(register);
        let text = format!("{name} {text},{}", xmm(register));
        cases.add(text, |asm| method(asm, register, rm)).load();
    }
}

/// An instruction with register or memory as its only operand, or its only one besides a constant.
fn modifies(cases: &mut Cases, name: &str, width: Width, method: impl Fn(&mut Assembler, Rm<Gpr>)) {
    for (rm, text) in operands(width) {
        cases.add(format!("{name} {text}"), |asm| method(asm, rm));
    }
}

fn named(name: &str, width: Width) -> String {
    format!("{name}{}", suffix(width))
}

fn is_accumulator(rm: Rm<Gpr>) -> bool {
    rm == Rm::Reg(Gpr::Rax)
}

const ALU: [(Alu, &str); 8] = [
    (Alu::Add, "add"),
    (Alu::Or, "or"),
    (Alu::Adc, "adc"),
    (Alu::Sbb, "sbb"),
    (Alu::And, "and"),
    (Alu::Sub, "sub"),
    (Alu::Xor, "xor"),
    (Alu::Cmp, "cmp"),
];

const SHIFTS: [(Shift, &str); 5] = [
    (Shift::Rol, "rol"),
    (Shift::Ror, "ror"),
    (Shift::Shl, "shl"),
    (Shift::Shr, "shr"),
    (Shift::Sar, "sar"),
];

const PRECISIONS: [(Precision, &str); 2] = [(Precision::Single, "ss"), (Precision::Double, "sd")];

/// Constants of every size, and those at the borders.
fn constants(width: Width) -> Vec<i32> {
    let mut list = vec![0, 1, -1, 127, -128];
    if width >= Width::Word {
        list.extend([128, -129, 0x7fff, -0x8000]);
    }
    if width >= Width::Dword {
        list.extend([0x8000, i32::MAX, i32::MIN]);
    }
    list
}

#[test]
fn every_memory_operand() {
    let mut cases = Cases::default();
    let scales = [Scale::One, Scale::Two, Scale::Four, Scale::Eight];
    let mut indices = vec![None];
    indices.extend(indexes().flat_map(|index| scales.map(|scale| Some((index, scale)))));
    let bases: Vec<Option<Gpr>> = [None].into_iter().chain(Gpr::ALL.map(Some)).collect();
    let mut number = 0;
    for space in SPACES {
        for disp in DISPLACEMENTS {
            for base in &bases {
                for index in &indices {
                    let (mem, text) = memory(*base, *index, disp, space);
                    let register = Gpr::from_number(number);
                    number = (number + 1) % 16;
                    let text = format!("movl {text},{}", gpr(register, Width::Dword));
                    let case = cases.add(text, |asm| asm.mov(Width::Dword, register, mem));
                    if base.is_none() && index.is_none() {
                        let at = match space.addr32 {
                            true => u64::from(disp as u32),
                            false => i64::from(disp) as u64,
                        };
                        let register = gpr(register, Width::Dword);
                        case.read_as(format!("movl {}{at},{register}", space.segment));
                    }
                }
            }
            let (mem, text) = rip(disp, space);
            cases.add(format!("movl {text},%ecx"), |asm| {
                asm.mov(Width::Dword, Gpr::Rcx, mem)
            });
        }
    }
    assert!(cases.check().is_empty());
}

#[test]
fn displacements_of_symbols() {
    let mut cases = Cases::default();
    for disp in DISPLACEMENTS {
        for base in Gpr::ALL {
            for index in [None, Some((Gpr::R12, Scale::Two))] {
                let (mem, text) = memory(Some(base), index, disp, WINDOW);
                let mem = mem.symbol(Symbol::new(7));
                // With a displacement of 0, gas needs to be told so in words.
                let text = format!("movl {text},%eax");
                cases
                    .add(text, |asm| asm.mov(Width::Dword, Gpr::Rax, mem))
                    .disp32();
            }
        }
    }
    assert!(cases.check().is_empty());
}

#[test]
fn moves() {
    let mut cases = Cases::default();
    for width in WIDTHS {
        reads(
            &mut cases,
            &named("mov", width),
            width,
            width,
            |asm, width, dst, src| {
                asm.mov(width, dst, src);
            },
        );
        for (register, rm, text) in pairs(operands(width)) {
            let register = Gpr::from_number(register);
            let text = format!("{} {},{text}", named("mov", width), gpr(register, width));
            cases.add(text, |asm| asm.mov_mr(width, rm, register));
        }
        for (rm, operand) in operands(width) {
            for imm in constants(width) {
                let text = format!("{} ${imm},{operand}", named("mov", width));
                let short = matches!(rm, Rm::Reg(_)) && width != Width::Qword;
                cases
                    .add(text, |asm| asm.mov_mi(width, rm, imm))
                    .except(short, Exception::MovImmediate);
            }
        }
    }
    for register in Gpr::ALL {
        for imm in [0, 1, u32::MAX] {
            let text = format!("movl ${},{}", imm as i32, gpr(register, Width::Dword));
            cases.add(text.clone(), |asm| asm.mov_imm32(register, imm));
            cases.add(text.clone(), |asm| asm.mov_imm(register, imm.into()));
            cases.add(text, |asm| {
                asm.mov_symbol(register, Symbol::new(1).unwrap(), imm as i32)
            });
        }
        let whole = gpr(register, Width::Qword);
        for imm in [-1, i64::from(i32::MIN)] {
            let text = format!("movq ${imm},{whole}");
            cases.add(text, |asm| asm.mov_imm(register, imm));
        }
        for imm in [0, i64::from(i32::MIN) - 1, 1 << 32, i64::MAX, i64::MIN] {
            let text = format!("movabsq ${imm},{whole}");
            cases.add(text.clone(), |asm| asm.mov_imm64(register, imm as u64));
            if imm != 0 {
                cases.add(text, |asm| asm.mov_imm(register, imm));
            }
        }
    }
    let made = cases.check();
    assert_eq!(
        made.into_keys().collect::<Vec<_>>(),
        [Exception::MovImmediate]
    );
}

#[test]
fn moves_that_extend() {
    let mut cases = Cases::default();
    for to in WIDE {
        let name = |name| format!("{name}b{}", suffix(to));
        reads(
            &mut cases,
            &name("movz"),
            Width::Byte,
            to,
            |asm, to, dst, src| {
                asm.movzx8(to, dst, src);
            },
        );
        reads(
            &mut cases,
            &name("movs"),
            Width::Byte,
            to,
            |asm, to, dst, src| {
                asm.movsx8(to, dst, src);
            },
        );
    }
    for to in INTEGERS {
        let name = |name| format!("{name}w{}", suffix(to));
        reads(
            &mut cases,
            &name("movz"),
            Width::Word,
            to,
            |asm, to, dst, src| {
                asm.movzx16(to, dst, src);
            },
        );
        reads(
            &mut cases,
            &name("movs"),
            Width::Word,
            to,
            |asm, to, dst, src| {
                asm.movsx16(to, dst, src);
            },
        );
    }
    reads(
        &mut cases,
        "movslq",
        Width::Dword,
        Width::Qword,
        |asm, _, dst, src| {
            asm.movsxd(dst, src);
        },
    );
    assert!(cases.check().is_empty());
}

#[test]
fn addresses() {
    let mut cases = Cases::default();
    for width in WIDE {
        for (number, (mem, text)) in memories().into_iter().enumerate() {
            // Nobody asks for the base of a segment here.
            if text.contains("%gs:") {
                continue;
            }
            let register = Gpr::from_number(number as u8);
            let text = format!("{} {text},{}", named("lea", width), gpr(register, width));
            cases.add(text, |asm| asm.lea(width, register, mem));
        }
    }
    assert!(cases.check().is_empty());
}

#[test]
fn arithmetic() {
    let mut cases = Cases::default();
    for width in WIDTHS {
        for (op, name) in ALU {
            let name = named(name, width);
            for (register, rm, text) in pairs(operands(width)) {
                let register = Gpr::from_number(register);
                let other = gpr(register, width);
                cases
                    .add(format!("{name} {text},{other}"), |asm| {
                        asm.alu(op, width, register, rm)
                    })
                    .load();
                cases.add(format!("{name} {other},{text}"), |asm| {
                    asm.alu_mr(op, width, rm, register)
                });
            }
            for (rm, operand) in operands(width) {
                for imm in constants(width) {
                    let text = format!("{name} ${imm},{operand}");
                    cases
                        .add(text, |asm| asm.alu_mi(op, width, rm, imm))
                        .except(is_accumulator(rm), Exception::Accumulator);
                }
            }
        }
    }
    let made = cases.check();
    assert_eq!(
        made.into_keys().collect::<Vec<_>>(),
        [Exception::Accumulator]
    );
}

#[test]
fn named_arithmetic() {
    macro_rules! same {
        ($($op:ident $name:ident $mr:ident $mi:ident)*) => {$(
            let (mut general, mut named) = (Assembler::new(), Assembler::new());
            general.alu(Alu::$op, Width::Word, Gpr::Rax, Gpr::R9);
            named.$name(Width::Word, Gpr::Rax, Gpr::R9);
            general.alu_mr(Alu::$op, Width::Qword, Gpr::Rax, Gpr::R9);
            named.$mr(Width::Qword, Gpr::Rax, Gpr::R9);
            general.alu_mi(Alu::$op, Width::Byte, Gpr::Rsi, -7);
            named.$mi(Width::Byte, Gpr::Rsi, -7);
            assert_eq!(general.code(), named.code());
        )*};
    }
    same! { Add add add_mr add_mi Or or or_mr or_mi And and and_mr and_mi }
    same! { Sub sub sub_mr sub_mi Xor xor xor_mr xor_mi Cmp cmp cmp_mr cmp_mi }
}

#[test]
fn tests_of_bits() {
    let mut cases = Cases::default();
    for width in WIDTHS {
        let name = named("test", width);
        for (register, rm, text) in pairs(operands(width)) {
            let register = Gpr::from_number(register);
            let text = format!("{name} {},{text}", gpr(register, width));
            cases.add(text, |asm| asm.test(width, rm, register));
        }
        for (rm, operand) in operands(width) {
            for imm in constants(width) {
                cases
                    .add(format!("{name} ${imm},{operand}"), |asm| {
                        asm.test_mi(width, rm, imm)
                    })
                    .except(is_accumulator(rm), Exception::Accumulator);
            }
        }
    }
    let made = cases.check();
    assert_eq!(
        made.into_keys().collect::<Vec<_>>(),
        [Exception::Accumulator]
    );
}

#[test]
fn shifts() {
    let mut cases = Cases::default();
    for width in WIDTHS {
        for (op, name) in SHIFTS {
            let name = named(name, width);
            for (rm, operand) in operands(width) {
                for count in [0, 1, 5, 63] {
                    cases
                        .add(format!("{name} ${count},{operand}"), |asm| {
                            asm.shift(op, width, rm, count)
                        })
                        .except(count == 1, Exception::ShiftByOne);
                }
                cases.add(format!("{name} $1,{operand}"), |asm| {
                    asm.shift_1(op, width, rm)
                });
                cases.add(format!("{name} %cl,{operand}"), |asm| {
                    asm.shift_cl(op, width, rm)
                });
            }
        }
    }
    let made = cases.check();
    assert_eq!(
        made.into_keys().collect::<Vec<_>>(),
        [Exception::ShiftByOne]
    );
}

#[test]
fn products_and_quotients() {
    let mut cases = Cases::default();
    for width in WIDTHS {
        for (name, method) in [
            ("not", Assembler::not as fn(&mut Assembler, Width, Rm<Gpr>)),
            ("neg", Assembler::neg),
            ("mul", Assembler::mul),
            ("div", Assembler::div),
            ("idiv", Assembler::idiv),
        ] {
            modifies(&mut cases, &named(name, width), width, |asm, rm| {
                method(asm, width, rm)
            });
        }
    }
    for width in WIDE {
        let name = named("imul", width);
        reads(&mut cases, &name, width, width, |asm, width, dst, src| {
            asm.imul(width, dst, src);
        });
        for (register, rm, operand) in pairs(operands(width)) {
            let register = Gpr::from_number(register);
            for imm in constants(width) {
                let text = match rm == Rm::Reg(register) {
                    true => format!("{name} ${imm},{operand}"),
                    false => format!("{name} ${imm},{operand},{}", gpr(register, width)),
                };
                cases.add(text.clone(), |asm| asm.imul_imm(width, register, rm, imm));
                cases
                    .add(text, |asm| asm.imul_imm32(width, register, rm, imm))
                    .except(i8::try_from(imm).is_ok(), Exception::ShortConstant);
            }
        }
    }
    let made = cases.check();
    assert_eq!(
        made.into_keys().collect::<Vec<_>>(),
        [Exception::ShortConstant]
    );
}

#[test]
fn conditions() {
    let mut cases = Cases::default();
    for (cond, suffix) in Cond::TABLE {
        for (rm, operand) in operands(Width::Byte) {
            cases
                .add(format!("set{suffix} {operand}"), |asm| asm.set(cond, rm))
                .read_as(format!("set{suffix}b {operand}"));
        }
        for width in WIDE {
            let name = named(&format!("cmov{suffix}"), width);
            for (register, rm, text) in pairs(operands(width)) {
                let register = Gpr::from_number(register);
                let text = format!("{name} {text},{}", gpr(register, width));
                cases.add(text, |asm| asm.cmov(cond, width, register, rm));
            }
        }
    }
    assert!(cases.check().is_empty());
}

#[test]
fn what_has_no_width() {
    let mut cases = Cases::default();
    for width in INTEGERS {
        for register in Gpr::ALL {
            let text = format!("{} {}", named("bswap", width), gpr(register, width));
            cases.add(text, |asm| asm.bswap(width, register));
        }
    }
    for (rm, operand) in operands(Width::Qword) {
        cases.add(format!("callq *{operand}"), |asm| asm.call_rm(rm));
        cases.add(format!("jmpq *{operand}"), |asm| asm.jmp_rm(rm));
    }
    for (mem, operand) in memories() {
        cases.add(format!("prefetcht0 {operand}"), |asm| asm.prefetch(mem));
    }
    cases.add("cltd".to_owned(), Assembler::cdq);
    cases.add("cqto".to_owned(), Assembler::cqo);
    cases.add("retq".to_owned(), Assembler::ret);
    cases.add("ud2".to_owned(), Assembler::ud2);
    cases.add("int3".to_owned(), Assembler::int3);
    cases.add("endbr64".to_owned(), Assembler::endbr64);
    assert!(cases.check().is_empty());
}

#[test]
fn floating_point() {
    const OPS: [(FloatOp, &str); 7] = [
        (FloatOp::Sqrt, "sqrt"),
        (FloatOp::Add, "add"),
        (FloatOp::Mul, "mul"),
        (FloatOp::Sub, "sub"),
        (FloatOp::Min, "min"),
        (FloatOp::Div, "div"),
        (FloatOp::Max, "max"),
    ];
    let mut cases = Cases::default();
    for (precision, suffix) in PRECISIONS {
        for (op, name) in OPS {
            reads_vector(&mut cases, &format!("{name}{suffix}"), |asm, dst, src| {
                asm.float(op, precision, dst, src);
            });
        }
        reads_vector(&mut cases, &format!("ucomi{suffix}"), |asm, a, b| {
            asm.ucomis(precision, a, b);
        });
        for (number, (mem, text)) in memories().into_iter().enumerate() {
            let register = Xmm::from_number(number as u8);
            let name = format!("mov{suffix}");
            cases.add(format!("{name} {text},{}", xmm(register)), |asm| {
                asm.mov_scalar(precision, register, mem)
            });
            cases.add(format!("{name} {},{text}", xmm(register)), |asm| {
                asm.mov_scalar_mr(precision, mem, register)
            });
        }
        for width in INTEGERS {
            let name = format!("cvtsi2{suffix}{}", support::suffix(width));
            for (register, rm, text) in pairs(operands(width)) {
                let register = Xmm::from_number(register);
                cases.add(format!("{name} {text},{}", xmm(register)), |asm| {
                    asm.convert_from_int(precision, width, register, rm)
                });
            }
            let name = format!("cvtt{suffix}2si");
            for (register, rm, text) in pairs(vectors()) {
                let register = Gpr::from_number(register);
                cases.add(format!("{name} {text},{}", gpr(register, width)), |asm| {
                    asm.truncate_to_int(precision, width, register, rm)
                });
            }
        }
    }
    reads_vector(&mut cases, "cvtss2sd", |asm, dst, src| {
        asm.convert(Precision::Double, dst, src);
    });
    reads_vector(&mut cases, "cvtsd2ss", |asm, dst, src| {
        asm.convert(Precision::Single, dst, src);
    });
    assert!(cases.check().is_empty());
}

#[test]
fn vectors_whole_and_half() {
    let mut cases = Cases::default();
    for (name, method) in [
        (
            "movaps",
            Assembler::movaps as fn(&mut Assembler, Xmm, Rm<Xmm>),
        ),
        ("movups", Assembler::movups),
        ("xorps", Assembler::xorps),
        ("movq", Assembler::movq),
    ] {
        reads_vector(&mut cases, name, method);
    }
    for (number, (mem, text)) in memories().into_iter().enumerate() {
        let register = Xmm::from_number(number as u8);
        cases.add(format!("movups {},{text}", xmm(register)), |asm| {
            asm.movups_mr(mem, register)
        });
        cases.add(format!("movq {},{text}", xmm(register)), |asm| {
            asm.movq_mr(mem, register)
        });
    }
    for (width, name) in [(Width::Dword, "movd"), (Width::Qword, "movq")] {
        for (register, rm, text) in pairs(operands(width)) {
            let register = Xmm::from_number(register);
            let memory = matches!(rm, Rm::Mem(_)) && width == Width::Qword;
            cases
                .add(format!("{name} {text},{}", xmm(register)), |asm| {
                    asm.mov_from_int(width, register, rm)
                })
                .except(memory, Exception::VectorMove);
            cases
                .add(format!("{name} {},{text}", xmm(register)), |asm| {
                    asm.mov_to_int(width, rm, register)
                })
                .except(memory, Exception::VectorMove);
        }
    }
    let made = cases.check();
    assert_eq!(
        made.into_keys().collect::<Vec<_>>(),
        [Exception::VectorMove]
    );
}
