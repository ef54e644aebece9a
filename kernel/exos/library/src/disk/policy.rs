//! Which page of a cache is given up: what the program says, or 2Q.

use postern_exos_fs::{Policy, TwoQueues};

use crate::disk::trusted::Functions;

/// The choice of a cache.
#[derive(Debug)]
pub enum Choice {
    /// The library's.
    Queues(TwoQueues),
    /// The program's.
    Own(Functions),
}

impl Policy for Choice {
    fn begin(&mut self, frames: u32) {
        match self {
            Choice::Queues(queues) => queues.begin(frames),
            Choice::Own(own) => own.begin(frames),
        }
    }

    fn filled(&mut self, frame: u32, what: u64) {
        match self {
            Choice::Queues(queues) => queues.filled(frame, what),
            Choice::Own(own) => own.filled(frame, what),
        }
    }

    fn used(&mut self, frame: u32) {
        match self {
            Choice::Queues(queues) => queues.used(frame),
            Choice::Own(own) => own.used(frame),
        }
    }

    fn emptied(&mut self, frame: u32) {
        match self {
            Choice::Queues(queues) => queues.emptied(frame),
            Choice::Own(own) => own.emptied(frame),
        }
    }

    fn choose(&mut self, may: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        match self {
            Choice::Queues(queues) => queues.choose(may),
            Choice::Own(own) => own.choose(may),
        }
    }
}
