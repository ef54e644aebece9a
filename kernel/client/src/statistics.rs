//! What is known of extensions that are loaded.

use postern_kernel_judge::Verdict;

use crate::abi;
use crate::ended::Ended;
use crate::id::Id;
use crate::load::{OnFault, Rights};

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Its number.
    pub id: Id,
    /// What it is called.
    pub name: String,
    /// Instructions of its code.
    pub instructions: u32,
    /// How deep calls nest at most.
    pub depth: u32,
    /// Instructions on the longest path; `None` where there are loops.
    pub longest_path: Option<u32>,
    /// Calls so far.
    pub calls: u64,
}

impl Listed {
    /// Reads a line; `None` if it is none. A name may have spaces.
    pub(crate) fn parse(line: &str) -> Option<Listed> {
        let (id, rest) = line.split_once(' ')?;
        let mut fields = rest.rsplitn(5, ' ');
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (calls, longest, depth, instructions) = (number()?, number()?, number()?, number()?);
        let longest = u32::try_from(longest).ok()?;
        Some(Listed {
            id: Id(id.parse().ok()?),
            name: fields.next()?.to_owned(),
            instructions: instructions.try_into().ok()?,
            depth: depth.try_into().ok()?,
            longest_path: (longest != 0).then_some(longest),
            calls,
        })
    }
}

/// What is known of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Its number.
    pub id: Id,
    /// What it is called.
    pub name: String,
    /// What it may do.
    pub rights: Rights,
    /// What becomes of it after a fault.
    pub on_fault: OnFault,
    /// Whose windows it shares.
    pub segment: Option<Id>,
    /// Bytes of its image.
    pub size: u64,
    /// Bytes of all its windows that are present.
    pub memory: u64,
    /// Bytes of its shared area.
    pub shared_size: u32,
    /// What the judge said of it.
    pub verdict: Verdict,
    /// Calls by how they ended, in the order of [`KINDS`](crate::KINDS).
    pub ended: [u64; abi::KINDS],
    /// Requests that are not done yet.
    pub queued: u64,
    /// Entries that its ring had no room for.
    pub lost: u64,
    /// Lines of its log that were left out.
    pub log_left_out: u64,
    /// How often its memory was made anew.
    pub restarts: u64,
    /// The last call that did not return, of any processor.
    pub last: Option<Ended>,
    /// How many hooks it is attached to.
    pub hooks: u32,
}

impl Statistics {
    pub(crate) fn new(answer: &abi::Statistics) -> Option<Statistics> {
        let last = match answer.last.kind {
            abi::RETURNED => None,
            _ => Some(Ended::new(&answer.last, 0)?),
        };
        Some(Statistics {
            id: Id(answer.id),
            name: answer.name.to_string(),
            rights: Rights(answer.rights),
            on_fault: OnFault::from_number(answer.on_fault)?,
            segment: (answer.segment != 0).then_some(Id(answer.segment)),
            size: answer.size,
            memory: answer.memory,
            shared_size: answer.shared_size,
            verdict: answer.verdict,
            ended: answer.ended,
            queued: answer.queued,
            lost: answer.lost,
            log_left_out: answer.log_left_out,
            restarts: answer.restarts,
            last,
            hooks: answer.hooks,
        })
    }
}
