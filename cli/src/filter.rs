//! `postern filter`: packets of a capture file or an interface that an expression accepts, judged
//! by machine code in a domain of its own, and shown, counted, written, or given to an extension.

mod flow;
mod from;
mod names;
mod refused;
mod save;
mod show;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use postern_capture::{Link, PacketFilter};
use postern_filter::classic::{Instruction, listing};
use postern_filter::{Code, Error, Filter, Options};
use postern_verifier::window::text_start;

use crate::output::{self, Failure, Outcome, SUCCESS};
pub use flow::{Bar, OFTEN, TOLD};
pub use from::From;
pub use names::System;
use postern_toolchain::disassembly;
pub use save::READ;

/// Judge packets by a filter expression, compiled to confined machine code
#[derive(Args)]
#[command(
    version,
    disable_version_flag = true,
    after_help = "\
The language is that of pcap-filter(7); postern's book has it with examples. Options are tcpdump's where
tcpdump has them. Times are local; addresses and ports are never turned into names. Counters go to standard error.

Exit status: 0, 1 if the capture file is damaged or a program faulted (the rest was judged), 2 if the expression is
wrong, or a file or interface cannot be used.

Examples:
  postern filter -d 'tcp port 80'
  postern filter -i eth0 'udp port 53'
  postern filter -i any -c 100 -w some.pcapng ip6
  postern filter -r all.pcap --count 'udp and not port 53'
  postern filter -r all.pcap -w web.pcap 'tcp port 80 or 443'
  postern filter -i eth0 -w 'hour-%H.pcap' -G 3600 -z gzip
  postern filter -r all.pcap --program scan.c
  postern filter -i eth0 --handler echo.c 'udp dst port 7'
  tcpdump -ddd tcp port 80 | postern filter --classic /dev/stdin -r all.pcap --count"
)]
pub struct Arguments {
    /// The expression; several words are joined by spaces
    #[arg(value_name = "EXPRESSION")]
    expression: Vec<String>,
    /// Read the expression from this file
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "expression")]
    expression_file: Option<PathBuf>,
    /// Take a classic BPF program, as `tcpdump -ddd` prints it, instead of an expression
    #[arg(long, value_name = "FILE", conflicts_with_all = ["expression", "expression_file"])]
    classic: Option<PathBuf>,
    /// Take an extension with a function `filter` instead of an expression: C, C++ or E-code,
    /// compiled now, or a .px
    #[arg(long, value_name = "FILE", conflicts_with_all = ["expression", "expression_file", "classic", "dump"])]
    program: Option<PathBuf>,
    /// Print the tests, the classic BPF program, the machine code and its longest path; twice: only
    /// the classic program, as a piece of C; three times: as numbers
    #[arg(short = 'd', long, action = ArgAction::Count)]
    dump: u8,
    #[command(flatten)]
    from: From,
    #[command(flatten)]
    save: save::Save,
    /// Write or print each packet at once, not when there are many
    #[arg(short = 'U', long = "packet-buffered")]
    unbuffered: bool,
    /// Show the packets that are written, too
    #[arg(long, requires = "write")]
    print: bool,
    /// End after so many accepted packets
    #[arg(short = 'c', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print only how many packets are accepted
    #[arg(long, conflicts_with = "json")]
    count: bool,
    /// Run an extension with a function `handle` on each accepted packet: C, C++ or E-code,
    /// compiled now, or a .px
    #[arg(long, value_name = "FILE")]
    handler: Option<PathBuf>,
    /// Share the file's memory with the handler as its area; the file is made with this many bytes
    /// if it is not there
    #[arg(long, value_names = ["FILE", "BYTES"], num_args = 2, requires = "handler")]
    area: Vec<String>,
    #[command(flatten)]
    style: show::Style,
    /// Netmask of the captured network, for `ip broadcast`
    #[arg(long, value_name = "MASK")]
    netmask: Option<Ipv4Addr>,
    /// Do not ask the resolver for hosts' names; /etc/hosts still counts
    #[arg(short = 'n', long, action = ArgAction::Count)]
    no_lookup: u8,
    /// List the interfaces that can be captured
    #[arg(short = 'D', long)]
    list_interfaces: bool,
    /// Print the version
    #[arg(long, action = ArgAction::Version)]
    version: Option<bool>,
    #[command(flatten)]
    refused: refused::Refused,
}

/// Arguments or files that cannot be used.
pub fn unusable(error: impl std::fmt::Display) -> Failure {
    Failure::unusable(error.to_string())
}

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
    if arguments.dump > 0 || !arguments.from.is_some() {
        let filter = wanted(arguments.link())?;
        match arguments.dump {
            0 | 1 => dump(&filter, &filter.code())?,
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

impl Arguments {
    /// The expression.
    fn source(&self) -> Result<String, Failure> {
        match &self.expression_file {
            Some(path) => Ok(String::from_utf8_lossy(&output::read(path)?)
                .trim_end()
                .to_owned()),
            None => Ok(self.expression.join(" ")),
        }
    }

    /// What packets begin with, as far as the options say; those of a pipe are not looked at for
    /// that.
    fn link(&self) -> Link {
        self.from.link().unwrap_or_default()
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

fn dump(filter: &Filter, code: &Code) -> Result<(), Failure> {
    let facts = code
        .verify()
        .map_err(|violation| Failure::unusable(format!("the code is refused: {violation}")))?;
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
