//! What processes of a tree may have together. A tree is part of another one; what is taken in it is
//! taken in all that it is part of.

use postern_exos_abi::errno::{self, Errno};

/// Trees that there are at most.
pub const TREES: usize = 64;

/// What is limited, as [`Operation::Limit`](postern_exos_abi::request::Operation::Limit) numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Processes, those that ended and were not waited for among them.
    Processes = 0,
    /// Pages: what processes may have, and what is kept for them.
    Pages = 1,
    /// Slices.
    Slices = 2,
}

impl What {
    /// What a number stands for.
    pub fn of(number: u64) -> Option<What> {
        [What::Processes, What::Pages, What::Slices]
            .get(usize::try_from(number).ok()?)
            .copied()
    }
}

#[derive(Clone, Copy, Debug)]
struct Tree {
    above: Option<u8>,
    used: [u32; 3],
    limits: [u32; 3],
}

/// All trees. Number 0 is the whole.
#[derive(Debug)]
pub struct Trees {
    trees: [Tree; TREES],
}

const NONE: Tree = Tree {
    above: None,
    used: [0; 3],
    limits: [0; 3],
};

impl Trees {
    /// No tree but the whole, which may have nothing yet.
    pub const fn new() -> Trees {
        Trees {
            trees: [NONE; TREES],
        }
    }

    /// What the whole may have.
    pub fn set_whole(&mut self, limits: [u32; 3]) {
        self.trees[0].limits = limits;
    }

    /// A tree, and those that it is part of.
    fn path(&self, tree: u8) -> impl Iterator<Item = usize> {
        let mut next = Some(tree);
        core::iter::from_fn(move || {
            let now = usize::from(next?) % TREES;
            next = self.trees[now].above;
            Some(now)
        })
        .take(TREES)
    }

    /// Does something to a tree and those that it is part of.
    fn each(&mut self, tree: u8, mut what: impl FnMut(&mut Tree)) {
        let mut next = Some(tree);
        for _ in 0..TREES {
            let Some(now) = next else {
                return;
            };
            let tree = &mut self.trees[usize::from(now) % TREES];
            what(tree);
            next = tree.above;
        }
    }

    /// Whether a tree is another one or a part of it.
    pub fn within(&self, tree: u8, of: u8) -> bool {
        self.path(tree).any(|now| now == usize::from(of))
    }

    /// Takes so much, or nothing.
    pub fn take(&mut self, tree: u8, what: What, count: u32) -> Result<(), Errno> {
        let index = what as usize;
        let fits = |tree: &Tree| {
            tree.used[index]
                .checked_add(count)
                .is_some_and(|used| used <= tree.limits[index])
        };
        if !self.path(tree).all(|now| fits(&self.trees[now])) {
            return Err(match what {
                What::Pages => errno::NOMEM,
                _ => errno::AGAIN,
            });
        }
        self.each(tree, |tree| tree.used[index] += count);
        Ok(())
    }

    /// Gives so much back.
    pub fn give(&mut self, tree: u8, what: What, count: u32) {
        self.each(tree, |tree| {
            let used = &mut tree.used[what as usize];
            *used = used.saturating_sub(count);
        });
    }

    /// A new part of a tree, with the same limits, in which so much is in use that the tree has
    /// counted already.
    pub fn part(&mut self, of: u8, used: [u32; 3]) -> Result<u8, Errno> {
        let free = (1..TREES).find(|number| {
            let tree = &self.trees[*number];
            tree.above.is_none()
        });
        let number = free.ok_or(errno::AGAIN)?;
        self.trees[number] = Tree {
            above: Some(of),
            used,
            limits: self.trees[usize::from(of) % TREES].limits,
        };
        Ok(number as u8)
    }

    /// A limit.
    pub fn limit(&self, tree: u8, what: What) -> u32 {
        self.trees[usize::from(tree) % TREES].limits[what as usize]
    }

    /// Lowers a limit.
    pub fn lower(&mut self, tree: u8, what: What, value: u32) -> Result<(), Errno> {
        let limit = &mut self.trees[usize::from(tree) % TREES].limits[what as usize];
        if value > *limit {
            return Err(errno::PERM);
        }
        *limit = value;
        Ok(())
    }

    /// A part in which nothing is any more is none.
    pub fn close(&mut self, tree: u8) {
        let mut next = Some(tree);
        while let Some(now) = next.filter(|now| *now != 0) {
            let tree = &mut self.trees[usize::from(now) % TREES];
            let part = self_is_part(tree);
            if !part || tree.used != [0; 3] {
                return;
            }
            next = tree.above.take();
        }
    }
}

fn self_is_part(tree: &Tree) -> bool {
    tree.above.is_some()
}
