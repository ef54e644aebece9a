//! Where the time of confined programs goes: the same programs with one part of the confinement
//! left out at a time.
//!
//! The assembly that `postern cc` writes is changed as text, and linked with the library of
//! extensions into a process whose low 4 GiB are the window (`ablations/runner.c`). So all variants
//! share library, data stack and compiler options, and differ in the named part only; no verifier
//! would accept most of them, and no runtime loads them. Each variant is a process; they take
//! turns.

use crate::module::compile;
use crate::programs::is_wanted;
use postern_bench::programs::{self as works, PROGRAMS};
use postern_figures::clock::{best_of, geometric_mean};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const ROUNDS: usize = 10;

/// What can be left out of confined assembly.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// The segment prefix of memory operands.
    Segment,
    /// Their 32-bit address size.
    AddressSize,
    /// The check for a landing pad and the addition of the base before indirect branches.
    Check,
    /// The landing pads.
    Pads,
}
use Part::{AddressSize, Check, Pads, Segment};

/// Which assembly a variant begins with.
#[derive(Clone, Copy, PartialEq)]
enum Text {
    /// Of an ordinary build with the host's library.
    Native,
    /// Of gcc under `postern cc`, before it is rewritten: one stack, plain operands and branches.
    Compiler,
    /// Confined, without some parts.
    Rewritten(&'static [Part]),
}

struct Variant {
    name: &'static str,
    text: Text,
    /// Options for `postern cc` or gcc.
    options: &'static [&'static str],
}

