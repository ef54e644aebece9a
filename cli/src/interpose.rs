//! `postern interpose`: unmodified programs whose system calls an extension sees first.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use postern_interpose::Interposer;

use crate::output::{Failure, Outcome};

/// Run a program, and hand each of its system calls to an extension.
#[derive(Args)]
#[command(
    override_usage = "postern interpose [OPTIONS] AGENT [ARGUMENTS OF THE AGENT] -- PROGRAM [ARGUMENTS]",
    after_help = "\
The agent sees each system call of the program and of all its children before it is made: it lets it pass, changes it,
or answers instead of the kernel. It runs in the program's own process, in a window that all these processes have.

This is no boundary: a program that means to can go around its agent. Not seen: what programs ask of the vDSO (the
time), sigreturn, and what a process has done before it was executed.

With --enforce the agent runs in this process, and decides only about calls that acquire something: files, connections,
changes of paths, programs, signals. No program can make these without it, whatever it does; but which file is executed
can change behind the decision, so that is for --allow-exec. It needs Linux 5.19.

Exit status: the program's own; 128 and its number if a signal ended it; 2 if the agent's file or the program is not
there; 125 if the agent fails, 126 if the program cannot be served, 127 if it cannot be loaded.

Example:
  postern interpose count.px -- make -j2"
)]
pub struct Arguments {
    /// What the agent prints goes to this file (default: stderr)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Have the agent decide about calls that open, connect, execute and the like, in this
    /// process, so that no program can go around it; it sees no other calls
    #[arg(long, conflicts_with_all = ["slow", "stats", "no_vdso"])]
    enforce: bool,
    /// Let the programs execute this file, or what is below this folder, and what else is named
    /// so; the kernel sees to that (can be given more than once; the dynamic linker is to be among
    /// it)
    #[arg(long, value_name = "PATH", requires = "enforce")]
    allow_exec: Vec<PathBuf>,
    /// How long the agent may take for one answer [default: 10, of the processor's time; 1 with
    /// --enforce]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    deadline: Option<Duration>,
    /// Let the kernel stop each call; rewrite no instruction of the programs
    #[arg(long)]
    slow: bool,
    /// Print at the end how many places were rewritten, and how many calls the kernel stopped
    #[arg(long)]
    stats: bool,
    /// Programs ask for the time by system calls, which the agent sees, instead of the vDSO
    #[arg(long)]
    no_vdso: bool,
    /// The agent's extension file with its own arguments, --, and the program with its arguments
    #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true, value_name = "AGENT")]
    rest: Vec<OsString>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|error| format!("{error}"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("more than no time is wanted".into()),
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let mut parts = arguments.rest.splitn(2, |word| word == "--");
    let (agent, program) = (parts.next(), parts.next());
    let agent = agent.and_then(|words| words.split_first());
    let program = program.and_then(|words| words.split_first());
    let (Some((agent, told)), Some((program, given))) = (agent, program) else {
        let usage = "an agent, its arguments, `--`, and a program are wanted: postern interpose count.px -- make";
        return Err(Failure::unusable(usage));
    };
    let mut interposer = told
        .iter()
        .fold(Interposer::new(agent), Interposer::argument);
    if let Some(path) = &arguments.output {
        let file = File::create(path);
        let file =
            file.map_err(|error| Failure::unusable(format!("{}: {error}", path.display())))?;
        interposer = interposer.output(file);
    }
    if arguments.slow {
        interposer = interposer.slow();
    }
    if arguments.stats {
        interposer = interposer.stats();
    }
    if arguments.no_vdso {
        interposer = interposer.no_vdso();
    }
    if arguments.enforce {
        interposer = interposer.enforce();
    }
    if let Some(deadline) = arguments.deadline {
        interposer = interposer.deadline(deadline);
    }
    for path in &arguments.allow_exec {
        interposer = interposer.allow_exec(path);
    }
    let status = interposer.run(program, given);
    let status = status.map_err(|error| Failure::unusable(error.to_string()))?;
    let of_signal = status.signal().map_or(1, |signal| 128 + signal);
    Ok(status.code().unwrap_or(of_signal) as u8)
}
