//! The classic machine as the kernel has it: with what it knows of a packet beside its bytes.

use postern_filter::classic::Instruction;

/// A packet as the kernel sees it.
pub struct Seen<'a> {
    pub bytes: &'a [u8],
    /// The kind and number of the tag that was taken out.
    pub tag: Option<(u16, u16)>,
    pub hardware: u16,
}

const ANCILLARY: u32 = 0xffff_f000;

impl Seen<'_> {
    fn load(&self, size: u32, at: u32) -> Option<u32> {
        let (kind, number) = self.tag.unwrap_or_default();
        match at.checked_sub(ANCILLARY) {
            Some(28) => return Some(self.hardware.into()),
            Some(44) => return Some(number.into()),
            Some(48) => return Some(self.tag.is_some().into()),
            Some(60) => return Some(kind.into()),
            Some(other) => panic!("the kernel's value {other}"),
            None => {}
        }
        let bytes = self.bytes.get(at as usize..)?.get(..size as usize)?;
        Some(
            bytes
                .iter()
                .fold(0, |value, byte| value << 8 | u32::from(*byte)),
        )
    }
}

/// What the program returns.
pub fn run(program: &[Instruction], seen: &Seen<'_>) -> u32 {
    let (mut a, mut x, mut memory, mut at) = (0u32, 0u32, [None; 16], 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let operand = if code & 8 != 0 { x } else { k };
        let size = [4, 2, 1, 4][usize::from(code >> 3 & 3)];
        let read = |place: u32| seen.load(size, place);
        match code {
            0x00 => a = k,
            0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 => {
                let place = if code & 0x40 != 0 {
                    x.wrapping_add(k)
                } else {
                    k
                };
                let Some(value) = read(place) else { return 0 };
                a = value;
            }
            0x60 => a = memory[k as usize].expect("a word that was written"),
            0x80 => a = seen.bytes.len() as u32,
            0x61 => x = memory[k as usize].expect("a word that was written"),
            0xb1 => match seen.load(1, k) {
                Some(byte) => x = 4 * (byte & 0xf),
                None => return 0,
            },
            0x02 => memory[k as usize] = Some(a),
            0x07 => x = a,
            0x06 => return k,
            0x16 => return a,
            0x05 => at += k as usize,
            _ if code & 7 == 5 => {
                let holds = match code & 0xf0 {
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    _ => a & operand != 0,
                };
                at += usize::from(if holds { jt } else { jf });
            }
            _ => {
                a = match code & 0xf0 {
                    0x00 => a.wrapping_add(operand),
                    0x10 => a.wrapping_sub(operand),
                    0x20 => a.wrapping_mul(operand),
                    0x30 | 0x90 if operand == 0 => return 0,
                    0x30 => a / operand,
                    0x40 => a | operand,
                    0x50 => a & operand,
                    0x60 => a << operand,
                    0x70 => a >> operand,
                    0x90 => a % operand,
                    0xa0 => a ^ operand,
                    other => panic!("an operation {other:#x}"),
                }
            }
        }
    }
}
