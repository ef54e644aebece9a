//! What safe code outside the trusted base can name takes no address and gives no reference that
//! nothing bounds.
//!
//! The test reads the sources: a visible function that takes a raw pointer, or a number that is no
//! measure by its name, is `unsafe`, or stands in a list with the reason why nothing can come of
//! it. No visible field is a pointer. No visible function takes or gives the state of a thread,
//! gives a lock's guard of what the gates rely on, or makes a forked child of a process that is
//! none.

use quote::ToTokens;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::{FnArg, GenericParam, ImplItem, Item, Pat, ReturnType, Visibility};

/// Words that name a length, a count, a number of something or a time, and no place in memory, and
/// the end of longer ones.
const MEASURES: &[&str] = &[
    "bytes",
    "size",
    "len",
    "count",
    "most",
    "index",
    "number",
    "sequence",
    "nanoseconds",
    "value",
    "depth",
    "need",
    "detail",
    "word",
    "round",
    "limit",
];

/// Functions that take a number of another name, or a pointer: where, and why nothing can come of
/// it.
const ALLOWED: &[(&str, &str)] = &[
    ("block::Inside::new", "an index, checked against the words"),
    (
        "machine::allocate",
        "a place in a file, which the kernel checks",
    ),
    (
        "machine::punch",
        "a place in a file, which the kernel checks",
    ),
    ("bulk::contains", "compares"),
    (
        "exos::sync::Mutex::lock",
        "a lock for others, too: the gates' own are private",
    ),
    (
        "window::owned::OwnedPart::read",
        "an index, checked against the part",
    ),
    (
        "window::owned::OwnedPart::write",
        "an index, checked against the part",
    ),
    (
        "map::mapping::Mapping::write",
        "an index, checked against the mapping",
    ),
    (
        "window::part::Part::map_file",
        "a place in a file, which the kernel checks",
    ),
    (
        "window::part::Part::share",
        "a place in a file, which the kernel checks",
    ),
    (
        "inside::Target::service",
        "compared with what threads are in, never followed",
    ),
    ("register::prepare", "a size of stacks"),
    (
        "signal::request_end",
        "of a thread in the registry, which is locked: stores a wish, sends a signal",
    ),
    (
        "signal::remind",
        "of a thread in the registry, which is locked: sends a signal",
    ),
    ("thread::is_current", "compares"),
    (
        "thread::registry",
        "the registry alone can exchange nothing of it",
    ),
];

/// What is found, by place.
#[derive(Default)]
struct Scan(BTreeMap<String, Vec<String>>);

impl Scan {
    fn note(&mut self, place: &str, what: String) {
        self.0.entry(place.to_owned()).or_default().push(what);
    }

    fn items(&mut self, module: &str, items: &[Item]) {
        for item in items {
            match item {
                Item::Fn(f) if is_public(&f.vis) => {
                    let place = format!("{module}::{}", f.sig.ident);
                    self.function(&place, &f.sig, &f.attrs, &[]);
                }
                Item::Impl(block) if block.trait_.is_none() => {
                    let name = block.self_ty.to_token_stream().to_string();
                    let name = name.split([' ', '<']).next().unwrap_or_default().to_owned();
                    let known = lifetimes(&block.generics);
                    for item in &block.items {
                        if let ImplItem::Fn(f) = item
                            && is_public(&f.vis)
                        {
                            let place = format!("{module}::{name}::{}", f.sig.ident);
                            self.function(&place, &f.sig, &f.attrs, &known);
                        }
                    }
                }
                Item::Struct(s) if is_public(&s.vis) => self.fields(module, s),
                Item::Mod(m) if !is_test(&m.attrs) => {
                    let name = format!("{module}::{}", m.ident);
                    if let Some((_, items)) = &m.content {
                        self.items(&name, items);
                    }
                }
                _ => {}
            }
        }
    }