const fn variant(name: &'static str, text: Text, options: &'static [&'static str]) -> Variant {
    Variant {
        name,
        text,
        options,
    }
}

/// The first is what all others are held against.
const VARIANTS: [Variant; 11] = [
    variant("gcc -O2, the host's library", Text::Native, &[]),
    variant(
        "the same, hot loops at multiples of 32",
        Text::Native,
        &["-falign-loops=32"],
    ),
    variant("confined", Text::Rewritten(&[]), &[]),
    variant(
        "… hot loops at multiples of 32",
        Text::Rewritten(&[]),
        &["-falign-loops=32"],
    ),
    variant(
        "… data stack adjusted at each instruction",
        Text::Rewritten(&[]),
        &["-fpostern-rewrite=fixed"],
    ),
    variant(
        "… without segment prefixes",
        Text::Rewritten(&[Segment]),
        &[],
    ),
    variant(
        "… without segment and address-size prefixes",
        Text::Rewritten(&[Segment, AddressSize]),
        &[],
    ),
    variant(
        "… without the check of indirect branches",
        Text::Rewritten(&[Check]),
        &[],
    ),
    variant(
        "… without check and landing pads",
        Text::Rewritten(&[Check, Pads]),
        &[],
    ),
    variant(
        "… without all of these",
        Text::Rewritten(&[Segment, AddressSize, Check, Pads]),
        &[],
    ),
    variant(
        "… not rewritten: gcc's own frames on one stack",
        Text::Compiler,
        &[],
    ),
];

/// The programs, and Lua once more with a `switch` in place of computed jumps.
const MORE: (&str, &str, &str) = ("lua", "lua, switch", "-DLUA_USE_JUMPTABLE=0");

/// Measures all, and gives a table of ratios in Markdown. `this` is the program itself, which is
/// `postern cc` when it is called so.
pub fn table(this: &Path, only: &[String]) -> Result<String, String> {
    let folder = postern_toolchain::cache().join("bench/ablations");
    let mut rows: Vec<String> = VARIANTS.iter().map(|v| format!("| {} |", v.name)).collect();
    let mut ratios = vec![Vec::new(); VARIANTS.len()];
    let mut head = "| time over gcc -O2 |".to_owned();
    for (name, files) in PROGRAMS {
        if !is_wanted(name, only) {
            continue;
        }
        let more = (name == MORE.0).then_some((MORE.1, &[MORE.2][..]));
        for (title, options) in std::iter::once((name, &[][..])).chain(more) {
            eprintln!("peers: building {title} with parts left out");
            let maker = Maker::new(
                this,
                &folder.join(title.replace(", ", "-")),
                (name, files),
                options,
            )?;
            let times = measure(&maker).map_err(|error| format!("{title}: {error}"))?;
            let _ = write!(head, " {title} |");
            for (index, time) in times.iter().enumerate() {
                let ratio = time / times[0];
                let _ = match index {
                    0 => write!(rows[0], " {:.2} ms |", time * 1e3),
                    _ => write!(rows[index], " {ratio:.3} |"),
                };
                ratios[index].push(ratio);
            }
        }
    }
    let mut table = format!("{head} mean |\n{}|\n", "|---".repeat(ratios[0].len() + 2));
    for (row, ratios) in rows.iter().zip(&ratios) {
        let _ = writeln!(table, "{row} {:.3} |", geometric_mean(ratios));
    }
    Ok(table)
}

/// Best seconds of each variant.
fn measure(maker: &Maker) -> Result<Vec<f64>, String> {
    let mut runners = Vec::new();
    for variant in &VARIANTS {
        runners.push(Runner::new(&maker.make(variant)?)?);
    }
    let wanted = runners[0].turn()?.1;
    let mut best = vec![f64::INFINITY; VARIANTS.len()];
    let mut errors = Vec::new();
    best_of(
        ROUNDS,
        [&mut || {
            for ((runner, best), variant) in runners.iter_mut().zip(&mut best).zip(&VARIANTS) {
                match runner.turn() {
                    Ok((seconds, found)) if found == wanted => *best = best.min(seconds),
                    Ok((_, found)) => {
                        errors.push(format!("{}: {found:#x}, and not {wanted:#x}", variant.name))
                    }
                    Err(error) => errors.push(format!("{}: {error}", variant.name)),
                }
            }
        }],
    );
    match errors.is_empty() {
        true => Ok(best),
        false => Err(errors.join("; ")),
    }
}

/// A variant's process.
struct Runner {
    process: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Runner {
    fn new(file: &Path) -> Result<Runner, String> {
        let mut command = Command::new(file);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = spawned.map_err(|e| format!("{}: {e}", file.display()))?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(to), Some(from)) => Ok(Runner { process, to, from }),
            _ => Err("a process without pipes".to_owned()),
        }
    }

    /// Does the work once: seconds and the result.
    fn turn(&mut self) -> Result<(f64, u64), String> {
        let mut answer = [[0; 8]; 2];
        self.to
            .write_all(b"!")
            .and_then(|()| self.from.read_exact(answer.as_flattened_mut()))
            .map_err(|e| format!("the process ended: {e}"))?;
        let [nanoseconds, result] = answer.map(u64::from_le_bytes);
        Ok((nanoseconds as f64 * 1e-9, result))
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes the variants of one program.
struct Maker<'a> {
    this: &'a Path,
    folder: PathBuf,
    sources: Vec<PathBuf>,
    options: Vec<OsString>,
}

impl<'a> Maker<'a> {
    fn new(
        this: &'a Path,
        folder: &Path,
        (name, files): (&str, &[(&str, &str)]),
        more: &[&str],
    ) -> Result<Maker<'a>, String> {
        let (project, _) = works::build(name, files, &[])?;
        let units = project.units(&mut |_| ()).map_err(|e| e.to_string())?;
        let mut options = units.first().map_or(Vec::new(), |unit| unit.flags.clone());
        options.extend(more.iter().map(Into::into));
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Maker {
            this,
            folder: folder.to_owned(),
            sources: units.into_iter().map(|unit| unit.path).collect(),
            options,
        })
    }

    /// The program of a variant.
    fn make(&self, variant: &Variant) -> Result<PathBuf, String> {
        let index = VARIANTS.iter().position(|one| one.name == variant.name);
        let folder = self.folder.join(index.unwrap_or_default().to_string());
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let program = folder.join("program");
        let runner = concat!(env!("CARGO_MANIFEST_DIR"), "/ablations/runner.c");
        if variant.text == Text::Native {
            let mut arguments = self.options.clone();
            arguments.extend(variant.options.iter().map(Into::into));
            arguments.extend(["-DNATIVE".into(), runner.into()]);
            arguments.extend(self.sources.iter().map(Into::into));
            arguments.push("-lm".into());
            compile("gcc", &program, &arguments)?;
            return Ok(program);
        }
        let mut objects = Vec::new();
        for source in &self.sources {
            objects.push(self.object(&folder, source, variant)?);
        }
        let own = folder.join("runner.o");
        let options = [
            "-c",
            "-ffreestanding",
            "-fno-pic",
            "-fno-stack-protector",
            "-fcf-protection=none",
            runner,
        ];
        compile("gcc", &own, &options.map(OsString::from))?;
        let mut link = Command::new("ld");
        let flags = "-nostdlib -static --gc-sections -e _start -u work -u info -z noexecstack --no-warn-rwx-segments \
            -Ttext-segment=0x20000 --section-start=.postern_info=0x10000 --defsym=__postern_info_stack_mask=0x10020";
        link.args(flags.split_whitespace());
        link.arg("-o").arg(&program).arg(own).args(&objects);
        link.arg("--start-group").args(self.archives(&objects)?);
        link.arg("--end-group");
        run(&mut link)?;
        Ok(program)
    }

    /// `postern cc` as a process, whose intermediate files are wanted.
    fn cc(&self, scratch: &Path) -> Command {
        let mut command = Command::new(self.this);
        command.arg("cc").env("TMPDIR", scratch);
        command
    }

    /// What `postern cc` makes of a source on its way, with these options: once for all variants
    /// that begin so.
    fn compiled(&self, source: &Path, options: &[&str]) -> Result<PathBuf, String> {
        let stem = source.file_stem().unwrap_or_default();
        let scratch = self
            .folder
            .join(format!("cc{}", options.concat()))
            .join(stem);
        if !scratch.exists() {
            std::fs::create_dir_all(&scratch).map_err(|e| e.to_string())?;
            let mut command = self.cc(&scratch);
            command.args(["-c", "-g0", "-w", "-fpostern-save-temps"]);
            command.args(&self.options).args(options).arg(source);
            run(command.arg("-o").arg(scratch.join("confined.o")))?;
        }
        Ok(scratch)
    }

    fn object(&self, folder: &Path, source: &Path, variant: &Variant) -> Result<PathBuf, String> {
        let scratch = self.compiled(source, variant.options)?;
        let stem = source.file_stem().unwrap_or_default();
        let object = folder.join(stem).with_extension("o");
        match variant.text {
            Text::Rewritten([]) => return Ok(scratch.join("confined.o")),
            Text::Rewritten(parts) => {
                let file = intermediate(&scratch, ".s")?;
                let text = std::fs::read_to_string(&file).map_err(|e| e.to_string())?;
                let changed = folder.join(stem).with_extension("s");
                std::fs::write(&changed, without(&text, parts)).map_err(|e| e.to_string())?;
                assemble(&changed, &object)?;
            }
            _ => assemble(&intermediate(&scratch, ".gcc.s")?, &object)?,
        }
        Ok(object)
    }

    /// The archives that `postern cc` links. Which ones does not depend on what is left out of the
    /// objects, and a program is linked confined first.
    fn archives(&self, objects: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
        let map = self.folder.join("map");
        if !map.exists() {
            let mut command = self.cc(&self.folder);
            // Its host has no gates.
            command
                .args(objects)
                .arg("-fpostern-no-memory-gate")
                .arg("-o")
                .arg(self.folder.join("confined.px"));
            run(command.arg(format!("-Wl,-Map={}", map.display())))?;
        }
        let map = std::fs::read_to_string(map).map_err(|e| e.to_string())?;
        let loaded = map.lines().filter_map(|line| line.strip_prefix("LOAD "));
        Ok(loaded
            .filter(|file| file.ends_with(".a"))
            .map(PathBuf::from)
            .collect())
    }
}

