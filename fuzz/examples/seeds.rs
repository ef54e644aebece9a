//! Writes the seed corpora: small inputs from which the fuzzers set out. `seeds FOLDER` makes
//! FOLDER/image, FOLDER/object, FOLDER/verifier, FOLDER/debug, FOLDER/policy, FOLDER/ecode,
//! FOLDER/ecode-parser, FOLDER/filter, FOLDER/classic, FOLDER/link and FOLDER/capture-file.
//!
//! Seeds are made, not stored, so that they follow the format.

/// What the tests of filters make at random.
#[path = "../../filter/tests/support"]
mod filters {
    pub mod expressions;
    pub mod packets;
}

use std::fs;
use std::path::Path;
use std::process::Command;

use postern_image::{ImageBuilder, Segment};
use postern_verifier::window::{INFO, PAD, slot};

/// `ret`.
const RET: u8 = 0xc3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: seeds FOLDER")?;
    let folder = Path::new(&folder);
    write(&folder.join("image"), images()?)?;
    write(&folder.join("object"), objects())?;
    write(&folder.join("verifier"), texts())?;
    write(&folder.join("debug"), programs(folder)?)?;
    write(&folder.join("policy"), system_calls())?;
    write(&folder.join("ecode"), sources()?)?;
    write(&folder.join("ecode-parser"), tokens())?;
    write(&folder.join("filter"), expressions())?;
    write(&folder.join("classic"), expressions())?;
    write(&folder.join("link"), links())?;
    write(&folder.join("capture-file"), captures())?;
    Ok(())
}

/// Objects with each kind of section, symbol and relocation that the reader knows, and each file
/// cut short.
fn objects() -> Vec<Vec<u8>> {
    // InstructionKind, flags, bytes, size if there are none in the file, link, info.
    type Part<'a> = (u32, u64, &'a [u8], u64, u32, u32);
    let file = |parts: &[Part<'_>]| {
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[16..20].copy_from_slice(&[1, 0, 62, 0]);
        let mut table = vec![0; 64];
        for (kind, flags, content, size, link, info) in parts {
            table.extend([1u32.to_le_bytes(), kind.to_le_bytes()].concat());
            let size = content.len() as u64 + size;
            for word in [*flags, 0, bytes.len() as u64, size] {
                table.extend(word.to_le_bytes());
            }
            table.extend([link.to_le_bytes(), info.to_le_bytes()].concat());
            table.extend([16u64, 0].map(u64::to_le_bytes).concat());
            bytes.extend_from_slice(content);
        }
        let (start, count) = (bytes.len() as u64, parts.len() as u16 + 1);
        bytes[40..48].copy_from_slice(&start.to_le_bytes());
        bytes[58..60].copy_from_slice(&[64, 0]);
        bytes[60..62].copy_from_slice(&count.to_le_bytes());
        bytes[62..64].copy_from_slice(&(count - 1).to_le_bytes());
        bytes.extend(table);
        bytes
    };
    let symbol = |name: u32, info: u8, section: u16, value: u64, size: u64| {
        let mut entry = name.to_le_bytes().to_vec();
        entry.extend([info, 0]);
        entry.extend(section.to_le_bytes());
        entry.extend([value, size].map(u64::to_le_bytes).concat());
        entry
    };
    let relocation = |at: u64, kind: u64, symbol: u64, addend: i64| {
        let words = [at, kind | symbol << 32, addend as u64];
        words.map(u64::to_le_bytes).concat()
    };
    // A pad, `mov $0, %eax`, a call, `ret`; then another function.
    let text = [
        &PAD[..],
        &[0xb8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, RET],
        &PAD,
        &[RET],
    ]
    .concat();
    let symbols = [
        symbol(0, 0, 0, 0, 0),
        symbol(1, 0x12, 1, 0, 19),
        symbol(3, 2, 1, 19, 9),
        symbol(5, 0x11, 2, 0, 8),
        symbol(7, 0x11, 3, 4, 4),
        symbol(9, 0x10, 0, 0, 0),
        symbol(14, 0x11, 0xfff2, 16, 100),
        symbol(0, 3, 4, 0, 0),
    ];
    let names = b"\0f\0g\0d\0z\0host\0c\0.text\0";
    let fields = [relocation(9, 10, 3, 0), relocation(14, 4, 5, -4)].concat();
    let pointers = [
        relocation(0, 1, 1, 0),
        relocation(8, 1, 7, 4),
        relocation(16, 11, 4, 1),
    ];
    let whole = file(&[
        (1, 6, &text, 0, 0, 0),
        (1, 3, &[1; 32], 0, 0, 0),
        (8, 3, &[], 64, 0, 0),
        (1, 2, b"constants", 0, 0, 0),
        (4, 0, &fields, 0, 7, 1),
        (4, 0, &pointers.concat(), 0, 7, 2),
        (2, 0, &symbols.concat(), 0, 8, 1),
        (3, 0, names, 0, 0, 0),
    ]);
    let small = file(&[
        (1, 6, &text[19..], 0, 0, 0),
        (2, 0, &symbol(1, 0x12, 1, 0, 9), 0, 3, 0),
        (3, 0, b"\0f\0", 0, 0, 0),
    ]);
    let cut = |bytes: &Vec<u8>| bytes[..bytes.len() - 5].to_vec();
    vec![cut(&whole), cut(&small), whole, small]
}

