//! Hooks of the kernel at which extensions are called.

use std::time::Duration;

use crate::abi;
use crate::error::Error;
use crate::id::{AttachmentId, Id};

/// The protocol family of a netfilter hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Both of the following.
    Inet,
    /// IP version 4.
    #[default]
    Ipv4,
    /// IP version 6.
    Ipv6,
}

impl Family {
    const ALL: [(Family, u32, &str); 3] = [
        (Family::Inet, libc::NFPROTO_INET as u32, "inet"),
        (Family::Ipv4, libc::NFPROTO_IPV4 as u32, "ipv4"),
        (Family::Ipv6, libc::NFPROTO_IPV6 as u32, "ipv6"),
    ];

    fn number(self) -> u32 {
        Family::ALL
            .iter()
            .find(|row| row.0 == self)
            .map_or(0, |row| row.1)
    }

    /// The word for it: `ipv4`.
    pub fn name(self) -> &'static str {
        Family::ALL
            .iter()
            .find(|row| row.0 == self)
            .map_or("", |row| row.2)
    }

    fn from_number(number: u32) -> Option<Family> {
        Family::ALL
            .iter()
            .find(|row| row.1 == number)
            .map(|row| row.0)
    }
}

/// What happens to a packet whose call did not return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Otherwise {
    /// It is dropped.
    #[default]
    Drop,
    /// It passes.
    Accept,
}

/// What calls a function of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hook {
    /// Packets, at one of netfilter's hooks: `long f(const unsigned char *packet, size_t captured,
    /// size_t length, long hook)`; 0 drops the packet.
    Netfilter {
        /// Number of the hook: `NF_INET_PRE_ROUTING` (0) to `NF_INET_POST_ROUTING` (4).
        hook: u32,
        /// Whose packets.
        family: Family,
        /// Smaller ones come first.
        priority: i32,
        /// Bytes of each packet that are copied into the window, at most 4096; 0 is 256.
        capture: u32,
        /// Of packets whose call did not return.
        otherwise: Otherwise,
    },
    /// A tracepoint, by its name: the event's arguments are the function's.
    Tracepoint(
        /// Its name.
        String,
    ),
    /// An instruction of the kernel's.
    Kprobe {
        /// The function.
        symbol: String,
        /// Bytes from its start.
        offset: u32,
    },
    /// A period of at most 71 minutes: `long f(u64 nanoseconds)`; 0 stops it.
    Timer(
        /// The period.
        Duration,
    ),
}

/// Netfilter's hooks by their numbers.
pub(crate) const NETFILTER: [&str; 5] = ["prerouting", "input", "forward", "output", "postrouting"];

impl Hook {
    /// The number of one of netfilter's hooks: `prerouting`, `input`, `forward`, `output`,
    /// `postrouting`.
    pub fn netfilter(name: &str) -> Option<u32> {
        NETFILTER
            .iter()
            .zip(0..)
            .find(|row| *row.0 == name)
            .map(|row| row.1)
    }

    /// The structure that asks for it.
    pub(crate) fn asked(&self, id: Id, function: &str) -> Result<abi::Attach, Error> {
        let name =
            |text: &str| abi::Name::new(text).ok_or_else(|| Error::Name { name: text.into() });
        let mut asked = abi::Attach {
            id: id.0,
            function: name(function)?,
            ..abi::Attach::default()
        };
        match self {
            Hook::Netfilter {
                hook,
                family,
                priority,
                capture,
                otherwise,
            } => {
                asked.hook = abi::NETFILTER;
                asked.number = *hook;
                asked.family = family.number();
                asked.priority = *priority;
                asked.capture = *capture;
                asked.otherwise = u32::from(*otherwise == Otherwise::Accept);
            }
            Hook::Tracepoint(target) => {
                asked.hook = abi::TRACEPOINT;
                asked.target = name(target)?;
            }
            Hook::Kprobe { symbol, offset } => {
                asked.hook = abi::KPROBE;
                asked.target = name(symbol)?;
                asked.number = *offset;
            }
            Hook::Timer(period) => {
                asked.hook = abi::TIMER;
                asked.number = u32::try_from(period.as_micros()).unwrap_or(u32::MAX);
            }
        }
        Ok(asked)
    }

    fn answered(how: &abi::Attach) -> Option<Hook> {
        Some(match how.hook {
            abi::NETFILTER => Hook::Netfilter {
                hook: how.number,
                family: Family::from_number(how.family)?,
                priority: how.priority,
                capture: how.capture,
                otherwise: match how.otherwise {
                    0 => Otherwise::Drop,
                    _ => Otherwise::Accept,
                },
            },
            abi::TRACEPOINT => Hook::Tracepoint(how.target.to_string()),
            abi::KPROBE => Hook::Kprobe {
                symbol: how.target.to_string(),
                offset: how.number,
            },
            abi::TIMER => Hook::Timer(Duration::from_micros(how.number.into())),
            _ => return None,
        })
    }
}

impl std::fmt::Display for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Hook::Netfilter {
                hook,
                family,
                priority,
                ..
            } => {
                let name = NETFILTER.get(*hook as usize).copied();
                let name = name.map_or_else(|| hook.to_string(), str::to_owned);
                write!(f, "netfilter {} {name} {priority}", family.name())
            }
            Hook::Tracepoint(name) => write!(f, "tracepoint {}", name.escape_debug()),
            Hook::Kprobe { symbol, offset: 0 } => write!(f, "kprobe {}", symbol.escape_debug()),
            Hook::Kprobe { symbol, offset } => {
                write!(f, "kprobe {}+{offset:#x}", symbol.escape_debug())
            }
            Hook::Timer(period) => write!(f, "timer {} us", period.as_micros()),
        }
    }
}

/// What is known of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attachment {
    /// Its number.
    pub number: AttachmentId,
    /// Whose function is called.
    pub extension: Id,
    /// Which function.
    pub function: String,
    /// What calls it.
    pub hook: Hook,
    /// How often it was called.
    pub calls: u64,
    /// Calls whose value was not 0.
    pub passed: u64,
}

impl Attachment {
    pub(crate) fn new(answer: &abi::Attachment) -> Option<Attachment> {
        Some(Attachment {
            number: AttachmentId(answer.attachment),
            extension: Id(answer.how.id),
            function: answer.how.function.to_string(),
            hook: Hook::answered(&answer.how)?,
            calls: answer.calls,
            passed: answer.passed,
        })
    }
}
