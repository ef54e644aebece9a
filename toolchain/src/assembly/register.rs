//! Registers: their names, classes and widths.

use std::fmt;

/// A register operand. General registers are numbered as in the encoding: rax 0, rcx 1, rdx 2, rbx
/// 3, rsp 4, rbp 5, rsi 6, rdi 7, r8 to r15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Register {
    /// A general register in one of its widths.
    General(u8, Width),
    /// `%ah`, `%ch`, `%dh`, `%bh`, by the number of the register whose second byte it is.
    High(u8),
    /// `%rip`
    Rip,
    /// `%eip`
    Eip,
    /// `%xmm0` to `%xmm15`
    Xmm(u8),
    /// `%ymm0` to `%ymm15`
    Ymm(u8),
    /// `%st` and `%st(k)`
    X87(u8),
    /// `%es %cs %ss %ds %fs %gs`, as in the encoding.
    Segment(u8),
    /// `%eiz` and `%riz`, the index that is none.
    NoIndex(Width),
    /// Registers that no extension may name, with the reason.
    Refused(&'static str),
}

/// Width of a general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 8 bits
    Byte,
    /// 16 bits
    Word,
    /// 32 bits
    Long,
    /// 64 bits
    Quad,
}

const LEGACY: [[&str; 4]; 8] = [
    ["al", "ax", "eax", "rax"],
    ["cl", "cx", "ecx", "rcx"],
    ["dl", "dx", "edx", "rdx"],
    ["bl", "bx", "ebx", "rbx"],
    ["spl", "sp", "esp", "rsp"],
    ["bpl", "bp", "ebp", "rbp"],
    ["sil", "si", "esi", "rsi"],
    ["dil", "di", "edi", "rdi"],
];
const HIGH: [&str; 4] = ["ah", "ch", "dh", "bh"];
const SEGMENTS: [&str; 6] = ["es", "cs", "ss", "ds", "fs", "gs"];
const WIDTHS: [Width; 4] = [Width::Byte, Width::Word, Width::Long, Width::Quad];

/// Number of `%rsp`.
pub const RSP: u8 = 4;
/// Number of `%rbp`.
pub const RBP: u8 = 5;
/// Number of the data stack pointer.
pub const R15: u8 = 15;
/// Number of the register of guarded sequences.
pub const R11: u8 = 11;

