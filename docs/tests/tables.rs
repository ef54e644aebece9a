//! Tables of the book that repeat what the code says: nothing may be missing from them.

use postern_docs::workspace;

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path))
        .unwrap_or_else(|e| panic!("cannot read {path}: {e}"))
}

/// The variants of an enum, from its source.
fn variants(source: &str, name: &str) -> Vec<String> {
    let start = source
        .find(&format!("pub enum {name} {{"))
        .unwrap_or_else(|| panic!("no enum {name}"));
    let body = &source[start..];
    let body = &body[..body.find("\n}").unwrap()];
    let variants = body.lines().filter_map(|line| {
        let name = line.strip_prefix("    ")?;
        let end = name
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(name.len());
        name.starts_with(|c: char| c.is_ascii_uppercase())
            .then(|| name[..end].to_owned())
    });
    variants.collect()
}

#[test]
fn every_fault_kind_is_explained() {
    let (source, page) = (
        read("runtime/src/fault.rs"),
        read("docs/src/reference/faults.md"),
    );
    let kinds = variants(&source, "FaultKind");
    assert!(kinds.len() > 10);
    for kind in kinds {
        assert!(
            page.contains(&format!("`{kind}`")),
            "reference/faults.md lacks {kind}"
        );
    }
    let names = source
        .split("=> \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    for name in names.filter(|n| !n.contains(' ')) {
        assert!(
            page.contains(name),
            "reference/faults.md lacks the name {name}"
        );
    }
}

/// A signature without what `rustfmt` decides, and without what only the function itself sees.
fn bare(signature: &str) -> String {
    let text: String = signature.split_whitespace().collect();
    text.replace(",)", ")").replace("mutself", "self")
}

#[test]
fn signatures_of_the_rust_api_are_those_of_the_source() {
    let page = read("docs/src/reference/rust-api.md");
    let rows = page
        .lines()
        .filter(|line| line.contains("| `fn ") || line.contains("| `unsafe fn "));
    let folders = ["runtime/src", "supervision/src", "namespaces/src"];
    let files = folders
        .iter()
        .flat_map(|folder| rust_files(&workspace().join(folder)));
    let texts = files.map(|file| bare(&std::fs::read_to_string(file).unwrap()));
    let source: Vec<String> = texts.collect();
    let mut seen = 0;
    for row in rows {
        let signature = row.split('`').rev().nth(1).unwrap();
        let wanted = format!("pub{}{{", bare(signature));
        assert!(
            source.iter().any(|text| text.contains(&wanted)),
            "reference/rust-api.md has a signature that no source has: {signature}"
        );
        seen += 1;
    }
    assert!(seen > 90, "{seen}");
}

/// The files of Rust under a folder.
fn rust_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => rust_files(&path),
            false if path.extension().is_some_and(|e| e == "rs") => vec![path],
            false => Vec::new(),
        })
        .collect()
}

#[test]
fn every_error_has_a_remedy() {
    let page = read("docs/src/reference/errors.md");
    for (file, name) in [
        ("runtime/src/error.rs", "LoadError"),
        ("runtime/src/error.rs", "StartError"),
        ("runtime/src/error/call.rs", "InstantiateError"),
        ("runtime/src/error.rs", "SymbolError"),
        ("runtime/src/error.rs", "BindError"),
        ("runtime/src/error.rs", "MemoryError"),
        ("runtime/src/error.rs", "ShareError"),
        ("runtime/src/table/read.rs", "TableError"),
        ("runtime/src/error/call.rs", "CallError"),
        ("gates/src/map/error.rs", "MapError"),
        ("policy/src/rules.rs", "GrantError"),
        ("runtime/src/decision.rs", "DecisionError"),
        ("runtime/src/revoke.rs", "RevokeError"),
        ("runtime/src/revoke.rs", "Reluctance"),
        ("supervision/src/pool/options.rs", "PoolError"),
        ("supervision/src/module/replace.rs", "ReplaceError"),
        ("namespaces/src/error.rs", "CreateError"),
        ("namespaces/src/lib.rs", "NamespaceError"),
        ("namespaces/src/call.rs", "IdCallError"),
    ] {
        let found = variants(&read(file), name);
        assert!(found.len() > 1, "{name}");
        for variant in found {
            assert!(
                page.contains(&format!("`{name}::{variant}`")),
                "reference/errors.md lacks {name}::{variant}"
            );
        }
    }
}

