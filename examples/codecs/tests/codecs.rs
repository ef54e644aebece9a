//! Each codec, confined, makes the same bytes as its plain build, reads what the other made, and
//! survives what is neither.

mod native;

use native::Native;
use postern::{CallError, Domain, FaultKind, Image};
use postern_example_codecs::{Codec, CodecError};
use postern_toolchain::project::{Options, Project};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The codecs and the levels that are compared.
const CODECS: [(&str, &[i32]); 4] = [
    ("zlib", &[0, 1, 6, 9]),
    ("bzip2", &[1, 9]),
    ("lz4", &[0, 3, 9, 12]),
    ("zstd", &[1, 3, 10, 19]),
];

/// Builds a codec both ways; what is there from the last time is used again.
fn build(name: &str) -> (PathBuf, PathBuf) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let built = Project::load(project)
        .and_then(|project| project.build(&Options::new(folder).native(), &mut |_| {}))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    (built.extension, built.native.expect("it was asked for"))
}

fn confined(extension: &Path, deadline: Duration, heap: u64) -> Codec {
    let image = Image::load(extension).expect("the extension loads");
    let domain = Domain::builder(&image)
        .deadline(Some(deadline))
        .heap(heap)
        .build()
        .expect("a domain");
    Codec::new(domain).expect("it is a codec")
}

/// Real input: the text of this repository, its machine code, and what cannot be compressed.
fn inputs(extension: &Path) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read(root.join("docs/src/reference/rules.md")).expect("a page");
    let code = std::fs::read(extension).expect("the extension");
    let mut random = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = (0..70_000).map(|_| random.u8(..)).collect();
    vec![
        Vec::new(),
        vec![7],
        text.repeat(4),
        code,
        noise,
        vec![0; 300_000],
    ]
}

fn round_trips(name: &str, levels: &[i32]) {
    let (extension, native) = build(name);
    let (codec, native) = (
        confined(&extension, Duration::from_secs(60), 512 << 20),
        Native::open(&native),
    );
    for input in inputs(&extension) {
        for &level in levels {
            let packed = codec.compress(&input, level).expect("compresses");
            assert_eq!(
                packed,
                native.compress(&input, level).expect("compresses"),
                "{name} {level}: the confined codec makes other bytes of {} bytes than the plain one",
                input.len()
            );
            let limit = input.len() + 1;
            let unpacked = codec.decompress(&packed, limit).expect("decompresses");
            assert!(unpacked == input, "{name} {level}: not the input again");
            assert_eq!(native.decompress(&packed, limit), Ok(input.clone()));
        }
    }
    assert!(matches!(
        codec.compress(b"a", 99),
        Err(CodecError::Level(99))
    ));
}

/// Damaged and made-up streams: the same result or the same error as the plain build's, and no
/// fault.
fn hostile_input(name: &str) {
    let (extension, native) = build(name);
    let (codec, native) = (
        confined(&extension, Duration::from_secs(60), 512 << 20),
        Native::open(&native),
    );
    let page = &inputs(&extension)[2][..20_000];
    let packed = codec.compress(page, 6).expect("compresses");
    let mut random = fastrand::Rng::with_seed(name.len() as u64);
    let mut corrupt = 0;
    for round in 0..300 {
        let mut stream = packed.clone();
        match round % 3 {
            0 => stream.truncate(random.usize(..stream.len())),
            1 => {
                for _ in 0..=round % 7 {
                    let at = random.usize(..stream.len());
                    stream[at] ^= random.u8(1..);
                }
            }
            _ => {
                let from = 4 + round % 20;
                random.fill(&mut stream[from..]);
            }
        }
        let limit = page.len() + 100;
        let found = codec.decompress(&stream, limit);
        let code = match &found {
            Ok(bytes) => Ok(bytes.clone()),
            Err(CodecError::TooLong(_)) => Err(-1),
            Err(CodecError::Corrupt) => Err(-2),
            Err(CodecError::Memory) => Err(-3),
            Err(other) => panic!("{name}, stream {round}: {other}"),
        };
        corrupt += usize::from(code == Err(-2));
        assert!(
            code == native.decompress(&stream, limit),
            "{name}, stream {round}: {found:?}"
        );
    }
    assert!(corrupt > 100, "{name}: only {corrupt} streams were refused");
    assert!(codec.decompress(&packed, page.len()).expect("still works") == page);
}

/// Room, heap and time are the host's to give.
fn limits(name: &str) {
    let (extension, _) = build(name);
    let input = inputs(&extension).swap_remove(2);
    let codec = confined(&extension, Duration::from_secs(60), 512 << 20);
    let packed = codec.compress(&input, 6).expect("compresses");
    let short = codec.decompress(&packed, input.len() - 1);
    assert!(
        matches!(short, Err(CodecError::TooLong(_))),
        "{name}: {short:?}"
    );

    let small = confined(
        &extension,
        Duration::from_secs(60),
        input.len() as u64 + 4096,
    );
    let none = small.compress(&input, 6);
    assert!(matches!(none, Err(CodecError::Memory)), "{name}: {none:?}");

    // Much too short for so many bytes on any processor; it may end while the buffers are made,
    // too.
    let hasty = confined(&extension, Duration::from_millis(2), 512 << 20);
    // A machine with much else to do may wake the watchdog when all is done.
    let late = (0..5).find_map(|_| hasty.compress(&input.repeat(200), 9).err());
    match late {
        Some(CodecError::Call(CallError::Fault(fault))) => {
            assert_eq!(fault.kind, FaultKind::Deadline, "{name}: {fault}");
        }
        other => panic!("{name}: {other:?}"),
    }
    assert!(
        codec
            .decompress(&packed, input.len())
            .expect("another domain goes on")
            == input
    );
}

macro_rules! tests {
    ($($name:ident: $number:literal),*) => {$(
        mod $name {
            #[test]
            fn same_bytes_as_the_plain_build() {
                super::round_trips(super::CODECS[$number].0, super::CODECS[$number].1);
            }
            #[test]
            fn damaged_streams_are_errors() {
                super::hostile_input(super::CODECS[$number].0);
            }
            #[test]
            fn limits_hold() {
                super::limits(super::CODECS[$number].0);
            }
        }
    )*};
}

tests!(zlib: 0, bzip2: 1, lz4: 2, zstd: 3);
