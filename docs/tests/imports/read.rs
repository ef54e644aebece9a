//! A crate's modules, as its sources have them, and what the paths in them mean.

use super::Arrows;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{ImplItem, Item, UseTree, Visibility};

/// Where a module is: names from the crate's root.
type Place = Vec<String>;

/// What a module has.
#[derive(Default)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    /// Names of items.
    items: BTreeSet<String>,
    /// Names that `use` binds, and the paths.
    bound: BTreeMap<String, Vec<String>>,
    /// Modules and enums all of whose names are used.
    globs: Vec<Vec<String>>,
    /// Paths that the module's code names.
    named: Vec<Vec<String>>,
    /// Methods that it calls.
    called: BTreeSet<String>,
    /// Methods that it gives to types, by the path of the type.
    given: Vec<(Vec<String>, String)>,
}

impl Module {
    /// Whether a path that begins with this name leads to something in the crate.
    fn knows(&self, name: &String) -> bool {
        matches!(name.as_str(), "crate" | "super" | "self")
            || self.children.contains(name)
            || self.items.contains(name)
            || self.bound.contains_key(name)
    }
}

/// A crate's modules.
pub struct Crate {
    modules: BTreeMap<Place, Module>,
}

impl Crate {
    /// Reads a crate from the file with which it begins; `read` gives a file's text, by its path in
    /// the sources.
    pub fn read(root: &str, read: impl Fn(&str) -> Option<String>) -> Crate {
        let mut modules = BTreeMap::new();
        let mut open = vec![(Place::new(), root.to_owned())];
        while let Some((place, file)) = open.pop() {
            let text = read(&file).unwrap_or_else(|| panic!("no {file}"));
            let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
            let mut walk = Walk {
                modules: &mut modules,
                file: &file,
                place: place.clone(),
                outside: Vec::new(),
            };
            walk.module(&parsed.items);
            for (module, named) in walk.outside {
                let found = named.into_iter().chain(candidates(&file, &place, &module));
                let found = found.into_iter().find(|path| read(path).is_some());
                open.push((module, found.expect("a module's file")));
            }
        }
        Crate { modules }
    }

    /// The arrows between files.
    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        let mut add = |from: &Module, to: Option<&str>, name: &str| {
            let targets = arrows.entry(from.file.clone()).or_default();
            if let Some(to) = to.filter(|to| *to != from.file) {
                let names: &mut BTreeSet<String> = targets.entry(to.to_owned()).or_default();
                names.insert(name.to_owned());
            }
        };
        let givers = self.givers();
        for (place, module) in &self.modules {
            add(module, None, "");
            for path in &module.named {
                let target = self.meaning(place, path, 0);
                let item = target.filter(|(_, item)| *item);
                let name = path.last().expect("a path has a name");
                add(module, item.map(|(place, _)| self.file(&place)), name);
            }
            for method in &module.called {
                add(module, givers.get(method.as_str()).copied(), method);
            }
        }
        arrows
    }

    fn file(&self, place: &Place) -> &str {
        &self.modules[place].file
    }

    /// Methods of which there is one in the crate, where another file than the type's own has it.
    fn givers(&self) -> BTreeMap<&str, &str> {
        let mut all: BTreeMap<&str, Vec<(&Place, &Vec<String>)>> = BTreeMap::new();
        for (place, module) in &self.modules {
            for (of, method) in &module.given {
                all.entry(method).or_default().push((place, of));
            }
        }
        all.into_iter()
            .filter_map(|(method, places)| match places[..] {
                [(place, of)] => {
                    let home = self.meaning(place, of, 0)?.0;
                    let file = self.file(place);
                    (self.file(&home) != file).then_some((method, file))
                }
                _ => None,
            })
            .collect()
    }

    /// The module in which a path ends that is named in `place`, and whether it ends at an item of
    /// that module. `None`: in another crate.
    fn meaning(&self, place: &Place, path: &[String], depth: usize) -> Option<(Place, bool)> {
        let (mut at, mut rest) = (place.clone(), path);
        let mut relative = true;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()?),
                "self" => {}
                _ => break,
            }
            (rest, relative) = (others, false);
        }
        while let Some((first, others)) = rest.split_first() {
            let module = &self.modules[&at];
            if module.children.contains(first) {
                at.push(first.clone());
            } else if module.items.contains(first) {
                return Some((at, true));
            } else if depth > 16 {
                return None;
            } else if let Some(bound) = module.bound.get(first).filter(|b| *b != path) {
                let whole: Vec<String> = bound.iter().chain(others).cloned().collect();
                return self.meaning(&at, &whole, depth + 1);
            } else {
                // Another crate's are not looked into.
                let own = module.globs.iter().filter(|glob| module.knows(&glob[0]));
                let globs = own.map(|glob| {
                    let whole: Vec<String> = glob.iter().chain(rest).cloned().collect();
                    self.meaning(&at, &whole, depth + 1)
                        .filter(|(_, item)| *item)
                });
                let found = globs.flatten().next();
                // What a macro makes is not seen; a name that nothing in the module has is another
                // crate's.
                return found.or((!relative).then_some((at, true)));
            }
            (rest, relative) = (others, false);
        }
        Some((at, false))
    }
}

