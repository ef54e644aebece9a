//! Tokens to steps, by recursive descent.
//!
//! The grammar's particular points: `and` and `or` bind equally and to the left; a name or number
//! after them takes the qualifiers of what stood before (`port 80 or 443`); `%` and `^` take all
//! that follows as their right operand. One thing is added to the language: `12:2` is the field of
//! two bytes at byte 12 of the packet, so that DPF's predicates can be written, as in `(12:2 ==
//! 0x0800) and (14:1 & 0xf0 == 0x40)`.

mod hint;
mod sum;

use alloc::vec::Vec;
use core::ops::Range;

use crate::error::Error;
use crate::keyword::{Direction, IdKind, Keyword};
use crate::token::{Spanned, Token, scan};
use crate::tree::{ByteOp, Id, Leaf, Llc, Qualifiers, Step};

/// How deep parentheses, `not` and indices may nest.
const DEPTH: u32 = 200;

/// The steps of an expression; none if it is empty.
pub(crate) fn parse(source: &str) -> Result<Vec<Step>, Error> {
    let tokens = scan(source)?;
    let closing = matching(&tokens)?;
    let mut parser = Parser {
        source,
        tokens,
        closing,
        at: 0,
        depth: 0,
        in_index: false,
        steps: Vec::new(),
    };
    if *parser.peek() != Token::End {
        parser.expression(None)?;
        if *parser.peek() != Token::End {
            return Err(parser.unexpected(hint::JOINED));
        }
    }
    Ok(parser.steps)
}

/// For each opening parenthesis the token that closes it.
fn matching(tokens: &[Spanned]) -> Result<Vec<usize>, Error> {
    let mut closing = alloc::vec![0; tokens.len()];
    let mut open = Vec::new();
    for (index, placed) in tokens.iter().enumerate() {
        match placed.token {
            Token::Sign("(") => open.push(index),
            Token::Sign(")") => match open.pop() {
                Some(start) => closing[start] = index,
                None => {
                    return Err(Error::new(
                        placed.at.clone(),
                        "this parenthesis closes nothing",
                    ));
                }
            },
            _ => {}
        }
    }
    match open.pop() {
        Some(start) => Err(Error::new(
            tokens[start].at.clone(),
            "this parenthesis is never closed",
        )),
        None => Ok(closing),
    }
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Spanned>,
    closing: Vec<usize>,
    at: usize,
    depth: u32,
    /// Between brackets, where `:` is before the size of the field outside.
    in_index: bool,
    steps: Vec<Step>,
}

