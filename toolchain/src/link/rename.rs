//! New names for sections of an object, which tell the linker's script their order.

/// The name of the section that comes at this place.
pub fn name(place: usize) -> String {
    format!(".text.sorted.{place:08}")
}

/// Sizes and offsets of the ELF format (System V ABI, chapter 4).
const SECTION_TABLE: usize = 0x28;
const SECTION_COUNT: usize = 0x3c;
const NAMES_SECTION: usize = 0x3e;
const HEADER: usize = 64;
const HEADER_OFFSET: usize = 24;
const HEADER_SIZE: usize = 32;

/// The ELF object `data` with the sections of `order`, by number, named in that order. The table of
/// names is written anew at the end. None if the object has so many sections that their number is
/// elsewhere, or is none.
pub fn rename(data: &[u8], order: &[usize]) -> Option<Vec<u8>> {
    let table = usize::try_from(u64_at(data, SECTION_TABLE)?).ok()?;
    let count = usize::from(u16_at(data, SECTION_COUNT)?);
    let names = usize::from(u16_at(data, NAMES_SECTION)?);
    let header = |section: usize| {
        Some(section)
            .filter(|s| *s < count)
            .map(|s| table + s * HEADER)
    };
    let names = header(names)?;
    let (from, length) = (
        usize::try_from(u64_at(data, names + HEADER_OFFSET)?).ok()?,
        usize::try_from(u64_at(data, names + HEADER_SIZE)?).ok()?,
    );
    let mut strings = data.get(from..from.checked_add(length)?)?.to_vec();
    let mut out = data.to_vec();
    for (place, section) in order.iter().enumerate() {
        let at = header(*section)?;
        let offset = u32::try_from(strings.len()).ok()?;
        out.get_mut(at..at + 4)?
            .copy_from_slice(&offset.to_le_bytes());
        strings.extend(name(place).bytes().chain([0]));
    }
    let (offset, length) = (out.len() as u64, strings.len() as u64);
    out.extend(strings);
    out.get_mut(names + HEADER_OFFSET..names + HEADER_OFFSET + 8)?
        .copy_from_slice(&offset.to_le_bytes());
    out.get_mut(names + HEADER_SIZE..names + HEADER_SIZE + 8)?
        .copy_from_slice(&length.to_le_bytes());
    Some(out)
}

fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(data.get(at..)?.first_chunk().copied()?))
}

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(data.get(at..)?.first_chunk().copied()?))
}
