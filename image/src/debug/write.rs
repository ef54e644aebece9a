//! Symbols and lines of a text as sections of an ELF file: what debuggers read, and this module's
//! readers, too; and how frames are unwound. The last is one rule for all text: the control stack
//! holds nothing but return addresses.
//!
//! DWARF 4 (sections 6.2, 6.4 and 7): `.debug_line` is in the form of version 2, the oldest that
//! every debugger reads.

use super::sections::SECTION_HEADER_SIZE;
use super::symbols::SYMBOL_SIZE;
use super::{Function, LineTable};
use crate::elf;

const SECTION: usize = SECTION_HEADER_SIZE as usize;

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn byte(&mut self, value: u8) -> &mut Bytes {
        self.0.push(value);
        self
    }
    fn half(&mut self, value: u16) -> &mut Bytes {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn word(&mut self, value: u32) -> &mut Bytes {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn long(&mut self, value: u64) -> &mut Bytes {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn text(&mut self, text: &str) -> &mut Bytes {
        self.0.extend(text.bytes().filter(|&b| b != 0));
        self.byte(0)
    }
    fn unsigned(&mut self, mut value: u64) -> &mut Bytes {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8)
    }
    fn signed(&mut self, mut value: i64) -> &mut Bytes {
        while !(-64..64).contains(&value) {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8 & 0x7f)
    }
    /// Puts its own length in front.
    fn counted(self) -> Vec<u8> {
        let mut all = (self.0.len() as u32).to_le_bytes().to_vec();
        all.extend(self.0);
        all
    }
}

/// A section: name, type, flags, address, bytes in memory (for one without contents), link, entry
/// size, contents.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    size: u64,
    link: u32,
    entry: u64,
    data: Vec<u8>,
}

fn debug(name: &'static str, data: Vec<u8>) -> Section {
    Section {
        name,
        kind: 1,
        flags: 0,
        address: 0,
        size: data.len() as u64,
        link: 0,
        entry: 0,
        data,
    }
}

/// Names and lines of a text.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    /// Of the whole.
    pub name: &'a str,
    /// Address of offset 0.
    pub base: u64,
    /// Offset of the text's first byte, and of what is behind its last.
    pub text: (u32, u32),
    /// By offset.
    pub functions: &'a [Function<'a>],
    /// Their rows are inside the text.
    pub lines: &'a LineTable,
}

impl Listing<'_> {
    /// An ELF file of nothing else.
    pub fn object(&self) -> Vec<u8> {
        let mut bytes = Bytes(vec![0x7f, b'E', b'L', b'F', 2, 1, 1]);
        bytes.0.resize(16, 0);
        bytes.half(elf::ET_EXEC).half(elf::EM_X86_64).word(1);
        bytes.long(0).long(0).long(0).word(0);
        bytes.half(elf::HEADER_SIZE as u16).half(0).half(0);
        bytes.half(0).half(0).half(0);
        self.append(&mut bytes.0);
        bytes.0
    }

    /// Adds this to an ELF file that has no sections; no effect if it is none.
    pub fn append(&self, file: &mut Vec<u8>) {
        append(file, self.sections());
    }

    fn address(&self, offset: u32) -> u64 {
        self.base.wrapping_add(offset.into())
    }

    /// Addresses of the text: the first, and how many.
    fn addresses(&self) -> (u64, u64) {
        let (start, end) = self.text;
        (self.address(start), end.saturating_sub(start).into())
    }

    fn sections(&self) -> Vec<Section> {
        let (address, size) = self.addresses();
        let mut names = Bytes(vec![0]);
        let mut symbols = Bytes(vec![0; SYMBOL_SIZE]);
        for f in self.functions {
            // A global function in section 1.
            symbols.word(names.0.len() as u32).byte(1 << 4 | 2).byte(0);
            symbols.half(1).long(self.address(f.start));
            symbols.long(f.end.saturating_sub(f.start).into());
            names.text(f.name);
        }
        let mut symbol_table = debug(".symtab", symbols.0);
        (symbol_table.kind, symbol_table.link, symbol_table.entry) = (2, 3, SYMBOL_SIZE as u64);
        let mut name_table = debug(".strtab", names.0);
        name_table.kind = 3;
        let code = Section {
            name: ".text",
            kind: 8,
            flags: 6,
            address,
            size,
            link: 0,
            entry: 0,
            data: Vec::new(),
        };
        vec![
            code,
            symbol_table,
            name_table,
            debug(".debug_abbrev", abbreviations()),
            debug(".debug_info", self.info()),
            debug(".debug_line", self.program()),
            debug(".debug_frame", frames(address, size)),
        ]
    }

    fn info(&self) -> Vec<u8> {
        const C99: u16 = 0x0c;
        let mut bytes = Bytes::default();
        bytes.half(4).word(0).byte(8);
        let (start, size) = self.addresses();
        bytes.byte(1).text(self.name).half(C99);
        bytes.long(start).long(size).word(0);
        for f in self.functions {
            bytes.byte(2).text(f.name);
            bytes.long(self.address(f.start));
            bytes.long(f.end.saturating_sub(f.start).into());
        }
        bytes.byte(0);
        bytes.counted()
    }

    fn program(&self) -> Vec<u8> {
        // Lengths of the operands of the standard opcodes 1 to 9.
        const OPERANDS: [u8; 9] = [0, 1, 1, 1, 1, 0, 0, 0, 1];
        let mut header = Bytes::default();
        // Shortest instruction, rows are statements, line base and range (special opcodes are not
        // used), first special opcode.
        header.byte(1).byte(1).byte(0xfb).byte(14).byte(10);
        header.0.extend_from_slice(&OPERANDS);
        // No directories.
        header.byte(0);
        for file in &self.lines.files {
            // An empty name would end the list.
            let file = if file.is_empty() { "?" } else { file };
            header.text(file).byte(0).byte(0).byte(0);
        }
        header.byte(0);
        let mut program = Bytes::default();
        let (mut line, mut file) = (1i64, 1u32);
        for row in &self.lines.rows {
            program.byte(0).byte(9).byte(2);
            program.long(self.address(row.offset));
            if row.file.saturating_add(1) != file {
                file = row.file.saturating_add(1);
                program.byte(4).unsigned(file.into());
            }
            program.byte(3).signed(i64::from(row.line) - line).byte(1);
            line = row.line.into();
        }
        let (start, size) = self.addresses();
        program
            .byte(0)
            .byte(9)
            .byte(2)
            .long(start.wrapping_add(size));
        program.byte(0).byte(1).byte(1);
        let mut bytes = Bytes::default();
        bytes.half(2).word(header.0.len() as u32);
        bytes.0.extend(header.0);
        bytes.0.extend(program.0);
        bytes.counted()
    }
}

