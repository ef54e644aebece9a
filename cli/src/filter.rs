//! `postern filter`: packets of a capture file that an expression accepts, judged by machine code in a domain of its own.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use clap::Args;
use postern::{Domain, Image, Offset};
use postern_filter::capture::{Capture, Packet, pcap_header, pcap_record};
use postern_filter::{Code, Databases, Error, Filter, Names, Options, SIGNATURE};
use postern_image::ImageBuilder;
use postern_verifier::window::text_start;

use crate::disassembly;
use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS};

/// Judge packets by a filter expression, compiled to confined machine code
#[derive(Args)]
#[command(after_help = "\
The language is that of pcap-filter(7), for Ethernet; postern's book has it with examples.

Exit status: 0, 1 if the capture file is damaged (what could be read was judged), 2 if the expression is wrong or a file
cannot be used.

Examples:
  postern filter -d 'tcp port 80'
  postern filter -r all.pcap -c 'udp and not port 53'
  postern filter -r all.pcap -w web.pcap 'tcp port 80 or 443'
  tcpdump -ddd tcp port 80 | postern filter --classic /dev/stdin -r all.pcap -c")]
pub struct Arguments {
    /// The expression; several words are joined by spaces
    #[arg(value_name = "EXPRESSION")]
    expression: Vec<String>,
    /// Take a classic BPF program, as `tcpdump -ddd` prints it, instead of an expression
    #[arg(long, value_name = "FILE", conflicts_with = "expression")]
    classic: Option<PathBuf>,
    /// Print the tests, the machine code and its longest path
    #[arg(short = 'd', long)]
    dump: bool,
    /// Judge the packets of this pcap or pcapng file
    #[arg(short = 'r', long, value_name = "FILE")]
    read: Option<PathBuf>,
    /// Write the accepted packets to this pcap file
    #[arg(short = 'w', long, value_name = "FILE", requires = "read")]
    write: Option<PathBuf>,
    /// Print only how many packets are accepted
    #[arg(short = 'c', long, requires = "read")]
    count: bool,
    /// Netmask of the captured network, for `ip broadcast`
    #[arg(long, value_name = "MASK")]
    netmask: Option<Ipv4Addr>,
    /// Do not ask the resolver for hosts' names; /etc/hosts still counts
    #[arg(short = 'n', long)]
    no_lookup: bool,
}

/// Bytes of a packet that the filter sees.
const ROOM: usize = 1 << 18;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let filter = compile(arguments)?;
    let code = filter.code();
    if arguments.dump || arguments.read.is_none() {
        dump(&filter, &code)?;
    }
    match &arguments.read {
        Some(path) => judge(arguments, &code, path),
        None => Ok(SUCCESS),
    }
}

fn compile(arguments: &Arguments) -> Result<Filter, Failure> {
    if let Some(path) = &arguments.classic {
        let text = String::from_utf8_lossy(&output::read(path)?).into_owned();
        let unusable =
            |error: Error| Failure::unusable(format!("{}: {}", path.display(), error.message));
        return Filter::classic(&text).map_err(unusable);
    }
    let source = arguments.expression.join(" ");
    let options = Options {
        netmask: arguments.netmask.map(Ipv4Addr::to_bits),
        ..Options::default()
    };
    let names = System::new(!arguments.no_lookup);
    Filter::compile_with(&source, &names, options)
        .map_err(|error| Failure::unusable(error.show(&source)))
}

