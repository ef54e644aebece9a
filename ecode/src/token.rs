//! Tokens: what the lexer makes of text, and what names are looked up for.

/// Kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
#[repr(u8)]
pub(crate) enum TokenKind {
    End, Name, Number, Text,
    // Keywords
    Auto, Break, Case, Char, Const, Continue, Default, Do, Double, Else, Enum, Extern, Float, For, Goto, If, Inline,
    Int, Long, Register, Restrict, Return, Short, Signed, Sizeof, Static, Struct, Switch, Typedef, Union, Unsigned,
    Void, Volatile, While, Bool, Alignof, StaticAssert, Attribute, Extension, Typeof, VaList,
    Alignas, Asm, LocalLabel, Unsupported,
    // Punctuators
    LParen, RParen, LBrace, RBrace, LBracket, RBracket, Semi, Comma, Colon, Question, Dot, Arrow, Ellipsis, Tilde, Bang,
    PlusPlus, MinusMinus,
    // Binary operators
    Star, Slash, Percent, Plus, Minus, Shl, Shr, Less, Greater, LessEqual, GreaterEqual, Equal, NotEqual, Amp, Caret,
    Pipe, AndAnd, OrOr,
    // Assignments; the compound ones in the order of their operators above
    Assign, StarAssign, SlashAssign, PercentAssign, PlusAssign, MinusAssign, ShlAssign, ShrAssign, AmpAssign,
    CaretAssign, PipeAssign,
    // Only the lexer sees these
    Hash, Paste, Parameter, Painted, Bad,
}

/// A token: its kind, its position, and for names, numbers and strings which one it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub at: u32,
    pub value: u32,
    /// A blank stands before it.
    pub space: bool,
}
