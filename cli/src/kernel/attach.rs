//! `postern kernel attach`, `attachments` and `detach`.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use postern_kernel::{AttachmentId, Device, Family, Hook, Otherwise};
use serde::Serialize;

use crate::number::{self, TimeLimit};
use crate::output::{self, Failure, Outcome, SUCCESS, Style};

/// Hooks that are none of netfilter's.
const OTHERS: [&str; 3] = ["tracepoint", "kprobe", "timer"];

/// Have a function called at a hook, and print the attachment's number
#[derive(Args)]
#[command(group(ArgGroup::new("hook").required(true).args(["netfilter", "tracepoint", "kprobe", "timer"])))]
pub struct Attach {
    /// Name or number of the extension
    extension: String,
    /// Function
    function: String,
    /// Packets at a hook: prerouting, input, forward, output or postrouting. The function's value 0
    /// drops the packet
    #[arg(long, value_name = "HOOK")]
    netfilter: Option<String>,
    /// An event of the kernel's, by its name
    #[arg(long, value_name = "NAME")]
    tracepoint: Option<String>,
    /// An instruction of the kernel's: a function, or bytes behind its start
    #[arg(long, value_name = "SYMBOL[+OFFSET]")]
    kprobe: Option<String>,
    /// A period, such as 10ms. The function's value 0 stops it
    #[arg(long, value_name = "TIME", value_parser = number::time)]
    timer: Option<TimeLimit>,
    /// With --netfilter: whose packets
    #[arg(long, value_enum, default_value_t = FamilyName::Ipv4, conflicts_with_all = OTHERS)]
    family: FamilyName,
    /// With --netfilter: smaller ones come first
    #[arg(
        long,
        default_value_t = 0,
        allow_negative_numbers = true,
        conflicts_with_all = OTHERS,
        value_name = "N"
    )]
    priority: i32,
    /// With --netfilter: bytes of a packet that are copied for the function, at most 4096
    #[arg(long, default_value_t = 256, conflicts_with_all = OTHERS, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=4096))]
    capture: u32,
    /// With --netfilter: what happens to packets whose call did not return
    #[arg(long, value_enum, default_value_t = OtherwiseName::Drop, conflicts_with_all = OTHERS)]
    otherwise: OtherwiseName,
}

#[derive(Clone, Copy, ValueEnum)]
enum FamilyName {
    Ipv4,
    Ipv6,
    Inet,
}

#[derive(Clone, Copy, ValueEnum)]
enum OtherwiseName {
    Drop,
    Accept,
}

/// Leave a hook, once no call from it is under way
#[derive(Args)]
pub struct Detach {
    /// The attachment's number
    attachment: u32,
}

impl Attach {
    fn hook(&self) -> Result<Hook, Failure> {
        if let Some(name) = &self.netfilter {
            let wrong = || {
                Failure::unusable(format!(
                    "`{name}` is no hook of netfilter; prerouting, input, forward, output and postrouting are"
                ))
            };
            return Ok(Hook::Netfilter {
                hook: Hook::netfilter(name).ok_or_else(wrong)?,
                family: match self.family {
                    FamilyName::Ipv4 => Family::Ipv4,
                    FamilyName::Ipv6 => Family::Ipv6,
                    FamilyName::Inet => Family::Inet,
                },
                priority: self.priority,
                capture: self.capture,
                otherwise: match self.otherwise {
                    OtherwiseName::Drop => Otherwise::Drop,
                    OtherwiseName::Accept => Otherwise::Accept,
                },
            });
        }
        if let Some(name) = &self.tracepoint {
            return Ok(Hook::Tracepoint(name.clone()));
        }
        if let Some(place) = &self.kprobe {
            let (symbol, offset) = match place.split_once('+') {
                Some((symbol, offset)) => (symbol, number::offset(offset)),
                None => (&**place, Ok(0)),
            };
            let wrong = |why| Failure::unusable(format!("`{place}`: {why}"));
            return Ok(Hook::Kprobe {
                symbol: symbol.to_owned(),
                offset: offset.map_err(wrong)?,
            });
        }
        let least = Duration::from_micros(1);
        match self.timer.and_then(|limit| limit.0) {
            Some(period) if period >= least => Ok(Hook::Timer(period)),
            _ => Err(Failure::unusable("a timer has a period, such as 10ms")),
        }
    }
}

/// Attaches.
pub fn attach(device: &Device, arguments: &Attach, json: bool) -> Outcome {
    let hook = arguments.hook()?;
    let id = device.find(&arguments.extension)?;
    let number = device.attach(id, &arguments.function, &hook)?;
    match json {
        true => output::print_json(&serde_json::json!({ "attachment": number.0 }))?,
        false => output::print(&format!("{number}\n"))?,
    }
    Ok(SUCCESS)
}

/// Detaches.
pub fn detach(device: &Device, arguments: &Detach) -> Outcome {
    device.detach(AttachmentId(arguments.attachment))?;
    Ok(SUCCESS)
}

#[derive(Serialize)]
struct Row {
    attachment: u32,
    extension: u32,
    function: String,
    hook: String,
    calls: u64,
    passed: u64,
}

/// Lists attachments.
pub fn list(device: &Device, json: bool) -> Outcome {
    let rows = device.attachments()?.into_iter().map(|attachment| Row {
        attachment: attachment.number.0,
        extension: attachment.extension.0,
        function: attachment.function,
        hook: attachment.hook.to_string(),
        calls: attachment.calls,
        passed: attachment.passed,
    });
    let rows: Vec<Row> = rows.collect();
    if json {
        output::print_json(&rows)?;
        return Ok(SUCCESS);
    }
    let line = |cells: [&str; 6]| {
        format!(
            "{:>6}  {:>9}  {:16}  {:28}  {:>12}  {:>12}\n",
            cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]
        )
    };
    let head = line(["NUMBER", "EXTENSION", "FUNCTION", "HOOK", "CALLS", "PASSED"]);
    let mut text = Style::stdout().bold(head.trim_end()) + "\n";
    for row in &rows {
        text += &line([
            &row.attachment.to_string(),
            &row.extension.to_string(),
            &row.function.escape_debug().to_string(),
            &row.hook,
            &row.calls.to_string(),
            &row.passed.to_string(),
        ]);
    }
    output::print(&text)?;
    Ok(SUCCESS)
}
