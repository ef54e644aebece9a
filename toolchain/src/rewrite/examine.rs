//! `fxam`, which says what kind of number is on top of the x87 stack. It also tells the sign of an
//! empty register, which may be the host's, so the verifier refuses it. Compilers write it together
//! with `fnstsw %ax` and look at the condition bits in %ah; the pair becomes a store and
//! comparisons that set the same bits.

use super::flags::Flags;
use super::program::Program;
use crate::assembly::{Instruction, Operand, StatementKind};

/// Condition bits of the status word, in the upper half of %ax.
const C0: u16 = 0x100;
const C1: u16 = 0x200;
const C2: u16 = 0x400;
const C3: u16 = 0x4000;

/// The instruction that follows `index` in its section with nothing but line information between.
fn following(program: &Program, index: usize) -> Option<usize> {
    let mut at = program.next[index]?;
    loop {
        match &program.statements[at].kind {
            StatementKind::Instruction(_) => return Some(at),
            StatementKind::Directive { name, .. } if name == ".loc" => at = program.next[at]?,
            _ => return None,
        }
    }
}

/// Whether `instruction` is `fnstsw %ax`.
fn stores_status(instruction: &Instruction) -> bool {
    instruction.mnemonic == "fnstsw"
        && matches!(instruction.operands.as_slice(), [Operand::Register(r)] if r.is_general(0))
}

/// The index of the `fnstsw %ax` that belongs to the `fxam` at `index`, and whether flags from
/// before are wanted behind it.
///
/// # Errors
/// There is none.
pub fn partner(program: &Program, flags: &Flags, index: usize) -> Result<(usize, bool), String> {
    let partner = following(program, index)
        .filter(|at| program.instruction(*at).is_some_and(stores_status))
        .ok_or("`fxam` can be confined only with `fnstsw %ax` right behind it")?;
    let flags = program.next[partner].is_some_and(|next| flags.live(next));
    Ok((partner, flags))
}

/// The lines for the pair that leave the flags as they were. `flags` and `status` are unused slots
/// of 8 bytes. Before the pair %ax is free, since it is about to be written.
pub fn keeping_flags(pair: Vec<String>, flags: &str, status: &str) -> Vec<String> {
    let mut lines = vec![
        "\tlahf".to_owned(),
        "\tseto\t%al".to_owned(),
        format!("\tmovw\t%ax, {flags}"),
    ];
    lines.extend(pair);
    lines.push(format!("\tmovw\t%ax, {status}"));
    lines.push(format!("\tmovw\t{flags}, %ax"));
    // 1 + 127 overflows.
    lines.push("\taddb\t$127, %al".to_owned());
    lines.push("\tsahf".to_owned());
    lines.push(format!("\tmovw\t{status}, %ax"));
    lines
}

/// The lines for the pair. `scratch` is an unused slot of 16 bytes, `upper` its second half;
/// `label` is a fresh label's stem. Writes %ax, %r11 and the flags.
pub fn expand(scratch: &str, upper: &str, label: &str) -> Vec<String> {
    let bits = |bits: u16| format!("\torw\t${bits:#x}, %ax");
    let done = format!("\tjmp\t{label}e");
    vec![
        format!("\tfstpt\t{scratch}"),
        format!("\tfldt\t{scratch}"),
        "\tfnstsw\t%ax".to_owned(),
        format!("\tandw\t${:#x}, %ax", !(C0 | C1 | C2 | C3)),
        format!("\tmovzwl\t{upper}, %r11d"),
        "\ttestw\t%r11w, %r11w".to_owned(),
        format!("\tjns\t{label}p"),
        bits(C1),
        format!("{label}p:"),
        "\tandl\t$0x7fff, %r11d".to_owned(),
        format!("\tje\t{label}z"),
        // Without its integer bit a number is of no kind.
        format!("\tcmpq\t$0, {scratch}"),
        format!("\tjns\t{label}e"),
        "\tcmpl\t$0x7fff, %r11d".to_owned(),
        format!("\tje\t{label}s"),
        bits(C2),
        done.clone(),
        format!("{label}s:"),
        bits(C0),
        format!("\tmovq\t{scratch}, %r11"),
        "\taddq\t%r11, %r11".to_owned(),
        format!("\tjne\t{label}e"),
        bits(C2),
        done.clone(),
        format!("{label}z:"),
        bits(C3),
        format!("\tcmpq\t$0, {scratch}"),
        format!("\tje\t{label}e"),
        bits(C2),
        format!("{label}e:"),
    ]
}