fn abbreviations() -> Vec<u8> {
    let unit: &[u64] = &[
        1, 0x11, 1, 0x03, 0x08, 0x13, 0x05, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0,
    ];
    let function: &[u64] = &[
        2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0x3f, 0x19, 0, 0,
    ];
    let mut bytes = Bytes::default();
    for &value in unit.iter().chain(function).chain(&[0]) {
        bytes.unsigned(value);
    }
    bytes.0
}

fn frames(start: u64, size: u64) -> Vec<u8> {
    let mut common = Bytes::default();
    // Version 1, no augmentation, factors 1 and -8, return address in column 16.
    common
        .word(u32::MAX)
        .byte(1)
        .byte(0)
        .byte(1)
        .byte(0x78)
        .byte(16);
    // The frame is rsp + 8; the return address lies at frame - 8.
    common.0.extend_from_slice(&[0x0c, 7, 8, 0x90, 1]);
    while common.0.len() % 8 != 4 {
        common.byte(0);
    }
    let mut frame = Bytes::default();
    frame.word(0).long(start).long(size);
    while frame.0.len() % 8 != 4 {
        frame.byte(0);
    }
    let mut all = common.counted();
    all.extend(frame.counted());
    all
}

/// Adds sections to a file that has none.
fn append(file: &mut Vec<u8>, mut sections: Vec<Section>) {
    if file.len() < elf::HEADER_SIZE as usize {
        return;
    }
    let mut names = Bytes(vec![0]);
    let mut at = Vec::new();
    sections.push(debug(".shstrtab", Vec::new()));
    for section in &sections {
        at.push(names.0.len() as u32);
        names.text(section.name);
    }
    if let Some(last) = sections.last_mut() {
        (last.kind, last.size) = (3, names.0.len() as u64);
        last.data = names.0;
    }
    // The first is no section.
    let mut headers = Bytes(vec![0; SECTION]);
    for (section, name) in sections.iter().zip(at) {
        file.resize(file.len().next_multiple_of(8), 0);
        headers.word(name).word(section.kind).long(section.flags);
        headers
            .long(section.address)
            .long(file.len() as u64)
            .long(section.size);
        // One symbol, the empty one, is local.
        headers
            .word(section.link)
            .word(u32::from(section.kind == 2));
        headers.long(1).long(section.entry);
        file.extend_from_slice(&section.data);
    }
    file.resize(file.len().next_multiple_of(8), 0);
    // e_shoff, and e_shentsize, e_shnum and e_shstrndx.
    let (start, count) = (file.len() as u64, sections.len() as u16);
    file[40..48].copy_from_slice(&start.to_le_bytes());
    for (at, half) in [(58, SECTION as u16), (60, count + 1), (62, count)] {
        file[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    file.extend(headers.0);
}
