//! WebAssembly modules: wasm2c (Debian's package `wabt`) turns one into C, which is compiled like
//! any other source.
//!
//! wasm2c's C stands between a prelude of ours (`wasm/prelude.h`: memory, tables, arithmetic, in
//! place of wabt's run-time library) and glue made for the module ([`glue`]): imports become
//! services, exports functions of the extension. Nothing of it is trusted; that the module traps
//! where WebAssembly says so is the prelude's business, and that it stays in its window the
//! verifier's.

mod glue;
mod module;

use std::path::{Path, PathBuf};

use crate::error::CompileError;
use crate::tools::{Tool, ToolError};
use postern_image::input;

/// The version whose C the prelude knows.
const VERSION: &str = "1.0.32";

/// Bytes of a page of linear memory.
const PAGE: u64 = 65536;

/// Pages that are reserved for a memory that grows, unless an option says otherwise: 128 MiB.
const ROOM: u64 = 2048;

/// Most pages: what the small code model can address, with room for everything else.
const MOST: u64 = 1 << 14;

/// Options for gcc, before the user's: the C of wasm2c is slow to run and slow to compile without
/// optimisation.
pub const DEFAULTS: &[&str] = &["-O2"];

/// Options for gcc, after the user's: WebAssembly's arithmetic is exact, and the unit is the whole
/// module.
pub const REQUIRED: &[&str] = &[
    "-std=gnu11",
    "-w",
    "-fwhole-program",
    "-fvisibility=hidden",
    "-fwrapv",
    "-fno-fast-math",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fsignaling-nans",
];

const PRELUDE: &str = include_str!("../wasm/prelude.h");
const WASI: &str = include_str!("../wasm/wasi.h");

/// Translates the module (or text, `.wat`) at `path` in the empty folder `into`; returns the C
/// file. `room` are the bytes that the memory may take at most.
///
/// # Errors
/// What wasm2c says of the module, in the compiler's form; or that it is not there.
pub fn translate(path: &Path, into: &Path, room: Option<u64>) -> Result<PathBuf, CompileError> {
    let said = |what: &str| {
        CompileError::Tool(ToolError::Failed {
            messages: format!("{}: error: {what}", path.display()),
        })
    };
    let version = Tool::Wasm2c.command().arg("--version").answer()?;
    if version.trim() != VERSION {
        return Err(CompileError::Tool(ToolError::Version {
            wanted: VERSION,
            installed: version.trim().to_owned(),
        }));
    }
    let binary = match path.extension() {
        Some(ending) if ending == "wat" => {
            let binary = into.join("w.wasm");
            let mut command = Tool::Wat2wasm.command();
            command
                .arg("--debug-names")
                .arg(path)
                .arg("-o")
                .arg(&binary);
            command.run().map_err(|error| placed(error, path))?;
            binary
        }
        _ => path.to_owned(),
    };
    let (source, header) = (into.join("w.c"), into.join("w.h"));
    let mut command = Tool::Wasm2c.command();
    command.args(["-n", glue::NAME, "-o"]);
    command.arg(&source).arg(&binary);
    command.run().map_err(|error| placed(error, path))?;

    let module = module::read(&read(&binary)?)
        .ok_or_else(|| said("the module uses what `postern cc` does not know"))?;
    let mut names = module.exports.iter().map(|export| &export.name).chain(
        module
            .imports
            .iter()
            .flat_map(|import| [&import.module, &import.name]),
    );
    // wasm2c puts names into comments.
    if let Some(name) = names.find(|name| name.contains("*/") || name.contains(char::is_control)) {
        return Err(said(&format!("the name {name:?} cannot stand in C")));
    }
    let text = text(&source)?;
    let declarations = self::text(&header)?;
    let body =
        body(&text).ok_or_else(|| said("wasm2c wrote C of a form that is not known here"))?;
    let instantiate = declarations
        .lines()
        .find(|line| line.starts_with("void Z_w_instantiate("))
        .unwrap_or_default();
    let grows = body.contains("wasm_rt_grow_memory(");
    let reserved = match module.memory {
        Some(sizes) => Some(reserve(sizes, grows, room).map_err(|what| said(&what))?),
        None => None,
    };
    write(&header, &declarations.replace("#include <stdint.h>\n", ""))?;
    let glue = glue::after(&module, instantiate).map_err(|what| said(&what))?;
    let mut whole = glue::before(&module, reserved, grows, "w.h");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Lines are those of wasm2c's file, which -save-temps keeps.
    let quoted = name.replace(['\\', '"'], "_");
    whole.push_str(&format!("#line 1 \"{quoted}.c\"\n{body}\n"));
    whole.push_str(&format!("#line 1 \"{quoted}.glue.c\"\n{glue}"));
    write(&source, &whole)?;
    write(&into.join("wasm-rt.h"), PRELUDE)?;
    write(&into.join("wasi.h"), WASI)?;
    Ok(source)
}

/// The part of wasm2c's C after its helpers, which refers to the one instance by name and has no
/// table of types.
fn body(text: &str) -> Option<String> {
    let (_, text) = text.split_once("\nstatic bool s_module_initialized = false;\n")?;
    let text = match text.split_once("static void init_func_types(void) {") {
        Some((_, text)) => text.split_once("\n}\n")?.1,
        None => text,
    };
    Some(
        text.replace("instance->", "wasm_instance.")
            .replace("  s_module_initialized = true;\n", "")
            .replace("  init_func_types();\n", ""),
    )
}

/// Pages that the memory's array has.
fn reserve(sizes: module::Sizes, grows: bool, room: Option<u64>) -> Result<u32, String> {
    let least = u64::from(sizes.least);
    let room = room.map_or(ROOM.max(least), |bytes| bytes / PAGE);
    let pages = if grows {
        u64::from(sizes.most.unwrap_or(u32::MAX)).min(room)
    } else {
        least
    };
    if pages < least || pages > MOST {
        return Err(format!(
            "the module asks for {least} pages of linear memory (64 KiB each), and {} can be had",
            room.min(MOST)
        ));
    }
    Ok(pages as u32)
}

/// A message of a tool of wabt with the file before it.
fn placed(error: ToolError, path: &Path) -> ToolError {
    let ToolError::Failed { messages } = error else {
        return error;
    };
    let file = path.display().to_string();
    let mut lines = Vec::new();
    for line in messages.lines() {
        let line = match line.split_once("error: ") {
            // `file:line:column: error: what` is already as it should be.
            Some((place, _)) if place.starts_with(&format!("{file}:")) && !place.contains(":0") => {
                line.to_owned()
            }
            Some((_, what)) => format!("{file}: error: {what}"),
            None => line.to_owned(),
        };
        lines.push(line);
    }
    if lines.is_empty() {
        lines.push(format!("{file}: error: wasm2c cannot translate the module (it knows no SIMD, threads or exceptions)"));
    }
    ToolError::Failed {
        messages: lines.join("\n"),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CompileError> {
    let bytes = input::read(path, input::MAX_FILE);
    bytes.map_err(|error| CompileError::file(path)(error.into()))
}

fn text(path: &Path) -> Result<String, CompileError> {
    Ok(String::from_utf8_lossy(&read(path)?).into_owned())
}

fn write(path: &Path, text: &str) -> Result<(), CompileError> {
    std::fs::write(path, text).map_err(CompileError::file(path))
}
