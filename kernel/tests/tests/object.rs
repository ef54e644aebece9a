//! The judge as it is linked into the module keeps the rules of the kernel's inside: no vectors, no
//! red zone, no GOT, no branch that is not protected, small frames.

mod machine;

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind,
    Register,
};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, SectionKind, SymbolKind};

/// Bytes that a function may take of a kernel's stack.
const FRAME: i64 = 1024;
/// What the judge may ask for: the module's functions, the kernel's for memory, and its thunks; not
/// `postern_judge_panicked`, for nothing in it panics.
const IMPORTS: [&str; 6] = [
    "memcpy",
    "memset",
    "memcmp",
    "bcmp",
    "postern_judge_alloc",
    "postern_judge_free",
];
/// `R_X86_64_GOT32` and all others by which code looks addresses up in a table.
const GOT: [u32; 12] = [3, 9, 22, 25, 26, 27, 28, 29, 30, 31, 41, 42];

fn judge() -> Vec<u8> {
    machine::script("judge.sh", &[]);
    std::fs::read(machine::workspace().join("target/kernel/judge.o")).expect("the judge")
}

/// The instructions of each function.
fn functions(file: &object::File) -> BTreeMap<String, Vec<Instruction>> {
    let mut functions = BTreeMap::new();
    let symbols = file
        .symbols()
        .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0);
    for symbol in symbols {
        let section = symbol.section_index().expect("a section");
        let section = file.section_by_index(section).expect("a section");
        let bytes = section.data().expect("its bytes");
        let at = symbol.address() as usize;
        let bytes = &bytes[at..at + symbol.size() as usize];
        let decoder = Decoder::with_ip(64, bytes, symbol.address(), DecoderOptions::NONE);
        functions.insert(
            symbol.name().expect("a name").to_owned(),
            decoder.into_iter().collect(),
        );
    }
    functions
}

/// What is wrong with an instruction wherever it stands.
fn forbidden(instruction: &Instruction, info: &mut InstructionInfoFactory) -> Option<&'static str> {
    let used = info.info(instruction);
    let beyond = |register: Register| {
        register.is_vector_register() || register.is_st() || register.is_mm() || register.is_k()
    };
    if used
        .used_registers()
        .iter()
        .any(|used| beyond(used.register()))
    {
        return Some("a vector register");
    }
    match instruction.flow_control() {
        FlowControl::IndirectCall | FlowControl::IndirectBranch => Some("an unprotected branch"),
        FlowControl::Return => Some("a return past the kernel's thunk"),
        FlowControl::Interrupt if instruction.mnemonic() != Mnemonic::Int3 => Some("an interrupt"),
        _ if instruction.is_privileged() => Some("a privileged instruction"),
        _ if instruction.mnemonic() == Mnemonic::INVALID => Some("no instruction"),
        _ => None,
    }
}

/// What a function takes of the stack, and how far below its frame pointer and its stack pointer it
/// looks, all in bytes. All pushes are counted, so the first is never too small. An operand with an
/// index may have a displacement below an array: it tells nothing.
fn frame(function: &[Instruction]) -> (i64, i64, i64) {
    let (mut frame, mut below_pointer, mut below_stack, mut pushed) = (0i64, 0i64, 0i64, 0i64);
    for instruction in function {
        let immediate = instruction.immediate32to64();
        match instruction.mnemonic() {
            Mnemonic::Push => pushed += 8,
            Mnemonic::Sub if instruction.op0_register() == Register::RSP => {
                let constant = matches!(
                    instruction.op1_kind(),
                    OpKind::Immediate8to64 | OpKind::Immediate32to64
                );
                frame += if constant {
                    immediate.max(instruction.immediate8to64())
                } else {
                    i64::MAX / 2
                };
            }
            _ => {}
        }
        let memory = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
        if memory && instruction.memory_index() == Register::None {
            let displacement = instruction.memory_displacement64() as i64;
            match instruction.memory_base() {
                Register::RBP => below_pointer = below_pointer.min(displacement),
                Register::RSP => below_stack = below_stack.min(displacement),
                _ => {}
            }
        }
    }
    (frame + pushed, -below_pointer, -below_stack)
}

#[test]
fn the_object_keeps_the_rules_of_ring_0() {
    let bytes = judge();
    let file = object::File::parse(&*bytes).expect("an object");
    let functions = functions(&file);
    let (mut wrong, mut info, mut largest) = (Vec::new(), InstructionInfoFactory::new(), 0);
    for (name, function) in &functions {
        for instruction in function {
            if let Some(what) = forbidden(instruction, &mut info) {
                wrong.push(format!("{name} at {:#x}: {what}", instruction.ip()));
            }
        }
        // The frame pointer itself lies above what it points to.
        let (frame, below_pointer, below_stack) = frame(function);
        let frame_pointer = function.iter().any(|i| {
            i.mnemonic() == Mnemonic::Mov
                && i.op0_register() == Register::RBP
                && i.op1_register() == Register::RSP
        });
        if below_stack > 0 || frame_pointer && below_pointer > frame - 8 {
            wrong.push(format!("{name}: uses the red zone"));
        }
        if frame > FRAME {
            wrong.push(format!("{name}: a frame of {frame} bytes"));
        }
        largest = largest.max(frame);
    }
    let code = file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text);
    let told: u64 = code.map(|section| section.size()).sum();
    let seen: u64 = functions.values().flatten().map(|i| i.len() as u64).sum();
    println!(
        "{} functions, {seen} of {told} bytes, largest frame {largest}",
        functions.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The rest is fill between functions.
    assert!(functions.len() > 20 && seen > told - told / 10);
}

#[test]
fn the_object_asks_for_nothing_else() {
    let bytes = judge();
    let file = object::File::parse(&*bytes).expect("an object");
    let mut wrong = BTreeSet::new();
    for symbol in file.symbols().filter(|symbol| symbol.is_undefined()) {
        let name = symbol.name().expect("a name");
        let thunk = name.starts_with("__x86_indirect_thunk_") || name == "__x86_return_thunk";
        if !name.is_empty() && !thunk && !IMPORTS.contains(&name) {
            wrong.insert(format!("asks for {name}"));
        }
    }
    for section in file.sections() {
        let name = section.name().expect("a name");
        let written = [SectionKind::Data, SectionKind::UninitializedData].contains(&section.kind());
        if written && section.size() > 0 {
            wrong.insert(format!("{name} can be written"));
        }
        for (at, relocation) in section.relocations() {
            match relocation.flags() {
                RelocationFlags::Elf { r_type } if !GOT.contains(&r_type) => {}
                other => {
                    wrong.insert(format!("{name} at {at:#x}: {other:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