/// Runs a tool and says what it said if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let program = command.get_program().display().to_string();
    Err(format!(
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn assemble(text: &Path, object: &Path) -> Result<(), String> {
    let mut command = Command::new("as");
    run(command
        .args(["--64", "-mindex-reg", "-o"])
        .arg(object)
        .arg(text))
}

/// The intermediate file of `postern cc` whose name ends so; of the confined assembly, which is
/// written last, for `.s`.
fn intermediate(scratch: &Path, ending: &str) -> Result<PathBuf, String> {
    let files = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    files(scratch)
        .flat_map(|entry| files(&entry.path()).collect::<Vec<_>>())
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .max()
        .ok_or_else(|| format!("`postern cc` kept no file *{ending}"))
}

/// Confined assembly without some parts.
fn without(text: &str, parts: &[Part]) -> String {
    let check = [
        "\tcmpq\t$0x20841f0f, %gs:(%r11d)",
        "\torq\t%gs:0x10000(,%eiz), %r11",
    ];
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let checks = check.contains(&line) || line.starts_with("\tjne\t.Lpostern_t");
        let pad = line == "\t.byte\t0x0f,0x1f,0x84,0x20,0,0,0,0";
        if checks && parts.contains(&Check) || pad && parts.contains(&Pads) {
            continue;
        }
        match line.split_once("%gs:") {
            Some((before, operand)) if parts.contains(&Segment) => {
                out.push_str(before);
                if parts.contains(&AddressSize) {
                    out.push_str(&widened(operand));
                } else {
                    out.push_str(operand);
                }
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// The operand with 64-bit registers in its address, which stands first.
fn widened(operand: &str) -> String {
    let (Some(open), Some(close)) = (operand.find('('), operand.find(')')) else {
        return operand.to_owned();
    };
    let mut address = operand[open..close].replace("%e", "%r");
    for number in 8..16 {
        address = address.replace(&format!("%r{number}d"), &format!("%r{number}"));
    }
    format!("{}{address}{}", &operand[..open], &operand[close..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_left_out_of_assembly() {
        let text = "\tmovl\t%gs:8(%r10d,%eax,4), %ecx\n\tmovl\t%edx, %r11d\n\tcmpq\t$0x20841f0f, %gs:(%r11d)\n\tjne\t.Lpostern_t1\n\
                    \torq\t%gs:0x10000(,%eiz), %r11\n\tjmp\t*%r11\n\t.byte\t0x0f,0x1f,0x84,0x20,0,0,0,0\n";
        let plain = "\tmovl\t8(%r10,%rax,4), %ecx\n\tmovl\t%edx, %r11d\n\tjmp\t*%r11\n";
        assert_eq!(without(text, &[Segment, AddressSize, Check, Pads]), plain);
        assert_eq!(without(text, &[]), text);
    }
}