/// The kernels of E-code, and its cases of errors.
fn sources() -> std::io::Result<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ecode");
    let mut seeds = Vec::new();
    for entry in fs::read_dir(folder.join("kernels"))? {
        seeds.push(fs::read(entry?.path())?);
    }
    let errors = fs::read_to_string(folder.join("tests/files/errors.txt"))?;
    for case in errors.split("----\n") {
        let lines = case.lines().filter(|line| !line.starts_with("error "));
        seeds.push(lines.collect::<Vec<_>>().join("\n").into_bytes());
    }
    Ok(seeds)
}

/// Expressions of the grammar that the tests have, each with a packet, and a classic program.
fn expressions() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut seeds: Vec<Vec<u8>> = (0..400)
        .map(|number| {
            let text = filters::expressions::expression(&mut random, 1 + number % 5);
            let packet = filters::packets::packet(&mut random);
            [text.as_bytes(), &[0], &packet.bytes].concat()
        })
        .collect();
    seeds.push(b"4\n40 0 0 12\n21 0 1 2048\n6 0 0 65535\n6 0 0 0\n".to_vec());
    seeds
}

/// Expressions and packets of every link, which are Ethernet's with something else before them.
fn links() -> Vec<Vec<u8>> {
    let headers: [&[u8]; 10] = [
        &[2; 12],
        &[],
        &[2, 0, 0, 0],
        &[0, 0, 0, 2],
        &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0],
        &[8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0],
        &[255, 3, 0, 0x21],
        &[15, 0, 8, 0],
        &[8, 1, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0, 0, 0xaa, 0xaa, 3, 0, 0, 0],
        &[0, 0, 8, 0, 0, 0, 0, 0, 0x88, 3],
    ];
    let mut random = fastrand::Rng::with_seed(2);
    let seed = |number: usize| {
        let text = filters::expressions::expression(&mut random, 1 + number % 3);
        let packet = filters::packets::packet(&mut random).bytes;
        let link = number % headers.len();
        // Where the type stands before the packet it goes along.
        let cut = if matches!(link, 0 | 4 | 8) { 12 } else { 14 };
        let rest = packet.get(cut..).unwrap_or_default();
        [&[link as u8][..], text.as_bytes(), &[0], headers[link], rest].concat()
    };
    (0..300).map(seed).collect()
}

/// Packets in both formats, and each file cut short.
fn captures() -> Vec<Vec<u8>> {
    use postern_filter::capture::{
        Origin, pcap_header, pcap_record, pcapng_header, pcapng_interface, pcapng_packet,
    };
    let (mut pcap, mut pcapng) = (pcap_header(65535).to_vec(), Vec::new());
    pcapng_header(&mut pcapng);
    pcapng_interface(postern_filter::Link::Ethernet, 65535, "eth0", &mut pcapng);
    for (number, packet) in (0u64..).zip(filters::packets::packets(1, 8)) {
        let time = 1_700_000_000_000_000_000 + number;
        pcap.extend(pcap_record(time, packet.bytes.len() as u32, packet.wire));
        pcap.extend_from_slice(&packet.bytes);
        pcapng_packet(
            Origin::default(),
            time,
            &packet.bytes,
            packet.wire,
            &mut pcapng,
        );
    }
    let mut seeds = vec![pcap, pcapng];
    for whole in seeds.clone() {
        seeds.push(whole[..whole.len() - 5].to_vec());
    }
    seeds
}

