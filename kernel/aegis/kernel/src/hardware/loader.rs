//! What the loader and the firmware say: memory, the boot package, processors. All of it is
//! trusted, as the machine is; what does not fit is refused in words.

use super::memory::bytes;

const MAGIC: u32 = 0x336e_c578;
/// Memory that can be used, in the loader's map.
const USABLE: u32 = 1;

/// A range of physical addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    /// The first address.
    pub from: u64,
    /// The first behind.
    pub to: u64,
}

/// What the loader said.
#[derive(Debug)]
pub struct Loaded {
    /// Memory that can be used.
    pub memory: [Range; 16],
    /// The boot package.
    pub package: Range,
    /// Numbers of the processors' interrupt controllers.
    pub controllers: [u32; postern_aegis_abi::PROCESSORS],
    /// How many processors there are.
    pub processors: usize,
    /// What the command line says to [`provoke`](super::provoke).
    pub provoke: Option<&'static str>,
}

fn word(at: u64) -> u64 {
    let bytes = words(at, 8);
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

fn half(at: u64) -> u32 {
    u32::from_le_bytes(words(at, 4).try_into().unwrap_or_default())
}

fn words(at: u64, length: usize) -> &'static [u8] {
    assert!(
        at < 1 << 30,
        "the loader names {at:#x}, beyond what is mapped at the start"
    );
    // SAFETY: within the first GiB, which is mapped; the loader's tables stand until the books are
    // made, and nobody writes to them.
    unsafe { bytes(at, length) }
}

/// Reads the start information.
pub fn read(start: u64) -> Loaded {
    assert!(half(start) == MAGIC, "not started by the PVH convention");
    let mut loaded = Loaded {
        memory: [Range::default(); 16],
        package: Range::default(),
        controllers: [0; postern_aegis_abi::PROCESSORS],
        processors: 0,
        provoke: provoked(word(start + 24)),
    };
    if half(start + 12) > 0 {
        let module = word(start + 16);
        loaded.package = Range {
            from: word(module),
            to: word(module) + word(module + 8),
        };
    }
    let (map, entries) = (word(start + 40), half(start + 48));
    let mut ranges = loaded.memory.iter_mut();
    for entry in (0..entries as u64).map(|index| map + 24 * index) {
        if half(entry + 16) == USABLE
            && let Some(range) = ranges.next()
        {
            *range = Range {
                from: word(entry),
                to: word(entry) + word(entry + 8),
            };
        }
    }
    processors(word(start + 32), &mut loaded);
    loaded
}

/// The value of `provoke=` in a command line, which ends with a zero; `at` is 0 if there is none.
fn provoked(at: u64) -> Option<&'static str> {
    const MOST: u64 = 256;
    let line = (at != 0).then(|| words(at, MOST as usize))?;
    let line = line.split(|&byte| byte == 0).next()?;
    let mut said = core::str::from_utf8(line).ok()?.split_ascii_whitespace();
    said.find_map(|word| word.strip_prefix("provoke="))
}

/// Finds the processors in the firmware's table of interrupt controllers (ACPI, "APIC").
fn processors(root: u64, loaded: &mut Loaded) {
    // The old root has 32-bit entries, which every firmware fills.
    let list = half(root + 16) as u64;
    for entry in (list + 36..list + half(list + 4) as u64).step_by(4) {
        let table = half(entry) as u64;
        if words(table, 4) != b"APIC" {
            continue;
        }
        let end = table + half(table + 4) as u64;
        let mut at = table + 44;
        while at + 2 <= end {
            let header = words(at, 8);
            let (kind, length) = (header[0], header[1]);
            // A processor that is enabled.
            if kind == 0 && half(at + 4) & 1 != 0 && loaded.processors < loaded.controllers.len() {
                loaded.controllers[loaded.processors] = u32::from(header[3]);
                loaded.processors += 1;
            }
            at += u64::from(length.max(2));
        }
    }
    assert!(loaded.processors > 0, "the firmware names no processor");
}
