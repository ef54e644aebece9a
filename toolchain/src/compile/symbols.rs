//! What is done to the symbols of confined assembly, after the rewriter and before the assembler.

use std::borrow::Cow;
use std::collections::HashSet;

/// The section of an object that names the functions which are the host's, whatever library has one
/// of that name.
pub const SERVICES: &str = ".postern.services";

/// The labels that a text defines.
fn labels(text: &str) -> HashSet<&str> {
    text.lines()
        .filter_map(|line| line.strip_suffix(':'))
        .collect()
}

/// Turns the visibility by which POSTERN_IMPORT marks a function of the host (protected, and not
/// defined here) into a section that the link reads and drops: ld has no use for a protected symbol
/// that nobody defines.
pub(super) fn note_services(text: &str) -> Cow<'_, str> {
    const MARK: &str = "\t.protected\t";
    if !text.contains(MARK) {
        return text.into();
    }
    let defined = labels(text);
    let mut out = String::with_capacity(text.len() + 100);
    for line in text.lines() {
        match line.strip_prefix(MARK) {
            Some(name) if !defined.contains(name) => {
                out.push_str(&format!(
                    "\t.pushsection {SERVICES},\"e\",@progbits\n\t.asciz \"{name}\"\n\t.popsection\n"
                ));
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out.into()
}

/// Gives every symbol that is defined here hidden visibility, whatever the source says.
pub(super) fn hide(text: &mut String) {
    let defined = labels(text);
    let mut directives = String::new();
    for line in text.lines() {
        let symbol = [".globl", ".weak"]
            .iter()
            .find_map(|d| line.trim().strip_prefix(d));
        if let Some(symbol) = symbol.map(str::trim)
            && defined.contains(symbol)
        {
            directives.push_str("\t.hidden\t");
            directives.push_str(symbol);
            directives.push('\n');
        }
    }
    text.push_str(&directives);
}
