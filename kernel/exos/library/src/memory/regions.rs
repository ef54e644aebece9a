//! Ranges of pages that come at the first touch: the heap, the stack, mappings. What the page table
//! says of one page goes before.

/// A range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first page.
    pub first: u64,
    /// The page behind the last.
    pub end: u64,
    /// What its pages allow.
    pub protection: u64,
    /// It is grown and shrunk by its owner, and joined with no other.
    pub alone: bool,
    /// Which file its pages are of ([`Files`]), plus 1; 0: they are zeros.
    pub file: u8,
}

/// Mappings of files at most.
pub const MAPPED: usize = 32;

/// A file that is mapped.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// Which file of the archive.
    pub index: u32,
    /// All who map it have its own pages, and nobody stores to them.
    pub shared: bool,
    /// What is added to a page of the mapping for the file's page, with wrapping.
    pub delta: u64,
}

/// All files that are mapped.
#[derive(Debug)]
pub struct Files {
    /// By the numbers that regions have, less 1.
    pub all: [Mapped; MAPPED],
    /// Whether there ever was one.
    pub some: bool,
}

impl Files {
    /// None.
    pub const fn new() -> Files {
        let none = Mapped {
            index: 0,
            shared: false,
            delta: 0,
        };
        Files {
            all: [none; MAPPED],
            some: false,
        }
    }
}

impl Default for Files {
    fn default() -> Files {
        Files::new()
    }
}

/// Regions at most.
const MOST: usize = 128;

/// Regions, by address; none overlaps another.
#[derive(Debug)]
pub struct Regions {
    all: [Region; MOST],
    count: usize,
}

impl Default for Regions {
    fn default() -> Regions {
        Regions::new()
    }
}

impl Regions {
    /// None.
    pub const fn new() -> Regions {
        let none = Region {
            first: 0,
            end: 0,
            protection: 0,
            alone: false,
            file: 0,
        };
        Regions {
            all: [none; MOST],
            count: 0,
        }
    }

    /// All of them.
    pub fn all(&self) -> &[Region] {
        &self.all[..self.count]
    }

    /// The index of the first that ends behind a page.
    fn position(&self, page: u64) -> usize {
        self.all().partition_point(|region| region.end <= page)
    }

    /// The region of a page.
    pub fn at(&self, page: u64) -> Option<Region> {
        let region = *self.all().get(self.position(page))?;
        (region.first <= page).then_some(region)
    }

    /// The region that ends where this one begins, or is to begin.
    pub fn resize(&mut self, first: u64, end: u64) {
        let at = self.position(first);
        if let Some(region) = self.all[..self.count].get_mut(at) {
            region.end = end;
        }
    }

    /// Whether there is none in a range.
    pub fn is_free(&self, first: u64, end: u64) -> bool {
        self.all()
            .get(self.position(first))
            .is_none_or(|region| region.first >= end)
    }

    /// The first so many free pages from one on to before another.
    pub fn free(&self, from: u64, pages: u64, before: u64) -> Option<u64> {
        let mut first = from;
        for region in &self.all()[self.position(from)..] {
            if region.first.saturating_sub(first) >= pages {
                break;
            }
            first = first.max(region.end);
        }
        (first.checked_add(pages)? <= before).then_some(first)
    }

    /// Changes what a whole region allows: whether it is one.
    pub fn protect(&mut self, first: u64, end: u64, protection: u64) -> bool {
        let at = self.position(first);
        let region = self.all[..self.count].get_mut(at);
        match region.filter(|region| region.first == first && region.end == end) {
            Some(region) => {
                region.protection = protection;
                true
            }
            None => false,
        }
    }

    /// Adds a region where there is none; joined with a neighbour that is the same. Nothing comes
    /// back if there are too many.
    pub fn add(&mut self, region: Region) -> Option<()> {
        let at = self.position(region.first);
        let joins = |one: &Region, other: &Region| {
            one.end == other.first
                && one.protection == other.protection
                && !one.alone
                && !other.alone
                && one.file == 0
                && other.file == 0
        };
        if at > 0 && joins(&self.all[at - 1], &region) {
            self.all[at - 1].end = region.end;
            if at < self.count && joins(&self.all[at - 1], &self.all[at]) {
                self.all[at - 1].end = self.all[at].end;
                self.take(at);
            }
            return Some(());
        }
        if at < self.count && joins(&region, &self.all[at]) {
            self.all[at].first = region.first;
            return Some(());
        }
        if self.count == MOST {
            return None;
        }
        self.all.copy_within(at..self.count, at + 1);
        self.all[at] = region;
        self.count += 1;
        Some(())
    }

    fn take(&mut self, at: usize) {
        self.all.copy_within(at + 1..self.count, at);
        self.count -= 1;
    }

    /// Takes a range away; regions that are partly in it keep the rest. Nothing comes back, and
    /// nothing is changed, if the rest of one would be one region too many.
    pub fn remove(&mut self, first: u64, end: u64) -> Option<()> {
        let at = self.position(first);
        if let Some(region) = self.all().get(at).copied()
            && region.first < first
            && region.end > end
        {
            if self.count == MOST {
                return None;
            }
            self.all[at].end = first;
            self.all.copy_within(at + 1..self.count, at + 2);
            self.all[at + 1] = Region {
                first: end,
                ..region
            };
            self.count += 1;
            return Some(());
        }
        let mut at = at;
        while at < self.count && self.all[at].first < end {
            let region = &mut self.all[at];
            if region.first < first {
                region.end = first;
                at += 1;
            } else if region.end > end {
                region.first = end;
                break;
            } else {
                self.take(at);
            }
        }
        Some(())
    }
}
