//! `postern filter`: packets of a capture file or an interface that an expression accepts, judged
//! by machine code in a domain of its own, and shown, counted, written, or given to an extension.

mod arguments;
mod flow;
mod from;
mod names;
mod refused;
mod save;
mod show;

use std::path::Path;

use postern_capture::{Link, PacketFilter};
use postern_filter::classic::{Instruction, listing};
use postern_filter::{Code, Error, Filter, Options};
use postern_verifier::Facts;
use postern_verifier::window::text_start;

use crate::output::{self, Failure, Outcome, SUCCESS};
pub use arguments::Arguments;
pub use flow::{Bar, OFTEN, TOLD};
pub use from::{From, unusable};
pub use names::System;
use postern_toolchain::disassembly;
pub use save::READ;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    arguments.refused.check()?;
    if arguments.list_interfaces {
        let names = postern_capture::interfaces().map_err(unusable)?;
        let list = names.iter().zip(1..);
        let lines: String = list.map(|(name, at)| format!("{at}.{name}\n")).collect();
        output::print(&lines)?;
        return Ok(SUCCESS);
    }
    if let Some(path) = &arguments.program {
        if !arguments.from.is_some() {
            return Err(Failure::unusable("a program judges packets: add -r or -i"));
        }
        let image = postern_capture::load(path).map_err(unusable)?;
        let program = PacketFilter::program(&image).map_err(unusable)?;
        let never = |_| Err(Failure::unusable("a program judges"));
        return flow::run(arguments, Some(program), &never);
    }
    warn(&arguments.source()?);
    let wanted = |link| compile(arguments, link);
    if arguments.dump > 0 || arguments.output.is_some() || !arguments.from.is_some() {
        let filter = wanted(arguments.link())?;
        let code = match arguments.kernel {
            true => filter.kernel_code(),
            false => filter.code(),
        };
        if let Some(path) = &arguments.output {
            write(path, &code)?;
        }
        match arguments.dump {
            0 if arguments.output.is_some() => {}
            0 | 1 => dump(&filter, &code)?,
            times => output::print(&classic(&filter, times > 2)?)?,
        }
    }
    if !arguments.from.is_some() || arguments.dump > 1 {
        return Ok(SUCCESS);
    }
    flow::run(arguments, None, &wanted)
}

/// Says where an expression may mean something else than what it says.
pub fn warn(source: &str) {
    for warning in postern_filter::warnings(source) {
        output::complain(&format!("warning: {}", warning.show(source)));
    }
}

fn compile(arguments: &Arguments, link: Link) -> Result<Filter, Failure> {
    if let Some(path) = &arguments.classic {
        let text = String::from_utf8_lossy(&output::read(path)?).into_owned();
        let unusable =
            |error: Error| Failure::unusable(format!("{}: {}", path.display(), error.message));
        return Filter::classic(&text).map_err(unusable);
    }
    let source = arguments.source()?;
    let options = Options {
        netmask: arguments.from.netmask(arguments.netmask),
        link,
        ..Options::default()
    };
    let names = System::new(arguments.no_lookup == 0);
    Filter::compile_with(&source, &names, options).map_err(|error| {
        let shown = error.show(&source);
        Failure::unusable(match &arguments.expression_file {
            Some(path) => format!("{}: {shown}", path.display()),
            None => shown,
        })
    })
}

/// The program for the classic machine: as a piece of C, or as numbers.
fn classic(filter: &Filter, numbers: bool) -> Result<String, Failure> {
    let list = filter.to_classic().ok_or_else(|| {
        Failure::unusable(
            "the filter does not fit a classic BPF program: 4096 instructions, 16 words of memory",
        )
    })?;
    let mut text = String::new();
    if numbers {
        text += &format!("{}\n", list.len());
    }
    for Instruction { code, jt, jf, k } in list {
        text += &match numbers {
            true => format!("{code} {jt} {jf} {k}\n"),
            false => format!("{{ {code:#x}, {jt}, {jf}, 0x{k:08x} }},\n"),
        };
    }
    Ok(text)
}

/// Writes the code as an extension file; what the verifier would refuse is not written.
fn write(path: &Path, code: &Code) -> Result<(), Failure> {
    judged(code)?;
    let file = code
        .image()
        .map_err(|error| Failure::unusable(error.to_string()))?;
    std::fs::write(path, file).map_err(|error| save::cannot_write(path, &error))
}

fn judged(code: &Code) -> Result<Facts, Failure> {
    let refused = |violation| Failure::unusable(format!("the code is refused: {violation}"));
    code.verify().map_err(refused)
}

fn dump(filter: &Filter, code: &Code) -> Result<(), Failure> {
    let facts = judged(code)?;
    let mut text = format!("{filter}\n");
    if let Some(list) = filter.to_classic() {
        text += &(listing(&list) + "\n");
    }
    let base = text_start(0);
    let lines = disassembly::around(code.text(), base, base, base, 0, usize::MAX - 1);
    for line in lines {
        text += &line.columns();
        text.push('\n');
    }
    text += &format!(
        "\n{} bytes, {} instructions, {} on the longest path\n",
        code.text().len(),
        facts.instructions,
        facts.longest_path.unwrap_or(0)
    );
    output::print(&text)
}
