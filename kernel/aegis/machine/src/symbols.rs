//! Names of the kernel's addresses, as text for its backtraces: a line for each function,
//! `ADDRESS NAME` with sixteen digits, in the order of addresses.

use object::{Object, ObjectSymbol, SymbolKind};

/// The functions of an ELF file as lines; a hash that compilers put behind names is left out.
pub fn lines(elf: &[u8]) -> Result<String, object::Error> {
    let file = object::File::parse(elf)?;
    let named = file.symbols().filter(|symbol| {
        // Assembly's labels have no kind; what the linker script defines has no section.
        let kind = matches!(
            symbol.kind(),
            SymbolKind::Text | SymbolKind::Unknown | SymbolKind::Label
        );
        kind && symbol.section_index().is_some()
    });
    let mut found: Vec<(u64, String)> = named
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            let name = format!("{:#}", rustc_demangle::demangle(name));
            Some((symbol.address(), name.replace('\n', " ")))
        })
        .collect();
    found.sort();
    found.dedup_by_key(|(address, _)| *address);
    let lines = found.into_iter();
    Ok(lines
        .map(|(address, name)| format!("{address:016x} {name}\n"))
        .collect())
}

/// The function that an address lies in, and how far.
pub fn find(lines: &str, address: u64) -> Option<(&str, u64)> {
    let parsed = lines.lines().filter_map(|line| {
        let (start, name) = line.split_once(' ')?;
        Some((u64::from_str_radix(start, 16).ok()?, name))
    });
    let (start, name) = parsed.take_while(|(start, _)| *start <= address).last()?;
    Some((name, address - start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test's own program has names, in order, and functions of this crate among them.
    #[test]
    fn names_are_readable_and_in_order() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let lines = lines(&own).unwrap();
        let starts: Vec<u64> = lines
            .lines()
            .map(|line| u64::from_str_radix(&line[..16], 16).unwrap())
            .collect();
        assert!(starts.len() > 100);
        assert!(starts.is_sorted());
        let line = lines
            .lines()
            .find(|line| line[17..].starts_with("postern_aegis_machine::"));
        let line = line.unwrap();
        // The compiler's hash, `h` and sixteen digits, is left out.
        let last = line.rsplit("::").next().unwrap();
        let digits = last.strip_prefix('h').filter(|rest| rest.len() == 16);
        let hash = digits.is_some_and(|rest| u64::from_str_radix(rest, 16).is_ok());
        assert!(!hash, "{line}");
        let start = u64::from_str_radix(&line[..16], 16).unwrap();
        assert_eq!(find(&lines, start + 1), Some((&line[17..], 1)));
        assert_eq!(find(&lines, 0), None);
    }
}
