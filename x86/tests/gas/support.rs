//! Cases: what the assembler wrote, and the text that means the same. gas turns the text into
//! bytes, iced the bytes into text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};
use postern_x86::{Assembler, Gpr, Mem, Scale, Width, Xmm};

/// Why gas writes other bytes than a method does. It has no words for these, so it takes the
/// encoding that it likes best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exception {
    /// A form for al to rax alone, without a ModRM byte.
    Accumulator,
    /// `mov $imm, reg` without a ModRM byte.
    MovImmediate,
    /// A shift by 1 without a byte for that.
    ShiftByOne,
    /// A constant of one byte where the method promises four.
    ShortConstant,
    /// A `movq` between memory and xmm that is not the one for integers.
    VectorMove,
}

pub struct Case {
    code: Vec<u8>,
    text: String,
    /// In braces before the text, for gas only: which of two encodings it shall take.
    hint: &'static str,
    /// How iced says it, if that is not how gas does.
    read: Option<String>,
    /// It may come out otherwise.
    exception: Option<Exception>,
}

#[derive(Default)]
pub struct Cases(Vec<Case>);

/// Slots of the text, so that one instruction cannot become a part of the next.
const SLOT: usize = 16;
const FILL: u8 = 0xcc;

impl Cases {
    pub fn add(&mut self, text: String, write: impl FnOnce(&mut Assembler)) -> &mut Case {
        let mut asm = Assembler::new();
        write(&mut asm);
        self.0.push(Case {
            code: asm.take_code(),
            text,
            hint: "",
            read: None,
            exception: None,
        });
        self.0.last_mut().expect("it was just pushed")
    }

    /// Compares all of them, both ways. Returns how often each exception was made.
    pub fn check(&self) -> BTreeMap<Exception, usize> {
        let theirs = self.assemble();
        let (mut made, mut wrong) = (BTreeMap::new(), Vec::new());
        for (case, slot) in self.0.iter().zip(theirs.chunks_exact(SLOT)) {
            let mut own = case.code.clone();
            own.resize(SLOT, FILL);
            let read = disassemble(&case.code);
            if read.as_ref() != Some(case.read.as_ref().unwrap_or(&case.text)) {
                wrong.push(format!(
                    "{}: {:02x?} reads as {read:?}",
                    case.text, case.code
                ));
            }
            if own != slot {
                match case.exception {
                    Some(exception) => *made.entry(exception).or_default() += 1,
                    None => wrong.push(format!(
                        "{}: {:02x?}, gas has {slot:02x?}",
                        case.text, case.code
                    )),
                }
            }
        }
        let shown = wrong[..wrong.len().min(20)].join("\n");
        assert!(
            wrong.is_empty(),
            "{} of {} differ:\n{shown}",
            wrong.len(),
            self.0.len()
        );
        assert!(!self.0.is_empty());
        made
    }

    /// The bytes that gas makes of the texts, each in a slot.
    fn assemble(&self) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder for files");
        let path = |name: &str| folder.path().join(name);
        let mut source = String::new();
        for case in &self.0 {
            writeln!(
                source,
                "{} {}\n.balign {SLOT}, {FILL}",
                case.hint, case.text
            )
            .expect("text");
        }
        std::fs::write(path("source.s"), source).expect("a file");
        run(Command::new("as")
            .args(["--64", "-mindex-reg"])
            .arg("-o")
            .args([path("object.o"), path("source.s")]));
        run(Command::new("objcopy")
            .args(["-O", "binary", "-j", ".text"])
            .args([path("object.o"), path("text")]));
        let text = std::fs::read(path("text")).expect("text");
        assert_eq!(text.len(), SLOT * self.0.len());
        text
    }
}

impl Case {
    /// gas is to take the encoding that reads register or memory.
    pub fn load(&mut self) -> &mut Case {
        self.hint = "{load}";
        self
    }

    /// gas is to take a displacement of four bytes.
    pub fn disp32(&mut self) -> &mut Case {
        self.hint = "{disp32}";
        self
    }

    /// iced has other words for it.
    pub fn read_as(&mut self, text: String) -> &mut Case {
        self.read = Some(text);
        self
    }

