//! Programs of the classic BSD packet filter, as `tcpdump -ddd` prints them: a count, then lines of
//! four numbers.
//!
//! The machine has an accumulator, an index register and 16 words of memory; all become variables,
//! which `flow` turns into expressions again. Jumps go forward only, so the graph is made from the
//! last instruction to the first. The other way is `write`, `layout`, and for the kernel
//! `coarse` and `gate`.

mod coarse;
mod gate;
mod layout;
mod op;
mod write;

pub(crate) use coarse::ranges;
pub use gate::Gate;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::error::Error;
use crate::expression::{Expr, ExprId, Op, Rel};
use crate::list::searched;
use crate::program::{Builder, NodeId, NodeKind, Program, REJECT};

const A: u8 = 0;
const X: u8 = 1;
const MEMORY: u8 = 2;
/// Words of memory.
const WORDS: u32 = 16;
/// The most instructions that systems take.
const MAX: usize = 4096;

/// An instruction of the classic machine, as Linux' `sock_filter` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// How many instructions are left out where its condition holds.
    pub jt: u8,
    /// The same where it does not.
    pub jf: u8,
    /// Its operand.
    pub k: u32,
}

/// The program as a classic one that does exactly the same.
pub(crate) fn exact(program: &Program) -> Option<Vec<Instruction>> {
    let manner = write::Manner {
        fail: layout::Target::Reject,
        tagged: false,
        returns: true,
        limit: usize::MAX,
    };
    let written = |program: &Program| {
        let mut listing = write::Listing::default();
        listing.program(program, manner);
        let list = layout::layout(&listing.items, listing.labels, program.accept);
        (!listing.coarse && list.len() <= MAX).then_some(list)
    };
    // A search takes fewer steps, and a list tested one by one may have fewer instructions.
    written(&searched(program)).or_else(|| written(program))
}

/// The program of a text.
pub(crate) fn read(text: &str) -> Result<Program, Error> {
    let list = parse(text)?;
    let mut made = Vec::new();
    let mut build = Builder::default();
    for (index, instruction) in list.iter().enumerate().rev() {
        // Distances count from the next instruction, which was made last.
        let target = |distance: u32| -> Result<NodeId, Error> {
            let behind = list.len() - 1 - index;
            usize::try_from(distance)
                .ok()
                .and_then(|distance| behind.checked_sub(1 + distance))
                .map(|at| made[at])
                .ok_or_else(|| wrong(index, "it goes on behind the last instruction"))
        };
        let node = one(&mut build, *instruction, &target)
            .map_err(|error| error.unwrap_or_else(|message| wrong(index, message)))?;
        made.push(node);
    }
    let entry = made.last().copied().unwrap_or(REJECT);
    Ok(build.finish(entry, 0))
}

/// An error about an instruction; the first is on line 1, behind the count.
fn wrong(index: usize, message: impl Into<String>) -> Error {
    let message = message.into();
    Error::new(
        index + 1..index + 2,
        alloc::format!("instruction {index}: {message}"),
    )
}

fn parse(text: &str) -> Result<Vec<Instruction>, Error> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty());
    let count = lines.next().and_then(|(_, line)| line.trim().parse().ok());
    let Some(count) = count.filter(|count| (1..=MAX).contains(count)) else {
        return Err(Error::new(
            0..1,
            alloc::format!("the first line is not a number of instructions from 1 to {MAX}"),
        )
        .suggest("`tcpdump -ddd` prints such programs"));
    };
    let mut list = Vec::new();
    for (number, line) in lines {
        let fields: Vec<u32> = line
            .split_whitespace()
            .filter_map(|field| field.parse().ok())
            .collect();
        let parsed = match fields[..] {
            [code, jt, jf, k] => u16::try_from(code)
                .ok()
                .zip(u8::try_from(jt).ok().zip(u8::try_from(jf).ok()))
                .map(|(code, (jt, jf))| Instruction { code, jt, jf, k }),
            _ => None,
        };
        let Some(instruction) = parsed.filter(|_| line.split_whitespace().count() == 4) else {
            let message = alloc::format!("line {} is not an instruction: four numbers", number + 1);
            return Err(Error::new(number..number + 1, message));
        };
        list.push(instruction);
    }
    if list.len() != count {
        let message = alloc::format!(
            "{count} instructions are announced and {} follow",
            list.len()
        );
        return Err(Error::new(0..1, message));
    }
    Ok(list)
}

/// Either an error that is complete, or what is wrong with the instruction.
type Wrong = Result<Error, &'static str>;

