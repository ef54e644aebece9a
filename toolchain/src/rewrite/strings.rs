//! String instructions as loops.
//!
//! `movs`, `stos`, `cmps` and `scas` address memory through %es, which no override changes, so they
//! cannot be confined. `postern cc` keeps the compiler from making them; those of inline assembly
//! become the loops below, which leave rsi, rdi, rcx and, for the comparing ones, the flags as the
//! instruction would (the others lose the flags if they repeat; the caller keeps them where they
//! are wanted). The direction flag is always clear in an extension.

/// Whether the lines for a string instruction change flags that it leaves alone.
pub fn loses_flags(stem: &str, repeat: Option<&str>) -> bool {
    repeat.is_some() && !matches!(stem, "cmps" | "scas")
}

/// The lines for one string instruction. `label` is a fresh label's stem. `repeat` is the prefix,
/// if any.
pub fn expand(
    stem: &str,
    width: u8,
    repeat: Option<&str>,
    label: &str,
) -> Result<Vec<String>, String> {
    let suffix = match width {
        1 => 'b',
        2 => 'w',
        4 => 'l',
        _ => 'q',
    };
    let temporary = ["%r11b", "%r11w", "%r11d", "%r11"][width.trailing_zeros() as usize & 3];
    let accumulator = ["%al", "%ax", "%eax", "%rax"][width.trailing_zeros() as usize & 3];
    let (rsi, rdi) = (
        format!("\tleaq\t{width}(%rsi), %rsi"),
        format!("\tleaq\t{width}(%rdi), %rdi"),
    );
    // What one round does after the registers have moved on, and, for comparisons, the comparison
    // alone.
    let (moves, body, compare): (Vec<String>, Vec<String>, Option<String>) = match stem {
        "movs" => (
            vec![rsi, rdi],
            vec![
                format!("\tmov{suffix}\t%gs:-{width}(%esi), {temporary}"),
                format!("\tmov{suffix}\t{temporary}, %gs:-{width}(%edi)"),
            ],
            None,
        ),
        "stos" => (
            vec![rdi],
            vec![format!("\tmov{suffix}\t{accumulator}, %gs:-{width}(%edi)")],
            None,
        ),
        "lods" => (
            vec![rsi],
            vec![format!("\tmov{suffix}\t%gs:-{width}(%esi), {accumulator}")],
            None,
        ),
        "cmps" => (
            vec![rsi, rdi],
            vec![format!("\tmov{suffix}\t%gs:-{width}(%esi), {temporary}")],
            Some(format!("\tcmp{suffix}\t%gs:-{width}(%edi), {temporary}")),
        ),
        "scas" => (
            vec![rdi],
            vec![],
            Some(format!("\tcmp{suffix}\t%gs:-{width}(%edi), {accumulator}")),
        ),
        _ => {
            return Err(format!(
                "the string instruction `{stem}` cannot be confined"
            ));
        }
    };
    let mut out = Vec::new();
    let Some(repeat) = repeat else {
        out.extend(moves);
        out.extend(body);
        out.extend(compare);
        return Ok(out);
    };
    let leave_on = match (repeat, compare.is_some()) {
        ("rep" | "repe" | "repz", true) => Some("jne"),
        ("repne" | "repnz", true) => Some("je"),
        ("rep" | "repe" | "repz" | "repne" | "repnz", false) => None,
        _ => {
            return Err(format!(
                "the prefix `{repeat}` does not fit a string instruction"
            ));
        }
    };
    out.push("\ttestq\t%rcx, %rcx".to_owned());
    out.push(format!("\tje\t{label}e"));
    out.push(format!("{label}:"));
    out.extend(moves);
    out.push("\tleaq\t-1(%rcx), %rcx".to_owned());
    out.extend(body);
    if let (Some(compare), Some(jump)) = (&compare, leave_on) {
        out.push(compare.clone());
        out.push(format!("\t{jump}\t{label}e"));
    }
    out.push("\ttestq\t%rcx, %rcx".to_owned());
    out.push(format!("\tjne\t{label}"));
    // The count ran out: the flags are those of the last comparison.
    out.extend(compare);
    out.push(format!("{label}e:"));
    Ok(out)
}