impl Register {
    /// The register that is written `%name`, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        for (number, names) in LEGACY.iter().enumerate() {
            if let Some(width) = names.iter().position(|n| *n == name) {
                return Some(Self::General(number as u8, WIDTHS[width]));
            }
        }
        if let Some(number) = HIGH.iter().position(|n| *n == name) {
            return Some(Self::High(number as u8));
        }
        if let Some(number) = SEGMENTS.iter().position(|n| *n == name) {
            return Some(Self::Segment(number as u8));
        }
        let numbered = |stem: &str, low: u8, high: u8| -> Option<u8> {
            let digits = name.strip_prefix(stem)?;
            let number: u8 = digits.parse().ok()?;
            (number.to_string() == digits && (low..=high).contains(&number)).then_some(number)
        };
        match name {
            "rip" => return Some(Self::Rip),
            "eip" => return Some(Self::Eip),
            "st" => return Some(Self::X87(0)),
            "eiz" => return Some(Self::NoIndex(Width::Long)),
            "riz" => return Some(Self::NoIndex(Width::Quad)),
            _ => {}
        }
        if let Some(rest) = name.strip_prefix('r')
            && rest.starts_with(|c: char| c.is_ascii_digit())
        {
            let (digits, width) = match rest.as_bytes()[rest.len() - 1] {
                b'b' => (&rest[..rest.len() - 1], Width::Byte),
                b'w' => (&rest[..rest.len() - 1], Width::Word),
                b'd' => (&rest[..rest.len() - 1], Width::Long),
                _ => (rest, Width::Quad),
            };
            let number: u8 = digits.parse().ok()?;
            return match number {
                8..=15 => Some(Self::General(number, width)),
                16..=31 => Some(Self::Refused(
                    "the registers r16 to r31 (APX) are not in the allow list",
                )),
                _ => None,
            };
        }
        if let Some(n) = numbered("xmm", 0, 15) {
            return Some(Self::Xmm(n));
        }
        if let Some(n) = numbered("ymm", 0, 15) {
            return Some(Self::Ymm(n));
        }
        for stem in ["xmm", "ymm"] {
            if numbered(stem, 16, 31).is_some() {
                return Some(Self::Refused(
                    "AVX-512 registers are not in the allow list; compile with -march=x86-64-v3",
                ));
            }
        }
        for (stem, high, what) in [
            (
                "zmm",
                31,
                "AVX-512 registers are not in the allow list; compile with -march=x86-64-v3",
            ),
            (
                "k",
                7,
                "AVX-512 registers are not in the allow list; compile with -march=x86-64-v3",
            ),
            (
                "mm",
                7,
                "MMX registers would stay behind in the host's floating-point state; use SSE2",
            ),
            ("cr", 15, "control registers are privileged"),
            ("db", 15, "debug registers are privileged"),
            ("dr", 15, "debug registers are privileged"),
            ("bnd", 3, "bound registers are not in the allow list"),
            ("tmm", 7, "AMX registers are not in the allow list"),
        ] {
            if numbered(stem, 0, high).is_some() {
                return Some(Self::Refused(what));
            }
        }
        None
    }

    /// A 64-bit general register.
    pub const fn quad(number: u8) -> Self {
        Self::General(number, Width::Quad)
    }

    /// A 32-bit general register.
    pub const fn long(number: u8) -> Self {
        Self::General(number, Width::Long)
    }

    /// Whether this is the given general register in any width.
    pub fn is_general(self, number: u8) -> bool {
        matches!(self, Self::General(n, _) if n == number)
    }

    /// Whether an instruction that names this register needs a REX prefix for it.
    pub fn needs_rex(self) -> bool {
        match self {
            Self::General(n, Width::Byte) => n >= 4,
            Self::General(n, Width::Quad) => n != RSP || n >= 8,
            Self::General(n, _) | Self::Xmm(n) | Self::Ymm(n) => n >= 8,
            _ => false,
        }
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::General(n @ 0..8, width) => write!(f, "%{}", LEGACY[n as usize][width as usize]),
            Self::General(n, width) => write!(f, "%r{n}{}", ["b", "w", "d", ""][width as usize]),
            Self::High(n) => write!(f, "%{}", HIGH[n as usize & 3]),
            Self::Rip => f.write_str("%rip"),
            Self::Eip => f.write_str("%eip"),
            Self::Xmm(n) => write!(f, "%xmm{n}"),
            Self::Ymm(n) => write!(f, "%ymm{n}"),
            Self::X87(n) => write!(f, "%st({n})"),
            Self::Segment(n) => write!(f, "%{}", SEGMENTS[n as usize % 6]),
            Self::NoIndex(Width::Quad) => f.write_str("%riz"),
            Self::NoIndex(_) => f.write_str("%eiz"),
            Self::Refused(what) => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in [
            "al", "spl", "r8", "r15d", "r9b", "r10w", "rip", "xmm15", "ymm3", "fs", "dh", "st(0)",
        ] {
            let bare = if name == "st(0)" { "st" } else { name };
            let register = Register::from_name(bare).unwrap();
            assert_eq!(register.to_string(), format!("%{name}"));
        }
        for name in ["r07", "r16x", "xmm", "xmm016", "eaxx", "", "r", "rd"] {
            assert_eq!(Register::from_name(name), None, "{name}");
        }
        assert!(matches!(
            Register::from_name("zmm1"),
            Some(Register::Refused(_))
        ));
        assert!(matches!(
            Register::from_name("xmm16"),
            Some(Register::Refused(_))
        ));
        assert!(matches!(
            Register::from_name("cr0"),
            Some(Register::Refused(_))
        ));
    }
}
