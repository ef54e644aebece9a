//! Which frame of the cache is given up for something new: whoever mounts the file system decides.

use alloc::vec;
use alloc::vec::Vec;

/// Which frame is given up. Frames are numbered from 0; the file system tells what becomes of them.
/// A policy that answers wrongly makes the cache slow, and nothing else.
pub trait Policy {
    /// How many frames there are, all of them empty. Called once, first.
    fn begin(&mut self, frames: u32);

    /// An empty frame has something now. `what` is the same number whenever the same block comes.
    fn filled(&mut self, frame: u32, what: u64);

    /// What the frame has was used.
    fn used(&mut self, frame: u32);

    /// The frame has nothing any more.
    fn emptied(&mut self, frame: u32);

    /// The frame to give up, of those for which `may` says yes: others are pinned, or the log needs
    /// them.
    fn choose(&mut self, may: &mut dyn FnMut(u32) -> bool) -> Option<u32>;
}

const NONE: u32 = u32::MAX;

/// Frames in an order, each at most once.
#[derive(Debug)]
struct Queue {
    first: u32,
    last: u32,
    length: u32,
}

/// Where a frame stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    before: u32,
    behind: u32,
    /// Which queue; 0 for none.
    queue: u8,
}

const NOWHERE: Place = Place {
    before: NONE,
    behind: NONE,
    queue: 0,
};

/// Queues over one set of frames.
#[derive(Debug)]
struct Queues<const N: usize> {
    places: Vec<Place>,
    queues: [Queue; N],
}

impl<const N: usize> Queues<N> {
    fn new(frames: u32) -> Queues<N> {
        Queues {
            places: vec![NOWHERE; frames as usize],
            queues: core::array::from_fn(|_| Queue {
                first: NONE,
                last: NONE,
                length: 0,
            }),
        }
    }

    fn place(&self, frame: u32) -> Place {
        self.places.get(frame as usize).copied().unwrap_or(NOWHERE)
    }

    fn set_before(&mut self, frame: u32, before: u32) {
        if let Some(place) = self.places.get_mut(frame as usize) {
            place.before = before;
        }
    }

    fn set_behind(&mut self, frame: u32, behind: u32) {
        if let Some(place) = self.places.get_mut(frame as usize) {
            place.behind = behind;
        }
    }

    fn take(&mut self, frame: u32) {
        let place = self.place(frame);
        let Some(queue) = usize::from(place.queue)
            .checked_sub(1)
            .and_then(|queue| self.queues.get_mut(queue))
        else {
            return;
        };
        queue.length -= 1;
        if place.before == NONE {
            queue.first = place.behind;
        }
        if place.behind == NONE {
            queue.last = place.before;
        }
        self.set_behind(place.before, place.behind);
        self.set_before(place.behind, place.before);
        self.places[frame as usize] = NOWHERE;
    }

    /// To a queue's end, wherever it was.
    fn append(&mut self, frame: u32, queue: usize) {
        if self.queues[queue].last == frame {
            return;
        }
        self.take(frame);
        let Some(place) = self.places.get_mut(frame as usize) else {
            return;
        };
        let queue_of = &mut self.queues[queue];
        *place = Place {
            before: queue_of.last,
            behind: NONE,
            queue: queue as u8 + 1,
        };
        let before = queue_of.last;
        queue_of.last = frame;
        queue_of.length += 1;
        if before == NONE {
            queue_of.first = frame;
        }
        self.set_behind(before, frame);
    }

    /// The first in a queue's order that may be given up. Those before it go to the end, since they
    /// are kept for some time: otherwise each choice would pass all of them again.
    fn first(&mut self, queue: usize, may: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        for _ in 0..self.queues[queue].length {
            let frame = self.queues[queue].first;
            if frame == NONE || may(frame) {
                return (frame != NONE).then_some(frame);
            }
            self.append(frame, queue);
        }
        None
    }
}

/// What was not used for the longest time is given up.
#[derive(Debug)]
pub struct Lru(Queues<1>);

impl Lru {
    /// For any number of frames.
    pub fn new() -> Lru {
        Lru(Queues::new(0))
    }
}

impl Default for Lru {
    fn default() -> Lru {
        Lru::new()
    }
}

impl Policy for Lru {
    fn begin(&mut self, frames: u32) {
        self.0 = Queues::new(frames);
    }

    fn filled(&mut self, frame: u32, _what: u64) {
        self.0.append(frame, 0);
    }

    fn used(&mut self, frame: u32) {
        self.0.append(frame, 0);
    }

    fn emptied(&mut self, frame: u32) {
        self.0.take(frame);
    }

    fn choose(&mut self, may: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        self.0.first(0, may)
    }
}

/// 2Q (Johnson and Shasha, *2Q: A Low Overhead High Performance Buffer Management Replacement
/// Algorithm*, VLDB 1994, section 3.2): what comes for the first time stands in a short queue and
/// goes soon; only what comes again, after it went, displaces what is used often. One long file
/// that is read once costs the others a quarter of the frames.
#[derive(Debug)]
pub struct TwoQueues {
    queues: Queues<2>,
    /// What went from the first queue lately: what it was, and as the how many-th it went.
    gone: Vec<(u64, u64)>,
    went: u64,
    whats: Vec<u64>,
}

const ONCE: usize = 0;
const OFTEN: usize = 1;

impl TwoQueues {
    /// For any number of frames.
    pub fn new() -> TwoQueues {
        TwoQueues {
            queues: Queues::new(0),
            gone: Vec::new(),
            went: 0,
            whats: Vec::new(),
        }
    }

    fn gone(&mut self, what: u64) -> Option<&mut (u64, u64)> {
        let mask = self.gone.len().checked_sub(1)?;
        let hash = what.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.gone.get_mut(hash as usize & mask)
    }
}

impl Default for TwoQueues {
    fn default() -> TwoQueues {
        TwoQueues::new()
    }
}

impl Policy for TwoQueues {
    fn begin(&mut self, frames: u32) {
        self.queues = Queues::new(frames);
        self.gone = vec![(u64::MAX, 0); (frames as usize).next_power_of_two()];
        self.whats = vec![u64::MAX; frames as usize];
        self.went = 0;
    }

    fn filled(&mut self, frame: u32, what: u64) {
        if let Some(place) = self.whats.get_mut(frame as usize) {
            *place = what;
        }
        // The paper's proportions: half as many are remembered as there are frames.
        let (went, half) = (self.went, self.whats.len() as u64 / 2);
        let came_again = self
            .gone(what)
            .is_some_and(|(which, at)| *which == what && went - *at <= half);
        self.queues
            .append(frame, if came_again { OFTEN } else { ONCE });
    }

    fn used(&mut self, frame: u32) {
        // In the first queue nothing moves: several uses soon after each other are one.
        if usize::from(self.queues.place(frame).queue) == OFTEN + 1 {
            self.queues.append(frame, OFTEN);
        }
    }

    fn emptied(&mut self, frame: u32) {
        self.queues.take(frame);
    }

    fn choose(&mut self, may: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        let quarter = self.whats.len() as u32 / 4;
        let order = if self.queues.queues[ONCE].length > quarter {
            [ONCE, OFTEN]
        } else {
            [OFTEN, ONCE]
        };
        let (queue, frame) = order
            .into_iter()
            .find_map(|queue| Some((queue, self.queues.first(queue, may)?)))?;
        if queue == ONCE {
            self.went += 1;
            let went = self.went;
            let what = self.whats.get(frame as usize).copied().unwrap_or(u64::MAX);
            if let Some(place) = self.gone(what) {
                *place = (what, went);
            }
        }
        Some(frame)
    }
}
