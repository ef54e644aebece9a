//! Agents that do not return, and what is told of it.

use crate::support::{Seen, agent, run};
use postern_interpose::Interposer;
use std::time::Duration;

/// Makes the call at which the agent does it, and more.
const PERL: &str = "syscall(124, 0); print \"went on\\n\"";
/// The same in a child.
const CHILD: &str = "if (!fork) { syscall(124, 0); exit } wait; print $? & 127, \"\\n\"";

fn under(what: &str, deadline: u64, script: &str) -> (Seen, String) {
    let interposer = Interposer::new(agent("wrong"));
    let interposer = interposer.deadline(Duration::from_millis(deadline));
    run(interposer, &[what], &["perl", "-e", script])
}

#[test]
fn one_that_loops_has_its_program_killed() {
    let late = "within 0.2 s of the processor's time (--deadline): the process is killed\n";
    let (seen, said) = under("loops", 200, PERL);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(125), ""),
        "{said}"
    );
    assert!(
        said.starts_with("postern: the agent did not answer process ") && said.contains(late),
        "{said}"
    );
    let (seen, said) = under("loops", 200, CHILD);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(0), "9\n"),
        "{said}"
    );
    assert!(said.contains(late), "{said}");
    let interposer = Interposer::new(agent("wrong")).enforce();
    let interposer = interposer.deadline(Duration::from_millis(200));
    let script = "syscall(41, 1, 1, 0); print 'went on'";
    let (seen, said) = run(interposer, &["loops"], &["perl", "-e", script]);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(125), ""),
        "{said}"
    );
    assert!(said.starts_with("postern: the agent failed: "), "{said}");
}

#[test]
fn one_without_end_is_a_fault_of_its_own() {
    let (seen, said) = under("deep", 60_000, PERL);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(125), ""),
        "{said}"
    );
    let why = "postern: the agent failed: its control stack is used up (too deep a recursion)\n";
    assert!(said.starts_with(why), "{said}");
}

#[test]
fn a_lock_of_one_that_was_killed_is_the_next_ones() {
    let (seen, said) = under("killed", 60_000, CHILD);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(0), "9\n"),
        "{said}"
    );
    assert_eq!(said, "died: 1, whole: 1\n");
}
