//! The headers and the library agree: the same functions with the same types, the same values, the
//! same structures.

use crate::support;

use object::{Object, ObjectSymbol};
use postern_capi::{
    demux, domain, event, failure, fault, kernel, module, namespace, observe, options, policy,
    pool, process, revoke, share, source, structures, writer,
};
use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};

/// All headers, in an order in which a compiler takes them.
fn headers() -> String {
    let read = |name| std::fs::read_to_string(support::source("include").join(name));
    let texts = support::HEADERS.map(|name| read(name).expect(name));
    texts.concat()
}

/// A line of C for each header.
fn includes() -> String {
    let lines = support::HEADERS.map(|name| format!("#include <{name}>\n"));
    lines.concat()
}

/// C declarations by name, without names of parameters: `int pt_domain_free(pt_domain *)`.
fn prototypes() -> BTreeMap<String, String> {
    let header = headers();
    let mut code = String::new();
    let mut rest = header.as_str();
    while let Some(start) = rest.find("/*") {
        code.push_str(&rest[..start]);
        rest = &rest[start + rest[start..].find("*/").expect("comments end") + 2..];
    }
    code.push_str(rest);
    let mut found = BTreeMap::new();
    for statement in code
        .lines()
        .filter(|l| !l.starts_with('#') && !l.starts_with("extern \"C\"") && *l != "}")
        .collect::<String>()
        .split(';')
    {
        let Some(open) = statement.find('(') else {
            continue;
        };
        let words: Vec<&str> = statement[..open].split_whitespace().collect();
        let Some(name) = words.last().map(|w| w.trim_start_matches('*')) else {
            continue;
        };
        if name.starts_with("pt_") && !statement.contains('{') {
            found.insert(name.to_owned(), statement.trim().to_owned());
        }
    }
    found
}

/// Parameters of a declaration, split at top-level commas.
fn parameters(list: &str) -> Vec<String> {
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in list.chars() {
        match c {
            '(' | '<' => depth += 1,
            ')' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("one at least").push(c);
    }
    parts
        .iter()
        .map(|p| p.trim().to_owned())
        .filter(|p| !p.is_empty() && p != "void")
        .collect()
}

/// The exported functions as the sources declare them: name, types of the parameters, type of the
/// result.
fn definitions() -> BTreeMap<String, (Vec<String>, String)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(support::source("src")).expect("src") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a source");
        for piece in text.split("#[unsafe(no_mangle)]").skip(1) {
            let head = piece[..piece.find('{').expect("a body")]
                .split_whitespace()
                .collect::<Vec<_>>();
            let head = head.join(" ");
            let name_at = head.find("fn ").expect("a function") + 3;
            let open = name_at + head[name_at..].find('(').expect("parameters");
            let close = head.rfind(')').expect("parameters end");
            let types = parameters(&head[open + 1..close])
                .iter()
                .map(|p| p.split_once(": ").expect("a type").1)
                // All lifetimes are the call's.
                .map(|t| t.replace("<'_>", "").replace("<'_, ", "<"))
                .collect();
            let result = head[close + 1..].trim().trim_start_matches("->").trim();
            found.insert(head[name_at..open].to_owned(), (types, result.to_owned()));
        }
    }
    found
}