fn one(
    build: &mut Builder,
    Instruction { code, jt, jf, k }: Instruction,
    target: &dyn Fn(u32) -> Result<NodeId, Error>,
) -> Result<NodeId, Wrong> {
    let exprs = &mut build.exprs;
    let mut add = |expr: Expr| exprs.add(expr).map_err(|_| Err("it is too deep"));
    let next = |_: ()| target(0).map_err(Ok);
    let memory = |k: u32| {
        if k < WORDS {
            Ok(MEMORY + k as u8)
        } else {
            Err(Err("memory has 16 words"))
        }
    };
    let (a, x) = (add(Expr::Var(A))?, add(Expr::Var(X))?);
    let constant = add(Expr::Const(k))?;
    let size = match code & 0x18 {
        0 => 4,
        8 => 2,
        0x10 => 1,
        _ => 0,
    };
    let unknown = Err(Err("there is no such instruction"));
    let kind = match (code & 7, code & 0xe0) {
        // Loads of the accumulator.
        (0, 0x00) if size == 4 => NodeKind::Assign(A, constant),
        (0, 0x20) if size != 0 => NodeKind::Assign(
            A,
            add(Expr::Load {
                size,
                base: None,
                off: k,
            })?,
        ),
        (0, 0x40) if size != 0 => {
            let base = Some(x);
            NodeKind::Assign(A, add(Expr::Load { size, base, off: k })?)
        }
        (0, 0x60) if size == 4 => NodeKind::Assign(A, add(Expr::Var(memory(k)?))?),
        (0, 0x80) if size == 4 => NodeKind::Assign(A, add(Expr::Len)?),
        // Loads of the index register.
        (1, 0x00) if size == 4 => NodeKind::Assign(X, constant),
        (1, 0x60) if size == 4 => NodeKind::Assign(X, add(Expr::Var(memory(k)?))?),
        (1, 0x80) if size == 4 => NodeKind::Assign(X, add(Expr::Len)?),
        (1, 0xa0) if size == 1 => {
            let byte = add(Expr::Load {
                size: 1,
                base: None,
                off: k,
            })?;
            let (low, two) = (add(Expr::Const(0xf))?, add(Expr::Const(2))?);
            let words = add(Expr::Bin(Op::And, byte, low))?;
            NodeKind::Assign(X, add(Expr::Bin(Op::Shl, words, two))?)
        }
        (2, 0) if code == 2 => NodeKind::Assign(memory(k)?, a),
        (3, 0) if code == 3 => NodeKind::Assign(memory(k)?, x),
        (4, _) => {
            let b = if code & 8 != 0 { x } else { constant };
            let fixed = code & 8 == 0;
            let op = match code & 0xf0 {
                0x00 => Op::Add,
                0x10 => Op::Sub,
                0x20 => Op::Mul,
                0x30 => Op::Div,
                0x40 => Op::Or,
                0x50 => Op::And,
                0x60 => Op::Shl,
                0x70 => Op::Shr,
                0x80 if code == 0x84 => {
                    let zero = add(Expr::Const(0))?;
                    let value = add(Expr::Bin(Op::Sub, zero, a))?;
                    let next = next(())?;
                    return Ok(build.node(NodeKind::Assign(A, value), next, REJECT));
                }
                0x90 => Op::Mod,
                0xa0 => Op::Xor,
                _ => return unknown,
            };
            if code > 0xff {
                return unknown;
            }
            match op {
                Op::Div | Op::Mod if fixed && k == 0 => return Err(Err("a division by zero")),
                Op::Shl | Op::Shr if fixed && k > 31 => {
                    return Err(Err("a shift by more than 31 bits"));
                }
                _ => NodeKind::Assign(A, add(Expr::Bin(op, a, b))?),
            }
        }
        (5, _) => {
            let b = if code & 8 != 0 { x } else { constant };
            let rel = match code & !8 {
                0x05 if code == 5 => return target(k).map_err(Ok),
                0x15 => Rel::Eq,
                0x25 => Rel::Gt,
                0x35 => Rel::Ge,
                0x45 => Rel::Set,
                _ => return unknown,
            };
            let (yes, no) = (
                target(jt.into()).map_err(Ok)?,
                target(jf.into()).map_err(Ok)?,
            );
            return Ok(build.node(NodeKind::Test(a, rel, b), yes, no));
        }
        (6, _) => {
            let value: ExprId = match code {
                0x06 => constant,
                0x0e => x,
                0x16 => a,
                _ => return unknown,
            };
            return Ok(build.node(NodeKind::Return(value), REJECT, REJECT));
        }
        (7, 0x00) if code == 7 => NodeKind::Assign(X, a),
        (7, 0x80) if code == 0x87 => NodeKind::Assign(A, x),
        _ => return unknown,
    };
    let next = next(())?;
    Ok(build.node(kind, next, REJECT))
}

impl fmt::Display for Instruction {
    /// Name and operand as `tcpdump -d` prints them, but for the places that jumps go to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let k = self.k;
        let name = op::name(self.code);
        let text = match (self.code & 7, self.code & 0xf8) {
            (0 | 1, mode) => match mode & 0xe0 {
                0x00 => alloc::format!("#{k:#x}"),
                0x20 => alloc::format!("[{k}]"),
                0x40 => alloc::format!("[x + {k}]"),
                0x60 => alloc::format!("M[{k}]"),
                0x80 => "#pktlen".into(),
                _ => alloc::format!("4*([{k}]&0xf)"),
            },
            (2 | 3, _) => alloc::format!("M[{k}]"),
            (4, 0x80) | (7, _) | (6, 0x10) => String::new(),
            (4 | 5, rest) if rest & 8 != 0 => "x".into(),
            (4, 0x40 | 0x50 | 0xa0) => alloc::format!("#{k:#x}"),
            (5, 0) => alloc::format!("{k}"),
            (5, _) => alloc::format!("#{k:#x}"),
            _ => alloc::format!("#{k}"),
        };
        write!(f, "{name:<8} {text}")
    }
}

/// The program as `tcpdump -d` prints it, a line for each instruction.
pub fn listing(list: &[Instruction]) -> String {
    let mut text = String::new();
    for (index, one) in list.iter().enumerate() {
        let next = index + 1;
        let line = match one.code & 0xff {
            op::JUMP => alloc::format!("({index:03}) ja       {}\n", next + one.k as usize),
            code if code & 7 == 5 => {
                let (yes, no) = (next + usize::from(one.jt), next + usize::from(one.jf));
                let shown = alloc::format!("{one}");
                alloc::format!("({index:03}) {shown:<25} jt {yes}\tjf {no}\n")
            }
            _ => alloc::format!("({index:03}) {}\n", alloc::format!("{one}").trim_end()),
        };
        text += &line;
    }
    text
}