fn dump(filter: &Filter, code: &Code) -> Result<(), Failure> {
    let facts = code
        .verify()
        .map_err(|violation| Failure::unusable(format!("the code is refused: {violation}")))?;
    let mut text = format!("{filter}\n");
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

/// Loads the filter, with room for a packet at the returned offset.
fn load(code: &Code) -> Result<(Domain, Offset), Failure> {
    let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
    let mut builder = ImageBuilder::new(code.text());
    builder.export("filter", 0, SIGNATURE.parse().ok());
    builder.data([0; 16], ROOM as u64);
    let room = Offset(builder.layout().map_err(|e| unusable(&e))?.data);
    let file = builder.build().map_err(|e| unusable(&e))?;
    let image = Image::from_bytes(&file).map_err(|e| unusable(&e))?;
    let domain = Domain::builder(&image).build().map_err(|e| unusable(&e))?;
    Ok((domain, room))
}

fn judge(arguments: &Arguments, code: &Code, path: &Path) -> Outcome {
    let file = output::read(path)?;
    let unreadable = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let capture = Capture::new(&file).map_err(|e| Failure::unusable(unreadable(&e)))?;
    let (domain, room) = load(code)?;
    let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
    let filter = domain
        .func::<fn(Offset, u32, u32) -> u32>("filter")
        .map_err(|e| unusable(&e))?;
    let mut out = arguments.write.as_deref().map(Output::create).transpose()?;
    let (mut judged, mut accepted) = (0u64, 0u64);
    let (mut lines, mut damage) = (String::new(), None);
    for packet in capture {
        let packet = match packet {
            Ok(packet) => packet,
            Err(error) => {
                damage = Some(error);
                break;
            }
        };
        judged += 1;
        let bytes = &file[packet.bytes.clone()];
        let seen = &bytes[..bytes.len().min(ROOM)];
        domain.write(room, seen).map_err(|e| unusable(&e))?;
        let verdict = filter
            .call(room, packet.wire, seen.len() as u32)
            .map_err(|e| unusable(&e))?;
        if verdict == 0 {
            continue;
        }
        accepted += 1;
        if let Some(out) = &mut out {
            out.packet(&packet, bytes)?;
        } else if !arguments.count {
            lines += &line(judged, &packet, bytes);
            if lines.len() > 1 << 16 {
                output::print(&std::mem::take(&mut lines))?;
            }
        }
    }
    if let Some(out) = out {
        out.finish()?;
    }
    lines += &format!("{accepted} of {judged} packets accepted\n");
    output::print(&lines)?;
    if let Some(error) = damage {
        output::complain(&unreadable(&error));
        return Ok(REFUSED);
    }
    Ok(SUCCESS)
}

/// A packet in a line: its number, time, length and first bytes.
fn line(number: u64, packet: &Packet, bytes: &[u8]) -> String {
    let mut text = format!(
        "{number:>7}  {}.{:06}  {:>5} bytes  ",
        packet.time / 1_000_000_000,
        packet.time / 1000 % 1_000_000,
        packet.wire
    );
    for byte in bytes.iter().take(34) {
        text += &format!("{byte:02x}");
    }
    text.push('\n');
    text
}

/// A pcap file in the making.
struct Output<'a> {
    path: &'a Path,
    file: std::io::BufWriter<std::fs::File>,
}

impl<'a> Output<'a> {
    fn create(path: &'a Path) -> Result<Output<'a>, Failure> {
        let file = std::fs::File::create(path).map_err(|e| Self::failure(path, &e))?;
        let mut output = Output {
            path,
            file: std::io::BufWriter::new(file),
        };
        output.write(&pcap_header(ROOM as u32))?;
        Ok(output)
    }

    fn failure(path: &Path, error: &std::io::Error) -> Failure {
        Failure::unusable(format!("cannot write {}: {error}", path.display()))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let result = self.file.write_all(bytes);
        result.map_err(|e| Self::failure(self.path, &e))
    }

    fn packet(&mut self, packet: &Packet, bytes: &[u8]) -> Result<(), Failure> {
        self.write(&pcap_record(packet.time, bytes.len() as u32, packet.wire))?;
        self.write(bytes)
    }

    fn finish(mut self) -> Result<(), Failure> {
        let result = self.file.flush();
        result.map_err(|e| Self::failure(self.path, &e))
    }
}

/// The system's databases, and its resolver for hosts that they do not have.
struct System {
    files: Databases,
    resolver: bool,
}

impl System {
    fn new(resolver: bool) -> System {
        // A file that is not there has no names.
        let read =
            |name: &str| std::fs::read_to_string(Path::new("/etc").join(name)).unwrap_or_default();
        let files = Databases {
            hosts: read("hosts"),
            networks: read("networks"),
            services: read("services"),
            protocols: read("protocols"),
            ethers: read("ethers"),
        };
        System { files, resolver }
    }
}

impl Names for System {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        let found = self.files.host(name);
        if !found.is_empty() || !self.resolver {
            return found;
        }
        let Ok(resolved) = (name, 0).to_socket_addrs() else {
            return Vec::new();
        };
        resolved.map(|address| address.ip()).collect()
    }
    fn network(&self, name: &str) -> Option<u32> {
        self.files.network(name)
    }
    fn port(&self, name: &str, transport: &str) -> Option<u16> {
        self.files.port(name, transport)
    }
    fn protocol(&self, name: &str) -> Option<u8> {
        self.files.protocol(name)
    }
    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        self.files.ether(name)
    }
    fn like(&self, name: &str) -> Option<String> {
        self.files.like(name)
    }
}
