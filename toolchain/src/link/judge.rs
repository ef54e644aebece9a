//! The verifier's judgement of a linked extension.

use std::path::Path;

use object::elf::{PF_X, PT_LOAD, PT_NOTE};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSymbol as _};
use postern_verifier::{
    Layout, Profile, Rule, Segment, Violation, bounded_buffer_len, buffer_len, verify,
};

use super::LinkError;

/// Verifies the text of the file at `path` and, if it is accepted, writes into the header note what
/// the text uses.
///
/// Its gate slots lie `shift` pages higher than they need.
pub fn judge(path: &Path, imports: u32, shift: u32, kernel: bool) -> Result<(), LinkError> {
    let file_error = |source| LinkError::File {
        path: path.to_owned(),
        source,
    };
    let malformed = |reason: &str| LinkError::Malformed {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let data = super::symbols::load(path)?;
    let file = ElfFile64::<Endianness>::parse(&*data)
        .map_err(|_| malformed("the linker wrote no ELF file"))?;
    let little = Endianness::Little;
    let headers = file
        .elf_header()
        .program_headers(little, &*data)
        .map_err(|_| malformed("the linker wrote no program headers"))?;
    let text = headers
        .iter()
        .find(|header| header.p_type(little) == PT_LOAD && header.p_flags(little) & PF_X != 0)
        .and_then(|header| header.data(little, &*data).ok())
        .ok_or_else(|| malformed("the linker wrote no text"))?;
    let layout = Layout::new(imports).shifted(shift);
    let (layout, profile, words) = match kernel {
        true => (
            Layout {
                segment: Segment::Fs,
                ..layout
            },
            Profile::Kernel,
            bounded_buffer_len(text.len()),
        ),
        false => (layout, Profile::User, buffer_len(text.len())),
    };
    let facts = verify(text, &layout, profile, &mut vec![0; words])
        .map_err(|violation| LinkError::Refused(describe(&file, text, layout.text, &violation)))?;

    // The header note is first; its descriptor begins after three words and the name.
    let note = headers
        .iter()
        .find(|header| header.p_type(little) == PT_NOTE);
    let flags_at = note.map(|header| header.p_offset(little) as usize + 12 + 8 + 12);
    if facts.x87 {
        let mut data = data.clone();
        if let Some(flags) = flags_at.and_then(|at| data.get_mut(at)) {
            *flags |= 1;
        }
        std::fs::write(path, data).map_err(file_error)?;
    }
    Ok(())
}

/// The refusal in the compiler's form, as far as the file's symbols and line table can tell the
/// place. `text` begins at `start`.
fn describe(
    file: &ElfFile64<Endianness>,
    text: &[u8],
    start: u32,
    violation: &Violation,
) -> String {
    let at = u64::from(violation.offset);
    let symbol = symbol_at(file, at);
    let line =
        super::signatures::line_of(file, at).map_or(String::new(), |line| format!("{line}: "));
    let callee = callee(text, start, violation).and_then(|callee| symbol_at(file, callee));
    if let (Some((caller, _)), Some((callee, _))) = (&symbol, callee) {
        return super::order::calls_back(&line, caller, &callee);
    }
    let place = match symbol {
        Some((name, start)) => format!("`{name}`+{:#x}", at - start),
        None => format!("offset {at:#x}"),
    };
    let hint = match violation.rule {
        Rule::Prefix => {
            ". Objects that are made with and without --kernel cannot be linked together"
        }
        _ => "",
    };
    format!("{line}error: the verifier refuses the instruction at {place}: {violation}{hint}")
}

/// Where the call goes that goes back, if that is what is wrong.
fn callee(text: &[u8], start: u32, violation: &Violation) -> Option<u64> {
    if violation.rule != Rule::KernelCall {
        return None;
    }
    let at = usize::try_from(violation.offset.checked_sub(start)?).ok()?;
    // An opcode and a distance, counted from the end.
    let distance = i32::from_le_bytes(*text.get(at + 1..)?.first_chunk()?);
    Some(u64::from(
        violation
            .offset
            .wrapping_add_signed(distance)
            .wrapping_add(5),
    ))
}

/// The function at an address, as it can be shown, and where it begins.
fn symbol_at(file: &ElfFile64<Endianness>, at: u64) -> Option<(String, u64)> {
    let symbol = file
        .symbols()
        .filter(|symbol| {
            symbol.is_definition()
                && symbol.address() <= at
                && symbol.kind() == object::SymbolKind::Text
        })
        .max_by_key(|symbol| symbol.address())?;
    Some((super::shown(symbol.name().ok()?), symbol.address()))
}
