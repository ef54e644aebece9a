//! One run of the system's linker.

use std::path::{Path, PathBuf};

use super::needs::Needs;
use super::script::Plan;
use super::{LinkError, LinkInput, LinkOptions, symbols, write};
use crate::tools::Tool;

/// What is the same in all runs.
pub struct Linker<'a> {
    pub inputs: &'a [LinkInput],
    /// A folder for intermediate files.
    pub scratch: &'a Path,
    pub options: &'a LinkOptions,
    /// Binary logarithm of the data stack's size.
    pub stack_log2: u32,
    /// The symbols from which everything else must be reachable, but for those that trials find.
    pub keep: &'a [String],
}

impl Linker<'_> {
    /// The plan of a trial.
    pub fn plan(&self, needs: &Needs) -> Plan {
        Plan {
            frames: needs.frames,
            ..Plan::trial(self.stack_log2)
        }
    }

    /// What a trial makes.
    pub fn trial(&self) -> PathBuf {
        self.scratch.join("trial.elf")
    }

    /// A trial: what nobody defines stays undefined.
    pub fn try_with(&self, needs: &Needs) -> Result<(), LinkError> {
        let mut options = vec!["--unresolved-symbols=ignore-all".to_owned()];
        options.extend(
            needs
                .imports
                .iter()
                .map(|name| format!("--defsym={name}=0")),
        );
        self.run(&self.plan(needs), needs, &options, None, &self.trial())
    }

    /// The last run, with the object that has the notes.
    pub fn link(
        &self,
        plan: &Plan,
        needs: &Needs,
        notes: &Path,
        output: &Path,
    ) -> Result<(), LinkError> {
        self.run(plan, needs, &[], Some(notes), output)
    }

    fn run(
        &self,
        plan: &Plan,
        needs: &Needs,
        options: &[String],
        notes: Option<&Path>,
        output: &Path,
    ) -> Result<(), LinkError> {
        let script = self.scratch.join("link.ld");
        let features = self.options.features.symbols();
        write(&script, &plan.script(&self.kept(needs), &features))?;
        let mut command = Tool::Linker.command();
        command
            .args([
                "-m",
                "elf_x86_64",
                "-nostdlib",
                "--build-id=none",
                "-e",
                "0",
            ])
            .args([
                "-z",
                "noexecstack",
                "-z",
                "max-page-size=4096",
                "-z",
                "norelro",
            ])
            .args([
                "--eh-frame-hdr",
                "--no-warn-rwx-segments",
                "--no-warn-mismatch",
            ])
            .arg("-T")
            .arg(&script);
        if self.options.collect {
            command.arg("--gc-sections");
        }
        command.args(options);
        if let (Some(_), Some(map)) = (notes, &self.options.map) {
            command.arg("-Map").arg(map);
        }
        command.arg("-o").arg(output).args(notes);
        command.arg("--start-group");
        for input in self.inputs {
            match input {
                LinkInput::Object(path) | LinkInput::Archive(path) => command.arg(path),
                LinkInput::Option(option) => command.arg(option),
            };
        }
        command.arg("--end-group");
        // The C++ library goes before ours, which has a simple `operator new`, and so does the C
        // library, which can run what is left for a program's exit.
        command.arg("--start-group");
        command.args(&needs.cxx);
        if let Some(folder) = &needs.libc {
            command
                .arg(folder.join("libc.a"))
                .arg(folder.join("libm.a"));
        }
        command.args(&self.options.library);
        command.arg("--end-group");
        command.run()?;
        Ok(())
    }

    fn kept(&self, needs: &Needs) -> Vec<String> {
        let found = [
            (needs.constructors, symbols::INIT),
            (needs.pure, symbols::PURE),
        ];
        let found = found.iter().filter(|(needed, _)| *needed);
        let found = found.map(|(_, name)| (*name).to_owned());
        self.keep.iter().cloned().chain(found).collect()
    }
}
