//! The judge as it is linked into the module keeps the rules of the kernel's inside: no vectors, no
//! red zone, no GOT, no branch that is not protected, small frames.

mod machine;

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register,
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
/// `R_X86_64_64`, `PC32`, `PLT32` and `32S`: what addresses of a module's own need. All others look
/// addresses up in a table, or do not reach to where modules lie.
const RELOCATIONS: [u32; 4] = [1, 2, 4, 11];

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
    let overridden = [Register::FS, Register::GS].contains(&instruction.segment_prefix());
    let beyond = |feature: &CpuidFeature| {
        let name = format!("{feature:?}");
        ["FPU", "MMX", "SSE", "AVX", "FXSR", "XSAVE"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    if instruction.cpuid_features().iter().any(beyond) {
        return Some("an instruction of the units that the kernel does not save");
    }
    match instruction.flow_control() {
        _ if overridden => Some("memory of the kernel's thread or processor"),
        FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
            if instruction.op0_kind() != OpKind::NearBranch64 =>
        {
            Some("a branch to somewhere else")
        }
        FlowControl::IndirectCall | FlowControl::IndirectBranch => Some("an unprotected branch"),
        FlowControl::Return => Some("a return past the kernel's thunk"),
        FlowControl::Interrupt if instruction.mnemonic() != Mnemonic::Int3 => Some("an interrupt"),
        _ if instruction.is_privileged() => Some("a privileged instruction"),
        _ if instruction.mnemonic() == Mnemonic::INVALID => Some("no instruction"),
        _ => None,
    }
}

/// What an instruction takes of the stack that is neither a push nor a call, in bytes; more than
/// there is where nobody can tell.
fn taken(instruction: &Instruction) -> i64 {
    let constant = match instruction.op1_kind() {
        OpKind::Immediate8to64 => Some(instruction.immediate8to64()),
        OpKind::Immediate32to64 => Some(instruction.immediate32to64()),
        _ => None,
    };
    match (instruction.mnemonic(), constant) {
        (Mnemonic::Sub, Some(bytes)) => bytes.max(0),
        (Mnemonic::Add, Some(bytes)) => (-bytes).max(0),
        // As many as the alignment has, less one.
        (Mnemonic::And, Some(mask)) => -mask,
        // The end of a function, which gives back what it took.
        (Mnemonic::Mov, _) if instruction.op1_register() == Register::RBP => 0,
        (Mnemonic::Lea, _) if instruction.memory_base() == Register::RBP => 0,
        _ => i64::MAX / 4,
    }
}

/// What a function takes of the stack, and how far below its frame pointer and its stack pointer it
/// looks, all in bytes. All pushes are counted, so the first is never too small. An operand with an
/// index may have a displacement below an array: it tells nothing.
fn frame(function: &[Instruction]) -> (i64, i64, i64) {
    let (mut frame, mut below_pointer, mut below_stack, mut pushed) = (0i64, 0i64, 0i64, 0i64);
    let mut info = InstructionInfoFactory::new();
    for instruction in function {
        let used = info.info(instruction);
        let moves = used.used_registers().iter().any(|used| {
            let written = !matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            written && used.register().full_register() == Register::RSP
        });
        match instruction.flow_control() {
            // Both are there again behind it.
            FlowControl::Call | FlowControl::Return => {}
            _ if instruction.mnemonic() == Mnemonic::Push => pushed += 8,
            _ if instruction.mnemonic() == Mnemonic::Pop => {}
            _ if moves => frame = frame.saturating_add(taken(instruction)),
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
    (frame.saturating_add(pushed), -below_pointer, -below_stack)
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
    println!("{} functions, largest frame {largest}", functions.len());
    wrong.extend(beside_functions(&file));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(functions.len() > 20);
}

/// What of the code belongs to no function and is no fill either.
fn beside_functions(file: &object::File) -> Vec<String> {
    let mut wrong = Vec::new();
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
        let bytes = section.data().expect("its bytes");
        let mut inside = vec![false; bytes.len()];
        let here = file.symbols().filter(|symbol| {
            symbol.kind() == SymbolKind::Text && symbol.section_index() == Some(section.index())
        });
        for symbol in here {
            inside[symbol.address() as usize..][..symbol.size() as usize].fill(true);
        }
        let mut at = 0;
        while at < bytes.len() {
            let end = at
                + inside[at..]
                    .iter()
                    .take_while(|here| **here == inside[at])
                    .count();
            let decoder = Decoder::with_ip(64, &bytes[at..end], at as u64, DecoderOptions::NONE);
            let fill = |i: &Instruction| matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            if !inside[at]
                && let Some(found) = decoder.into_iter().find(|i| !fill(i))
            {
                let name = section.name().unwrap_or("?");
                wrong.push(format!("{name} at {:#x}: code of no function", found.ip()));
            }
            at = end;
        }
    }
    wrong
}

/// Names that others could find instead of the kernel's own.
#[test]
fn the_object_defines_nothing_of_the_kernels() {
    let bytes = judge();
    let file = object::File::parse(&*bytes).expect("an object");
    let global = file
        .symbols()
        .filter(|s| s.is_definition() && s.is_global());
    let names: BTreeSet<&str> = global.filter_map(|symbol| symbol.name().ok()).collect();
    let own = |name: &&&str| name.starts_with("postern_judge_") || name.starts_with("_R");
    let others: Vec<_> = names.iter().filter(|name| !own(name)).collect();
    assert!(others.is_empty() && !names.is_empty(), "{others:?}");
}

/// That a frame is counted right decides whether the test above says anything: code by hand, and
/// what it takes.
#[test]
fn frames_are_counted_however_they_are_taken() {
    let takes = |bytes: &[u8]| {
        let decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
        frame(&decoder.into_iter().collect::<Vec<_>>()).0
    };
    let too_many = i64::MAX / 4;
    assert_eq!(takes(&[0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3]), 8); // push, mov %rsp, %rbp, pop
    assert_eq!(takes(&[0x48, 0x83, 0xec, 0x18]), 0x18); // sub $0x18, %rsp
    assert_eq!(takes(&[0x48, 0x81, 0xec, 0, 8, 0, 0]), 0x800); // sub $0x800, %rsp
    assert_eq!(takes(&[0x48, 0x83, 0xc4, 0x80]), 0x80); // add $-128, %rsp
    assert_eq!(takes(&[0x48, 0x83, 0xe4, 0xc0]), 64); // and $-64, %rsp
    assert_eq!(takes(&[0x48, 0x89, 0xec, 0x48, 0x8d, 0x65, 0xd8]), 0); // mov %rbp; lea -40(%rbp)
    assert!(takes(&[0x48, 0x8d, 0x64, 0x24, 0x80]) >= too_many); // lea -128(%rsp), %rsp
    assert!(takes(&[0x48, 0x29, 0xc4]) >= too_many); // sub %rax, %rsp
    assert!(takes(&[0x48, 0x89, 0xc4]) >= too_many); // mov %rax, %rsp
    assert!(takes(&[0x48, 0x94]) >= too_many); // xchg %rax, %rsp
    assert!(takes(&[0xc8, 0, 8, 0]) >= too_many); // enter
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
        let written = [
            SectionKind::Data,
            SectionKind::UninitializedData,
            SectionKind::Tls,
            SectionKind::UninitializedTls,
            SectionKind::Common,
        ]
        .contains(&section.kind());
        if written && section.size() > 0 {
            wrong.insert(format!("{name} can be written"));
        }
        for (at, relocation) in section.relocations() {
            match relocation.flags() {
                RelocationFlags::Elf { r_type } if RELOCATIONS.contains(&r_type) => {}
                other => {
                    wrong.insert(format!("{name} at {at:#x}: {other:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
