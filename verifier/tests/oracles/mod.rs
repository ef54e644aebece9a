//! Three general decoders, asked whether they see what the verifier saw: the same length, memory
//! only at the window's segment + a 32-bit address and nothing wide, no stack pointer, no state but
//! registers and arithmetic flags, the same control flow.
#![allow(dead_code, reason = "each test binary uses its part")]

use iced_x86::{
    CodeSize, CpuidFeature, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic,
    OpAccess, Register, RflagsBits,
};
use postern_verifier::{Instruction, InstructionKind, Segment};
use yaxpeax_x86::long_mode::{DecodeError, InstDecoder, Operand, RegSpec};
use zydis::ffi::DecodedOperandKind;
use zydis::{FullInstruction, MemoryOperandType, RegisterClass};

/// Bytes of an access must stay below the 64 KiB that are never mapped above the window, by far.
const WIDEST: usize = 64;
/// rflags bits that an instruction may change: the arithmetic ones (and the x87 condition codes).
const ARITHMETIC: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF
    | RflagsBits::C0
    | RflagsBits::C1
    | RflagsBits::C2
    | RflagsBits::C3;

/// The decoders and their scratch memory.
pub struct Oracles {
    information: InstructionInfoFactory,
    zydis: zydis::Decoder,
    yaxpeax: InstDecoder,
    segment: Segment,
}

impl Oracles {
    /// Ready to compare what accesses memory through gs.
    pub fn new() -> Oracles {
        Oracles::of(Segment::Gs)
    }

    /// Ready to compare what accesses memory through `segment`.
    pub fn of(segment: Segment) -> Oracles {
        Oracles {
            segment,
            information: InstructionInfoFactory::new(),
            zydis: zydis::Decoder::new64(),
            yaxpeax: InstDecoder::default(),
        }
    }

    /// Compares what the verifier says of the instruction at the start of `bytes` with all
    /// decoders.
    pub fn check(&mut self, bytes: &[u8], seen: &Instruction) -> Result<(), String> {
        self.each(bytes, seen).into_iter().collect()
    }

    /// Compares what the verifier says of the instruction at the start of `bytes` with each
    /// decoder.
    pub fn each(&mut self, bytes: &[u8], seen: &Instruction) -> [Result<(), String>; 3] {
        [
            self.iced(bytes, seen)
                .map_err(|what| format!("iced-x86: {what}")),
            self.zydis(bytes, seen)
                .map_err(|what| format!("Zydis: {what}")),
            self.yaxpeax(bytes, seen)
                .map_err(|what| format!("yaxpeax-x86: {what}")),
        ]
    }

    fn iced(&mut self, bytes: &[u8], seen: &Instruction) -> Result<(), String> {
        let instruction = Decoder::with_ip(64, bytes, 0x20_0000, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return Err("does not decode".into());
        }
        if instruction.len() != seen.length {
            return Err(format!("length {}", instruction.len()));
        }
        let flow = match instruction.flow_control() {
            FlowControl::Next => matches!(
                seen.kind,
                InstructionKind::Plain | InstructionKind::Nop | InstructionKind::Address
            ),
            FlowControl::ConditionalBranch => seen.kind == InstructionKind::Conditional,
            FlowControl::UnconditionalBranch => seen.kind == InstructionKind::Jump,
            FlowControl::Call => seen.kind == InstructionKind::Call,
            FlowControl::Return => seen.kind == InstructionKind::Return,
            FlowControl::Interrupt | FlowControl::Exception => seen.kind == InstructionKind::Trap,
            FlowControl::IndirectBranch => seen.kind == InstructionKind::IndirectJump,
            FlowControl::IndirectCall => seen.kind == InstructionKind::IndirectCall,
            FlowControl::XbeginXabortXend => false,
        };
        if !flow {
            return Err(format!("flow control {:?}", instruction.flow_control()));
        }
        if let Some(displacement) = seen.displacement {
            let target = instruction
                .next_ip()
                .wrapping_add(displacement as i64 as u64);
            if instruction.near_branch_target() != target {
                return Err("branch target".into());
            }
        }
        let calls = matches!(
            seen.kind,
            InstructionKind::Call | InstructionKind::Return | InstructionKind::IndirectCall
        );
        if instruction.is_privileged()
            || instruction.is_save_restore_instruction()
            || instruction.is_string_instruction()
            || (instruction.is_stack_instruction() && !calls)
            || instruction.is_vsib()
            || instruction.has_xacquire_prefix() && seen.kind != InstructionKind::Plain
        {
            return Err("forbidden category".into());
        }
        if matches!(
            instruction.mnemonic(),
            Mnemonic::Ldmxcsr
                | Mnemonic::Stmxcsr
                | Mnemonic::Vldmxcsr
                | Mnemonic::Vstmxcsr
                | Mnemonic::Cpuid
                | Mnemonic::Xgetbv
        ) {
            return Err("forbidden mnemonic".into());
        }
        if let Some(feature) = instruction
            .cpuid_features()
            .iter()
            .find(|feature| !ALLOWED_FEATURES.contains(feature))
        {
            return Err(format!("feature {feature:?}"));
        }
        if instruction.rflags_modified() & !ARITHMETIC != 0
            || instruction.rflags_read() & !ARITHMETIC != 0
        {
            return Err("flags".into());
        }
        let segment = match self.segment {
            Segment::Gs => Register::GS,
            Segment::Fs => Register::FS,
        };
        let information = self.information.info(&instruction);
        for used in information.used_registers() {
            let register = used.register();
            let good = match register {
                _ if register == segment => used.access() == OpAccess::Read && seen.memory,
                _ if register.full_register() == Register::RSP => calls,
                _ => {
                    register.is_gpr()
                        || register.is_xmm()
                        || register.is_ymm()
                        || register.is_zmm()
                        || register.is_st()
                }
            };
            if !good {
                return Err(format!("register {register:?}"));
            }
            if (register.is_vector_register() && !seen.xmm)
                || (register.is_ymm() && !seen.ymm && !seen.xmm)
            {
                return Err(format!("unnoticed {register:?}"));
            }
            if register.is_st() && !seen.x87 {
                return Err(format!("unnoticed {register:?}"));
            }
        }
        let mut accesses = 0;
        for used in information.used_memory() {
            if calls && used.base() == Register::RSP || used.access() == OpAccess::NoMemAccess {
                continue;
            }
            accesses += 1;
            let short = |register: Register| register == Register::None || register.is_gpr32();
            if used.segment() != segment
                || used.address_size() != CodeSize::Code32
                || !short(used.base())
                || !short(used.index())
                || used.vsib_size() != 0
                || used.memory_size().size() > WIDEST
            {
                return Err(format!("memory {used:?}"));
            }
        }
        // Zydis and yaxpeax count prefetches as accesses, iced does not.
        if (accesses > 0) && !seen.memory {
            return Err("memory access".into());
        }
        if instruction.is_ip_rel_memory_operand() {
            return Err("rip".into());
        }
        Ok(())
    }

