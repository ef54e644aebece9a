//! The memory of a common domain: a file that processes hand each other, and a seat in it for each.
//!
//! Invariants:
//! - A [`Memory`] is a memory file whose size is sealed, and its layout was checked when it came:
//!   later changes of the file's words change nothing of it.
//! - A seat is a lock on one byte of the file, of an open file description that only its process
//!   has. The kernel gives it back when the process ends, however it does; so whether a seat is
//!   taken is the kernel's word and nobody's else. Whoever changes what the file says about a seat
//!   holds its lock.
//! - One lock more is the *turn*: of whoever attaches, starts or resets the domain.

use super::header::{CommonLayout, CommonPhase, Header, Member, SEATS, Why};
use crate::error::CommonError;
use crate::fork;
use crate::image::ImageInner;
use postern_gates::lock::{self, Range};
use postern_gates::machine;
use postern_gates::map::{MapError, SharedWords};
use postern_verifier::window::{INFO, LIMIT, PAGE, STACK_LOG2};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The byte whose lock is the turn.
const TURN: i64 = SEATS as i64;
/// Bytes below the data stacks of a size that was chosen where nothing is, so that a large frame
/// does not reach the heap: as many as the largest stack has.
pub(crate) const BELOW_STACKS: u32 = 1 << STACK_LOG2.2;
/// Between two looks at a lock that somebody has.
const LOOK: Duration = Duration::from_millis(1);
/// How long somebody's turn is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The file, and what was found in it.
#[derive(Debug)]
pub(crate) struct Memory {
    file: OwnedFd,
    pub(crate) header: Header,
    layout: CommonLayout,
    digest: [u8; 32],
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> CommonError {
    move |error| CommonError::System {
        what,
        reason: error.to_string(),
    }
}

impl CommonLayout {
    /// Where things lie for domains of an image with this heap and stacks of this size.
    pub(crate) fn of(
        image: &ImageInner,
        heap: (u32, u32),
        stack_size: u32,
    ) -> Result<CommonLayout, CommonError> {
        let layout = &image.tables.layout;
        let refused = |why: &str| Err(CommonError::Layout(why.to_owned()));
        if !layout.data.is_multiple_of(PAGE) {
            return refused("the image's data does not begin with a page; link it again");
        }
        let stacks = u64::from(heap.1) + u64::from(BELOW_STACKS);
        let stacks = stacks.next_multiple_of(u64::from(stack_size.max(PAGE)));
        // The upper half of what is left is for shared areas.
        let room = u64::from(LIMIT).saturating_sub(stacks) / 2 / u64::from(SEATS);
        let span = room / u64::from(stack_size) * u64::from(stack_size);
        if span == 0 {
            return refused(
                "heap and data stacks leave no room for the stacks of other processes; give it a \
                 smaller heap, or smaller stacks",
            );
        }
        Ok(CommonLayout {
            data: layout.data,
            data_file_end: layout.data_file_end,
            heap_start: heap.0,
            heap_end: heap.1,
            stack_size,
            // Both are below LIMIT, as `span` says.
            stacks: stacks as u32,
            span: span as u32,
        })
    }

    /// Whether all of it lies where a window may have it, and its file has this length.
    fn is_possible(&self, length: u64) -> bool {
        let pages = [
            self.data,
            self.data_file_end,
            self.heap_start,
            self.heap_end,
        ];
        let ordered = INFO < self.data
            && self.data <= self.data_file_end
            && self.data_file_end <= self.heap_start
            && self.heap_start <= self.heap_end;
        let size = self.stack_size;
        let sizes = 1 << STACK_LOG2.0..=1 << STACK_LOG2.2;
        let end = u64::from(self.stacks) + u64::from(SEATS) * u64::from(self.span);
        ordered
            && pages.iter().all(|at| at.is_multiple_of(PAGE))
            && size.is_power_of_two()
            && sizes.contains(&size)
            && self.stacks.is_multiple_of(size.max(PAGE))
            && u64::from(self.stacks) >= u64::from(self.heap_end) + u64::from(BELOW_STACKS)
            && self.span >= size
            && self.span.is_multiple_of(size)
            && end <= u64::from(LIMIT)
            && length == self.file_bytes()
    }
}

impl Memory {
    /// New memory, in which nothing has run yet.
    pub(crate) fn create(
        image: &ImageInner,
        layout: CommonLayout,
    ) -> Result<Arc<Memory>, CommonError> {
        let made = system("make a memory file");
        let file = machine::memory_file(c"postern-common", false).map_err(&made)?;
        machine::size(&file, layout.file_bytes()).map_err(&made)?;
        machine::seal_size(&file).map_err(&made)?;
        let first = image.text.first_values(layout.data, layout.data_file_end);
        let first = first.ok_or_else(|| CommonError::Layout("its data cannot be read".into()))?;
        file.write_all_at(first, Header::BYTES as u64)
            .map_err(&made)?;
        let header = Header::new(SharedWords::of(file.as_fd(), Header::BYTES)?);
        let digest = *image.hash.as_bytes();
        header.fill(&layout, &digest);
        Ok(Arc::new(Memory {
            file: file.into(),
            header,
            layout,
            digest,
        }))
    }

