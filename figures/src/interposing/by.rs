//! Who sees the calls of a program, and how it is run so.

use crate::trusted::tracing::{self, Shown};
use postern_interpose::Interposer;
use postern_toolchain::{Build, Language};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a shell runs a program, its second word, with its output in a file, its third.
const INTO_FILE: &str = "exec \"$0\" >\"$1\"";
/// By `runsc`, a sandbox for one program, which has neither users nor networks of its own.
const GVISOR: [&str; 3] = ["--rootless", "--network=none", "do"];

/// Who sees the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Nobody,
    /// An agent; places that make calls are rewritten.
    Agent,
    /// An agent, by the kernel's signal for each call.
    Signal,
    /// An agent in a supervisor, which is asked about some calls.
    Supervisor,
    /// The program's own handler of that signal, and no agent.
    Dispatch,
    /// Somebody to whom the kernel shows each call.
    Kernel(Shown),
    Strace,
    Gvisor,
}

impl By {
    /// With the last part of a figure's name, and what is measured. The first is the baseline.
    pub const ALL: [(&str, By, &str); 10] = [
        ("native", By::Nobody, "by the program alone"),
        (
            "agent",
            By::Agent,
            "under an agent that lets all calls pass",
        ),
        (
            "signal",
            By::Signal,
            "the same, each by the kernel's signal (`--slow`)",
        ),
        (
            "enforce",
            By::Supervisor,
            "the same agent in a supervisor (`--enforce`), which is asked about opens",
        ),
        (
            "dispatch",
            By::Dispatch,
            "Syscall User Dispatch alone: a handler of the program's own makes the call",
        ),
        (
            "notification",
            By::Kernel(Shown::Notified),
            "a process answers seccomp's notification of each call",
        ),
        (
            "ptrace-once",
            By::Kernel(Shown::Once),
            "a tracer looks at each call, one stop (seccomp's RET_TRACE)",
        ),
        (
            "ptrace",
            By::Kernel(Shown::Twice),
            "a tracer looks at each call, two stops",
        ),
        ("strace", By::Strace, "under `strace -f -o /dev/null`"),
        ("gvisor", By::Gvisor, "under gVisor's `runsc do`"),
    ];

    /// All that are here; who is not is said.
    pub fn here() -> Vec<(&'static str, By, &'static str)> {
        let is_here = |by: By| match by {
            By::Strace => is_there("strace"),
            By::Gvisor => is_there("runsc"),
            _ => true,
        };
        let mut all = Vec::from(By::ALL);
        all.retain(|(name, by, _)| {
            let is_here = is_here(*by);
            if !is_here {
                eprintln!("interpose.*.{name} is left out: not installed");
            }
            is_here
        });
        all
    }

    /// Runs a program with arguments so, until all that it started has ended.
    pub fn run(self, agent: &Path, words: &[&OsStr]) -> Result<(), String> {
        let (program, arguments) = words.split_first().ok_or("no program")?;
        let shown = program.display();
        let ended = |well: bool| match well {
            true => Ok(()),
            false => Err(format!("{shown} failed")),
        };
        let mut command = match self {
            By::Nobody | By::Dispatch => Command::new(program),
            By::Strace => {
                let mut command = Command::new("strace");
                command.args(["-f", "-o", "/dev/null"]).arg(program);
                command
            }
            By::Gvisor => {
                let mut command = Command::new("runsc");
                command.args(GVISOR).arg(program).stderr(Stdio::null());
                command
            }
            By::Kernel(how) => return ended(tracing::run(how, words)?),
            By::Agent | By::Signal | By::Supervisor => {
                let interposer = Interposer::new(agent);
                let interposer = match self {
                    By::Signal => interposer.slow(),
                    By::Supervisor => interposer.enforce(),
                    _ => interposer,
                };
                let status = interposer.run(program, arguments);
                return ended(status.map_err(|error| error.to_string())?.success());
            }
        };
        let status = command.args(arguments).status();
        ended(
            status
                .map_err(|error| format!("{shown}: {error}"))?
                .success(),
        )
    }

    /// Runs a program so, with its output in a file.
    pub fn run_into(self, agent: &Path, program: &Path, output: &Path) -> Result<(), String> {
        if self == By::Gvisor {
            // What a program writes to files there is gone with its sandbox.
            let file = File::create(output).map_err(|error| error.to_string())?;
            let mut command = Command::new("runsc");
            command.args(GVISOR).arg(program).stderr(Stdio::null());
            return match command.stdout(file).status() {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("runsc: {status}")),
                Err(error) => Err(format!("runsc: {error}")),
            };
        }
        let [shell, option, script] = ["sh", "-c", INTO_FILE].map(OsStr::new);
        self.run(
            agent,
            &[shell, option, script, program.as_ref(), output.as_ref()],
        )
    }
}

/// An agent that lets all calls pass.
pub fn agent(directory: &Path) -> Result<PathBuf, String> {
    let source = directory.join("agent.c");
    let text = "#include <postern/agent.h>\n\
                int pt_agent(struct pt_call *call) { return call ? PT_PASS : PT_ANSWER; }\n";
    std::fs::write(&source, text).map_err(|error| error.to_string())?;
    let path = directory.join("agent.px");
    let build = Build::new(Language::C);
    let build = build.file(source).flags(["-O2"]).output(&path).run();
    build.map_err(|error| error.to_string())?;
    Ok(path)
}

fn is_there(program: &str) -> bool {
    let version = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}