/// Where the file of a module may be.
fn candidates(file: &str, place: &Place, module: &Place) -> Vec<String> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let name = file.rsplit('/').next().expect("a name");
    let own = match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => file.trim_end_matches(".rs").to_owned(),
    };
    // Modules in the file itself are folders.
    let below = module[place.len()..].join("/");
    let base = if own.is_empty() {
        below
    } else {
        format!("{own}/{below}")
    };
    vec![format!("{base}.rs"), format!("{base}/mod.rs")]
}

/// Reads one file.
struct Walk<'a> {
    modules: &'a mut BTreeMap<Place, Module>,
    file: &'a str,
    place: Place,
    /// Modules in files of their own, and the path that an attribute says.
    outside: Vec<(Place, Option<String>)>,
}

impl Walk<'_> {
    fn own(&mut self) -> &mut Module {
        let module = self.modules.entry(self.place.clone()).or_default();
        if module.file.is_empty() {
            module.file = self.file.to_owned();
        }
        module
    }

    fn module(&mut self, items: &[Item]) {
        self.own();
        for item in items {
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        if let Item::Mod(module) = item {
            return self.inner(module);
        }
        if attributes(item).iter().any(is_of_tests) {
            return;
        }
        if let Some(name) = name(item) {
            self.own().items.insert(name);
        }
        self.visit_item(item);
    }

    fn inner(&mut self, module: &syn::ItemMod) {
        if module.attrs.iter().any(is_of_tests) {
            return;
        }
        let name = module.ident.to_string();
        self.own().children.insert(name.clone());
        self.place.push(name);
        match &module.content {
            Some((_, items)) => self.module(items),
            None => {
                let said = module.attrs.iter().find_map(|a| match &a.meta {
                    syn::Meta::NameValue(value) if value.path.is_ident("path") => {
                        match &value.value {
                            syn::Expr::Lit(syn::ExprLit {
                                lit: syn::Lit::Str(path),
                                ..
                            }) => Some(path.value()),
                            _ => None,
                        }
                    }
                    _ => None,
                });
                let folder = self
                    .file
                    .rsplit_once('/')
                    .map_or(String::new(), |(f, _)| format!("{f}/"));
                let said = said.map(|path| format!("{folder}{path}"));
                self.outside.push((self.place.clone(), said));
            }
        }
        self.place.pop();
    }

    fn uses(&mut self, tree: &UseTree, before: &mut Vec<String>, passed_on: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.uses(&path.tree, before, passed_on);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.uses(tree, before, passed_on);
                }
            }
            UseTree::Glob(_) => {
                let module = self.own();
                module.globs.push(before.clone());
            }
            UseTree::Name(name) => self.bind(&name.ident, &name.ident, before, passed_on),
            UseTree::Rename(name) => self.bind(&name.ident, &name.rename, before, passed_on),
        }
    }

    fn bind(&mut self, item: &syn::Ident, name: &syn::Ident, before: &[String], passed_on: bool) {
        let mut path = before.to_vec();
        let mut name = name.to_string();
        if item == "self" {
            if name == "self" {
                name = before.last().expect("a path").clone();
            }
        } else {
            path.push(item.to_string());
        }
        let module = self.own();
        if !passed_on {
            module.named.push(path.clone());
        }
        module.bound.insert(name, path);
    }

    /// Paths in what a macro is given, which nobody parses.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::<String>::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.end(&mut path);
                    colons = 0;
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if !path.is_empty() {
            let path = std::mem::take(path);
            self.own().named.push(path);
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let passed_on = !matches!(item.vis, Visibility::Inherited);
        self.uses(&item.tree, &mut Vec::new(), passed_on);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if path.leading_colon.is_none() {
            self.own().named.push(names);
        }
        visit::visit_path(self, path);
    }

    // Documentation and derives name what they like.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        self.own().called.insert(name);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        if block.attrs.iter().any(is_of_tests) {
            return;
        }
        if let syn::Type::Path(of) = &*block.self_ty {
            let of: Vec<String> = of
                .path
                .segments
                .iter()
                .map(|s| s.ident.to_string())
                .collect();
            for item in &block.items {
                if let ImplItem::Fn(function) = item {
                    // What takes no `self` is never called as a method, and what a trait asks for
                    // is called by the trait, wherever that is: neither is an import. But the name
                    // is not one method's alone.
                    let of = match (function.sig.receiver(), &block.trait_) {
                        (Some(_), None) => of.clone(),
                        _ => Vec::new(),
                    };
                    let given = (of, function.sig.ident.to_string());
                    self.own().given.push(given);
                }
            }
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        // A method of a trait is nobody's alone.
        for function in &item.items {
            if let syn::TraitItem::Fn(function) = function {
                let name = function.sig.ident.to_string();
                for _ in 0..2 {
                    self.own().given.push((Vec::new(), name.clone()));
                }
            }
        }
        visit::visit_item_trait(self, item);
    }

    // A module in a function's body.
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.inner(module);
    }
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(i) => &i.ident,
        Item::Enum(i) => &i.ident,
        Item::Fn(i) => &i.sig.ident,
        Item::Macro(i) => i.ident.as_ref()?,
        Item::Static(i) => &i.ident,
        Item::Struct(i) => &i.ident,
        Item::Trait(i) => &i.ident,
        Item::Type(i) => &i.ident,
        Item::Union(i) => &i.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// `#[test]`, `#[cfg(test)]` and the like.
fn is_of_tests(attribute: &syn::Attribute) -> bool {
    match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all (test") || condition == "loom"
        }
        _ => false,
    }
}