    /// The memory that somebody else has made, by its file, whatever that is.
    pub(crate) fn join(file: OwnedFd) -> Result<Arc<Memory>, CommonError> {
        let foreign = |what| Err(CommonError::Foreign(what));
        if !machine::is_size_sealed(file.as_fd()) {
            return Err(MapError::Unsealed.into());
        }
        let header = Header::new(SharedWords::of(file.as_fd(), Header::BYTES)?);
        if !header.is_known() {
            return foreign("it does not begin like one, or another version made it");
        }
        // Once each: what is checked is what is used.
        let (layout, digest) = (header.layout(), header.digest());
        let length = machine::length(file.as_fd()).map_err(system("look at the memory file"))?;
        if !layout.is_possible(length) {
            return foreign("its layout is none of a window");
        }
        Ok(Arc::new(Memory {
            file,
            header,
            layout,
            digest,
        }))
    }

    /// The file, for others to join.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where things lie.
    pub(crate) fn layout(&self) -> &CommonLayout {
        &self.layout
    }

    /// Whether it is the state of this image.
    pub(crate) fn is_of(&self, image: &ImageInner) -> Result<(), CommonError> {
        let hash = image.hash;
        if *hash.as_bytes() != self.digest {
            return Err(CommonError::Image {
                held: blake3::Hash::from_bytes(self.digest).to_hex().to_string(),
                wanted: hash.to_hex().to_string(),
            });
        }
        let layout = &image.tables.layout;
        let its = (layout.data, layout.data_file_end, layout.heap_start);
        let own = &self.layout;
        if its != (own.data, own.data_file_end, own.heap_start) {
            return Err(CommonError::Foreign("its layout is not the image's"));
        }
        // Whoever made it was told so; this one believes nobody.
        image.suits_stack(own.stack_size).map_err(|_| {
            CommonError::Foreign("its data stacks are of a size that the image does not know")
        })
    }

    /// The hash of the image whose state it is.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether a process has this seat, for whoever has none.
    pub(crate) fn is_taken(&self, seat: u32) -> bool {
        let found = lock::query(&self.file, range(libc::F_WRLCK, seat.into()));
        found.map_or(true, |found| found.kind != libc::F_UNLCK as i16)
    }

    /// The file, and where in it lies what windows have at `offset` of common memory.
    pub(crate) fn file(&self, offset: u32) -> (BorrowedFd<'_>, u64) {
        let at = Header::BYTES as u64 + u64::from(offset - self.layout.data);
        (self.file.as_fd(), at)
    }

    /// Has `[start, end)` of common memory read as zero, in every process.
    pub(crate) fn zero(&self, start: u32, end: u32) -> std::io::Result<()> {
        let (file, at) = self.file(start);
        machine::punch(file, at, u64::from(end - start))
    }

