//! The kernel as it is linked: no vector registers, no red zone, nothing both writable and
//! executable.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, ObjectSegment, SectionKind, SegmentFlags};
use postern_aegis_machine::{build, symbols};

/// From here on addresses are the kernel's; below is only what runs before there are any.
const KERNEL: u64 = 0xffff_8000_0000_0000;

/// The kernel's file, built.
fn kernel() -> Vec<u8> {
    build::all().expect("it builds");
    build::elf("aegis").expect("the kernel")
}

/// All instructions of the kernel's own addresses.
fn instructions(file: &object::File) -> Vec<Instruction> {
    let sections = file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text && section.address() >= KERNEL);
    let mut found = Vec::new();
    for section in sections {
        let bytes = section.data().expect("its bytes");
        found.extend(Decoder::with_ip(
            64,
            bytes,
            section.address(),
            DecoderOptions::NONE,
        ));
    }
    found
}

/// What is wrong with an instruction.
fn forbidden(instruction: &Instruction) -> Option<&'static str> {
    let units = ["FPU", "MMX", "SSE", "AVX"];
    let vector = instruction.cpuid_features().iter().any(|feature| {
        let name = format!("{feature:?}");
        units.iter().any(|unit| name.starts_with(unit))
    });
    let fences = [Mnemonic::Lfence, Mnemonic::Mfence, Mnemonic::Sfence];
    if vector && !fences.contains(&instruction.mnemonic()) {
        return Some("an instruction of the units that the kernel does not save");
    }
    let memory =
        (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let below = (instruction.memory_displacement64() as i64) < 0;
    let stack = instruction.memory_base() == Register::RSP;
    if memory && stack && below && instruction.mnemonic() != Mnemonic::Lea {
        return Some("memory below the stack pointer, which an interrupt overwrites");
    }
    match instruction.mnemonic() {
        Mnemonic::INVALID => Some("no instruction"),
        Mnemonic::Stac => Some("user memory opened"),
        _ => None,
    }
}

#[test]
fn the_kernel_keeps_its_own_rules() {
    let elf = kernel();
    let file = object::File::parse(&*elf).expect("an ELF file");
    let names = symbols::lines(&elf).expect("its names");
    let found = instructions(&file);
    assert!(found.len() > 5_000, "{} instructions", found.len());
    let wrong: Vec<String> = found
        .iter()
        .filter_map(|instruction| {
            let why = forbidden(instruction)?;
            let (name, offset) = symbols::find(&names, instruction.ip()).unwrap_or(("?", 0));
            Some(format!("{name}+{offset:#x}: {instruction}: {why}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_segment_is_writable_and_executable() {
    let elf = kernel();
    let file = object::File::parse(&*elf).expect("an ELF file");
    let mut executable = 0;
    for segment in file
        .segments()
        .filter(|segment| segment.address() >= KERNEL)
    {
        let SegmentFlags::Elf { p_flags } = segment.flags() else {
            panic!("no ELF file");
        };
        let (write, execute) = (p_flags & 2 != 0, p_flags & 1 != 0);
        assert!(
            !(write && execute),
            "the segment at {:#x}",
            segment.address()
        );
        executable += u32::from(execute);
    }
    assert_eq!(executable, 1);
}

/// Each of the rules finds what it is for.
#[test]
fn the_rules_find_what_is_wrong() {
    let wrong = |bytes: &[u8]| {
        let instruction = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        forbidden(&instruction).is_some()
    };
    assert!(wrong(&[0x0f, 0x28, 0xc1])); // movaps xmm0, xmm1
    assert!(wrong(&[0xd9, 0xe8])); // fld1
    assert!(wrong(&[0x48, 0x89, 0x44, 0x24, 0xf8])); // mov [rsp-8], rax
    assert!(wrong(&[0x0f, 0x01, 0xcb])); // stac
    assert!(!wrong(&[0x48, 0x89, 0x44, 0x24, 0x08])); // mov [rsp+8], rax
    assert!(!wrong(&[0x48, 0x8d, 0x64, 0x24, 0xf8])); // lea rsp, [rsp-8]
    assert!(!wrong(&[0x48, 0x0f, 0xae, 0x2f])); // xrstor64 [rdi]
}