    fn zydis(&self, bytes: &[u8], seen: &Instruction) -> Result<(), String> {
        let decoded = self
            .zydis
            .decode_first::<zydis::AllOperands>(bytes)
            .map_err(|status| format!("{status:?}"))?;
        let instruction: FullInstruction = decoded.ok_or("does not decode")?;
        if usize::from(instruction.length) != seen.length {
            return Err(format!("length {}", instruction.length));
        }
        let calls = matches!(
            seen.kind,
            InstructionKind::Call | InstructionKind::Return | InstructionKind::IndirectCall
        );
        let segment = match self.segment {
            Segment::Gs => zydis::Register::GS,
            Segment::Fs => zydis::Register::FS,
        };
        for operand in instruction.operands() {
            match &operand.kind {
                DecodedOperandKind::Reg(register) => {
                    let good = match register.class() {
                        RegisterClass::GPR8 => *register != zydis::Register::SPL,
                        RegisterClass::GPR16 | RegisterClass::GPR32 | RegisterClass::GPR64 => {
                            register.id() != 4 || calls
                        }
                        RegisterClass::XMM => seen.xmm,
                        RegisterClass::YMM => seen.ymm,
                        RegisterClass::X87 => seen.x87,
                        RegisterClass::FLAGS => true,
                        RegisterClass::IP => !matches!(
                            seen.kind,
                            InstructionKind::Plain
                                | InstructionKind::Address
                                | InstructionKind::Nop
                        ),
                        _ => {
                            seen.x87
                                && matches!(
                                    *register,
                                    zydis::Register::X87CONTROL
                                        | zydis::Register::X87STATUS
                                        | zydis::Register::X87TAG
                                )
                        }
                    };
                    if !good {
                        return Err(format!("register {register}"));
                    }
                }
                DecodedOperandKind::Mem(memory) => {
                    let computed = memory.ty == MemoryOperandType::AGEN
                        && seen.kind == InstructionKind::Address;
                    if computed
                        || seen.kind == InstructionKind::Nop
                        || calls && memory.base == zydis::Register::RSP
                    {
                        continue;
                    }
                    let short = |register: zydis::Register| {
                        register == zydis::Register::NONE
                            || register.class() == RegisterClass::GPR32 && register.id() != 4
                    };
                    if memory.ty != MemoryOperandType::MEM
                        || memory.segment != segment
                        || instruction.address_width != 32
                        || !short(memory.base)
                        || !short(memory.index)
                        || usize::from(operand.size) > 8 * WIDEST
                        || !seen.memory
                    {
                        return Err("memory".into());
                    }
                }
                DecodedOperandKind::Imm(_) | DecodedOperandKind::Unused => {}
                DecodedOperandKind::Ptr(_) => return Err("far pointer".into()),
            }
        }
        let flags = instruction.cpu_flags;
        let changed = flags.modified | flags.set_0 | flags.set_1;
        let state = zydis::CpuFlag::DF
            | zydis::CpuFlag::IF
            | zydis::CpuFlag::TF
            | zydis::CpuFlag::AC
            | zydis::CpuFlag::NT;
        if changed.intersects(state) && seen.kind != InstructionKind::Trap {
            return Err("flags".into());
        }
        Ok(())
    }

