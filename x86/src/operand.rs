//! Operands that are not plain registers.

use core::num::NonZeroU32;

use crate::register::{Gpr, Xmm};

/// What an index register is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Scale {
    One,
    Two,
    Four,
    Eight,
}

impl Scale {
    /// The one for elements of `bytes` bytes, if that is 1, 2, 4 or 8.
    #[inline]
    pub const fn of(bytes: u8) -> Option<Scale> {
        match bytes {
            1 => Some(Scale::One),
            2 => Some(Scale::Two),
            4 => Some(Scale::Four),
            8 => Some(Scale::Eight),
            _ => None,
        }
    }

    /// How far an index is shifted to the left.
    #[inline]
    pub const fn shift(self) -> u8 {
        self as u8
    }
}

/// A segment whose base is added to addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Segment {
    Fs,
    Gs,
}

/// A number by which the user knows an address that is not known yet. See [`Mem::symbol`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol(NonZeroU32);

impl Symbol {
    /// The symbol of a number; 0 is none.
    #[inline]
    pub const fn new(number: u32) -> Option<Symbol> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Symbol(number)),
            None => None,
        }
    }

    /// Its number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0.get()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    Nothing,
    Rip,
    Register(Gpr),
}

/// A memory operand: `segment:[base + index * scale + displacement]`, each part but one optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mem {
    pub(crate) base: Base,
    pub(crate) index: Option<Gpr>,
    pub(crate) scale: Scale,
    pub(crate) segment: Option<Segment>,
    pub(crate) addr32: bool,
    pub(crate) disp: i32,
    pub(crate) symbol: Option<Symbol>,
}

impl Mem {
    const fn new(base: Base, disp: i32) -> Mem {
        Mem {
            base,
            index: None,
            scale: Scale::One,
            segment: None,
            addr32: false,
            disp,
            symbol: None,
        }
    }

    /// `[base]`.
    #[inline]
    pub const fn base(base: Gpr) -> Mem {
        Mem::new(Base::Register(base), 0)
    }

    /// `[disp]`: a constant address, sign-extended unless addresses have 32 bits.
    #[inline]
    pub const fn absolute(disp: i32) -> Mem {
        Mem::new(Base::Nothing, disp)
    }

    /// `[rip + disp]`: counted from the end of the instruction. Takes no index.
    #[inline]
    pub const fn rip(disp: i32) -> Mem {
        Mem::new(Base::Rip, disp)
    }

    /// With `index * scale` added.
    ///
    /// # Panics
    /// If the index is rsp, or the base is rip: no instruction can say that.
    #[inline]
    pub const fn index(self, index: Gpr, scale: Scale) -> Mem {
        assert!(!matches!(index, Gpr::Rsp) && !matches!(self.base, Base::Rip));
        Mem {
            index: Some(index),
            scale,
            ..self
        }
    }

    /// With this displacement in place of what it had.
    #[inline]
    pub const fn disp(self, disp: i32) -> Mem {
        Mem { disp, ..self }
    }

    /// With a symbol's address added once that is known: the displacement has four bytes, and the
    /// [`Assembler`] notes where.
    ///
    /// [`Assembler`]: crate::Assembler
    #[inline]
    pub const fn symbol(self, symbol: Option<Symbol>) -> Mem {
        Mem { symbol, ..self }
    }

    /// Relative to the base of fs.
    #[inline]
    pub const fn fs(self) -> Mem {
        Mem {
            segment: Some(Segment::Fs),
            ..self
        }
    }

    /// Relative to the base of gs.
    #[inline]
    pub const fn gs(self) -> Mem {
        Mem {
            segment: Some(Segment::Gs),
            ..self
        }
    }

    /// With 32-bit registers: the sum is cut to 32 bits before a segment's base is added.
    #[inline]
    pub const fn addr32(self) -> Mem {
        Mem {
            addr32: true,
            ..self
        }
    }
}

/// Register or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rm<R> {
    /// A register.
    Reg(R),
    /// Memory.
    Mem(Mem),
}

impl From<Gpr> for Rm<Gpr> {
    #[inline]
    fn from(register: Gpr) -> Rm<Gpr> {
        Rm::Reg(register)
    }
}

impl From<Xmm> for Rm<Xmm> {
    #[inline]
    fn from(register: Xmm) -> Rm<Xmm> {
        Rm::Reg(register)
    }
}

impl<R> From<Mem> for Rm<R> {
    #[inline]
    fn from(mem: Mem) -> Rm<R> {
        Rm::Mem(mem)
    }
}

impl Rm<Gpr> {
    #[inline]
    pub(crate) fn numbered(self) -> Rm<u8> {
        match self {
            Rm::Reg(register) => Rm::Reg(register.number()),
            Rm::Mem(mem) => Rm::Mem(mem),
        }
    }
}

impl Rm<Xmm> {
    #[inline]
    pub(crate) fn numbered(self) -> Rm<u8> {
        match self {
            Rm::Reg(register) => Rm::Reg(register.number()),
            Rm::Mem(mem) => Rm::Mem(mem),
        }
    }
}
