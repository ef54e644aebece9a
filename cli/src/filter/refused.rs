//! Options of tcpdump that there are not, so that who types them hears what to do instead; and
//! those that ask for what is done anyway.

use clap::{ArgAction, Args};

use crate::output::Failure;

/// They are not in the help.
#[derive(Args)]
pub struct Refused {
    #[arg(short = 'V', hide = true, value_name = "FILE")]
    file_list: Option<String>,
    #[arg(short = 'y', hide = true, value_name = "TYPE")]
    link_type: Option<String>,
    #[arg(short = 'L', hide = true)]
    list_link_types: bool,
    #[arg(short = 'I', hide = true)]
    monitor: bool,
    #[arg(short = 'j', hide = true, value_name = "TYPE")]
    clock: Option<String>,
    #[arg(short = 'J', hide = true)]
    list_clocks: bool,
    #[arg(short = 'T', hide = true, value_name = "TYPE")]
    payload: Option<String>,
    #[arg(short = 'E', hide = true, value_name = "KEY")]
    key: Option<String>,
    /// Lines leave at once, sequence numbers are whole, nothing is optimized away, and checksums
    /// are not looked at.
    #[arg(short = 'l', short_aliases = ['S', 'O', 'K', 'N', 'f'], hide = true, action = ArgAction::Count)]
    anyway: u8,
}

impl Refused {
    /// Fails if one of them is there.
    pub fn check(&self) -> Result<(), Failure> {
        let ethernet = "the link type is that of the file or the interface";
        let clocks = "times are the kernel's, in nanoseconds";
        let shown = "contents are not decoded: `-w - | tcpdump -r -` shows more";
        let list = [
            (
                "-V",
                self.file_list.is_some(),
                "files are read one by one: `-r FILE`",
            ),
            (
                "-y",
                self.link_type
                    .as_deref()
                    .is_some_and(|name| name != "EN10MB"),
                ethernet,
            ),
            ("-L", self.list_link_types, ethernet),
            ("-I", self.monitor, ethernet),
            ("-j", self.clock.is_some(), clocks),
            ("-J", self.list_clocks, clocks),
            ("-T", self.payload.is_some(), shown),
            ("-E", self.key.is_some(), shown),
        ];
        match list.iter().find(|(_, given, _)| *given) {
            Some((option, _, message)) => Err(Failure::unusable(format!("{option}: {message}"))),
            None => Ok(()),
        }
    }
}
