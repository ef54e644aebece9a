//! Punctuators: which one bytes are.

use crate::token::TokenKind;

/// The punctuator that stands at a place, and its length.
#[inline]
pub(super) fn punctuator(source: &[u8], at: usize) -> (TokenKind, usize) {
    use TokenKind::*;
    let byte = |ahead: usize| source.get(at + ahead).copied().unwrap_or(0);
    match (byte(0), byte(1), byte(2)) {
        (b'%', b':', b'%') if byte(3) == b':' => (Paste, 4),
        (b'<', b'<', b'=') => (ShlAssign, 3),
        (b'>', b'>', b'=') => (ShrAssign, 3),
        (b'.', b'.', b'.') => (Ellipsis, 3),
        (b'-', b'>', _) => (Arrow, 2),
        (b'+', b'+', _) => (PlusPlus, 2),
        (b'-', b'-', _) => (MinusMinus, 2),
        (b'<', b'<', _) => (Shl, 2),
        (b'>', b'>', _) => (Shr, 2),
        (b'<', b'=', _) => (LessEqual, 2),
        (b'>', b'=', _) => (GreaterEqual, 2),
        (b'=', b'=', _) => (Equal, 2),
        (b'!', b'=', _) => (NotEqual, 2),
        (b'&', b'&', _) => (AndAnd, 2),
        (b'|', b'|', _) => (OrOr, 2),
        (b'*', b'=', _) => (StarAssign, 2),
        (b'/', b'=', _) => (SlashAssign, 2),
        (b'%', b'=', _) => (PercentAssign, 2),
        (b'+', b'=', _) => (PlusAssign, 2),
        (b'-', b'=', _) => (MinusAssign, 2),
        (b'&', b'=', _) => (AmpAssign, 2),
        (b'^', b'=', _) => (CaretAssign, 2),
        (b'|', b'=', _) => (PipeAssign, 2),
        (b'#', b'#', _) => (Paste, 2),
        // Other spellings.
        (b'<', b':', _) => (LBracket, 2),
        (b':', b'>', _) => (RBracket, 2),
        (b'<', b'%', _) => (LBrace, 2),
        (b'%', b'>', _) => (RBrace, 2),
        (b'%', b':', _) => (Hash, 2),
        (a, ..) => (single(a), 1),
    }
}

fn single(byte: u8) -> TokenKind {
    use TokenKind::*;
    match byte {
        b'(' => LParen,
        b')' => RParen,
        b'{' => LBrace,
        b'}' => RBrace,
        b'[' => LBracket,
        b']' => RBracket,
        b';' => Semi,
        b',' => Comma,
        b':' => Colon,
        b'?' => Question,
        b'.' => Dot,
        b'~' => Tilde,
        b'!' => Bang,
        b'*' => Star,
        b'/' => Slash,
        b'%' => Percent,
        b'+' => Plus,
        b'-' => Minus,
        b'<' => Less,
        b'>' => Greater,
        b'&' => Amp,
        b'^' => Caret,
        b'|' => Pipe,
        b'=' => Assign,
        b'#' => Hash,
        _ => Bad,
    }
}

/// How a punctuator is spelled.
pub(super) fn spelling(kind: TokenKind) -> &'static str {
    use TokenKind::*;
    match kind {
        LParen => "(",
        RParen => ")",
        LBrace => "{",
        RBrace => "}",
        LBracket => "[",
        RBracket => "]",
        Semi => ";",
        Comma => ",",
        Colon => ":",
        Question => "?",
        Dot => ".",
        Arrow => "->",
        Ellipsis => "...",
        Tilde => "~",
        Bang => "!",
        PlusPlus => "++",
        MinusMinus => "--",
        Star => "*",
        Slash => "/",
        Percent => "%",
        Plus => "+",
        Minus => "-",
        Shl => "<<",
        Shr => ">>",
        Less => "<",
        Greater => ">",
        LessEqual => "<=",
        GreaterEqual => ">=",
        Equal => "==",
        NotEqual => "!=",
        Amp => "&",
        Caret => "^",
        Pipe => "|",
        AndAnd => "&&",
        OrOr => "||",
        Assign => "=",
        StarAssign => "*=",
        SlashAssign => "/=",
        PercentAssign => "%=",
        PlusAssign => "+=",
        MinusAssign => "-=",
        ShlAssign => "<<=",
        ShrAssign => ">>=",
        AmpAssign => "&=",
        CaretAssign => "^=",
        PipeAssign => "|=",
        Hash => "#",
        Paste => "##",
        _ => "",
    }
}
