//! Registers and widths.

/// A general register; which part of it is meant, the instruction's [`Width`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Gpr {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

impl Gpr {
    /// All of them, by number.
    pub const ALL: [Gpr; 16] = [
        Gpr::Rax,
        Gpr::Rcx,
        Gpr::Rdx,
        Gpr::Rbx,
        Gpr::Rsp,
        Gpr::Rbp,
        Gpr::Rsi,
        Gpr::Rdi,
        Gpr::R8,
        Gpr::R9,
        Gpr::R10,
        Gpr::R11,
        Gpr::R12,
        Gpr::R13,
        Gpr::R14,
        Gpr::R15,
    ];

    /// The register with this number; only the low four bits count.
    #[inline]
    pub const fn from_number(number: u8) -> Gpr {
        Gpr::ALL[(number & 15) as usize]
    }

    /// The number by which instructions name it, 0 to 15.
    #[inline]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// A vector register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Xmm {
    Xmm0,
    Xmm1,
    Xmm2,
    Xmm3,
    Xmm4,
    Xmm5,
    Xmm6,
    Xmm7,
    Xmm8,
    Xmm9,
    Xmm10,
    Xmm11,
    Xmm12,
    Xmm13,
    Xmm14,
    Xmm15,
}

impl Xmm {
    /// All of them, by number.
    pub const ALL: [Xmm; 16] = [
        Xmm::Xmm0,
        Xmm::Xmm1,
        Xmm::Xmm2,
        Xmm::Xmm3,
        Xmm::Xmm4,
        Xmm::Xmm5,
        Xmm::Xmm6,
        Xmm::Xmm7,
        Xmm::Xmm8,
        Xmm::Xmm9,
        Xmm::Xmm10,
        Xmm::Xmm11,
        Xmm::Xmm12,
        Xmm::Xmm13,
        Xmm::Xmm14,
        Xmm::Xmm15,
    ];

    /// The register with this number; only the low four bits count.
    #[inline]
    pub const fn from_number(number: u8) -> Xmm {
        Xmm::ALL[(number & 15) as usize]
    }

    /// The number by which instructions name it, 0 to 15.
    #[inline]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// Bits of an integer operand. What is written with [`Width::Dword`] to a register clears its upper
/// half; with the two below, the rest of the register stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// 8; the registers are al, cl, …, sil, dil, r8b, …: never ah, bh, ch or dh.
    Byte,
    /// 16.
    Word,
    /// 32.
    Dword,
    /// 64.
    Qword,
}