    fn yaxpeax(&self, bytes: &[u8], seen: &Instruction) -> Result<(), String> {
        use yaxpeax_x86::long_mode::register_class;
        let instruction = match self.yaxpeax.decode_slice(bytes) {
            Err(DecodeError::InvalidOpcode) if unknown_to_yaxpeax(bytes) => return Ok(()),
            decoded => decoded.map_err(|error| format!("{error:?}"))?,
        };
        let length = yaxpeax_arch::LengthedInstruction::len(&instruction).to_const() as usize;
        if length != seen.length {
            return Err(format!("length {length}"));
        }
        for number in 0..instruction.operand_count() {
            let short =
                |register: RegSpec| register.class() == register_class::D && register.num() != 4;
            let in_window = match instruction.operand(number) {
                Operand::Register { reg } => {
                    let class = reg.class();
                    let stack = match class {
                        register_class::Q
                        | register_class::D
                        | register_class::W
                        | register_class::RB => reg.num() == 4,
                        _ => false,
                    };
                    let known = stack
                        || matches!(
                            class,
                            register_class::Q
                                | register_class::D
                                | register_class::W
                                | register_class::B
                                | register_class::RB
                                | register_class::X
                                | register_class::Y
                                | register_class::ST
                        );
                    if stack || !known {
                        return Err(format!("register {}", reg.name()));
                    }
                    continue;
                }
                Operand::MemDeref { base } | Operand::Disp { base, .. } => short(base),
                // Without a base, a 32-bit index; yaxpeax calls an absolute address a 32- or 64-bit
                // one by its encoding.
                Operand::MemIndexScale { index, .. } | Operand::MemIndexScaleDisp { index, .. } => {
                    short(index)
                }
                Operand::MemBaseIndexScale { base, index, .. }
                | Operand::MemBaseIndexScaleDisp { base, index, .. } => short(base) && short(index),
                Operand::AbsoluteU32 { .. } => true,
                Operand::AbsoluteU64 { .. } => false,
                Operand::Nothing
                | Operand::ImmediateI8 { .. }
                | Operand::ImmediateU8 { .. }
                | Operand::ImmediateI16 { .. }
                | Operand::ImmediateU16 { .. }
                | Operand::ImmediateI32 { .. }
                | Operand::ImmediateU32 { .. }
                | Operand::ImmediateI64 { .. }
                | Operand::ImmediateU64 { .. } => continue,
                other => return Err(format!("operand {other:?}")),
            };
            if matches!(seen.kind, InstructionKind::Address | InstructionKind::Nop) {
                continue;
            }
            let segment = match self.segment {
                Segment::Gs => yaxpeax_x86::long_mode::Segment::GS,
                Segment::Fs => yaxpeax_x86::long_mode::Segment::FS,
            };
            let through = instruction.segment_override_for_op(number) == Some(segment);
            if !in_window || !through || !seen.memory {
                return Err("memory".into());
            }
        }
        Ok(())
    }
}

/// Whether the bytes are one of the few instructions that yaxpeax does not have in the form with a
/// VEX prefix, so that two decoders judge it.
fn unknown_to_yaxpeax(bytes: &[u8]) -> bool {
    let instruction = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
    match instruction.mnemonic() {
        Mnemonic::Vgf2p8mulb | Mnemonic::Vgf2p8affineqb | Mnemonic::Vgf2p8affineinvqb => true,
        Mnemonic::Vpclmulqdq => instruction.op0_register().is_ymm(),
        _ => false,
    }
}

/// Instruction set extensions that the allow list draws from.
const ALLOWED_FEATURES: &[CpuidFeature] = &[
    CpuidFeature::INTEL8086,
    CpuidFeature::INTEL186,
    CpuidFeature::INTEL286,
    CpuidFeature::INTEL386,
    CpuidFeature::INTEL486,
    CpuidFeature::X64,
    CpuidFeature::MULTIBYTENOP,
    CpuidFeature::CMOV,
    CpuidFeature::CX8,
    CpuidFeature::CMPXCHG16B,
    CpuidFeature::FPU,
    CpuidFeature::FPU287,
    CpuidFeature::FPU387,
    CpuidFeature::SSE,
    CpuidFeature::SSE2,
    CpuidFeature::SSE3,
    CpuidFeature::SSSE3,
    CpuidFeature::SSE4_1,
    CpuidFeature::SSE4_2,
    CpuidFeature::POPCNT,
    CpuidFeature::LZCNT,
    CpuidFeature::BMI1,
    CpuidFeature::BMI2,
    CpuidFeature::MOVBE,
    CpuidFeature::ADX,
    CpuidFeature::AVX,
    CpuidFeature::AVX2,
    CpuidFeature::FMA,
    CpuidFeature::F16C,
    CpuidFeature::AES,
    CpuidFeature::PCLMULQDQ,
    CpuidFeature::SHA,
    CpuidFeature::GFNI,
    CpuidFeature::VAES,
    CpuidFeature::VPCLMULQDQ,
    CpuidFeature::PAUSE,
    CpuidFeature::CET_IBT,
];