/// How the sources say what the header says.
const TYPES: [(&str, &str); 66] = [
    ("", "void"),
    ("c_int", "int"),
    ("u32", "uint32_t"),
    ("u64", "uint64_t"),
    ("i64", "int64_t"),
    ("usize", "size_t"),
    ("Text", "const char *"),
    ("Source", "const void *"),
    ("Target", "void *"),
    ("TextTarget", "char *"),
    ("Function", "void *"),
    ("User", "void *"),
    ("HostMemory", "void *"),
    ("*mut c_void", "void *"),
    ("*const c_void", "const void *"),
    ("*const c_char", "const char *"),
    ("Out<*const c_char>", "const char **"),
    ("Out<u32>", "uint32_t *"),
    ("Descriptor", "int"),
    ("ConfigIn", "const pt_config *"),
    ("*const CFault", "const pt_fault *"),
    ("CountersOut", "pt_counters *"),
    ("SourceErrorOut", "pt_source_error *"),
    ("Flag", "const volatile int *"),
    ("LookFunction", "int (*)(void *)"),
    ("FaultHandler", "void (*)(const pt_fault *, void *)"),
    ("Out<u64>", "uint64_t *"),
    ("Out<i64>", "int64_t *"),
    ("TextVector", "const char *const *"),
    ("Reader", "size_t (*)(void *, void *, size_t)"),
    ("Writer", "void (*)(void *, const void *, size_t)"),
    ("CallHandler", "int (*)(void *, pt_call *)"),
    ("Decide", "int (*)(void *, pt_question *)"),
    ("Out<CRepossession>", "pt_repossession *"),
    ("TextRoom", "char *"),
    ("Handle<PolicyKind>", "pt_policy *"),
    ("Handle<PoolKind>", "pt_pool *"),
    ("Handle<ModuleKind>", "pt_module *"),
    ("Handle<NamespaceKind>", "pt_namespace *"),
    ("Handle<FilterKind>", "pt_filter *"),
    ("Handle<FilterSetKind>", "pt_filter_set *"),
    ("Handle<SourceKind>", "pt_source *"),
    ("Handle<WriterKind>", "pt_writer *"),
    ("Handle<HandlerKind>", "pt_handler *"),
    ("Handle<DemuxKind>", "pt_demux *"),
    ("Out<usize>", "size_t *"),
    ("Out<CTally>", "pt_tally *"),
    ("Bytes", "const void *"),
    ("Packets", "const pt_packet *"),
    ("Many<i64>", "int64_t *"),
    ("Many<u32>", "uint32_t *"),
    ("PacketIn", "const pt_packet *"),
    ("Out<CPacket>", "pt_packet *"),
    ("Words", "const uint64_t *"),
    (
        "HandOver<Handle<DomainKind>>",
        "int (*)(pt_domain *, pt_domain *, void *)",
    ),
    (
        "ReloadHandler",
        "void (*)(int, uint64_t, const pt_fault *, void *)",
    ),
    ("Handle<KernelKind>", "pt_kernel *"),
    ("Handle<KernelOptionsKind>", "pt_kernel_options *"),
    ("Handle<KernelOpenedKind>", "pt_kernel_opened *"),
    ("Out<CKernelStatistics>", "pt_kernel_statistics *"),
    ("Out<CKernelAttachment>", "pt_kernel_attachment *"),
    ("Handle<ImageKind>", "pt_image *"),
    ("Handle<OptionsKind>", "pt_options *"),
    ("Handle<DomainKind>", "pt_domain *"),
    ("Handle<SharedKind>", "pt_shared *"),
    ("Handle<SubscriptionKind>", "pt_subscription *"),
];

#[test]
fn exports_are_the_prototypes() {
    let bytes = std::fs::read(support::built("libpostern_capi.so")).expect("the library");
    let library = object::File::parse(&*bytes).expect("ELF");
    let exported: Vec<String> = library
        .dynamic_symbols()
        .filter(|s| s.is_definition())
        .map(|s| s.name().expect("a name").to_owned())
        .collect();
    let declared: Vec<String> = prototypes().into_keys().collect();
    let mut exported = exported;
    exported.sort();
    assert!(declared.len() > 30);
    assert_eq!(declared, exported);
    assert_eq!(declared, definitions().into_keys().collect::<Vec<_>>());
}