#[test]
fn every_configuration_field_is_listed() {
    let page = read("docs/src/reference/limits.md");
    for (file, name) in [
        ("runtime/src/config.rs", "Config"),
        ("runtime/src/domain/limits.rs", "Limits"),
        ("namespaces/src/lib.rs", "Capacity"),
    ] {
        let source = read(file);
        let start = source.find(&format!("pub struct {name} {{")).unwrap();
        let body = &source[start..start + source[start..].find("\n}").unwrap()];
        for line in body
            .lines()
            .filter_map(|l| l.trim().strip_prefix("pub ")?.split_once(':'))
        {
            if !line.0.contains(' ') {
                assert!(
                    page.contains(&format!("`{}`", line.0)),
                    "reference/limits.md lacks {name}::{}",
                    line.0
                );
            }
        }
    }
}

#[test]
fn every_key_of_a_description_is_listed() {
    let page = read("docs/src/reference/build.md");
    let source = read("toolchain/src/project/manifest.rs");
    let mut keys = 0;
    for (section, name) in [("extension", "Extension"), ("source", "Source")] {
        let start = source.find(&format!("pub struct {name} {{")).unwrap();
        let body = &source[start..start + source[start..].find("\n}").unwrap()];
        for line in body.lines() {
            if let Some((key, _)) = line
                .trim()
                .strip_prefix("pub ")
                .and_then(|l| l.split_once(": "))
            {
                keys += 1;
                assert!(
                    page.contains(&format!("| `{section}.{key}` |")),
                    "reference/build.md lacks {section}.{key}"
                );
            }
        }
    }
    let listed = page
        .lines()
        .filter(|line| line.starts_with("| `extension.") || line.starts_with("| `source."));
    assert_eq!(
        keys,
        listed.count(),
        "reference/build.md lists a key that does not exist"
    );
}

#[test]
fn every_key_of_a_site_is_listed() {
    let page = read("docs/src/reference/serve.md");
    let source = read("server/src/config/file.rs") + &read("plugins/src/config.rs");
    let mut keys = 0;
    for name in [
        "File",
        "FileLimits",
        "FileLog",
        "FileOperations",
        "FilePage",
        "FileTls",
        "FileHandler",
        "FilePlugins",
        "Quotas",
    ] {
        let start = source.find(&format!("struct {name} {{")).unwrap();
        let body = &source[start..start + source[start..].find("\n}").unwrap()];
        let fields = body.lines().map(|line| line.trim());
        let fields = fields.map(|line| line.trim_start_matches("pub(super) "));
        let fields = fields.map(|line| line.trim_start_matches("pub "));
        for key in fields.filter_map(|field| field.split_once(": ")) {
            // Tables have headings.
            let table = name == "File"
                && [
                    "limits",
                    "log",
                    "operations",
                    "page",
                    "tls",
                    "handler",
                    "plugins",
                ]
                .contains(&key.0);
            let row = format!("| `{}` |", key.0);
            assert!(
                table || page.contains(&row),
                "reference/serve.md lacks {}",
                key.0
            );
            keys += usize::from(!table);
        }
    }
    let listed = page.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(
        keys,
        listed.count(),
        "reference/serve.md lists a key that does not exist"
    );
}