    pub fn except(&mut self, when: bool, exception: Exception) -> &mut Case {
        if when {
            self.exception = Some(exception);
        }
        self
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("binutils are there");
    let errors = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = errors.lines().take(10).collect();
    assert!(output.status.success(), "{}", errors.join("\n"));
}

/// The one instruction that these bytes are, in gas's syntax.
fn disassemble(code: &[u8]) -> Option<String> {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if instruction.is_invalid() || instruction.len() != code.len() {
        return None;
    }
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_number_base(iced_x86::NumberBase::Decimal);
    options.set_gas_show_mnemonic_size_suffix(true);
    options.set_signed_immediate_operands(true);
    options.set_rip_relative_addresses(true);
    options.set_gas_naked_registers(false);
    let mut text = String::new();
    formatter.format(&instruction, &mut text);
    Some(text)
}

pub const WIDTHS: [Width; 4] = [Width::Byte, Width::Word, Width::Dword, Width::Qword];
pub const WIDE: [Width; 3] = [Width::Word, Width::Dword, Width::Qword];
pub const INTEGERS: [Width; 2] = [Width::Dword, Width::Qword];
/// Displacements of every size, and those at the borders.
pub const DISPLACEMENTS: [i32; 9] = [0, 1, -1, 127, 128, -128, -129, i32::MAX, i32::MIN];

pub fn suffix(width: Width) -> char {
    match width {
        Width::Byte => 'b',
        Width::Word => 'w',
        Width::Dword => 'l',
        Width::Qword => 'q',
    }
}

pub fn gpr(register: Gpr, width: Width) -> String {
    const OLD: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
    const BYTES: [&str; 8] = ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"];
    let number = register.number() as usize;
    match (OLD.get(number), width) {
        (Some(_), Width::Byte) => format!("%{}", BYTES[number]),
        (Some(name), Width::Word) => format!("%{name}"),
        (Some(name), Width::Dword) => format!("%e{name}"),
        (Some(name), Width::Qword) => format!("%r{name}"),
        (None, Width::Byte) => format!("%r{number}b"),
        (None, Width::Word) => format!("%r{number}w"),
        (None, Width::Dword) => format!("%r{number}d"),
        (None, Width::Qword) => format!("%r{number}"),
    }
}

pub fn xmm(register: Xmm) -> String {
    format!("%xmm{}", register.number())
}

/// Where addresses count from, and with how many bits.
#[derive(Clone, Copy)]
pub struct Space {
    pub segment: &'static str,
    pub addr32: bool,
}

/// Plain memory, and that of a window.
pub const PLAIN: Space = Space {
    segment: "",
    addr32: false,
};
pub const WINDOW: Space = Space {
    segment: "%gs:",
    addr32: true,
};
pub const SPACES: [Space; 6] = [
    PLAIN,
    WINDOW,
    Space {
        segment: "%gs:",
        addr32: false,
    },
    Space {
        segment: "%fs:",
        addr32: true,
    },
    Space {
        segment: "%fs:",
        addr32: false,
    },
    Space {
        segment: "",
        addr32: true,
    },
];

/// An operand and its text.
pub fn memory(
    base: Option<Gpr>,
    index: Option<(Gpr, Scale)>,
    disp: i32,
    space: Space,
) -> (Mem, String) {
    let width = if space.addr32 {
        Width::Dword
    } else {
        Width::Qword
    };
    let mut mem = base.map_or(Mem::absolute(0), Mem::base).disp(disp);
    let mut text = match base {
        Some(base) => format!("({}", gpr(base, width)),
        None => "(".to_owned(),
    };
    match (index, base) {
        (Some((index, scale)), _) => {
            mem = mem.index(index, scale);
            write!(text, ",{}", gpr(index, width)).expect("text");
            if scale != Scale::One {
                write!(text, ",{}", 1 << scale.shift()).expect("text");
            }
            text.push(')');
        }
        (None, Some(_)) => text.push(')'),
        // Without a register, gas needs the one that is none to see how many bits there are.
        (None, None) => text = if space.addr32 { "(,%eiz,1)" } else { "" }.to_owned(),
    }
    (place(mem, space), number(disp, &text, space) + &text)
}

/// An operand relative to the next instruction.
pub fn rip(disp: i32, space: Space) -> (Mem, String) {
    let text = if space.addr32 { "(%eip)" } else { "(%rip)" };
    (
        place(Mem::rip(disp), space),
        number(disp, text, space) + text,
    )
}

fn place(mem: Mem, space: Space) -> Mem {
    let mem = match space.segment {
        "%gs:" => mem.gs(),
        "%fs:" => mem.fs(),
        _ => mem,
    };
    if space.addr32 { mem.addr32() } else { mem }
}

fn number(disp: i32, registers: &str, space: Space) -> String {
    match disp {
        0 if registers.contains('(') && !registers.contains("iz") => space.segment.to_owned(),
        _ => format!("{}{disp}", space.segment),
    }
}

/// Operands that have every register in every part and every size of displacement, though not all
/// of these together.
pub fn memories() -> Vec<(Mem, String)> {
    let mut list = Vec::new();
    for space in [PLAIN, WINDOW] {
        for disp in [0, 8, -200] {
            for base in Gpr::ALL {
                list.push(memory(Some(base), None, disp, space));
                for index in [Gpr::Rax, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R15] {
                    list.push(memory(Some(base), Some((index, Scale::Four)), disp, space));
                }
            }
            for index in indexes() {
                list.push(memory(
                    Some(Gpr::Rdi),
                    Some((index, Scale::One)),
                    disp,
                    space,
                ));
                list.push(memory(None, Some((index, Scale::Eight)), disp, space));
            }
        }
        list.push(rip(77, space));
    }
    list.push(memory(None, None, 0x1234, PLAIN));
    list
}

/// What can be an index.
pub fn indexes() -> impl Iterator<Item = Gpr> {
    Gpr::ALL.into_iter().filter(|index| *index != Gpr::Rsp)
}
