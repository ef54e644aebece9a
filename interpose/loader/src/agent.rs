//! The agent: an extension in a window that all processes of a tree have, asked about each call.

pub mod domain;
pub mod engine;
pub mod places;
pub mod services;

use crate::start;
use crate::system;
use crate::thread::Block;

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call is made, with these words, which may be others than it had.
    Pass(Asked),
    /// So is it, and the agent is called again behind it.
    PassAfter(Asked),
    /// It is not, and has this result.
    Answer(i64),
}

/// A call as the agent sees it, in its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Asked {
    /// Linux's number.
    pub number: u64,
    /// Arguments.
    pub arguments: [u64; 6],
    /// What it has as its result if it is not made; behind it, what it had.
    pub result: i64,
    /// The agent's own, from before the call until behind it.
    pub note: u64,
}

/// What an agent's function returns: the call is made.
const PASS: u64 = 0;
/// It has the result that the record says.
const ANSWER: u64 = 1;
/// The call is made, and the agent called again.
const PASS_AFTER: u64 = 2;

/// Asks about a call. An agent that fails ends the program.
pub fn ask(block: &Block, asked: Asked) -> Verdict {
    let Some(agent) = domain::agent() else {
        return Verdict::Pass(asked);
    };
    let at = write(agent, block, &asked);
    places::passes(block.place());
    let said = agent.call(at);
    places::passes(block.place());
    match said {
        Some(PASS) => Verdict::Pass(agent.get(at)),
        Some(PASS_AFTER) if agent.sees_after() => Verdict::PassAfter(agent.get(at)),
        Some(ANSWER) => Verdict::Answer(agent.get(at).result),
        Some(_) => system::give_up(
            125,
            &[start::agent_name(), b": it said none of what it may say"],
        ),
        None => failed(),
    }
}

/// Calls it behind a call: the result that the program finds.
pub fn after(block: &Block, asked: Asked) -> i64 {
    let Some(agent) = domain::agent() else {
        return asked.result;
    };
    let at = write(agent, block, &asked);
    places::passes(block.place());
    let returned = agent.call_after(at);
    places::passes(block.place());
    match returned {
        true => agent.get(at).result,
        false => failed(),
    }
}

/// Writes a thread's record: where it is.
fn write(agent: &domain::Agent, block: &Block, asked: &Asked) -> u32 {
    if !block.sits()
        && let Err(why) = agent.seat(block)
    {
        system::give_up(125, &[b"the agent: ", why.as_bytes()]);
    }
    let at = agent.record(block);
    agent.put(at, asked);
    at
}

fn failed() -> ! {
    system::give_up(125, &[b"the agent failed: ", engine::why().as_bytes()])
}

/// The thread ends, or its process becomes another program: what the agent has for it is free. If
/// nothing comes of that, it is given anew.
pub fn leave(block: &Block) {
    if let Some(agent) = domain::agent().filter(|_| block.sits()) {
        agent.leave();
        places::give_back(block.place());
        block.stands();
    }
}

/// The thread ends.
pub fn end(block: &Block) {
    leave(block);
    postern_gates::register::forget();
}

/// In a forked child: what the thread has is its parent's.
pub fn in_child(block: &Block) {
    if let Some(agent) = domain::agent().filter(|_| block.sits()) {
        agent.leave();
        block.stands();
    }
}