/// A C file declares every function again, as the Rust sources have it: a compiler refuses a
/// declaration of another type.
#[test]
fn types_agree() {
    let mut text = includes();
    for (name, (parameters, result)) in definitions() {
        let c = |t: &str| {
            let found = TYPES.iter().find(|row| row.0 == t);
            found
                .unwrap_or_else(|| panic!("{name}: no C type for `{t}`"))
                .1
        };
        let list: Vec<&str> = parameters.iter().map(|t| c(t)).collect();
        let list = if list.is_empty() {
            "void".to_owned()
        } else {
            list.join(", ")
        };
        text.push_str(&format!("{} {name}({list});\n", c(&result)));
        text.push_str(&format!(
            "{} (*const p_{name})({list}) = {name};\n",
            c(&result)
        ));
    }
    let constants = failure::CODES
        .iter()
        .copied()
        .chain(fault::KINDS.iter().map(|k| (k.1, k.2)))
        .chain(fault::OTHERS.iter().map(|k| (k.0, k.1)))
        .chain(fault::HAS)
        .chain(process::FLAGS)
        .chain(options::PLACEMENTS)
        .chain(observe::METRICS)
        .chain(share::ACCESS)
        .chain(policy::VERDICTS)
        .chain(policy::STREAMS)
        .chain(revoke::GRANTS)
        .chain(revoke::ENDS)
        .chain(options::RESTARTS)
        .chain(pool::FLAGS)
        .chain(pool::COUNTS)
        .chain(module::EVENTS)
        .chain(module::COUNTS)
        .chain(namespace::RECOVERIES)
        .chain(namespace::USES)
        .chain(namespace::COUNTS)
        .chain(source::FLAGS)
        .chain(source::DIRECTIONS)
        .chain(source::LINKS)
        .chain(writer::FORMATS)
        .chain(demux::FLAGS)
        .chain(event::WAYS)
        .chain(event::FLAGS)
        .chain(event::COUNTS)
        .chain(kernel::ENDS)
        .chain(kernel::RIGHTS)
        .chain(kernel::POLICIES)
        .chain(kernel::FAMILIES)
        .chain(REGISTERS.iter().enumerate().map(|(i, n)| (*n, i as i32)));
    let mut known = Vec::new();
    for (name, value) in constants {
        known.push(name);
        text.push_str(&format!("_Static_assert({name} == {value}, \"{name}\");\n"));
    }
    for (what, value) in layouts() {
        text.push_str(&format!("_Static_assert({what} == {value}, \"{what}\");\n"));
    }
    text.push_str(&format!(
        "_Static_assert(PT_VERSION == {}, \"PT_VERSION\");\n",
        process::VERSION
    ));
    text.push_str("int main(void) { return 0; }\n");
    let file = support::installed().join("agree.c");
    std::fs::write(&file, text).expect("agree.c");
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"].map(str::to_owned);
    let mut arguments: Vec<String> = flags.into();
    let root = support::installed().display();
    arguments.extend([format!("-I{root}"), file.display().to_string(), "-o".into()]);
    arguments.extend([
        format!("{root}/agree"),
        format!("-L{root}"),
        "-lpostern".into(),
    ]);
    support::run("gcc", &arguments);
    assert_eq!(enumerators(), sorted(known));
}

/// The headers are C99 and C++98 for the strictest compiler.
#[test]
fn every_standard_takes_the_headers() {
    let file = support::installed().join("only.h");
    std::fs::write(&file, includes()).expect("only.h");
    for (compiler, standard) in [
        ("gcc", "c99"),
        ("gcc", "c11"),
        ("g++", "c++11"),
        ("g++", "c++20"),
    ] {
        let language = if compiler == "gcc" { "c" } else { "c++" };
        let arguments = [
            format!("-std={standard}"),
            format!("-x{language}"),
            "-Wall".into(),
            "-Wextra".into(),
            "-Werror".into(),
            "-pedantic".into(),
            "-fsyntax-only".into(),
            format!("-I{}", support::installed().display()),
            file.display().to_string(),
        ];
        support::run(compiler, &arguments);
    }
}

