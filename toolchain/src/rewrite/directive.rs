//! Directives: which pass, which are dropped, which cannot be.

use super::program::section_and_flags;

/// What to do with a directive.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Emit it as it is.
    Pass,
    /// It describes the compiler's frame. Whatever it says is true of %r15 at calls (the bias is 0
    /// there), which is where an unwinder looks: emit it if there is something to unwind.
    Frame,
    /// Line information: emit it if debug information is kept.
    Line,
    /// An alignment; among instructions its padding must be instructions that the verifier accepts.
    Align(Alignment),
}

/// An alignment directive.
#[derive(Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Binary logarithm.
    pub log2: u32,
    /// Do nothing if more bytes than this would be skipped.
    pub most: Option<u32>,
    /// The directive names its filling.
    pub filled: bool,
}

const PASS: &str = ".file .ident .text .data .bss .section .pushsection .popsection .previous .subsection .globl .global \
    .local .comm .lcomm .tls_common .type .size .weak .hidden .protected .internal .byte .value .2byte .word .short .hword .long .int \
    .4byte .quad .8byte .octa .float .single .double .string .string8 .ascii .asciz .zero .skip .space .fill .uleb128 \
    .sleb128 .set .equ .weakref .symver .att_syntax .attach_to_group .gnu_attribute .line .ln .print .version .incbin";

/// Directives that the text assembler knows and the rewriter does not follow.
const REFUSED: &[(&str, &str)] = &[
    (
        ".altmacro .noaltmacro",
        "only macros in gas's usual form are expanded",
    ),
    (
        ".include",
        "no file is read by the assembler; use the C preprocessor in a .S file",
    ),
    (
        ".endm .endr .exitm .purgem .else .elseif .endif",
        "what it belongs to does not stand before it",
    ),
    (
        ".intel_syntax",
        "only AT&T syntax is understood; compile without -masm=intel",
    ),
    (".code16 .code32 .code16gcc", "an extension is 64-bit code"),
    (
        ".org",
        "it moves the location counter past what can be checked",
    ),
    (
        ".insn .bundle_align_mode .bundle_lock .bundle_unlock",
        "it makes instructions that cannot be followed",
    ),
];

/// Judges the directive `name` with `arguments`.
pub fn judge(name: &str, arguments: &str) -> Result<Verdict, String> {
    match name {
        ".loc" => return Ok(Verdict::Line),
        ".align" | ".balign" | ".p2align" | ".balignw" | ".balignl" | ".p2alignw" | ".p2alignl" => {
            return alignment(name, arguments).map(Verdict::Align);
        }
        ".section" | ".pushsection" => {
            let (section, flags) = section_and_flags(arguments);
            let flags = flags.unwrap_or("");
            if section == ".note.GNU-stack" && flags.contains('x') {
                return Err("this code needs an executable stack (the address of a nested function?): data is never executable".to_owned());
            }
            if flags.contains('w') && flags.contains('x') {
                return Err(format!(
                    "the section `{section}` is writable and executable: text is never writable"
                ));
            }
        }
        ".type" if arguments.contains("gnu_indirect_function") => {
            return Err(
                "functions chosen at load time (ifunc) are not supported in extensions".to_owned(),
            );
        }
        _ => {}
    }
    if name.starts_with(".cfi_") {
        return Ok(Verdict::Frame);
    }
    for (words, reason) in REFUSED {
        if words.split_whitespace().any(|word| word == name) {
            return Err(format!("`{name}`: {reason}"));
        }
    }
    if PASS.split_whitespace().any(|word| word == name) {
        return Ok(Verdict::Pass);
    }
    Err(format!("the directive `{name}` is not understood"))
}

fn alignment(name: &str, arguments: &str) -> Result<Alignment, String> {
    let malformed = || format!("`{name} {arguments}` is not understood");
    let parts = crate::assembly::scan::split_commas(arguments);
    let number = |k: usize| -> Result<Option<u32>, String> {
        match parts.get(k).copied().filter(|part| !part.is_empty()) {
            None => Ok(None),
            Some(part) => crate::assembly::Expression::parse(part)
                .ok()
                .and_then(|e| e.value())
                .and_then(|v| u32::try_from(v).ok())
                .map(Some)
                .ok_or_else(malformed),
        }
    };
    let amount = number(0)?.ok_or_else(malformed)?;
    let log2 = if name.starts_with(".p2") {
        amount
    } else if amount.is_power_of_two() {
        amount.trailing_zeros()
    } else if amount == 0 {
        0
    } else {
        return Err(malformed());
    };
    if log2 > 12 {
        return Err(format!(
            "`{name} {arguments}`: an alignment of more than a page cannot be kept"
        ));
    }
    Ok(Alignment {
        log2,
        most: number(2)?,
        filled: number(1)?.is_some(),
    })
}

impl Alignment {
    /// The lines for an alignment that control does not reach.
    pub fn unreached(&self) -> Vec<String> {
        let most = self.most.map_or(String::new(), |most| format!(",{most}"));
        vec![format!("\t.p2align {},0xcc{most}", self.log2)]
    }

    /// The lines for an alignment that control runs through: NOPs of at most eight bytes, since the
    /// longer ones that the assembler would take have a segment override. Steps of eight and
    /// sixteen make sure of that; above, NOPs of four bytes.
    pub fn reached(&self) -> Vec<String> {
        if self.log2 < 3 {
            return match self.log2 {
                0 => Vec::new(),
                _ => vec![format!("\t.p2align {}", self.log2)],
            };
        }
        (3..=self.log2.min(4))
            .map(|log2| format!("\t.p2align {log2}"))
            .chain((self.log2 > 4).then(|| format!("\t.p2alignl {},0x00401f0f", self.log2)))
            .collect()
    }
}
