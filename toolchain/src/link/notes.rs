//! The notes of an extension file (the extension ABI, section 7), as assembly for the second link.

use std::fmt::Write;

use postern_verifier::window::{ABI_VERSION, FLAG_ANY_STACK, PAGE, SHIFT_FLAGS, slot};

use super::signatures::DebugInfo;
use super::symbols::Found;
use crate::features::Features;

/// Whether an import or export can have this name. It goes into assembly and linker scripts between
/// quotation marks, and there is no way to write those in both; no compiler makes such a name.
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    (1..=255).contains(&name.len()) && name.bytes().all(plain)
}

/// What the header note says that is not found in the code.
pub struct Header {
    /// Segment register of memory operands: 0 is gs, 1 is fs.
    pub segment: u32,
    /// Binary logarithm of the data stack's size.
    pub stack_log2: u32,
    /// Bytes of heap that the extension wishes for.
    pub heap: u64,
    /// How many pages higher than it needs the code begins.
    pub shift: u32,
}

/// Assembly that defines the imports as the addresses of their slots, which lie `shift` pages
/// higher than they need, and the notes. The flags of the header say that, and whether the data
/// stack has the size that is linked; the others are filled in after the verifier has said what the
/// text uses.
pub fn assembly(found: &Found, debug: &DebugInfo, header: &Header, features: &Features) -> String {
    let Header {
        segment,
        stack_log2,
        heap,
        shift,
    } = *header;
    let mut out = String::new();
    for (k, name) in found.undefined.iter().enumerate() {
        let _ = writeln!(
            out,
            "\t.globl \"{name}\"\n\t.set \"{name}\", {:#x}",
            slot(k as u32) + shift * PAGE
        );
    }
    if found.wants_thread_pointer && found.thread_locals.is_none() {
        // So that there is a header for them, which asks the runtime for the stack protector's
        // word.
        out.push_str("\t.section .postern.tbss,\"awT\",@nobits\n\t.zero 1\n");
    }
    out.push_str("\t.section .note.postern,\"a\",@note\n");
    let any_stack = if found.fixed_stack { 0 } else { FLAG_ANY_STACK };
    note(&mut out, 1, |out| {
        let _ = writeln!(
            out,
            "\t.long {ABI_VERSION}, {segment}, {stack_log2}, {}\n\t.quad {heap}",
            shift << SHIFT_FLAGS | any_stack
        );
    });
    note(&mut out, 2, |out| {
        for name in &found.undefined {
            let signature = debug.imports.get(name).map_or("", String::as_str);
            let _ = writeln!(out, "\t.asciz \"{name}\", \"{signature}\"");
        }
    });
    note(&mut out, 3, |out| {
        for name in &found.exports {
            let signature = debug.exports.get(name).map_or("", String::as_str);
            let _ = writeln!(
                out,
                "\t.long \"{name}\"\n\t.asciz \"{name}\", \"{signature}\""
            );
        }
    });
    if !features.names().is_empty() {
        note(&mut out, 4, |out| {
            for name in features.names() {
                let _ = writeln!(out, "\t.asciz \"{name}\"");
            }
        });
    }
    out.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    out
}

fn note(out: &mut String, kind: u32, descriptor: impl Fn(&mut String)) {
    let _ = writeln!(
        out,
        "\t.p2align 2\n\t.long 8, 2f - 1f, {kind}\n\t.asciz \"Postern\"\n1:"
    );
    descriptor(out);
    out.push_str("2:\n\t.p2align 2\n");
}
