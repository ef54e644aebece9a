//! The structures of `kernel/linux/postern.h`, field by field, and the numbers of requests: a test
//! compares them with what a C compiler makes of the header.
#![allow(missing_docs, reason = "the header says it")]

use postern_kernel_judge::Verdict;

/// Bytes of a name with its NUL.
pub const NAME: usize = 64;
/// Bytes of the largest file or text.
pub const MOST: usize = 4 << 20;
/// How many ways there are for a call to end.
pub const KINDS: usize = 10;
/// Maps that an extension may have.
pub const MAPS: u32 = 16;
/// Bytes of the largest key.
pub const KEY: usize = 64;
/// Bytes of the largest value.
pub const VALUE: usize = 4096;
/// Most entries of a map.
pub const ENTRIES: u32 = 1 << 20;
/// Most bytes of a packet that are copied into a window.
pub const CAPTURE: u32 = 4096;

/// A verdict: an import that no service has, or none for these rights.
pub const NO_SERVICE: u32 = 5;

pub const MAY_SEE_PACKETS: u32 = 1;
pub const MAY_CHANGE_PACKETS: u32 = 2;
pub const MAY_OBSERVE: u32 = 4;
pub const MAY_LOG: u32 = 8;

pub const FAULT_KEEPS: u32 = 0;
pub const FAULT_RESTARTS: u32 = 1;
pub const FAULT_ENDS: u32 = 2;

pub const ONE_WINDOW: u32 = 1;

pub const RETURNED: u32 = 0;
pub const PAGE_FAULT: u32 = 1;
pub const DIVISION: u32 = 2;
pub const TRAP: u32 = 3;
pub const TIMEOUT: u32 = 4;
pub const BAD_ARGUMENT: u32 = 5;
pub const SKIPPED: u32 = 6;
pub const ENDED: u32 = 7;
pub const ABSENT: u32 = 8;
pub const UNSUITABLE: u32 = 9;

pub const NETFILTER: u32 = 1;
pub const TRACEPOINT: u32 = 2;
pub const KPROBE: u32 = 3;
pub const TIMER: u32 = 4;

pub const MAP_GET: u32 = 0;
pub const MAP_SET: u32 = 1;
pub const MAP_REMOVE: u32 = 2;
pub const MAP_NEXT: u32 = 3;

/// `char [POSTERN_NAME]`
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name(pub [u8; NAME]);

impl Default for Name {
    fn default() -> Name {
        Name([0; NAME])
    }
}

impl Name {
    /// The name, if it fits and has no NUL.
    pub fn new(text: &str) -> Option<Name> {
        let mut name = Name::default();
        if text.len() >= NAME || text.contains('\0') {
            return None;
        }
        name.0[..text.len()].copy_from_slice(text.as_bytes());
        Some(name)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(NAME);
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// `struct postern_load`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    pub file: u64,
    pub size: u64,
    pub name: Name,
    pub segment: u32,
    pub rights: u32,
    pub on_fault: u32,
    pub flags: u32,
    pub heap: u32,
    pub limit: u32,
    pub shared: u32,
    pub shared_size: u32,
    pub id: u32,
    pub reserved: u32,
    pub verdict: Verdict,
}

/// `struct postern_outcome`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub kind: u32,
    pub offset: u32,
    pub address: u32,
    pub service: u32,
}

/// `struct postern_call`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    pub id: u32,
    pub queued: u32,
    pub function: Name,
    pub arguments: [u64; 6],
    pub value: u64,
    pub outcome: Outcome,
}

/// `struct postern_statistics`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    pub id: u32,
    pub on_fault: u32,
    pub rights: u32,
    pub segment: u32,
    pub name: Name,
    pub size: u64,
    pub memory: u64,
    pub verdict: Verdict,
    pub ended: [u64; KINDS],
    pub queued: u64,
    pub lost: u64,
    pub log_left_out: u64,
    pub restarts: u64,
    pub last: Outcome,
    pub hooks: u32,
    pub shared_size: u32,
}

/// `struct postern_attach`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Attach {
    pub id: u32,
    pub hook: u32,
    pub function: Name,
    pub target: Name,
    pub number: u32,
    pub priority: i32,
    pub family: u32,
    pub capture: u32,
    pub otherwise: u32,
    pub attachment: u32,
    pub reserved: [u32; 2],
}

/// `struct postern_attachment`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Attachment {
    pub attachment: u32,
    pub next: u32,
    pub calls: u64,
    pub passed: u64,
    pub how: Attach,
}

/// `struct postern_map`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Map {
    pub id: u32,
    pub map: u32,
    pub key_size: u32,
    pub value_size: u32,
    pub entries: u32,
    pub reserved: u32,
}

/// `struct postern_map_access`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MapAccess {
    pub id: u32,
    pub map: u32,
    pub operation: u32,
    pub reserved: u32,
    pub key: u64,
    pub value: u64,
    pub next_key: u64,
}

/// `struct postern_text`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    pub text: u64,
    pub size: u32,
    pub imports: u32,
    pub verdict: Verdict,
}

const fn number<T>(way: u64, number: u64) -> u64 {
    way << 30 | (size_of::<T>() as u64) << 16 | (b'P' as u64) << 8 | number
}
/// `_IOWR`
const fn both<T>(n: u64) -> u64 {
    number::<T>(3, n)
}
/// `_IOW`
const fn gives<T>(n: u64) -> u64 {
    number::<T>(1, n)
}

pub const LOAD: u64 = both::<Load>(1);
pub const UNLOAD: u64 = gives::<u32>(2);
pub const JUDGE_TEXT: u64 = both::<Text>(3);
pub const CALL: u64 = both::<Call>(4);
pub const STATISTICS: u64 = both::<Statistics>(5);
pub const ATTACH: u64 = both::<Attach>(6);
pub const DETACH: u64 = gives::<u32>(7);
pub const ATTACHMENT: u64 = both::<Attachment>(8);
pub const MAP_MAKE: u64 = gives::<Map>(9);
pub const MAP_ACCESS: u64 = both::<MapAccess>(10);
pub const OPEN: u64 = gives::<u32>(11);
pub const REPLACE: u64 = both::<Load>(12);
pub const MAP_SIZES: u64 = both::<Map>(13);