/// Each token of the target alone, and a few after each other.
fn tokens() -> Vec<Vec<u8>> {
    let alone = (0..=u8::MAX).map(|byte| vec![byte]);
    let rows = (0..=u8::MAX).map(|byte| (0..24).map(|n| byte.wrapping_mul(n)).collect());
    alone.chain(rows).collect()
}

/// Each system call alone and on paths, and a few that belong together: open, write, seek, read,
/// list, lock, close.
fn system_calls() -> Vec<Vec<u8>> {
    let call = |number: u8, words: [(u8, u8); 5]| {
        let words = words.into_iter().flat_map(|(kind, value)| [kind, value]);
        [number].into_iter().chain(words).collect::<Vec<u8>>()
    };
    let on_path =
        |number: u8, path: u8| call(number, [(2, path), (3, 9), (0, 64), (0, 64), (0, 0)]);
    let mut seeds: Vec<Vec<u8>> = (0..16)
        .map(|path| {
            (0..=249)
                .flat_map(|number| on_path(number, path))
                .take(64 * 11)
                .collect()
        })
        .collect();
    let open = |path: u8| call(2, [(2, path), (5, 0x42), (0, 0xff), (0, 0), (0, 0)]);
    let file = |number: u8, file: u8| call(number, [(0, file), (3, 9), (0, 64), (0, 0), (0, 0)]);
    let all = [
        open(1),
        open(2),
        file(1, 3),
        file(18, 3),
        file(8, 3),
        file(0, 3),
        file(17, 4),
        file(5, 3),
    ];
    seeds.push(all.concat());
    let all = [
        open(0),
        file(217, 3),
        file(217, 3),
        file(8, 3),
        file(81, 3),
        file(72, 3),
        file(3, 3),
    ];
    seeds.push(all.concat());
    seeds
}

fn write(folder: &Path, seeds: Vec<Vec<u8>>) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    seeds
        .iter()
        .enumerate()
        .try_for_each(|(number, seed)| fs::write(folder.join(format!("seed-{number:02}")), seed))
}

/// Images that between them use every field of the format.
fn images() -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let mut all = vec![ImageBuilder::new([RET]).build()?];
    let mut full = ImageBuilder::new(vec![RET; 40]);
    full.import("log", Some("v(pI)".parse()?));
    full.import("fetch", None);
    full.export("first", 0, Some("l(ii)".parse()?))
        .export("second", 39, None);
    full.rodata(*b"constant")
        .data(*b"variable", 100)
        .stack_log2(12)
        .heap_wish(1 << 20)
        .x87(true);
    all.push(full.build()?);
    let mut kernel = ImageBuilder::new([0x64, 0x67, 0x8b, 0x07, RET]);
    kernel
        .segment(Segment::Fs)
        .data([], 5000)
        .export("load", 0, Some("i(p)".parse()?));
    all.push(kernel.build()?);
    // One export of each signature's shape.
    let mut typed = ImageBuilder::new([RET]);
    for (index, text) in ["v()", "d(fdbBhHiIlLp)", "p(pppppppppppppppp)"]
        .into_iter()
        .enumerate()
    {
        typed.export(format!("f{index}"), 0, Some(text.parse()?));
    }
    all.push(typed.build()?);
    // What the verifier refuses.
    all.push(ImageBuilder::new([0x0f, 0x05, RET]).build()?);
    Ok(all)
}

