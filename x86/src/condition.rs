//! Conditions: what flags say after a comparison.

/// When a conditional instruction acts. Below and above are unsigned, less and greater signed.
///
/// Their numbers are the processor's, which come in pairs: the lowest bit turns a condition into
/// its opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Cond {
    Overflow,
    NotOverflow,
    Below,
    AboveOrEqual,
    Equal,
    NotEqual,
    BelowOrEqual,
    Above,
    Sign,
    NotSign,
    Parity,
    NotParity,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Greater,
}

impl Cond {
    /// All of them, by number, with the suffixes that assemblers know.
    pub const TABLE: [(Cond, &'static str); 16] = [
        (Cond::Overflow, "o"),
        (Cond::NotOverflow, "no"),
        (Cond::Below, "b"),
        (Cond::AboveOrEqual, "ae"),
        (Cond::Equal, "e"),
        (Cond::NotEqual, "ne"),
        (Cond::BelowOrEqual, "be"),
        (Cond::Above, "a"),
        (Cond::Sign, "s"),
        (Cond::NotSign, "ns"),
        (Cond::Parity, "p"),
        (Cond::NotParity, "np"),
        (Cond::Less, "l"),
        (Cond::GreaterOrEqual, "ge"),
        (Cond::LessOrEqual, "le"),
        (Cond::Greater, "g"),
    ];

    /// The number that is part of opcodes, 0 to 15.
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Holds when this one does not.
    #[inline]
    pub const fn negated(self) -> Cond {
        Cond::TABLE[(self as u8 ^ 1) as usize].0
    }

    /// Holds of `b` and `a` when this one holds of `a` and `b`. Conditions of a single flag stay as
    /// they are.
    pub const fn swapped(self) -> Cond {
        match self {
            Cond::Below => Cond::Above,
            Cond::Above => Cond::Below,
            Cond::AboveOrEqual => Cond::BelowOrEqual,
            Cond::BelowOrEqual => Cond::AboveOrEqual,
            Cond::Less => Cond::Greater,
            Cond::Greater => Cond::Less,
            Cond::GreaterOrEqual => Cond::LessOrEqual,
            Cond::LessOrEqual => Cond::GreaterOrEqual,
            same => same,
        }
    }
}