/// Whether a function of a host with this body compiles, as C11 and as C++11.
fn compiles(body: &str) -> [bool; 2] {
    let root = support::installed();
    let (file, include) = (root.join("body.c"), format!("-I{}", root.display()));
    let text =
        format!("#include <postern.h>\nvoid f(pt_domain *d);\nvoid f(pt_domain *d) {{ {body} }}\n");
    std::fs::write(&file, text).expect("body.c");
    [("gcc", "-xc", "-std=c11"), ("g++", "-xc++", "-std=c++11")].map(
        |(compiler, language, standard)| {
            let output = std::process::Command::new(compiler)
                .args([
                    language,
                    standard,
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-pedantic",
                    "-fsyntax-only",
                    &include,
                ])
                .arg(&file)
                .output();
            output.expect(compiler).status.success()
        },
    )
}

/// Only types that can cross have a signature. Whatever else is written does not compile, the
/// host's own pointers above all.
#[test]
fn the_macros_take_types_that_cross_and_no_others() {
    let sixteen = ["int"; 16].join(", ");
    for good in [
        "(int, int)",
        "(void)",
        "(pt_offset, size_t, float, double, long long, char, signed char, unsigned char, short)",
        &format!("({sixteen})"),
    ] {
        let body =
            format!("(void)PT_SYM(d, long, add, {good}); (void)PT_SYM_AT(d, 1, void, {good});");
        assert_eq!(compiles(&body), [true; 2], "{good}");
    }
    let right = "long (*add)(int, int) = PT_SYM(d, long, add, (int, int)); (void)add;";
    assert_eq!(compiles(right), [true; 2]);
    // Another type than that of the pointer which gets it.
    let wrong = right.replace(
        "= PT_SYM(d, long, add, (int",
        "= PT_SYM(d, long, add, (long",
    );
    assert_eq!(compiles(&wrong), [false; 2]);
    for bad in [
        "char *",
        "const char *",
        "void *",
        "int *",
        "struct pt_config",
        "long double",
        "void (*)(void)",
        &format!("{sixteen}, int"),
    ] {
        let body = format!("(void)PT_SYM(d, long, add, (int, {bad}));");
        assert_eq!(compiles(&body), [false; 2], "{bad}");
        let body = format!("(void)PT_SYM(d, {bad}, add, (void));");
        assert_eq!(compiles(&body), [false; 2], "{bad} as the result");
    }
    // C would take it for a function of whatever it is called with.
    assert!(!compiles("(void)PT_SYM(d, long, add, ());")[0]);
    assert_eq!(compiles("(void)pt_domain_sym(d, \"add\");"), [false; 2]);
}

/// The text that the macros make, in both languages.
#[test]
fn the_macros_write_signatures() {
    let lines: String = [
        ("void, (void)", "v()"),
        ("_Bool, (_Bool)", "z(z)"),
        ("int8_t, (uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t)", "b(BhHiIlL)"),
        ("float, (double, pt_offset, size_t, long, long long, unsigned long long)", "f(dILllL)"),
        ("char, (int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int)", "b(iiiiiiiiiiiiiiii)"),
    ]
    .iter()
    .map(|(c, text)| format!("    if (strcmp(PT_SIGNATURE({c}), \"{text}\")) return 1;\n"))
    .collect();
    let root = support::installed();
    for (compiler, language, standard, truth) in [
        ("gcc", "-xc", "-std=c11", "_Bool"),
        ("g++", "-xc++", "-std=c++11", "bool"),
    ] {
        let (file, program) = (
            root.join("write.c"),
            root.join("write").display().to_string(),
        );
        let text = lines.replace("_Bool", truth);
        let text = format!(
            "#include <postern.h>\n#include <string.h>\nint main(void) {{\n{text}    return 0;\n}}\n"
        );
        std::fs::write(&file, text).expect("write.c");
        let (include, file) = (format!("-I{}", root.display()), file.display().to_string());
        support::run(
            compiler,
            &[
                language,
                standard,
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic",
                &include,
                "-o",
                &program,
                &file,
            ],
        );
        support::run(&program, &[] as &[&str]);
    }
}