    /// Opens the file once more, and waits for the turn.
    pub(crate) fn turn(self: &Arc<Self>) -> Result<Turn, CommonError> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let own = File::options().read(true).write(true).open(path);
        let own = own.map_err(system("open the memory file once more, by /proc/self/fd"))?;
        let handle = Handle {
            memory: Arc::clone(self),
            own: OwnedFd::from(own),
            process: fork::process(),
        };
        let since = Instant::now();
        while !handle.take_turn()? {
            if since.elapsed() > PATIENCE {
                let holder = self.header.leader();
                return Err(CommonError::Starting(holder, PATIENCE.as_secs()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(Turn(handle))
    }
}

/// A file description that only this process has.
#[derive(Debug)]
struct Handle {
    memory: Arc<Memory>,
    own: OwnedFd,
    /// [`fork::process`] of the process whose it is.
    process: u64,
}

impl Drop for Handle {
    /// A child that was forked while nobody knew of this yet has a descriptor of it, which keeps
    /// what is locked: so it is unlocked, by whoever locked it.
    fn drop(&mut self) {
        if self.process == fork::process() {
            let all = Range {
                kind: libc::F_UNLCK as i16,
                start: 0,
                length: 0,
            };
            let _ = lock::set(&self.own, all);
        }
    }
}

impl Handle {
    /// Whether the byte's lock was had.
    fn lock(&self, byte: i64) -> Result<bool, CommonError> {
        match lock::set(&self.own, range(libc::F_WRLCK, byte)) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(false),
            Err(error) => Err(system("lock the memory file")(error.into())),
        }
    }

    /// Whether the turn was had. What a process left undone that ended in its turn is over.
    fn take_turn(&self) -> Result<bool, CommonError> {
        if !self.lock(TURN)? {
            return Ok(false);
        }
        let header = &self.memory.header;
        let pid = header.leader();
        let left = match header.phase() {
            CommonPhase::Constructing => Some(Why::Constructors { pid }),
            CommonPhase::Resetting => Some(Why::Reset { pid }),
            _ => None,
        };
        if let Some(why) = left {
            header.because(why);
            header.set_phase(CommonPhase::Poisoned);
        }
        header.set_leader(std::process::id());
        Ok(true)
    }

    fn unlock(&self, byte: i64) {
        let _ = lock::set(&self.own, range(libc::F_UNLCK, byte));
    }

    /// Whether another process has the byte's lock. One that cannot be asked about is taken.
    fn is_taken(&self, byte: i64) -> bool {
        let found = lock::query(&self.own, range(libc::F_WRLCK, byte));
        found.map_or(true, |found| found.kind != libc::F_UNLCK as i16)
    }
}

fn range(kind: i32, byte: i64) -> Range {
    Range {
        kind: kind as i16,
        start: byte,
        length: 1,
    }
}

/// The right to attach, to start and to reset. It goes back when this is dropped, or the process
/// ends.
pub(crate) struct Turn(Handle);

impl Turn {
    /// Takes a seat, and gives the turn to whoever comes next when `then` is dropped.
    pub(crate) fn sit(self) -> Result<(Seat, TurnOf), CommonError> {
        let Turn(handle) = self;
        for number in 0..SEATS {
            if handle.lock(number.into())? {
                let header = &handle.memory.header;
                bury(header, number);
                header.ledger().begin(number);
                header.set_pid(number, std::process::id(), machine::process_namespace());
                let seat = Arc::new(SeatInner {
                    memory: Arc::clone(&handle.memory),
                    number,
                    process: fork::process(),
                    leads: AtomicBool::new(true),
                    handle: Mutex::new(Some(handle)),
                });
                let seat = Seat(seat);
                seat.bury_dead();
                // The others watch this process from now on.
                seat.header().tell();
                let turn = TurnOf(seat.clone());
                return Ok((seat, turn));
            }
        }
        Err(CommonError::Full(SEATS))
    }
}

/// A seat's owner has the turn until this is dropped.
pub(crate) struct TurnOf(Seat);

impl Drop for TurnOf {
    fn drop(&mut self) {
        self.0.0.leads.store(false, SeqCst);
        self.0.with(|handle| handle.unlock(TURN));
    }
}

/// What a process that ended has left at a seat, whose lock the caller has.
fn bury(header: &Header, number: u32) {
    if let Some(function) = header.inside(number) {
        let pid = header.pid(number);
        header.ended_inside(Why::Killed { pid, function });
        header.clear_inside(number);
    }
    header.relay().bury(number);
    header.ledger().retire(number);
    header.set_pid(number, 0, 0);
}

/// The seat of one domain of this process. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Seat(Arc<SeatInner>);

#[derive(Debug)]
struct SeatInner {
    memory: Arc<Memory>,
    number: u32,
    /// [`fork::process`] of the process whose it is.
    process: u64,
    /// It has the turn.
    leads: AtomicBool,
    /// `None` in a child, which has no seat.
    handle: Mutex<Option<Handle>>,
}

impl Seat {
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.0.memory
    }

    pub(crate) fn header(&self) -> &Header {
        &self.0.memory.header
    }

    /// Which one it is.
    pub(crate) fn number(&self) -> u32 {
        self.0.number
    }

    /// Where its data stacks lie.
    pub(crate) fn zone(&self) -> (u32, u32) {
        self.0.memory.layout.zone(self.0.number)
    }

    /// Whether it is this process's, and not that of one that forked it.
    pub(crate) fn is_here(&self) -> bool {
        self.0.process == fork::process()
    }

    fn with<R>(&self, work: impl FnOnce(&Handle) -> R) -> Option<R> {
        let handle = fork::lock(&self.0.handle);
        handle.as_ref().map(work)
    }

    /// Whether the process with another seat is there.
    pub(crate) fn is_taken(&self, other: u32) -> bool {
        self.with(|handle| handle.is_taken(other.into()))
            .unwrap_or(false)
    }

    /// Whether somebody else has the turn.
    pub(crate) fn somebody_leads(&self) -> bool {
        self.with(|handle| handle.is_taken(TURN)).unwrap_or(false)
    }

    /// Takes the turn, if nobody has it.
    pub(crate) fn lead(&self) -> Option<TurnOf> {
        // For a description that has a lock already, it would be no lock.
        if self.0.leads.swap(true, SeqCst) {
            return None;
        }
        if let Some(true) = self.with(|handle| handle.take_turn().unwrap_or(false)) {
            return Some(TurnOf(self.clone()));
        }
        self.0.leads.store(false, SeqCst);
        None
    }

    /// Whether it has the turn.
    pub(crate) fn leads(&self) -> bool {
        self.0.leads.load(SeqCst)
    }

    /// Looks for seats whose processes have ended: where one was inside, the domain is poisoned.
    pub(crate) fn bury_dead(&self) {
        let header = self.header();
        for other in (0..SEATS).filter(|&other| other != self.0.number) {
            if header.pid(other) == 0 && header.inside(other).is_none() {
                continue;
            }
            self.with(|handle| {
                if let Ok(true) = handle.lock(other.into()) {
                    bury(header, other);
                    handle.unlock(other.into());
                }
            });
        }
    }

    /// A process is known to have ended that had another seat. Somebody may have buried it already,
    /// and a living one sit there.
    pub(crate) fn has_ended(&self, Member { seat: other, pid }: Member) {
        let header = self.header();
        self.bury_dead();
        // A child that it forked by other means than the C library's may keep the lock. (Where ends
        // are only counted, it is when the lock is free, once.)
        if !header.survives()
            && let Some(function) = header.inside(other)
            && header.pid(other) == pid
        {
            header.poison(Why::Killed { pid, function });
        }
    }

    /// In a forked child: the seat is the parent's alone.
    pub(crate) fn after_fork(&self) {
        // Whoever held the lock is not here; a fork takes those under which it is held.
        if let Ok(mut handle) = self.0.handle.try_lock() {
            *handle = None;
        }
    }
}

impl Drop for SeatInner {
    fn drop(&mut self) {
        let handle = self.handle.get_mut().unwrap_or_else(|e| e.into_inner());
        if self.process == fork::process() && handle.is_some() {
            // Nobody of this process is inside any more.
            self.memory.header.clear_inside(self.number);
            self.memory.header.relay().bury(self.number);
            self.memory.header.ledger().retire(self.number);
            self.memory.header.set_pid(self.number, 0, 0);
            *handle = None;
            self.memory.header.tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::CommonMemory;
    use crate::sample;

    /// The seat of one that was killed is free as soon as anybody has looked, and whoever sits
    /// there then may be inside when its end is told to the next.
    #[test]
    fn the_end_of_a_former_one_is_not_that_of_who_sits_there() {
        let memory = CommonMemory::new(&sample::image("int n;")).unwrap().0;
        let sit = || memory.turn().unwrap().sit().unwrap().0;
        let (one, other) = (sit(), sit());
        let header = one.header();
        header.set_phase(CommonPhase::Open);
        header.set_inside(other.number(), 7);
        let pid = std::process::id();
        let ended = |pid| Member {
            seat: other.number(),
            pid,
        };
        one.has_ended(ended(pid + 1));
        assert_eq!(header.phase(), CommonPhase::Open);
        // Here a process has both, as if a child of the one that ended had kept its lock.
        one.has_ended(ended(pid));
        assert_eq!(header.phase(), CommonPhase::Poisoned);
        assert_eq!(header.why(), Why::Killed { pid, function: 7 });
    }
}
