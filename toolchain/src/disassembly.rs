//! Instructions in the syntax of GNU as, for people. The verifier alone decides; this only shows.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Instruction};

/// One instruction.
#[derive(Clone, Debug)]
pub struct Line {
    /// Window offset.
    pub offset: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Mnemonic and operands.
    pub text: String,
}

impl Line {
    /// `offset: bytes text`, in columns.
    pub fn columns(&self) -> String {
        let bytes: Vec<String> = self.bytes.iter().map(|b| format!("{b:02x}")).collect();
        format!(
            "{:8x}:  {:<30}  {}",
            self.offset,
            bytes.join(" "),
            self.text
        )
    }
}

/// A formatter that writes as `objdump -d` does, so that a line can be searched for there.
pub fn formatter() -> GasFormatter {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_gas_show_mnemonic_size_suffix(false);
    options.set_space_after_operand_separator(false);
    options.set_rip_relative_addresses(false);
    formatter
}

/// The instructions of `text`, which lies at `base`, one after the other from `from` on. What is no
/// instruction is one of one byte.
pub fn walk(text: &[u8], base: u32, from: u32) -> impl Iterator<Item = Instruction> + '_ {
    let mut at = from.saturating_sub(base) as usize;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let ip = u64::from(base) + at as u64;
        let mut instruction = Decoder::with_ip(64, rest, ip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            instruction.set_len(1);
        }
        at += instruction.len();
        Some(instruction)
    })
}

/// The instructions around `offset`: up to `before` of those from `start` (a known instruction
/// start, such as a function's) on, the one at `offset`, and up to `after`.
pub fn around(
    text: &[u8],
    base: u32,
    start: u32,
    offset: u32,
    before: usize,
    after: usize,
) -> Vec<Line> {
    let mut formatter = formatter();
    let mut line = |instruction: &Instruction| {
        let at = (instruction.ip() - u64::from(base)) as usize;
        let bytes = text
            .get(at..at + instruction.len())
            .unwrap_or_default()
            .to_vec();
        let mut shown = String::new();
        if instruction.is_invalid() {
            shown.push_str("(bad)");
        } else {
            formatter.format(instruction, &mut shown);
        }
        Line {
            offset: instruction.ip() as u32,
            bytes,
            text: shown,
        }
    };
    let mut kept = std::collections::VecDeque::new();
    for instruction in walk(text, base, start).take_while(|i| i.next_ip() <= u64::from(offset)) {
        if kept.len() == before {
            kept.pop_front();
        }
        kept.push_back(instruction);
    }
    // Where the walk did not arrive at the offset, the lines before it would be another reading of
    // the same bytes.
    if kept
        .back()
        .is_some_and(|last| last.next_ip() != u64::from(offset))
    {
        kept.clear();
    }
    let mut lines: Vec<Line> = if before == 0 {
        Vec::new()
    } else {
        kept.iter().map(&mut line).collect()
    };
    lines.extend(walk(text, base, offset).take(after + 1).map(|i| line(&i)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_an_offset() {
        // mov %rax,%rcx; mov (%rdi),%rax; ret; then no instruction.
        let text = [0x48, 0x89, 0xc1, 0x48, 0x8b, 0x07, 0xc3, 0x06];
        let lines = around(&text, 0x1000, 0x1000, 0x1003, 4, 4);
        let texts: Vec<&str> = lines.iter().map(|l| l.text.as_str()).collect();
        assert_eq!(texts, ["mov %rax,%rcx", "mov (%rdi),%rax", "ret", "(bad)"]);
        assert_eq!(
            (lines[1].offset, &lines[1].bytes[..]),
            (0x1003, &text[3..6])
        );
        assert!(lines[0].columns().starts_with("    1000:  48 89 c1  "));
        // Not an instruction start: no lines before, the walk goes on from the offset.
        let lines = around(&text, 0x1000, 0x1000, 0x1001, 4, 0);
        assert_eq!((lines.len(), lines[0].offset), (1, 0x1001));
        assert!(around(&text, 0x1000, 0x1000, 0x1008, 0, 4).is_empty());
    }
}