const REGISTERS: [&str; 16] = [
    "PT_RAX",
    "PT_RBX",
    "PT_RCX",
    "PT_RDX",
    "PT_RSI",
    "PT_RDI",
    "PT_RBP",
    "PT_R8",
    "PT_R9",
    "PT_R10",
    "PT_R11",
    "PT_R12",
    "PT_R13",
    "PT_R14",
    "PT_R15",
    "PT_REGISTERS",
];

fn layouts() -> Vec<(String, usize)> {
    use structures::{
        CCall, CConfig, CCounters, CFault, CKernelAttachment, CKernelStatistics, CPacket,
        CQuestion, CRepossession, CSourceError, CTally,
    };
    let mut all = vec![
        ("sizeof(pt_config)".to_owned(), size_of::<CConfig>()),
        ("sizeof(pt_fault)".to_owned(), size_of::<CFault>()),
        ("sizeof(pt_call)".to_owned(), size_of::<CCall>()),
        ("sizeof(pt_question)".to_owned(), size_of::<CQuestion>()),
        (
            "sizeof(pt_repossession)".to_owned(),
            size_of::<CRepossession>(),
        ),
        ("sizeof(pt_counters)".to_owned(), size_of::<CCounters>()),
        (
            "sizeof(pt_source_error)".to_owned(),
            size_of::<CSourceError>(),
        ),
        ("sizeof(pt_tally)".to_owned(), size_of::<CTally>()),
        ("sizeof(pt_packet)".to_owned(), size_of::<CPacket>()),
        (
            "sizeof(pt_kernel_statistics)".to_owned(),
            size_of::<CKernelStatistics>(),
        ),
        (
            "sizeof(pt_kernel_attachment)".to_owned(),
            size_of::<CKernelAttachment>(),
        ),
        (
            "sizeof(void *)".to_owned(),
            size_of::<postern_capi::handle::Handle<domain::DomainKind>>(),
        ),
    ];
    macro_rules! fields {
        ($rust:ty, $c:literal: $($field:ident)*) => { $(
            all.push((format!("offsetof({}, {})", $c, stringify!($field)), offset_of!($rust, $field)));
        )* };
    }
    fields!(CConfig, "pt_config": size flags tick_us signal reserved);
    fields!(CFault, "pt_fault": size kind has offset address status signal registers depth frames backtrace message place domain area area_start page access);
    fields!(CSourceError, "pt_source_error": size line column length reserved kind file message help text);
    fields!(CCall, "pt_call": size number words path second_path bytes length answer room answered result reason);
    fields!(CQuestion, "pt_question": size domain service call integers floats integer floating result reason);
    fields!(CRepossession, "pt_repossession": size kind name why);
    fields!(CTally, "pt_tally": name packets bytes dropped answers faults reserved);
    fields!(CPacket, "pt_packet": time at length wire_length interface direction reserved);
    fields!(CKernelStatistics, "pt_kernel_statistics": extension rights policy segment image memory ended queued lost restarts hooks instructions depth longest_path shared reserved);
    fields!(CKernelAttachment, "pt_kernel_attachment": attachment extension calls passed function hook);
    fields!(CCounters, "pt_counters": size calls faults inside_ns hot_ns moves services denied system_calls refused promoted spawned resumed skipped full busy longest ended);
    all
}

/// All enumerators of the headers.
fn enumerators() -> Vec<String> {
    let header = headers();
    let mut found = Vec::new();
    let mut rest = header.as_str();
    while let Some(at) = rest.find("enum ") {
        let body = &rest[at + rest[at..].find('{').expect("a body")..];
        let end = body.find('}').expect("its end");
        let words = body[..end].split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        found.extend(
            words
                .filter(|w| w.starts_with("PT_") && !w.ends_with('_'))
                .map(str::to_owned),
        );
        rest = &body[end..];
    }
    sorted(found.iter().map(String::as_str).collect())
}

fn sorted(names: Vec<&str>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}
