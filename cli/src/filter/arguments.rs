//! What the command is told.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use postern_capture::Link;

use super::from::From;
use super::{refused, save, show};
use crate::output::{self, Failure};

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
  postern filter --kernel -o web.pst 'tcp port 80'
  tcpdump -ddd tcp port 80 | postern filter --classic /dev/stdin -r all.pcap --count"
)]
pub struct Arguments {
    /// The expression; several words are joined by spaces
    #[arg(value_name = "EXPRESSION")]
    pub expression: Vec<String>,
    /// Read the expression from this file
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "expression")]
    pub expression_file: Option<PathBuf>,
    /// Take a classic BPF program, as `tcpdump -ddd` prints it, instead of an expression
    #[arg(long, value_name = "FILE", conflicts_with_all = ["expression", "expression_file"])]
    pub classic: Option<PathBuf>,
    /// Take an extension with a function `filter` instead of an expression: C, C++ or E-code,
    /// compiled now, or a .px
    #[arg(long, value_name = "FILE", conflicts_with_all = ["expression", "expression_file", "classic", "dump"])]
    pub program: Option<PathBuf>,
    /// Print the tests, the classic BPF program, the machine code and its longest path; twice: only
    /// the classic program, as a piece of C; three times: as numbers
    #[arg(short = 'd', long, action = ArgAction::Count)]
    pub dump: u8,
    /// Write the code as an extension file with a function `filter`
    #[arg(short = 'o', long, value_name = "FILE", conflicts_with = "program")]
    pub output: Option<PathBuf>,
    /// With -d or -o: code for the packet hooks of the kernel, whose packets begin with the network
    /// header
    #[arg(long, conflicts_with_all = ["program", "read", "interface"])]
    pub kernel: bool,
    #[command(flatten)]
    pub from: From,
    #[command(flatten)]
    pub save: save::Save,
    /// Write or print each packet at once, not when there are many
    #[arg(short = 'U', long = "packet-buffered")]
    pub unbuffered: bool,
    /// Show the packets that are written, too
    #[arg(long, requires = "write")]
    pub print: bool,
    /// End after so many accepted packets
    #[arg(short = 'c', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Print only how many packets are accepted
    #[arg(long, conflicts_with = "json")]
    pub count: bool,
    /// Run an extension with a function `handle` on each accepted packet: C, C++ or E-code,
    /// compiled now, or a .px
    #[arg(long, value_name = "FILE")]
    pub handler: Option<PathBuf>,
    /// Share the file's memory with the handler as its area; the file is made with this many bytes
    /// if it is not there
    #[arg(long, value_names = ["FILE", "BYTES"], num_args = 2, requires = "handler")]
    pub area: Vec<String>,
    #[command(flatten)]
    pub style: show::Style,
    /// Netmask of the captured network, for `ip broadcast`
    #[arg(long, value_name = "MASK")]
    pub netmask: Option<Ipv4Addr>,
    /// Do not ask the resolver for hosts' names; /etc/hosts still counts
    #[arg(short = 'n', long, action = ArgAction::Count)]
    pub no_lookup: u8,
    /// List the interfaces that can be captured
    #[arg(short = 'D', long)]
    pub list_interfaces: bool,
    /// Print the version
    #[arg(long, action = ArgAction::Version)]
    pub version: Option<bool>,
    #[command(flatten)]
    pub refused: refused::Refused,
}

impl Arguments {
    /// The expression.
    pub fn source(&self) -> Result<String, Failure> {
        match &self.expression_file {
            Some(path) => Ok(String::from_utf8_lossy(&output::read(path)?)
                .trim_end()
                .to_owned()),
            None => Ok(self.expression.join(" ")),
        }
    }

    /// What packets begin with, as far as the options say; those of a pipe are not looked at for
    /// that.
    pub fn link(&self) -> Link {
        match self.kernel {
            true => Link::Raw,
            false => self.from.link().unwrap_or_default(),
        }
    }
}
