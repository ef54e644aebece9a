//! What programs learn of their processor, and what they can use of it: constants of the link, the
//! image's needs, and the instructions themselves.

use std::path::{Path, PathBuf};

use postern::{Domain, Image, LoadError};
use postern_toolchain::{Build, Language};

/// Builds a source of `tests/processor`.
fn build(name: &str, flags: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("processor");
    std::fs::create_dir_all(&folder).unwrap();
    let file = flags.replace([' ', '='], "_");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/processor")
        .join(name);
    Build::new(Language::C)
        .file(source)
        .flags(["-O2", "-w"])
        .flags(flags.split_whitespace())
        .output(folder.join(format!("{name}{file}.px")))
        .run()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Whether this machine has what the flags allow.
fn machine_has(flags: &str) -> bool {
    use std::arch::is_x86_feature_detected as has;
    flags.split_whitespace().all(|flag| match flag {
        "-march=x86-64-v2" => has!("sse4.2") && has!("popcnt"),
        "-march=x86-64-v3" => has!("avx2") && has!("fma") && has!("bmi2") && has!("movbe"),
        "-maes" => has!("aes"),
        "-mvaes" => has!("vaes"),
        "-mpclmul" => has!("pclmulqdq"),
        "-mvpclmulqdq" => has!("vpclmulqdq"),
        "-msha" => has!("sha"),
        "-madx" => has!("adx"),
        "-mgfni" => has!("gfni"),
        _ => true,
    })
}

/// An image, or that it is refused by the name of what is missing.
fn load(name: &str, flags: &str) -> Option<Image> {
    match Image::load(build(name, flags)) {
        Ok(image) => Some(image),
        Err(error) => match error.cause() {
            LoadError::Machine(missing) if !machine_has(flags) => {
                println!("{flags}: this machine lacks {missing}");
                None
            }
            _ => panic!("{flags}: {error}"),
        },
    }
}

/// For each set of flags: %ecx of leaf 1, %ebx and %ecx of leaf 7, %ecx of leaf 80000001h, XCR0,
/// and which of the names in the source are supported.
type Row = (&'static str, [u32; 4], u64, &'static [i32]);
const LEVEL_2: u32 = 1 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23;
const LEVEL_3: u32 = LEVEL_2 | 1 << 12 | 1 << 22 | 7 << 26 | 1 << 29;
const BMI_AVX2: u32 = 1 << 3 | 1 << 5 | 1 << 8;
const ROWS: &[Row] = &[
    ("", [0, 0, 0, 1], 3, &[0, 20]),
    (
        "-march=x86-64-v2",
        [LEVEL_2, 0, 0, 1],
        3,
        &[0, 1, 10, 19, 20],
    ),
    (
        "-march=x86-64-v3",
        [LEVEL_3, BMI_AVX2, 0, 0x21],
        7,
        &[0, 1, 2, 9, 10, 11, 14, 15, 16, 18, 19, 20],
    ),
    (
        "-march=x86-64-v3 -maes -mpclmul -msha -madx -mvaes -mvpclmulqdq -mrdrnd -mrdseed -mclflushopt",
        [
            LEVEL_3 | 1 << 1 | 1 << 25,
            BMI_AVX2 | 1 << 19 | 1 << 29,
            1 << 9 | 1 << 10,
            0x21,
        ],
        7,
        &[
            0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 20,
        ],
    ),
];

#[test]
fn programs_learn_what_their_flags_allow() {
    for (flags, words, state, supported) in ROWS {
        let Some(image) = load("ask.c", flags) else {
            continue;
        };
        let domain = Domain::builder(&image).build().unwrap();
        for name in ["by_assembly", "by_bytes", "by_header", "by_function"] {
            let ask = domain.func::<fn(u32, u32, u32) -> u32>(name).unwrap();
            let ask = |leaf, subleaf, word| ask.call(leaf, subleaf, word).unwrap();
            assert_eq!((ask(0, 0, 0), ask(0x8000_0000, 0, 0)), (7, 0x8000_0001));
            let told = [
                ask(1, 0, 2),
                ask(7, 0, 1),
                ask(7, 0, 2),
                ask(0x8000_0001, 0, 2),
            ];
            assert_eq!(told, *words, "{flags}: {name}: {told:x?}");
            assert_eq!(
                ask(1, 0, 3),
                0x0600_8101,
                "x87, CX8, CMOV, SSE, SSE2: no MMX, no TSC"
            );
            assert_eq!(ask(0x8000_0001, 0, 3), 1 << 29);
            let nothing = [
                ask(7, 1, 1),
                ask(4, 0, 0),
                ask(0xd, 0, 1),
                ask(u32::MAX, 0, 0),
            ];
            assert_eq!(nothing, [0; 4]);
        }
        let ask = domain
            .func::<fn(u32, u32, u32) -> u32>("by_assembly")
            .unwrap();
        let vendor = [1, 3, 2].map(|word| ask.call(0, 0, word).unwrap().to_le_bytes());
        assert_eq!(vendor.concat(), b"PosternImage");
        for name in ["state_by_assembly", "state_by_bytes", "state_by_intrinsic"] {
            let ask = domain.func::<fn(u32) -> u64>(name).unwrap();
            assert_eq!(
                (ask.call(0).unwrap(), ask.call(1).unwrap()),
                (*state, 0),
                "{name}"
            );
        }
        let supports = domain.func::<fn(i32) -> i32>("supports").unwrap();
        let told: Vec<i32> = (0..=20)
            .filter(|k| supports.call(*k).unwrap() == 1)
            .collect();
        assert_eq!(told, *supported, "{flags}");
        assert_eq!(
            domain
                .func::<fn() -> i32>("is_intel")
                .unwrap()
                .call()
                .unwrap(),
            0
        );
        let kept = domain.func::<fn(i32) -> i32>("kept").unwrap();
        assert_eq!((kept.call(5).unwrap(), kept.call(6).unwrap()), (1, 0));
    }
}

#[test]
fn instructions_for_ciphers_and_hashes_compute() {
    const NARROW: [&str; 5] = ["-maes", "-mpclmul", "-msha", "-madx", "-mgfni"];
    const WIDE: [&str; 2] = ["-maes -mvaes", "-mpclmul -mvpclmulqdq"];
    let wide = NARROW
        .iter()
        .chain(&WIDE)
        .map(|flags| ("-march=x86-64-v3 ", *flags));
    let mut done = 0;
    for (level, flags) in NARROW.map(|flags| ("", flags)).into_iter().chain(wide) {
        let flags = format!("{level}{flags}");
        let Some(image) = load("compute.c", &flags) else {
            continue;
        };
        let name = flags.rsplit("-m").next().unwrap();
        let domain = Domain::builder(&image).build().unwrap();
        let agrees = domain.func::<fn() -> i32>(name).unwrap();
        assert_eq!(agrees.call().unwrap(), 1, "{flags}");
        done += 1;
    }
    println!("{done} of 12 ran here");
}
