//! Prints test vectors of BLAKE3, made by its authors' reference program, in the form that the
//! tests of their C library read.

use reference_impl::Hasher;

/// What their vectors use.
const KEY: &str = "whats the Elvish word for friend";
const CONTEXT: &str = "BLAKE3 2019-12-27 16:29:52 test vectors context";

/// Lengths of inputs: around the ends of blocks (64 bytes), chunks (1,024) and trees of them.
const LENGTHS: &[usize] = &[
    0, 1, 2, 3, 7, 8, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 4096,
    4097, 5120, 6145, 8192, 8193, 16384, 16385, 31744, 102400,
];

fn main() {
    let key = KEY.as_bytes().try_into().expect("32 bytes");
    let cases: Vec<_> = LENGTHS
        .iter()
        .map(|&length| {
            let input: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            let of = |mut hasher: Hasher| {
                hasher.update(&input);
                let mut out = [0; 131];
                hasher.finalize(&mut out);
                out.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
            };
            format!(
                r#"{{"input_len":{length},"hash":"{}","keyed_hash":"{}","derive_key":"{}"}}"#,
                of(Hasher::new()),
                of(Hasher::new_keyed(key)),
                of(Hasher::new_derive_key(CONTEXT)),
            )
        })
        .collect();
    println!(
        r#"{{"key":"{KEY}","context_string":"{CONTEXT}","cases":[{}]}}"#,
        cases.join(",\n")
    );
}