/// Texts, each after the byte that chooses profile (bit 0), segment (bit 1) and imports (from bit 2
/// on).
fn texts() -> Vec<Vec<u8>> {
    const USER: u8 = 0;
    const BOUNDED: u8 = 1;
    const KERNEL: u8 = 2;
    const ONE_IMPORT: u8 = 4;
    let text_start = postern_verifier::window::text_start(1);
    // call slot 0: the displacement counts from the end of the five bytes.
    let to_slot = slot(0).wrapping_sub(text_start + 5).to_le_bytes();
    let info = INFO.to_le_bytes();
    let guarded = |end: u8| {
        let mut text = vec![0x89, 0xfb, 0x41, 0x89, 0xfb];
        text.extend([0x65, 0x67, 0x49, 0x81, 0x3b, 0x0f, 0x1f, 0x84, 0x20]);
        // jne over or and jump, to the trap.
        text.extend([0x75, 0x0d, 0x65, 0x67, 0x4c, 0x0b, 0x1c, 0x25]);
        text.extend(info);
        text.extend([0x41, 0xff, end, RET, 0xcc]);
        text
    };
    let cases: Vec<(u8, Vec<u8>)> = vec![
        (USER, vec![RET]),
        (USER, [&PAD[..], &[0x8d, 0x47, 0x02, RET]].concat()),
        (USER, guarded(0xd3)),
        (USER, guarded(0xe3)),
        (ONE_IMPORT, [&[0xe8][..], &to_slot, &[RET]].concat()),
        (BOUNDED, vec![0x85, 0xff, 0x74, 0x01, RET, 0x31, 0xc0, RET]),
        (KERNEL, vec![0x64, 0x67, 0x8b, 0x44, 0xb7, 0x08, RET]),
        // lock cmpxchg, rep-prefixed popcnt, movzx, setcc, cmov, a shift by cl, bt.
        (
            USER,
            vec![
                0x65, 0x67, 0xf0, 0x0f, 0xb1, 0x37, 0xf3, 0x0f, 0xb8, 0xc7, 0x0f, 0xb6, 0xc0, RET,
            ],
        ),
        (
            USER,
            vec![
                0x0f, 0x94, 0xc0, 0x0f, 0x44, 0xc7, 0xd3, 0xe0, 0x0f, 0xa3, 0xf8, RET,
            ],
        ),
        // movups through gs, pxor, vaddps ymm, vpblendd, shlx, vzeroupper.
        (
            USER,
            vec![0x65, 0x67, 0x0f, 0x10, 0x07, 0x66, 0x0f, 0xef, 0xc0, RET],
        ),
        (
            USER,
            vec![
                0xc5, 0xf4, 0x58, 0xc2, 0xc4, 0xe2, 0x71, 0xf7, 0xc0, 0xc5, 0xf8, 0x77, RET,
            ],
        ),
        // x87: fld, faddp, fstp through gs.
        (
            USER,
            vec![
                0x65, 0x67, 0xd9, 0x07, 0xd9, 0xe8, 0xde, 0xc1, 0x65, 0x67, 0xdd, 0x1f, RET,
            ],
        ),
        // A loop, a jump to its start, an immediate of eight bytes.
        (
            USER,
            vec![
                0xff, 0xcf, 0x75, 0xfc, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xeb, 0xf0,
            ],
        ),
        // Refused: bare memory operand, system call, rsp, segment without 67h, indirect jump.
        (USER, vec![0x48, 0x8b, 0x07, RET]),
        (USER, vec![0x0f, 0x05, RET]),
        (USER, vec![0x48, 0x89, 0xe0, RET]),
        (USER, vec![0x65, 0x8b, 0x07, RET]),
        (USER, vec![0xff, 0xe0]),
    ];
    cases
        .into_iter()
        .map(|(choice, text)| [&[choice][..], &text].concat())
        .collect()
}

/// Programs with debug information, at the places of an extension.
fn programs(folder: &Path) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    const SOURCE: &str = "\
static inline __attribute__((always_inline)) int square(int x) { return x * x; }
int norm(const int *v, int n) { int s = 0; for (int i = 0; i < n; i++) s += square(v[i]); return s; }
int twice(int x) { return 2 * norm(&x, 1); }
";
    let (source, program) = (folder.join("seed.c"), folder.join("seed.elf"));
    fs::write(&source, SOURCE)?;
    let mut all = Vec::new();
    for form in ["-gdwarf-5", "-gdwarf-4", "-gdwarf64"] {
        let status = Command::new("gcc")
            .args([
                form,
                "-O2",
                "-nostdlib",
                "-static",
                "-no-pie",
                "-fno-pie",
                "-Wl,-e,0,-Ttext=0x11000,-z,noseparate-code",
            ])
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .status()?;
        if !status.success() {
            return Err(format!("gcc {form}: {status}").into());
        }
        all.push(fs::read(&program)?);
    }
    fs::remove_file(source)?;
    fs::remove_file(program)?;
    Ok(all)
}
