//! What namespaces cost a host besides memory that is used: a core dump, and the promise of a
//! system that promises no more than it has.

use crate::figure::{Figure, Goal};
use postern::{Namespace, Prot, Shared};

const NAMESPACES: usize = 100;
/// Bytes of the area that all share.
const AREA: usize = 16 << 20;

/// Sums over the mappings of the process, in KiB.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Pages that a core dump has, and those that it would have if none were left out.
    dumped: u64,
    dumpable: u64,
    /// What counts against the promise where `vm.overcommit_memory` is 2: all that is private and
    /// may be written.
    charged: u64,
}

impl Sums {
    fn now() -> Result<Sums, String> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").map_err(|e| e.to_string())?;
        let mut sums = Sums::default();
        let (mut size, mut resident, mut anonymous) = (0, 0, 0);
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let (name, value) = (words.next(), words.next());
            let kib = value.and_then(|v| v.parse().ok()).unwrap_or(0);
            match name {
                Some("Size:") => size = kib,
                Some("Rss:") => resident = kib,
                Some("Anonymous:") => anonymous = kib,
                Some("VmFlags:") => {
                    let has = |flag| line.split_whitespace().any(|f| f == flag);
                    // Shared memory here is memory files, which are dumped like anonymous memory.
                    let pages = if has("sh") { resident } else { anonymous };
                    sums.dumpable += pages;
                    sums.dumped += if has("dd") { 0 } else { pages };
                    sums.charged += if has("wr") && !has("sh") { size } else { 0 };
                }
                _ => {}
            }
        }
        Ok(sums)
    }
}

fn namespace(area: &Shared) -> Result<Namespace, String> {
    let space = Namespace::builder().build().map_err(|e| e.to_string())?;
    space
        .create("p", "int f(void) { return 1; }")
        .map_err(|e| e.to_string())?;
    space
        .domain()
        .share(area, Prot::ReadWrite)
        .map_err(|e| e.to_string())?;
    let f = space.func::<fn() -> i32>("f").map_err(|e| e.to_string())?;
    match f.call() {
        Ok(1) => Ok(space),
        other => Err(format!("the namespace answered {other:?}")),
    }
}

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let mib = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1024.0;
    let area = Shared::new(AREA).map_err(|e| e.to_string())?;
    area.write(0, &vec![1; AREA]).map_err(|e| e.to_string())?;
    let before = Sums::now()?;
    let mut spaces = vec![namespace(&area)?];
    let first = Sums::now()?;
    while spaces.len() < NAMESPACES {
        spaces.push(namespace(&area)?);
    }
    let all = Sums::now()?;
    Ok(vec![
        Figure::plain(
            "domains.dump",
            mib(before.dumped, all.dumped),
            "MiB",
            "pages in a core dump because of a hundred namespaces with an \
             area of 16 MiB, over those if none were left out",
        )
        .against(mib(before.dumpable, all.dumpable))
        .goal(Goal::AtMost(16.0)),
        Figure::plain(
            "domains.charge-first",
            mib(before.charged, first.charged),
            "MiB",
            "counted under vm.overcommit_memory=2 for the first namespace, with a heap of 64 MiB",
        ),
        Figure::plain(
            "domains.charge",
            mib(first.charged, all.charged) / (NAMESPACES - 1) as f64,
            "MiB",
            "the same for each further one",
        ),
    ])
}
