//! Turns the Rust blocks of all pages into documentation tests, one item for each, named after page
//! and line.

// Not all of it is used here.
#[allow(dead_code)]
#[path = "check/page.rs"]
mod page;

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("docs/ lies in the project");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=check/page.rs");
    println!("cargo::rerun-if-changed=../README.md");
    let mut out = String::new();
    for path in page::pages(root) {
        let markdown = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
        for block in page::blocks(&markdown) {
            // What is ignored here is an extension's, which other tests build.
            if block.language() == "rust" && !block.has("ignore") {
                let _ = write!(out, "{}", item(&path, &block));
            }
        }
    }
    let file = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("blocks.rs");
    std::fs::write(file, out).expect("the output directory can be written");
}

fn item(path: &Path, block: &page::Block) -> String {
    let page = path.display().to_string();
    let enter = format!("# postern_docs::enter({page:?}, {});\n", block.line);
    let run = !block.has("norun");
    let mut code = String::new();
    let main = block.text.lines().position(|l| l.starts_with("fn main("));
    if run && main.is_none() {
        code += &enter;
    }
    for (i, line) in block.text.lines().enumerate() {
        code += line;
        code.push('\n');
        if run && main == Some(i) {
            code += &enter;
        }
    }
    let attribute = if run { "rust" } else { "rust,no_run" };
    let name: String = page
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    format!(
        "#[doc = {:?}]\npub mod {name}_line_{} {{}}\n",
        format!("```{attribute}\n{code}```\n"),
        block.line
    )
}