    fn function(
        &mut self,
        place: &str,
        signature: &syn::Signature,
        attributes: &[syn::Attribute],
        known: &[String],
    ) {
        if signature.unsafety.is_some() {
            let docs: String = attributes
                .iter()
                .map(|a| a.to_token_stream().to_string())
                .collect();
            if !docs.contains("# Safety") {
                self.note(place, "says no duty under `# Safety`".into());
            }
            return;
        }
        let mut given = known.to_vec();
        for input in &signature.inputs {
            let text = input.to_token_stream().to_string();
            given.extend(own_lifetimes(&signature.generics).filter(|l| text.contains(l.as_str())));
            let FnArg::Typed(parameter) = input else {
                continue;
            };
            let name = match &*parameter.pat {
                Pat::Ident(name) => name.ident.to_string(),
                _ => String::new(),
            };
            let kind = parameter.ty.to_token_stream().to_string();
            let number = matches!(
                &*kind,
                "usize" | "u64" | "Range < usize >" | "Range < u64 >"
            );
            // Whoever has one has it from the registry: it may be another thread's.
            let thread = kind == "& Thread";
            if thread || is_pointer(&kind) || number && !MEASURES.iter().any(|m| name.ends_with(m))
            {
                self.note(place, format!("takes {name}: {kind}"));
            }
        }
        let name = signature.ident.to_string();
        let parameters = signature.inputs.to_token_stream().to_string();
        if matches!(&*name, "after_fork" | "renew") && !parameters.contains("& InChild") {
            self.note(place, "is safe in a forked child only".into());
        }
        if let ReturnType::Type(_, result) = &signature.output {
            let result = result.to_token_stream().to_string();
            if result.contains("MutexGuard") {
                self.note(place, "gives a table that can be taken away".into());
            }
            if result.contains("& 'static Thread") {
                self.note(place, "gives a thread that may end".into());
            }
            for own in own_lifetimes(&signature.generics).filter(|l| !given.contains(l)) {
                if result.contains(&own) {
                    self.note(place, format!("gives {result}, which nothing bounds"));
                }
            }
        }
    }

    fn fields(&mut self, module: &str, item: &syn::ItemStruct) {
        for (index, field) in item.fields.iter().enumerate() {
            let name = field
                .ident
                .as_ref()
                .map_or(index.to_string(), |n| n.to_string());
            let kind = field.ty.to_token_stream().to_string();
            if is_public(&field.vis) && is_pointer(&kind) {
                self.note(
                    &format!("{module}::{}.{name}", item.ident),
                    format!("is {kind}"),
                );
            }
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_pointer(kind: &str) -> bool {
    ["* const", "* mut", "NonNull", "AtomicPtr"]
        .iter()
        .any(|p| kind.contains(p))
}

fn lifetimes(generics: &syn::Generics) -> Vec<String> {
    own_lifetimes(generics).collect()
}

fn own_lifetimes(generics: &syn::Generics) -> impl Iterator<Item = String> + '_ {
    generics.params.iter().filter_map(|p| match p {
        GenericParam::Lifetime(l) => Some(l.lifetime.to_string()),
        _ => None,
    })
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes
        .iter()
        .any(|a| a.to_token_stream().to_string().contains("test"))
}

fn sources(folder: &Path, module: &str, to: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let name = if module.is_empty() {
            name
        } else {
            format!("{module}::{name}")
        };
        if path.is_dir() {
            sources(&path, &name, to);
        } else if path.extension().is_some_and(|e| e == "rs") {
            to.push((path, name));
        }
    }
}

#[test]
fn safe_code_names_no_address() {
    let mut files = Vec::new();
    sources(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src").as_path(),
        "",
        &mut files,
    );
    assert!(files.len() > 20, "the sources are not where they were");
    let mut scan = Scan::default();
    for (path, module) in files {
        let text = std::fs::read_to_string(&path).expect("a source");
        let file = syn::parse_file(&text).expect("Rust");
        scan.items(&module, &file.items);
    }
    let allowed = || ALLOWED.iter();
    let known = |place: &str| allowed().any(|(allowed, _)| *allowed == place);
    let unknown: Vec<_> = scan.0.iter().filter(|(place, _)| !known(place)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    let stale: Vec<_> = allowed()
        .filter(|(place, _)| !scan.0.contains_key(*place))
        .collect();
    assert!(stale.is_empty(), "no longer there: {stale:#?}");
}
