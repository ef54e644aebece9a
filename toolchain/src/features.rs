//! The processor that an extension sees.
//!
//! An extension that asks its processor (`cpuid`, `xgetbv`, `__builtin_cpu_supports`) is told what
//! the flags of its link allow the compiler (`-march`, `-maes`): constants, the same on every
//! machine. The image notes the same features as its needs, and is loaded only where they are.
//!
//! The invariant: each of them is on the verifier's list. What the verifier does not know (AVX-512,
//! MMX, the time-stamp counter) is never there, whatever the flags say.

use crate::tools::ToolCommand;

/// A register of an answer of `cpuid`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    /// %ecx of leaf 1.
    Basic,
    /// %ebx of leaf 7.
    More,
    /// %ecx of leaf 7.
    Vectors,
    /// %ecx of leaf 80000001h.
    Extended,
}

/// A feature that not every x86-64 processor has.
struct Feature {
    /// The name in the option of gcc's that allows it.
    name: &'static str,
    /// What gcc defines where it is allowed.
    defined: &'static str,
    /// Where `cpuid` tells of it.
    word: Word,
    bit: u32,
    /// Its number in libgcc's `__cpu_model` and `__cpu_features2`: `i386-cpuinfo.h` of gcc.
    number: u32,
}

const fn feature(
    name: &'static str,
    defined: &'static str,
    word: Word,
    bit: u32,
    number: u32,
) -> Feature {
    Feature {
        name,
        defined,
        word,
        bit,
        number,
    }
}

const FEATURES: &[Feature] = &[
    feature("sse3", "__SSE3__", Word::Basic, 0, 5),
    feature("pclmul", "__PCLMUL__", Word::Basic, 1, 19),
    feature("ssse3", "__SSSE3__", Word::Basic, 9, 6),
    feature("fma", "__FMA__", Word::Basic, 12, 14),
    feature(
        "cx16",
        "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16",
        Word::Basic,
        13,
        46,
    ),
    feature("sse4.1", "__SSE4_1__", Word::Basic, 19, 7),
    feature("sse4.2", "__SSE4_2__", Word::Basic, 20, 8),
    feature("movbe", "__MOVBE__", Word::Basic, 22, 58),
    feature("popcnt", "__POPCNT__", Word::Basic, 23, 2),
    feature("aes", "__AES__", Word::Basic, 25, 18),
    feature("avx", "__AVX__", Word::Basic, 28, 9),
    feature("f16c", "__F16C__", Word::Basic, 29, 49),
    feature("bmi", "__BMI__", Word::More, 3, 16),
    feature("avx2", "__AVX2__", Word::More, 5, 10),
    feature("bmi2", "__BMI2__", Word::More, 8, 17),
    feature("adx", "__ADX__", Word::More, 19, 40),
    feature("sha", "__SHA__", Word::More, 29, 74),
    feature("gfni", "__GFNI__", Word::Vectors, 8, 32),
    feature("vaes", "__VAES__", Word::Vectors, 9, 78),
    feature("vpclmulqdq", "__VPCLMULQDQ__", Word::Vectors, 10, 33),
    feature("lzcnt", "__LZCNT__", Word::Extended, 5, 57),
];