#[test]
fn every_c_function_is_listed() {
    let (header, page) = (
        [
            "postern",
            "postern-types",
            "postern-modules",
            "postern-policy",
            "postern-filter",
            "postern-kernel",
        ]
        .map(|name| read(&format!("capi/include/{name}.h")))
        .concat(),
        read("docs/src/reference/c-api.md"),
    );
    let mut functions = 0;
    for (at, _) in header.match_indices("pt_") {
        let name: String = header[at..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        let is_call = header[at + name.len()..].starts_with('(');
        if is_call {
            functions += 1;
            assert!(page.contains(&name), "reference/c-api.md lacks {name}");
        }
    }
    assert!(functions > 5);
}

#[test]
fn the_abi_page_has_the_numbers_of_the_code() {
    use postern_verifier::window::*;
    let page = read("docs/src/internals/abi.md");
    let offset = |n: u32| format!("`0x{:04x}_{:04x}`", n >> 16, n & 0xffff);
    let pad: Vec<String> = PAD.iter().map(|b| format!("{b:02X}")).collect();
    for (what, text) in [
        ("INFO", format!("{} `INFO`", offset(INFO))),
        ("GATES", format!("{} `GATES`", offset(GATES))),
        ("SLOT_SIZE", format!("gate slots, {SLOT_SIZE} bytes each")),
        (
            "NULL_GUARD",
            format!("null guard, {} KiB", NULL_GUARD >> 10),
        ),
        ("PAD", pad.join(" ")),
        (
            "THREAD_BLOCK",
            format!("thread block ({THREAD_BLOCK} bytes"),
        ),
        (
            "STACK_LOG2",
            format!(
                "{} to {}; default {}",
                STACK_LOG2.0, STACK_LOG2.2, STACK_LOG2.1
            ),
        ),
        ("MAX_IMPORTS", format!("{MAX_IMPORTS} imports")),
        ("MAX_EXPORTS", format!("{MAX_EXPORTS} exports")),
        ("ABI_VERSION", format!("ABI version ({ABI_VERSION})")),
        (
            "INFO_HEAP_START",
            format!("`INFO + {}` | u32 | heap start", INFO_HEAP_START - INFO),
        ),
        (
            "INFO_HEAP_END",
            format!("`INFO + {}` | u32 | heap end", INFO_HEAP_END - INFO),
        ),
        (
            "INFO_STACK_MASK",
            format!(
                "`INFO + {}` | u32 | size of each data stack",
                INFO_STACK_MASK - INFO
            ),
        ),
    ] {
        assert!(
            page.contains(&text),
            "internals/abi.md lacks {what}: {text}"
        );
    }
}

/// Names of services and the rights that they need.
type Services = std::collections::BTreeMap<String, Vec<&'static str>>;

/// The rows of the module's table.
fn services_of_the_module() -> Services {
    let rights = [
        ("SEE", "see-packets"),
        ("CHANGE", "change-packets"),
        ("OBSERVE", "observe"),
        ("LOG", "log"),
    ];
    let source = read("kernel/linux/services.c");
    let rows = source.lines().filter_map(|line| {
        let row = line.strip_prefix("\t{ \"")?.strip_suffix(" },")?;
        let (name, rest) = row.split_once("\", ")?;
        let (needed, _) = rest.split_once(", ")?;
        let words = needed.split(" | ").filter(|word| *word != "0");
        let spelled = words.map(|word| {
            let known = rights.iter().find(|right| right.0 == word);
            known
                .unwrap_or_else(|| panic!("{name}: the right {word}"))
                .1
        });
        Some((name.to_owned(), spelled.collect()))
    });
    rows.collect()
}

#[test]
fn services_of_the_kernel_module_are_told_with_their_rights() {
    let services = services_of_the_module();
    assert!(services.len() > 10);
    let page = read("docs/src/reference/kernel-services.md");
    let told: std::collections::BTreeMap<String, Vec<&str>> = page
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("| `postern_")?.split_once("` |")?;
            let rights = rest.split(" |").next()?.split([',', ' ', '`']);
            let rights = rights.filter(|word| !word.is_empty()).collect();
            Some((format!("postern_{name}"), rights))
        })
        .collect();
    assert_eq!(services, told, "the page");
    let header = read("toolchain/include/postern/kernel.h");
    let declared: Vec<&str> = header
        .split("POSTERN_IMPORT ")
        .skip(1)
        .filter_map(|rest| rest.split('(').next()?.rsplit([' ', '*']).next())
        .collect();
    let mut sorted = declared.clone();
    sorted.sort_unstable();
    assert!(services.keys().eq(sorted), "the header has {declared:?}");
}
