//! What the processor and the kernel must have, and the system calls that libc has no safe face
//! for.

use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Why this machine cannot run extensions: one sentence.
pub fn unsupported() -> Option<String> {
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    // SAFETY: getauxval has no preconditions; a missing entry reads 0.
    if unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE == 0 {
        return Some(
            "Postern needs the FSGSBASE instructions: a processor of 2012 (Intel) or 2018 (AMD) or later and Linux 5.9 or later"
                .into(),
        );
    }
    if shadow_stack() {
        return Some(
            "this process runs with a CET shadow stack, which the gates do not maintain; start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off"
                .into(),
        );
    }
    None
}

/// Whether the calling thread has a user shadow stack.
fn shadow_stack() -> bool {
    const ARCH_SHSTK_STATUS: i32 = 0x5005;
    let mut features = 0u64;
    // SAFETY: arch_prctl writes one word through the pointer, or fails.
    let r = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SHSTK_STATUS, &mut features) };
    r == 0 && features & 1 != 0
}

/// Whether this processor's string instructions are fast.
pub(super) fn has_fast_strings() -> bool {
    std::arch::is_x86_feature_detected!("ermsb")
}

/// Whether this processor and kernel have AVX.
pub(super) fn has_avx() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

/// Whether this processor and kernel have AVX2.
pub fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Whether this processor and kernel have a feature, by the name of gcc's option that allows it. A
/// name that is not known here is of a feature that is not there.
pub fn has(name: &str) -> bool {
    use std::arch::is_x86_feature_detected as has;
    match name {
        "sse3" => has!("sse3"),
        "ssse3" => has!("ssse3"),
        "sse4.1" => has!("sse4.1"),
        "sse4.2" => has!("sse4.2"),
        "popcnt" => has!("popcnt"),
        "cx16" => has!("cmpxchg16b"),
        "movbe" => has!("movbe"),
        "lzcnt" => has!("lzcnt"),
        "bmi" => has!("bmi1"),
        "bmi2" => has!("bmi2"),
        "avx" => has!("avx"),
        "avx2" => has!("avx2"),
        "f16c" => has!("f16c"),
        "fma" => has!("fma"),
        "aes" => has!("aes"),
        "pclmul" => has!("pclmulqdq"),
        "sha" => has!("sha"),
        "adx" => has!("adx"),
        "gfni" => has!("gfni"),
        "vaes" => has!("vaes"),
        "vpclmulqdq" => has!("vpclmulqdq"),
        _ => false,
    }
}

/// A file in memory that can be sealed.
pub fn memory_file(name: &CStr, executable: bool) -> std::io::Result<File> {
    const MFD_NOEXEC_SEAL: u32 = 8;
    const MFD_EXEC: u32 = 16;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let kind = if executable {
        MFD_EXEC
    } else {
        MFD_NOEXEC_SEAL
    };
    // Kernels before 6.3 do not know the second kind of flag and refuse it.
    for flags in [flags | kind, flags] {
        // SAFETY: the name is a C string; the result is a new descriptor or -1.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if fd >= 0 {
            // SAFETY: the descriptor is new and nobody else's.
            return Ok(unsafe { File::from_raw_fd(fd) });
        }
        let error = std::io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(error);
        }
    }
    Err(std::io::Error::from_raw_os_error(libc::EINVAL))
}

/// Gives a memory file its contents. A limit on the size of files is an error here, and not the
/// signal that the kernel would send.
pub fn fill(file: &mut File, bytes: &[u8]) -> std::io::Result<()> {
    fits(bytes.len() as u64)?;
    file.write_all(bytes)
}

/// Gives a memory file its size, with the same care.
pub fn size(file: &File, bytes: u64) -> std::io::Result<()> {
    fits(bytes)?;
    file.set_len(bytes)
}

/// Whether a file may be so large (RLIMIT_FSIZE).
fn fits(bytes: u64) -> std::io::Result<()> {
    match limit(libc::RLIMIT_FSIZE) {
        Some(limit) if bytes > limit => Err(std::io::Error::from_raw_os_error(libc::EFBIG)),
        _ => Ok(()),
    }
}

/// A limit of the process, if there is one.
pub fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    // SAFETY: the call fills the structure.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        let known = libc::getrlimit(resource, &mut limit) == 0;
        (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
    }
}

