//! What a scenario is, and what they all need: expectations with words, players, waiting.

use core::fmt;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Call;
use postern_aegis::abi::records::{HoldingKind, claim};
use postern_aegis::calls::{self, Target};
use postern_aegis::load::{self, Child, LoadError, Plan};
use postern_aegis::{Error, books, entry, memory, slices};
use postern_aegis_pipes::heap;
use postern_aegis_programs::{Role, words};

/// A scenario: it leaves nothing behind, which is looked at afterwards.
pub struct Scenario {
    /// Its name: the point and what is promised.
    pub name: &'static str,
    /// What it does.
    pub run: fn() -> Outcome,
}

/// Names functions of a module as scenarios.
#[macro_export]
macro_rules! scenarios {
    ($($name:literal $run:path;)+) => {
        pub const ALL: &[$crate::scenario::Scenario] =
            &[$($crate::scenario::Scenario { name: $name, run: $run }),+];
    };
}

pub type Outcome = Result<(), Why>;

/// Why a scenario failed.
#[derive(Debug)]
pub enum Why {
    /// Something is not as it should be.
    Not(&'static str),
    /// A number is another one.
    Number(&'static str, u64, u64),
    /// A call ended otherwise.
    Call(&'static str, Result<u64, Error>, Result<u64, Error>),
    /// A call was refused that should not be.
    Refused(&'static str, Error),
    /// A player could not be started.
    Load(LoadError),
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Not(what) => write!(formatter, "{what}"),
            Why::Number(what, got, wanted) => write!(formatter, "{what}: {got}, not {wanted}"),
            Why::Call(what, got, wanted) => write!(formatter, "{what}: {got:?}, not {wanted:?}"),
            Why::Refused(what, error) => write!(formatter, "{what}: {error:?}"),
            Why::Load(error) => write!(formatter, "a player: {error}"),
        }
    }
}

impl From<LoadError> for Why {
    fn from(error: LoadError) -> Why {
        Why::Load(error)
    }
}

/// Something holds.
pub fn check(holds: bool, what: &'static str) -> Outcome {
    if holds { Ok(()) } else { Err(Why::Not(what)) }
}

/// A number is this one.
pub fn same(what: &'static str, got: u64, wanted: u64) -> Outcome {
    if got == wanted {
        Ok(())
    } else {
        Err(Why::Number(what, got, wanted))
    }
}

/// A call is refused with this error.
pub fn refused<T: Into<u64>>(what: &'static str, got: Result<T, Error>, wanted: Error) -> Outcome {
    let got = got.map(Into::into);
    if got == Err(wanted) {
        Ok(())
    } else {
        Err(Why::Call(what, got, Err(wanted)))
    }
}

/// Refusals with words of where.
pub trait Named<T> {
    fn named(self, what: &'static str) -> Result<T, Why>;
}

impl<T> Named<T> for Result<T, Error> {
    fn named(self, what: &'static str) -> Result<T, Why> {
        self.map_err(|error| Why::Refused(what, error))
    }
}

/// Slices that are waited for something at least, and how long in cycles: of few slices a loaded
/// host may give none to another processor.
const SLICES: u32 = 4000;
const CYCLES: u64 = 80_000_000_000;

/// Waits until something is so.
pub fn wait(what: &'static str, mut is: impl FnMut() -> bool) -> Outcome {
    let start = slices::clock();
    let mut passed = 0;
    while passed < SLICES || slices::clock().wrapping_sub(start) < CYCLES {
        if is() {
            return Ok(());
        }
        entry::yield_slice();
        passed += 1;
    }
    Err(Why::Not(what))
}

/// A player of a role, with two words for it; it has no slice yet.
pub fn player(role: Role, first: u64, second: u64) -> Result<Child, Why> {
    planned(
        role,
        &Plan::new([role as u64, first, second, 0, 0, 0, 0, 0]),
    )
}

/// The same with a plan, whose first word becomes the role.
pub fn planned(role: Role, plan: &Plan) -> Result<Child, Why> {
    let mut plan = *plan;
    plan.words[0] = role as u64;
    Ok(load::program("player", &plan)?)
}

/// The processor that players run on beside the root: the second one if there is one.
pub fn elsewhere() -> usize {
    slices::processors() - 1
}

/// A player that runs already.
pub fn running(role: Role, first: u64, second: u64) -> Result<Child, Why> {
    let child = player(role, first, second)?;
    child.run_on(elsewhere())?;
    Ok(child)
}

/// Has an obedient player make a call.
pub fn ask(child: &Child, call: Call, arguments: &[u64]) -> Result<u64, Why> {
    for index in 0..6 {
        child.mailbox.set(
            words::ARGUMENT + index,
            arguments.get(index).copied().unwrap_or(0),
        );
    }
    child.mailbox.set(words::ASKED, call as u64 + 1);
    wait("a player makes no call", || {
        child.mailbox.get(words::ASKED) == 0
    })?;
    Ok(child.mailbox.get(words::RESULT))
}

/// Has it make a call that is refused so.
pub fn ask_refused(
    what: &'static str,
    child: &Child,
    call: Call,
    arguments: &[u64],
    wanted: Error,
) -> Outcome {
    let result = ask(child, call, arguments)?;
    let got = Error::of(result as i64).map_or(Ok(result), Err);
    if got == Err(wanted) {
        Ok(())
    } else {
        Err(Why::Call(what, got, Err(wanted)))
    }
}

/// Has it make a call that is done; the result.
pub fn ask_done(
    what: &'static str,
    child: &Child,
    call: Call,
    arguments: &[u64],
) -> Result<u64, Why> {
    let result = ask(child, call, arguments)?;
    Error::of(result as i64).map_or(Ok(result), |error| Err(Why::Refused(what, error)))
}

/// A player counts on.
pub fn goes_on(child: &Child) -> Outcome {
    let before = child.mailbox.get(words::PROGRESS);
    wait("a player stands still", || {
        child.mailbox.get(words::PROGRESS) > before + 2
    })
}

/// Waits for the end of an environment, until its number is free.
pub fn gone(number: u16) -> Outcome {
    wait("an environment does not end", || {
        books::environment(number).claim.load(Relaxed) == claim::FREE
    })
}

/// Ends what a failed scenario has left, so that the next one is not told of it.
pub fn clear() {
    let own = books::own_number();
    let records = &books::machine().environments;
    for record in records
        .iter()
        .filter(|record| record.parent.load(Relaxed) == own)
    {
        let _ = calls::destroy(Target::child(record.number.load(Relaxed)));
    }
    for (number, holding) in books::machine().holdings.iter().enumerate() {
        let kind = HoldingKind::of(holding.kind.load(Relaxed));
        let ends = matches!(kind, Some(HoldingKind::Endpoint | HoldingKind::Handler));
        if ends && holding.owner.load(Relaxed) == own {
            let _ = calls::drop_holding(number, 0);
        }
    }
    let _ = wait("", || books::environment(own).children.load(Relaxed) == 0);
}

/// What the root and the machine have: what a scenario must leave as it was.
#[derive(Clone, Copy, Debug)]
pub struct Possessions {
    free: u32,
    pages: u32,
    tables: u64,
    slices: u32,
    children: u16,
    holdings: u32,
}

impl Possessions {
    /// At this moment.
    pub fn now() -> Possessions {
        let root = books::environment(books::own_number());
        Possessions {
            free: books::machine().free.load(Relaxed),
            pages: root.pages.load(Relaxed),
            tables: memory::tables() + heap::pages(),
            slices: root.slices.load(Relaxed),
            children: root.children.load(Relaxed),
            holdings: root.holdings.load(Relaxed),
        }
    }
}

/// Everything is as before, but for tables that the root made for its own space, and its heap.
pub fn settle(before: &Possessions) -> Outcome {
    wait("children are left", || {
        Possessions::now().children == before.children
    })?;
    let now = Possessions::now();
    let tables = (now.tables - before.tables) as u32;
    same("holdings", now.holdings.into(), before.holdings.into())?;
    same("slices", now.slices.into(), before.slices.into())?;
    same(
        "own pages",
        now.pages.into(),
        (before.pages + tables).into(),
    )?;
    same("free pages", now.free.into(), (before.free - tables).into())
}