/// The qualifiers that a name takes over; `None` where there were none.
type Inherited = Option<Qualifiers>;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn ahead(&self, by: usize) -> &Token {
        &self.tokens[(self.at + by).min(self.tokens.len() - 1)].token
    }

    fn here(&self) -> Range<usize> {
        self.tokens[self.at].at.clone()
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(s) if *s == sign);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: Keyword) -> bool {
        let found = *self.peek() == Token::Keyword(word);
        self.at += usize::from(found);
        found
    }

    /// From the token at index `from` to the last one read.
    fn span(&self, from: usize) -> Range<usize> {
        self.tokens[from].at.start..self.tokens[self.at.max(1) - 1].at.end
    }

    fn leaf(&mut self, leaf: Leaf, from: usize) {
        let span = self.span(from);
        self.steps.push(Step::Leaf(leaf, span));
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == DEPTH {
            return Err(Error::new(
                self.here(),
                alloc::format!("nested more than {DEPTH} deep"),
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// `term { and|or (term | id) }`. Returns what the last of it leaves to be inherited.
    fn expression(&mut self, outer: Inherited) -> Result<Inherited, Error> {
        let mut left = self.term(outer, false)?;
        loop {
            let step = match self.peek() {
                Token::Keyword(Keyword::And) => Step::And,
                Token::Keyword(Keyword::Or) => Step::Or,
                _ => return Ok(left),
            };
            self.at += 1;
            left = self.term(left, true)?;
            self.steps.push(step);
        }
    }

    /// A term, or if `id` is set a name or number with the qualifiers of before.
    fn term(&mut self, inherited: Inherited, id: bool) -> Result<Inherited, Error> {
        let from = self.at;
        match self.peek().clone() {
            Token::Keyword(Keyword::Not) => {
                self.at += 1;
                let left = self.deeper(|p| p.term(inherited, id))?;
                self.steps.push(Step::Not);
                Ok(left)
            }
            Token::Sign("(") if !self.arithmetic_follows(self.closing[self.at] + 1) => {
                self.at += 1;
                let left = if id && self.is_id() {
                    self.deeper(|p| p.ids(inherited))?;
                    inherited
                } else {
                    self.deeper(|p| p.expression(inherited))?;
                    inherited
                };
                if !self.sign(")") {
                    return Err(self.unexpected("`and`, `or` or `)`"));
                }
                Ok(left)
            }
            Token::Sign("(" | "-") | Token::Keyword(Keyword::Len) => self.relation(from),
            Token::Number(_)
                if self.arithmetic_follows(self.at + 1) || *self.ahead(1) == Token::Sign(":") =>
            {
                self.relation(from)
            }
            Token::Keyword(Keyword::Proto(_)) if *self.ahead(1) == Token::Sign("[") => {
                self.relation(from)
            }
            Token::Number(_)
            | Token::Dotted(_)
            | Token::Six(_)
            | Token::Ether(_)
            | Token::Name(_)
                if id =>
            {
                let Some(qualifiers) = inherited else {
                    return Err(self.unexpected("a condition"));
                };
                let name = self.id()?;
                self.leaf(Leaf::Id(qualifiers, name), from);
                Ok(inherited)
            }
            Token::Keyword(word) => self.primitive(word, from),
            _ => Err(self.unexpected("a condition")),
        }
    }

    /// Whether the token at this index continues arithmetic or compares.
    fn arithmetic_follows(&self, index: usize) -> bool {
        let token = &self.tokens[index.min(self.tokens.len() - 1)].token;
        matches!(
            token,
            Token::Sign(
                "+" | "-"
                    | "*"
                    | "/"
                    | "%"
                    | "&"
                    | "|"
                    | "^"
                    | "<<"
                    | ">>"
                    | "<"
                    | ">"
                    | "="
                    | "<="
                    | ">="
                    | "!="
            )
        )
    }

    /// Whether what follows, behind any parentheses and `not`, is a name or number and not a
    /// comparison.
    fn is_id(&self) -> bool {
        let mut index = self.at;
        while matches!(
            self.tokens[index].token,
            Token::Sign("(") | Token::Keyword(Keyword::Not)
        ) {
            if self.tokens[index].token == Token::Sign("(")
                && self.arithmetic_follows(self.closing[index] + 1)
            {
                return false;
            }
            index += 1;
        }
        match self.tokens[index].token {
            Token::Number(_) => {
                !self.arithmetic_follows(index + 1)
                    && self.tokens[index + 1].token != Token::Sign(":")
            }
            Token::Dotted(_) | Token::Six(_) | Token::Ether(_) | Token::Name(_) => true,
            _ => false,
        }
    }

    /// `id { and|or id }`, all with the same qualifiers.
    fn ids(&mut self, qualifiers: Inherited) -> Result<(), Error> {
        self.qualified(qualifiers)?;
        loop {
            let step = match self.peek() {
                Token::Keyword(Keyword::And) => Step::And,
                Token::Keyword(Keyword::Or) => Step::Or,
                _ => return Ok(()),
            };
            self.at += 1;
            self.qualified(qualifiers)?;
            self.steps.push(step);
        }
    }

    /// A name or number, or several in parentheses.
    fn qualified(&mut self, qualifiers: Inherited) -> Result<(), Error> {
        let from = self.at;
        if self.word(Keyword::Not) {
            self.deeper(|p| p.qualified(qualifiers))?;
            self.steps.push(Step::Not);
        } else if self.sign("(") {
            self.deeper(|p| p.ids(qualifiers))?;
            if !self.sign(")") {
                return Err(self.unexpected("`and`, `or` or `)`"));
            }
        } else {
            let Some(qualifiers) = qualifiers else {
                return Err(self.unexpected("a condition"));
            };
            let name = self.id()?;
            self.leaf(Leaf::Id(qualifiers, name), from);
        }
        Ok(())
    }

    fn id(&mut self) -> Result<Id, Error> {
        let id = match self.peek().clone() {
            Token::Number(value) => Id::Number(value),
            Token::Ether(address) => Id::Ether(address),
            Token::Name(name) => Id::Name(name),
            Token::Dotted(text) => {
                self.at += 1;
                if self.sign("/") {
                    return Ok(Id::Prefix(
                        text,
                        self.plain_number("the length of the prefix")?,
                    ));
                }
                if self.word(Keyword::Mask) {
                    let Token::Dotted(mask) = self.peek().clone() else {
                        return Err(self.unexpected("a mask such as 255.255.0.0"));
                    };
                    self.at += 1;
                    return Ok(Id::Masked(text, mask));
                }
                return Ok(Id::Dotted(text));
            }
            Token::Six(address) => {
                self.at += 1;
                if self.sign("/") {
                    return Ok(Id::Six(
                        address,
                        Some(self.plain_number("the length of the prefix")?),
                    ));
                }
                return Ok(Id::Six(address, None));
            }
            Token::Keyword(word) if !matches!(word, Keyword::Elsewhere(_)) => {
                let at = self.here();
                let text = &self.source[at.clone()];
                return Err(Error::new(
                    at,
                    alloc::format!("`{text}` is a word of the language here"),
                )
                .suggest(alloc::format!("write `\\{text}` for the name")));
            }
            _ => return Err(self.unexpected("a name, number or address")),
        };
        self.at += 1;
        Ok(id)
    }

    fn plain_number(&mut self, what: &str) -> Result<u32, Error> {
        match *self.peek() {
            Token::Number(value) => {
                self.at += 1;
                Ok(value)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// A number in any parentheses, if one follows.
    fn optional_number(&mut self) -> Option<u32> {
        let mut index = self.at;
        while self.tokens[index].token == Token::Sign("(") {
            index += 1;
        }
        let Token::Number(value) = self.tokens[index].token else {
            return None;
        };
        let parentheses = index - self.at;
        let closed = (1..=parentheses).all(|behind| {
            self.tokens.get(index + behind).map(|t| &t.token) == Some(&Token::Sign(")"))
        });
        closed.then(|| {
            self.at = index + parentheses + 1;
            value
        })
    }

    fn primitive(&mut self, word: Keyword, from: usize) -> Result<Inherited, Error> {
        let leaf = match word {
            Keyword::Less | Keyword::Greater => {
                self.at += 1;
                let length = self.plain_number("a length in bytes")?;
                if word == Keyword::Less {
                    Leaf::Less(length)
                } else {
                    Leaf::Greater(length)
                }
            }
            Keyword::Byte => {
                self.at += 1;
                let index = self.plain_number("the byte's index")?;
                let op = match self.next() {
                    Token::Sign("=") => ByteOp::Equal,
                    Token::Sign("<") => ByteOp::Less,
                    Token::Sign(">") => ByteOp::Greater,
                    Token::Sign("&") => ByteOp::And,
                    Token::Sign("|") => ByteOp::Or,
                    _ => {
                        self.at -= 1;
                        return Err(self.unexpected("`=`, `<`, `>`, `&` or `|`"));
                    }
                };
                Leaf::Byte(index, op, self.plain_number("a value")?)
            }
            Keyword::Vlan => {
                self.at += 1;
                Leaf::Vlan(self.optional_number())
            }
            Keyword::Mpls => {
                self.at += 1;
                Leaf::Mpls(self.optional_number())
            }
            Keyword::Pppoed => {
                self.at += 1;
                Leaf::Pppoed
            }
            Keyword::Pppoes => {
                self.at += 1;
                Leaf::Pppoes(self.optional_number())
            }
            Keyword::Geneve => {
                self.at += 1;
                Leaf::Geneve(self.optional_number())
            }
            Keyword::Llc => {
                self.at += 1;
                Leaf::Llc(self.llc()?)
            }
            _ => return self.head(from),
        };
        self.leaf(leaf, from);
        Ok(None)
    }

    fn llc(&mut self) -> Result<Llc, Error> {
        const NAMES: [(&str, Llc); 14] = [
            ("i", Llc::I),
            ("s", Llc::S),
            ("u", Llc::U),
            ("rr", Llc::Supervisory(1)),
            ("rnr", Llc::Supervisory(5)),
            ("rej", Llc::Supervisory(9)),
            ("ui", Llc::Unnumbered(3)),
            ("ua", Llc::Unnumbered(0x63)),
            ("disc", Llc::Unnumbered(0x43)),
            ("dm", Llc::Unnumbered(0x0f)),
            ("sabme", Llc::Unnumbered(0x6f)),
            ("test", Llc::Unnumbered(0xe3)),
            ("xid", Llc::Unnumbered(0xaf)),
            ("frmr", Llc::Unnumbered(0x87)),
        ];
        let text = match self.peek() {
            Token::Name(name) => name.as_str(),
            // The one name that is a word elsewhere.
            Token::Keyword(Keyword::Elsewhere(_)) if self.source[self.here()] == *"rnr" => "rnr",
            _ => return Ok(Llc::Any),
        };
        match NAMES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
        {
            Some((_, llc)) => {
                self.at += 1;
                Ok(*llc)
            }
            None => Err(self.unexpected("a kind of LLC frame (i, s, u, rr, rnr, rej, ui, …)")),
        }
    }

    /// Qualifiers and what they qualify, or a protocol by itself.
    fn head(&mut self, from: usize) -> Result<Inherited, Error> {
        let mut qualifiers = Qualifiers::default();
        if let Token::Keyword(Keyword::Proto(proto)) = *self.peek() {
            self.at += 1;
            qualifiers.proto = Some(proto);
        }
        match self.peek() {
            Token::Keyword(Keyword::Broadcast) => {
                self.at += 1;
                self.leaf(Leaf::Broadcast(qualifiers.proto), from);
                return Ok(None);
            }
            Token::Keyword(Keyword::Multicast) => {
                self.at += 1;
                self.leaf(Leaf::Multicast(qualifiers.proto), from);
                return Ok(None);
            }
            _ => {}
        }
        qualifiers.direction = self.direction()?;
        match *self.peek() {
            Token::Keyword(Keyword::Kind(kind)) => {
                if qualifiers.direction.is_some()
                    && matches!(kind, IdKind::Proto | IdKind::ProtoChain)
                {
                    return Err(self.unexpected("a name, number or address"));
                }
                self.at += 1;
                qualifiers.kind = Some(kind);
            }
            Token::Keyword(Keyword::Gateway) if qualifiers.direction.is_none() => {
                self.at += 1;
                qualifiers.gateway = true;
            }
            _ => {}
        }
        let bare =
            qualifiers.direction.is_none() && qualifiers.kind.is_none() && !qualifiers.gateway;
        match qualifiers.proto {
            Some(proto) if bare => {
                self.leaf(Leaf::Proto(proto), from);
                return Ok(None);
            }
            None if bare => return Err(self.unexpected("a condition")),
            _ => {}
        }
        let before = self.steps.len();
        self.qualified(Some(qualifiers))?;
        // The place of a single one includes its qualifiers.
        let whole = self.span(from);
        if self.steps.len() == before + 1
            && let Some(Step::Leaf(_, at)) = self.steps.last_mut()
        {
            *at = whole;
        }
        Ok(Some(qualifiers))
    }

    fn direction(&mut self) -> Result<Option<Direction>, Error> {
        let (first, other) = match self.peek() {
            Token::Keyword(Keyword::Src) => (Direction::Src, Keyword::Dst),
            Token::Keyword(Keyword::Dst) => (Direction::Dst, Keyword::Src),
            _ => return Ok(None),
        };
        self.at += 1;
        let joined = match self.peek() {
            Token::Keyword(Keyword::Or) => Direction::Either,
            Token::Keyword(Keyword::And) => Direction::Both,
            _ => return Ok(Some(first)),
        };
        self.at += 1;
        if !self.word(other) {
            return Err(self.unexpected(if other == Keyword::Dst {
                "`dst`"
            } else {
                "`src`"
            }));
        }
        Ok(Some(joined))
    }
}