/// Random bytes of the system's.
pub fn random() -> std::io::Result<[u8; 8]> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer has the length that is passed. So few bytes come at once and whole.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match got {
        8 => Ok(bytes),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Forbids every later change of a memory file.
pub(crate) fn seal(file: &File) -> std::io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE | libc::F_SEAL_SEAL;
    // SAFETY: fcntl on a descriptor that we own.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// Forbids that a memory file shrinks.
pub fn seal_shrink(file: &File) -> std::io::Result<()> {
    // SAFETY: fcntl on a descriptor that we own.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

const SIZE_SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
const WRITE_SEALS: i32 = libc::F_SEAL_WRITE | 0x10;

/// Forbids every change of a memory file's size, and every other seal: whoever has it can go on
/// writing.
pub fn seal_size(file: &File) -> std::io::Result<()> {
    // SAFETY: fcntl on a descriptor that we own.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SIZE_SEALS) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// Whether a file is a memory file that [`seal_size`] has sealed, and that can be written. One of
/// large pages is none: the kernel would make its mappings longer than they were asked for.
pub fn is_size_sealed(file: BorrowedFd<'_>) -> bool {
    // SAFETY: fcntl on a descriptor that is borrowed; for files of other kinds it fails.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    let sealed = seals >= 0 && seals & SIZE_SEALS == SIZE_SEALS && seals & WRITE_SEALS == 0;
    sealed && has_small_pages(file)
}

fn has_small_pages(file: BorrowedFd<'_>) -> bool {
    // SAFETY: the call fills the structure.
    unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        let known = libc::fstatfs(file.as_raw_fd(), &mut about) == 0;
        known && about.f_type == libc::TMPFS_MAGIC
    }
}

/// Who has connected a Unix socket, by the kernel's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process; 0 if it runs where this one does not see it.
    pub process: u32,
    /// Its user.
    pub user: u32,
    /// Its group.
    pub group: u32,
}

/// Who is at the other end of a Unix socket.
///
/// # Errors
/// It is no such socket.
pub fn peer(socket: BorrowedFd<'_>) -> std::io::Result<Peer> {
    // SAFETY: the call fills the structure, whose length it is given; any bits are one.
    unsafe {
        let mut who: libc::ucred = std::mem::zeroed();
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        let to = (&raw mut who).cast();
        match libc::getsockopt(socket.as_raw_fd(), level, name, to, &raw mut length) {
            0 => Ok(Peer {
                process: u32::try_from(who.pid).unwrap_or(0),
                user: who.uid,
                group: who.gid,
            }),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// In which namespace the numbers of processes are what this one sees; 0 if that cannot be known.
pub fn process_namespace() -> u32 {
    let namespace = std::fs::metadata("/proc/self/ns/pid");
    namespace.map_or(0, |about| u32::try_from(about.ino()).unwrap_or(0))
}

/// A file's length in bytes.
pub fn length(file: BorrowedFd<'_>) -> std::io::Result<u64> {
    // SAFETY: the call fills the structure.
    unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        match libc::fstat(file.as_raw_fd(), &mut about) {
            0 => Ok(u64::try_from(about.st_size).unwrap_or(0)),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// Gives a part of a memory file pages, so that to touch it needs no memory any more.
pub fn allocate(file: BorrowedFd<'_>, at: u64, bytes: u64) -> std::io::Result<()> {
    fallocate(file, 0, at, bytes)
}

/// Has a part of a memory file read as zero again, for all who map it; its pages are free.
pub fn punch(file: BorrowedFd<'_>, at: u64, bytes: u64) -> std::io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    fallocate(file, mode, at, bytes)
}

fn fallocate(file: BorrowedFd<'_>, mode: i32, at: u64, bytes: u64) -> std::io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let (at, bytes) = (at.cast_signed(), bytes.cast_signed());
    // SAFETY: a call on a descriptor that is borrowed; it has no memory arguments.
    match unsafe { libc::fallocate(file.as_raw_fd(), mode, at, bytes) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Forbids every later mapping of a memory file through which it could be written, and every change
/// of its size.
pub(crate) fn seal_writers(file: &File) -> std::io::Result<()> {
    const F_SEAL_FUTURE_WRITE: i32 = 0x10;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL;
    // SAFETY: fcntl on a descriptor that we own.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// A descriptor that stays open for other processes to find. The host may close it all the same, as
/// it closes any number.
pub struct Published {
    number: RawFd,
    /// Which file it is: if the host has closed it, its number may be anybody's.
    file: (u64, u64),
}

impl Published {
    /// Leaves a file's descriptor open.
    ///
    /// # Errors
    /// Which file it is cannot be found out.
    pub fn new(file: File) -> std::io::Result<Published> {
        let file_is = identity(&file)?;
        let number = file.into_raw_fd();
        Ok(Published {
            number,
            file: file_is,
        })
    }

    /// Makes the descriptor one of another file, if it is still what it was.
    ///
    /// # Errors
    /// The file's descriptor is no good; or that of another one, which stays open then, and is this
    /// one's from now on.
    pub fn replace(&mut self, file: File) -> std::io::Result<()> {
        let now = std::fs::metadata(format!("/proc/self/fd/{}", self.number));
        if !now.is_ok_and(|now| (now.dev(), now.ino()) == self.file) {
            *self = Published::new(file)?;
            return Ok(());
        }
        let file_is = identity(&file)?;
        // SAFETY: the descriptor is the one that `new` or this function left open, of a file that
        // nobody else has made, and nobody in this process uses it; it is closed and opened again
        // in one step.
        if unsafe { libc::dup3(file.as_raw_fd(), self.number, libc::O_CLOEXEC) } != self.number {
            return Err(std::io::Error::last_os_error());
        }
        self.file = file_is;
        Ok(())
    }
}

fn identity(file: &File) -> std::io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

const MEMBARRIER_PRIVATE_EXPEDITED: i32 = 1 << 3;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

const MEMBARRIER_PRIVATE_EXPEDITED_SYNC_CORE: i32 = 1 << 5;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: i32 = 1 << 6;

/// Registers the process for [`barrier`].
pub fn register_barrier() -> std::io::Result<()> {
    membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED)
}

/// Registers the process for [`code_barrier`].
pub(crate) fn register_code_barrier() -> std::io::Result<()> {
    membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)
}

fn membarrier(command: i32) -> std::io::Result<()> {
    // SAFETY: membarrier has no memory arguments.
    if unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// Every running thread of the process executes an instruction that serialises its processor, after
/// all that was written before.
pub fn code_barrier() -> std::io::Result<()> {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    membarrier(MEMBARRIER_PRIVATE_EXPEDITED_SYNC_CORE)
}

/// A full memory barrier on every running thread of the process: the expensive half of the gates'
/// cheap publication.
pub fn barrier() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) };
}

/// Sleeps until somebody calls [`wake`] for this word, unless it is not `value` any more. May
/// return without a cause.
pub fn wait(word: &AtomicU32, value: u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: the kernel reads the word, which lives through the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, forever) };
}

/// How sleeping for a word of a window ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// Somebody woke it, or something: whoever sleeps looks again.
    Woken,
    /// The word has another value.
    Differs,
    /// It was as long as it might be.
    LongEnough,
    /// The word cannot be read.
    Unreadable,
}

/// Whose threads sleep for a word and wake each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleepers {
    /// Those of this process.
    Own,
    /// Those of all processes that map the word's page shared.
    All,
}

impl Sleepers {
    fn flag(self) -> i32 {
        match self {
            Sleepers::Own => libc::FUTEX_PRIVATE_FLAG,
            Sleepers::All => 0,
        }
    }
}

/// Sleeps at most so long until [`wake_at`] is called for the word at this address by one of the
/// same sleepers, unless it is not `value` any more. A signal ends it, too.
pub(crate) fn wait_at(address: usize, value: u32, longest: Duration, whose: Sleepers) -> Slept {
    let operation = libc::FUTEX_WAIT | whose.flag();
    let longest = libc::timespec {
        tv_sec: longest.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    // SAFETY: the kernel reads four bytes, if it can, and compares them.
    let done = unsafe { libc::syscall(libc::SYS_futex, address, operation, value, &longest) };
    if done == 0 {
        return Slept::Woken;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Slept::Differs,
        Some(libc::ETIMEDOUT) => Slept::LongEnough,
        Some(libc::EINTR) => Slept::Woken,
        _ => Slept::Unreadable,
    }
}

/// Wakes at most so many threads that sleep in [`wait_at`] for this address. How many there were.
pub(crate) fn wake_at(address: usize, most: u32, whose: Sleepers) -> u32 {
    let operation = libc::FUTEX_WAKE | whose.flag();
    let most = most.min(i32::MAX as u32);
    // SAFETY: the kernel uses the address only.
    let woken = unsafe { libc::syscall(libc::SYS_futex, address, operation, most) };
    u32::try_from(woken).unwrap_or(0)
}

/// As [`wait`], at most so long.
pub fn wait_at_most(word: &AtomicU32, value: u32, longest: Duration) {
    wait_at(word.as_ptr() as usize, value, longest, Sleepers::Own);
}

/// As [`wait_at_most`], for a word that processes share, until [`wake_all_shared`] is called by any
/// of them.
pub fn wait_at_most_shared(word: &AtomicU32, value: u32, longest: Duration) {
    wait_at(word.as_ptr() as usize, value, longest, Sleepers::All);
}

/// Wakes all threads of all processes that sleep in [`wait_at_most_shared`] for this word.
pub fn wake_all_shared(word: &AtomicU32) {
    wake_at(word.as_ptr() as usize, u32::MAX, Sleepers::All);
}

/// Wakes all threads that sleep in [`wait`] or [`wait_at_most`] for this word.
pub fn wake_all(word: &AtomicU32) {
    wake_at(word.as_ptr() as usize, u32::MAX, Sleepers::Own);
}

/// Wakes the thread that sleeps in [`wait`] for this word. Signal handlers may call it.
pub fn wake(word: &AtomicU32) {
    wake_at(word.as_ptr() as usize, 1, Sleepers::Own);
}

/// Ends the process with a word to whoever reads its errors.
pub(super) fn abandon(message: &str) -> ! {
    // SAFETY: writes a string, and ends the process.
    unsafe {
        libc::write(2, message.as_ptr().cast(), message.len());
        libc::abort()
    }
}

/// A descriptor that can be read once SIGINT or SIGTERM has come. They do not end the process any
/// more: the calling thread blocks them, and so do those that it makes from now on. For programs
/// that call it first thing.
///
/// # Errors
/// The system's own.
pub fn termination() -> std::io::Result<OwnedFd> {
    // SAFETY: the calls fill the set, and read it; the result is a new descriptor or -1.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::sigaddset(&mut set, libc::SIGTERM);
        let error = libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        if error != 0 {
            return Err(std::io::Error::from_raw_os_error(error));
        }
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC) {
            -1 => Err(std::io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Proof that this is a forked child, whose only thread has not yet returned from `fork`.
pub struct InChild(());

/// What runs around fork.
#[derive(Clone, Copy)]
pub struct AroundFork {
    /// In the thread that forks.
    pub before: fn(),
    /// In the same, afterwards.
    pub in_parent: fn(),
    /// In the child's only thread.
    pub in_child: fn(&InChild),
}

static AROUND_FORK: OnceLock<AroundFork> = OnceLock::new();

/// Says what runs around fork. Only the first one counts. A panic there ends the process.
pub fn at_fork(around: AroundFork) {
    extern "C" fn before() {
        if let Some(around) = AROUND_FORK.get() {
            (around.before)();
        }
    }
    extern "C" fn in_parent() {
        if let Some(around) = AROUND_FORK.get() {
            (around.in_parent)();
        }
    }
    extern "C" fn in_child() {
        if let Some(around) = AROUND_FORK.get() {
            (around.in_child)(&InChild(()));
        }
    }
    if AROUND_FORK.set(around).is_ok() {
        // SAFETY: the functions take nothing and do not unwind.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

/// The lowest address that a process may map.
pub(crate) fn lowest_mappable() -> usize {
    std::fs::read_to_string("/proc/sys/vm/mmap_min_addr")
        .ok()
        .and_then(|s| s.trim().parse().ok())
        .unwrap_or(0x1_0000)
}

/// CLOCK_MONOTONIC in nanoseconds: perf's clock with `-k mono`.
pub fn monotonic() -> u64 {
    // SAFETY: the call fills the structure.
    unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> u32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() as u32 }
}
