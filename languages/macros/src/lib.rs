//! `#[postern::export]`: a function that the host calls by its name, as one of C.
//!
//! Arguments and results are numbers and addresses. `&[u8]` and `&mut [u8]` are two arguments, an
//! address and a size.
#![forbid(unsafe_code)]

use proc_macro::{Delimiter, TokenStream, TokenTree};

/// Exports a function to the host.
#[proc_macro_attribute]
pub fn export(_: TokenStream, item: TokenStream) -> TokenStream {
    let outside = match wrapper(item.clone()) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| refused("postern::export: this signature is not understood")),
        Err(what) => refused(what),
    };
    // The function itself stays as it is, with its lines.
    item.into_iter().chain(outside).collect()
}

fn refused(what: &str) -> TokenStream {
    format!("::core::compile_error!({what:?});")
        .parse()
        .unwrap_or_default()
}

/// A function with C's calling convention that calls it.
fn wrapper(item: TokenStream) -> Result<String, &'static str> {
    let mut tokens = item
        .into_iter()
        .skip_while(|token| token.to_string() != "fn")
        .skip(1);
    let name = tokens
        .next()
        .ok_or("postern::export is for functions")?
        .to_string();
    let arguments = match tokens.next() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            group.stream()
        }
        _ => return Err("postern::export is for functions without type parameters"),
    };
    let mut result = String::new();
    for token in tokens {
        if matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace) {
            break;
        }
        if token.to_string() == "where" {
            return Err("postern::export is for functions without type parameters");
        }
        result.push_str(&token.to_string());
        // `- >` would be two tokens.
        if token.to_string() != "-" {
            result.push(' ');
        }
    }
    let (mut taken, mut passed) = (Vec::new(), Vec::new());
    for (place, kind) in types(arguments)?.into_iter().enumerate() {
        let dense: String = kind.chars().filter(|c| !c.is_whitespace()).collect();
        let (pointer, function) = match dense.as_str() {
            "&[u8]" => ("*const u8", "slice"),
            "&mut[u8]" => ("*mut u8", "slice_mut"),
            _ if dense.starts_with('&') => {
                return Err(
                    "postern::export: of references, only &[u8] and &mut [u8] can be passed by a host",
                );
            }
            _ => {
                taken.push(format!("a{place}: {kind}"));
                passed.push(format!("a{place}"));
                continue;
            }
        };
        taken.push(format!("a{place}: {pointer}, n{place}: usize"));
        passed.push(format!(
            "unsafe {{ ::postern::trusted::{function}(a{place}, n{place}) }}"
        ));
    }
    Ok(format!(
        "const _: () = {{ #[unsafe(export_name = \"{name}\")] pub extern \"C\" fn exported({}) {result} {{ {name}({}) }} }};",
        taken.join(", "),
        passed.join(", ")
    ))
}

/// The types of arguments, as text.
fn types(arguments: TokenStream) -> Result<Vec<String>, &'static str> {
    let mut found = Vec::new();
    let mut now: Option<String> = None;
    let mut depth = 0;
    let mut before = String::new();
    for token in arguments {
        let text = token.to_string();
        match text.as_str() {
            "," if depth == 0 => {
                found.extend(now.take());
                before = text;
                continue;
            }
            ":" if now.is_none() => {
                now = Some(String::new());
                before = text;
                continue;
            }
            "<" => depth += 1,
            ">" if before != "-" => depth -= 1,
            "self" if now.is_none() => {
                return Err("postern::export is for functions, not for methods");
            }
            _ => {}
        }
        if let Some(now) = &mut now {
            now.push_str(&text);
            now.push(' ');
        }
        before = text;
    }
    found.extend(now);
    Ok(found)
}
