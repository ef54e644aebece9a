//! Any text as E-code: errors that print, or code that the verifier accepts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_ecode::{Compiler, Limits, Options, Places};
use postern_verifier::{Layout, Profile, Rule, buffer_len, verify, window};

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = core::str::from_utf8(bytes) else {
        return;
    };
    let limits = Limits {
        data: 1 << 20,
        bss: 1 << 24,
        ..Limits::default()
    };
    let unit = match Compiler::new(Options {
        limits,
        ..Options::default()
    })
    .compile(source)
    {
        Ok(unit) => unit,
        Err(errors) => {
            assert!(!errors.list.is_empty() && !errors.to_string().is_empty());
            return;
        }
    };
    let imports = unit.imports.len() as u32;
    if imports > window::MAX_IMPORTS {
        return;
    }
    let layout = Layout::new(imports);
    let places = Places {
        text: layout.text,
        rodata: 0x2000_0000,
        data: 0x3000_0000,
        bss: 0x4000_0000,
    };
    let placed = unit.place(&places, |import| {
        let index = unit.imports.iter().position(|other| other == import)?;
        Some(window::slot(index as u32))
    });
    let text = placed.expect("every import has a slot").text;
    let mut buffer = vec![0; buffer_len(text.len())];
    match verify(&text, &layout, Profile::User, &mut buffer) {
        // A constant that is the landing pad's is refused, which is harmless.
        Ok(_) => {}
        Err(violation) => {
            assert_eq!(violation.rule, Rule::StrayPad, "{violation}");
            return;
        }
    }
    // Everything that is exported is an instruction that was judged.
    let starts = postern_verifier::Starts::new(&buffer, text.len(), layout.text);
    for symbol in &unit.symbols {
        if symbol.section == postern_ecode::Section::Text {
            assert!(
                starts.contains(layout.text + symbol.offset),
                "{}",
                symbol.name
            );
        }
    }
});