/// Bits of %edx of leaf 1 that every x86-64 processor has and the verifier knows: x87, `cmpxchg8b`,
/// `cmov`, SSE, SSE2.
const BASIC_EDX: u32 = 1 | 1 << 8 | 1 << 15 | 1 << 25 | 1 << 26;
/// XSAVE and OSXSAVE of leaf 1: there is `xgetbv`, and the system keeps what it says.
const OSXSAVE: u32 = 1 << 26 | 1 << 27;
/// `lahf` and `sahf`, of leaf 80000001h.
const LAHF: u32 = 1;
/// libgcc's numbers of what is always there: `cmov`, SSE, SSE2, `cmpxchg8b`, `lahf`, 64-bit code,
/// x86-64 as a level.
const ALWAYS: &[u32] = &[0, 3, 4, 47, 54, 55, 95];
/// libgcc's numbers that come with AVX (OSXSAVE, XSAVE) and with `lzcnt` (ABM).
const WITH_AVX: &[u32] = &[62, 81];
const WITH_LZCNT: &[u32] = &[41];
/// The levels x86-64-v2 and x86-64-v3, each with what it has more than the one before.
const LEVELS: [(u32, &[&str]); 2] = [
    (96, &["cx16", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"]),
    (
        97,
        &[
            "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe",
        ],
    ),
];

/// What an extension may use of its processor, besides what every x86-64 processor has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features(Vec<&'static str>);

impl Features {
    /// What a compiler allows itself, of which `probe` is a run with the user's flags.
    pub fn of(probe: &mut ToolCommand) -> Features {
        let text = probe
            .args(["-w", "-E", "-dM", "-x", "c", "/dev/null"])
            .text();
        Features::defined(&text)
    }

    /// What a compiler allows itself that has these definitions.
    fn defined(text: &str) -> Features {
        let defined = |name: &str| {
            let mut names = text.lines().filter_map(|line| line.split(' ').nth(1));
            names.any(|other| other == name)
        };
        let there = FEATURES.iter().filter(|feature| defined(feature.defined));
        Features(there.map(|feature| feature.name).collect())
    }

    /// Whether a feature is there, by the name in gcc's option.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    /// The names, as gcc's options have them.
    pub fn names(&self) -> &[&'static str] {
        &self.0
    }

    /// The symbols that `lib/cpuid.s` answers with, and their values.
    pub fn symbols(&self) -> Vec<(String, u32)> {
        let word = |wanted| {
            let there = FEATURES
                .iter()
                .filter(|f| f.word == wanted && self.has(f.name));
            there.fold(0, |word, feature| word | 1 << feature.bit)
        };
        let (state, saved) = if self.has("avx") {
            (7, OSXSAVE)
        } else {
            (3, 0)
        };
        let mut symbols = vec![
            (
                "__postern_cpuid_1_ecx".to_owned(),
                word(Word::Basic) | saved,
            ),
            ("__postern_cpuid_1_edx".to_owned(), BASIC_EDX),
            ("__postern_cpuid_7_ebx".to_owned(), word(Word::More)),
            ("__postern_cpuid_7_ecx".to_owned(), word(Word::Vectors)),
            (
                "__postern_cpuid_extended_ecx".to_owned(),
                word(Word::Extended) | LAHF,
            ),
            ("__postern_xgetbv_0_eax".to_owned(), state),
        ];
        for (number, word) in self.libgcc().into_iter().enumerate() {
            symbols.push((format!("__postern_cpu_features_{number}"), word));
        }
        symbols
    }

    /// The words of libgcc's `__cpu_model.__cpu_features` and `__cpu_features2`.
    fn libgcc(&self) -> [u32; 4] {
        let mut numbers = ALWAYS.to_vec();
        numbers.extend(
            FEATURES
                .iter()
                .filter(|f| self.has(f.name))
                .map(|f| f.number),
        );
        if self.has("avx") {
            numbers.extend(WITH_AVX);
        }
        if self.has("lzcnt") {
            numbers.extend(WITH_LZCNT);
        }
        let reached = |(_, names): &&(u32, &[&str])| names.iter().all(|name| self.has(name));
        numbers.extend(LEVELS.iter().take_while(reached).map(|(number, _)| number));
        let mut words = [0; 4];
        for number in numbers {
            words[number as usize / 32] |= 1 << (number % 32);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_become_words() {
        let none = Features::default();
        let value = |features: &Features, name: &str| {
            let symbols = features.symbols();
            symbols.iter().find(|(n, _)| n == name).unwrap().1
        };
        assert_eq!(value(&none, "__postern_cpuid_1_ecx"), 0);
        assert_eq!(value(&none, "__postern_xgetbv_0_eax"), 3);
        let some = Features::defined("#define __AES__ 1\n#define __AVX__ 1\n#define __AVX512F__ 1");
        assert_eq!(some.names(), ["aes", "avx"]);
        assert_eq!(value(&some, "__postern_cpuid_1_ecx"), 1 << 25 | 7 << 26);
        // OSXSAVE, 62.
        assert_eq!(value(&some, "__postern_cpu_features_1") >> 30, 1);
    }
}
