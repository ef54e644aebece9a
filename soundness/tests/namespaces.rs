//! The address space while a namespace lives: what of its code is writable, where, and for whom.

mod maps;

use maps::{Mapping, mappings, protections};
use postern::{Namespace, Offset};
use postern_verifier::window::{INFO, WINDOW_SIZE};
use std::fs;

/// What a namespace adds: code that is shared, executable and nothing else, data about it that can
/// only be read, and one mapping for the host, far from any window, through which both are written
/// and which is not executable.
#[test]
fn the_code_of_a_namespace_is_written_from_elsewhere() {
    let space = Namespace::builder().build().unwrap();
    let base = space.domain().base();
    let end = base + WINDOW_SIZE;
    for round in 0..60 {
        let source =
            format!("int f{round}(int x) {{ return x + {round}; }} const char *s{round} = \"s\";");
        space.create("a", &source).unwrap();
        let all = mappings();
        let code: Vec<_> = all
            .iter()
            .filter(|m| m.name.contains("memfd:postern-code"))
            .collect();
        let (inside, outside): (Vec<&Mapping>, Vec<&Mapping>) = code
            .into_iter()
            .partition(|m| m.start >= base && m.start < end);
        assert!(inside.iter().any(|m| m.protection == "r-xs"));
        for mapping in inside {
            assert!(
                // What has no text yet is not accessible.
                ["r-xs", "r--s", "---s"].contains(&&*mapping.protection),
                "{mapping:?}"
            );
        }
        let [alias] = outside[..] else {
            panic!("{outside:?}");
        };
        assert_eq!(alias.protection, "rw-s");
        for mapping in all.iter().filter(|m| m.end > base && m.start < end) {
            assert!(!mapping.protection.contains("wx"), "{mapping:?}");
            if mapping.protection.contains('x') {
                let text = mapping.name.contains("memfd:postern-");
                assert!(text, "{mapping:?}");
            }
        }
        let holes = protections(&all, base + u64::from(INFO), end);
        assert!(!holes.contains(&"unmapped".to_string()), "{holes:?}");
        // What is executable and not text is int3: no byte that nobody judged.
        if round % 20 == 0 {
            trap_fill(&space, &all, base, end);
        }
    }
    // No descriptor is left by which another mapping could be made, and nobody gives the window's
    // one the right to write.
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    assert!(!targets.any(|t| t.to_string_lossy().contains("memfd:postern-code")));
    let all = mappings();
    let text = all
        .iter()
        .find(|m| m.protection == "r-xs" && m.name.contains("memfd:postern-code"));
    let text = text.unwrap();
    // SAFETY: asks for a protection that is refused.
    let made = unsafe {
        let length = (text.end - text.start) as usize;
        libc::mprotect(
            text.start as *mut _,
            length,
            libc::PROT_READ | libc::PROT_WRITE,
        )
    };
    assert_ne!(made, 0);
    drop(space);
    let all = mappings();
    assert!(!all.iter().any(|m| m.name.contains("memfd:postern-code")));
    assert_eq!(protections(&all, base, end), ["---p"]);
}

/// Each executable byte of a namespace is one of a slot, of a function, or `int3`.
fn trap_fill(space: &Namespace, all: &[Mapping], base: u64, end: u64) {
    for mapping in all
        .iter()
        .filter(|m| m.protection == "r-xs" && m.start >= base && m.start < end)
    {
        let offset = Offset((mapping.start - base) as u32);
        let bytes = space
            .domain()
            .read_vec(offset, (mapping.end - mapping.start) as usize)
            .unwrap();
        // Zero is the first byte of an instruction that nobody judged.
        assert!(!bytes.windows(16).any(|w| w == [0; 16]), "{mapping:?}");
        assert_eq!(*bytes.last().unwrap(), 0xcc);
    }
}
