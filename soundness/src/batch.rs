//! A batch of snippets in a child process: memory, fork, and what is found afterwards.
//!
//! The child's address space is the window, and [`Shared`]: the runner, its tables, a control
//! stack, an alternate signal stack and canaries. Everything else is unmapped before the first
//! snippet runs. A seccomp filter kills the child for any system call that does not come from the
//! runner's page. `Shared` is one shared mapping with gaps, so the parent sees what changed.

use crate::random::Draw;
use crate::runner::{self, Input, Output, StatePage};
use crate::window::{DATA, DATA_END, FORGED, IMPORTS, LAST};
use postern_verifier::window::{GATES, INFO, NULL_GUARD, PAD, WINDOW_SIZE, slot, text_start};

const PAGE: usize = 4096;
/// Snippets in a batch, at most.
pub const BATCH: usize = 4096;
/// Bytes of control stack.
pub const STACK: usize = 4 * PAGE;
const SIGNAL_STACK: usize = 16 * PAGE;
const CANARY: u8 = 0xa5;
/// Vector pool: values for sixteen registers at any of these many positions.
const POOL: usize = 8 * PAGE;
/// Bytes of data that have the same values.
const POOLED: usize = 1 << 17;

/// Memory that parent and children share, made once.
#[derive(Debug)]
pub struct Shared {
    code: usize,
    inputs: usize,
    outputs: usize,
    pool: usize,
    stack: usize,
    signal_stack: usize,
    rseq: Option<isize>,
    /// Pages that nothing may change.
    canaries: Vec<usize>,
    /// What the child keeps: address and length, in ascending order.
    kept: Vec<(usize, usize)>,
}

/// How a child ended, if not as it should.
#[derive(Debug)]
pub struct Escape {
    /// What was found.
    pub what: String,
    /// The snippet that ran last.
    pub index: usize,
}

impl Shared {
    /// Maps everything. `canaries_at` are addresses, page-aligned and free in this process, for
    /// canaries beside windows.
    pub fn new(canaries_at: &[usize], random: &mut fastrand::Rng) -> std::io::Result<Shared> {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return Err(std::io::Error::other("executing snippets needs AVX2"));
        }
        let sizes = [
            2 * PAGE,
            BATCH * size_of::<Input>(),
            (BATCH * size_of::<Output>()).next_multiple_of(PAGE),
            POOL,
            // Guard, stack, canary.
            STACK + 2 * PAGE,
            SIGNAL_STACK,
            PAGE,
        ];
        let mut at = Vec::new();
        let mut kept = Vec::new();
        for size in sizes {
            let address = map(0, size, libc::MAP_SHARED | libc::MAP_ANONYMOUS)?;
            at.push(address);
            kept.push((address, size));
        }
        let mut canaries = vec![at[4] + PAGE + STACK, at[6]];
        for &address in canaries_at {
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            canaries.push(map(address, PAGE, flags)?);
            kept.push((address, PAGE));
        }
        kept.sort();
        for &canary in &canaries {
            fill(canary, CANARY);
        }
        // SAFETY: the runner's two pages are copied to two pages that were just mapped; the pool is
        // mapped and ours.
        unsafe {
            let start = &raw const runner::postern_runner;
            std::ptr::copy_nonoverlapping(start, at[0] as *mut u8, 2 * PAGE);
            for i in 0..POOL / 8 {
                *(at[3] as *mut u64).add(i) = random.hostile();
            }
            let guard = libc::mprotect(at[4] as *mut _, PAGE, libc::PROT_NONE);
            assert_eq!(guard, 0);
            assert_eq!(
                libc::mprotect(at[0] as *mut _, PAGE, libc::PROT_READ | libc::PROT_EXEC),
                0
            );
        }
        Ok(Shared {
            code: at[0],
            inputs: at[1],
            outputs: at[2],
            pool: at[3],
            stack: at[4] + PAGE,
            signal_stack: at[5],
            rseq: restartable_sequences(),
            canaries,
            kept,
        })
    }

    /// Addresses that snippets would like to know.
    pub fn secrets(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.kept.iter().map(|k| k.0 as u64).collect();
        all.extend(self.canaries.iter().map(|&c| c as u64 + 64));
        all.push(self.stack_top());
        all.push(self.stack_top() - 8);
        all.push(self.stack_top() - 64);
        all
    }

    /// Stack pointer before the return address of a snippet is pushed.
    pub fn stack_top(&self) -> u64 {
        (self.stack + STACK) as u64
    }

    /// Address of the vector values number `n`.
    pub fn vectors(&self, n: u32) -> u64 {
        self.pool as u64 + u64::from(n) % ((POOL - 512) / 32) as u64 * 32
    }

    /// Runs `inputs` with `text` at the first offset of text in a window at `base`.
    ///
    /// # Errors
    /// An [`Escape`]: the child died, or memory outside the window changed.
    pub fn run(&self, base: u64, text: &[u8], inputs: &[Input]) -> Result<Vec<Output>, Escape> {
        assert!(inputs.len() <= BATCH);
        let escape = |what: String, index| Err(Escape { what, index });
        self.prepare(base, text, inputs);
        // SAFETY: the child calls only functions that take no locks, so it does not matter what
        // other threads hold.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: we are the child; nothing of it goes on after this.
            unsafe { self.child(base, text) };
        }
        let mut status = 0;
        // SAFETY: waits for the child that was just made.
        if pid < 0 || unsafe { libc::waitpid(pid, &mut status, 0) } != pid {
            return escape(format!("fork: {}", std::io::Error::last_os_error()), 0);
        }
        // SAFETY: the state page is mapped, was initialised by `prepare`, and the child is gone.
        let state = unsafe { &*(self.state() as *const StatePage) };
        let index = (state.index as usize).min(inputs.len() - 1);
        if status != 0 || state.index != inputs.len() as u64 {
            return escape(
                format!("the child died with wait status {status:#x}"),
                index,
            );
        }
        for &canary in &self.canaries {
            // SAFETY: mapped and ours.
            let page = unsafe { std::slice::from_raw_parts(canary as *const u8, PAGE) };
            if let Some(at) = page.iter().position(|&b| b != CANARY) {
                fill(canary, CANARY);
                return escape(format!("the canary at {:#x} changed", canary + at), index);
            }
        }
        // SAFETY: mapped, written by `prepare`, and the child is gone.
        let after =
            unsafe { std::slice::from_raw_parts(self.inputs as *const Input, inputs.len()) };
        if after != inputs {
            return escape("the table of inputs changed".into(), index);
        }
        // SAFETY: as above; every bit pattern is an Output.
        let outputs =
            unsafe { std::slice::from_raw_parts(self.outputs as *const Output, inputs.len()) };
        Ok(outputs.to_vec())
    }

    fn state(&self) -> usize {
        self.code + PAGE
    }

    fn prepare(&self, base: u64, text: &[u8], inputs: &[Input]) {
        let mut gaps = [[0; 2]; 64];
        let window = [(base as usize, WINDOW_SIZE as usize)];
        let mut kept: Vec<_> = self.kept.iter().chain(&window).copied().collect();
        kept.sort();
        // The highest page of user space cannot be mapped.
        let (mut from, mut count) = (0, 0);
        for (start, len) in kept.into_iter().chain([((1 << 47) - PAGE, 0)]) {
            if start > from {
                gaps[count] = [from as u64, (start - from) as u64];
                count += 1;
            }
            from = start + len;
        }
        let text_end = text_start(IMPORTS) as usize + text.len().next_multiple_of(PAGE);
        let state = StatePage {
            inputs: self.inputs as u64,
            outputs: self.outputs as u64,
            count: inputs.len() as u64,
            index: 0,
            stack: self.stack_top(),
            // Nothing is mapped from here on.
            fs: (1 << 46) + 0x5000,
            gs: base,
            text: base + u64::from(GATES),
            text_len: text_end as u64 - u64::from(GATES),
            alarm: u64::MAX,
            result: 0,
            gaps,
        };
        // SAFETY: the tables are mapped, large enough for BATCH entries, and no child is running.
        unsafe {
            std::ptr::write(self.state() as *mut StatePage, state);
            std::ptr::copy_nonoverlapping(inputs.as_ptr(), self.inputs as *mut Input, inputs.len());
            std::ptr::write_bytes(self.outputs as *mut Output, 0, inputs.len());
        }
    }

    /// Builds the window, installs handlers, timer and filter, and becomes the runner.
    unsafe fn child(&self, base: u64, text: &[u8]) -> ! {
        // SAFETY: a forked child: every call below is a system call or touches memory that was
        // just mapped. The jump goes to the runner's copy, whose state page is complete.
        unsafe {
            let die = |code| -> ! { libc::_exit(code) };
            let base = base as usize;
            let fixed = libc::MAP_PRIVATE
                | libc::MAP_ANONYMOUS
                | libc::MAP_NORESERVE
                | libc::MAP_FIXED_NOREPLACE;
            let gates = text_start(IMPORTS) as usize - GATES as usize;
            let code_len = gates + text.len().next_multiple_of(PAGE);
            let ranges = [
                (INFO as usize, PAGE),
                (GATES as usize, code_len),
                (DATA as usize, (DATA_END - DATA) as usize),
                (LAST as usize, PAGE),
            ];
            for (at, len) in ranges {
                if map(base + at, len, fixed).is_err() {
                    die(101);
                }
            }
            libc::madvise(
                (base + DATA as usize) as *mut _,
                (DATA_END - DATA) as usize,
                libc::MADV_NOHUGEPAGE,
            );
            *((base + INFO as usize) as *mut u64) = base as u64;
            libc::mprotect((base + INFO as usize) as *mut _, PAGE, libc::PROT_READ);
            std::ptr::copy_nonoverlapping(
                PAD.as_ptr(),
                (base + FORGED as usize) as *mut u8,
                PAD.len(),
            );
            let code = (base + GATES as usize) as *mut u8;
            std::ptr::write_bytes(code, 0xcc, code_len);
            for k in 0..IMPORTS {
                let at = code.add((slot(k) - GATES) as usize);
                std::ptr::copy_nonoverlapping(PAD.as_ptr(), at, PAD.len());
                *at.add(PAD.len()) = 0xc3;
            }
            std::ptr::copy_nonoverlapping(text.as_ptr(), code.add(gates), text.len());
            // Where most memory operands are.
            for at in (0..POOLED).step_by(POOL) {
                let to = (base + DATA as usize + (1 << 20) + at) as *mut u8;
                std::ptr::copy_nonoverlapping(self.pool as *const u8, to, POOL);
            }
            libc::mprotect(code.cast(), code_len, libc::PROT_READ | libc::PROT_EXEC);

            let start = &raw const runner::postern_runner as usize;
            let there = |symbol: *const u8| (self.code + (symbol as usize - start)) as u64;
            let stack = libc::stack_t {
                ss_sp: self.signal_stack as *mut _,
                ss_flags: 0,
                ss_size: SIGNAL_STACK,
            };
            libc::sigaltstack(&stack, std::ptr::null_mut());
            const SA_RESTORER: u64 = 0x0400_0000;
            // The kernel's structure: handler, flags, restorer, mask.
            let action = [
                there(&raw const runner::postern_runner_handler),
                (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64 | SA_RESTORER,
                there(&raw const runner::postern_runner_restorer),
                u64::MAX,
            ];
            for signal in [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGILL,
                libc::SIGFPE,
                libc::SIGTRAP,
                libc::SIGSYS,
                libc::SIGVTALRM,
            ] {
                if libc::syscall(libc::SYS_rt_sigaction, signal, &action, 0, 8) != 0 {
                    die(102);
                }
            }
            let core = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &core);
            let tick = libc::timeval {
                tv_sec: 0,
                tv_usec: 10_000,
            };
            let timer = libc::itimerval {
                it_interval: tick,
                it_value: tick,
            };
            libc::syscall(libc::SYS_setitimer, libc::ITIMER_VIRTUAL, &timer, 0);
            forget_restartable_sequences(self.rseq);
            if !only_from(self.code as u64) {
                die(103);
            }
            std::arch::asm!("jmp {}", in(reg) self.code, options(noreturn));
        }
    }
}

/// libc's restartable-sequence area, as an offset from the thread pointer. (Looked up before the
/// fork: it takes a lock.)
fn restartable_sequences() -> Option<isize> {
    // SAFETY: the symbol, where libc has it, is a constant offset.
    unsafe { (libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) as *const isize).as_ref() }
        .copied()
}

/// Undoes the area's registration: the kernel would write it although it is unmapped.
unsafe fn forget_restartable_sequences(offset: Option<isize>) {
    const UNREGISTER: i32 = 1;
    const SIGNATURE: u32 = 0x5305_3053;
    let Some(offset) = offset else { return };
    let thread: usize;
    // SAFETY: reads the thread pointer, then a system call that writes no memory of this process
    // but the area itself. The size at registration is the original one, 32, in every libc so far.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly));
        let area = thread.wrapping_add_signed(offset);
        libc::syscall(libc::SYS_rseq, area, 32, UNREGISTER, SIGNATURE);
    }
}

/// From now on a system call from elsewhere than the page at `page` raises SIGSYS.
unsafe fn only_from(page: u64) -> bool {
    const LOAD: u16 = 0x20;
    const JEQ: u16 = 0x15;
    const AND: u16 = 0x54;
    const RETURN: u16 = 0x06;
    const TRAP: u32 = 0x0003_0000;
    const ALLOW: u32 = 0x7fff_0000;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // The instruction pointer is at offset 8 of seccomp_data.
    let mut filter = [
        step(LOAD, 0, 0, 12),
        step(JEQ, 0, 4, (page >> 32) as u32),
        step(LOAD, 0, 0, 8),
        step(AND, 0, 0, !0xfff),
        step(JEQ, 0, 1, page as u32),
        step(RETURN, 0, 0, ALLOW),
        step(RETURN, 0, 0, TRAP),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program is valid while the kernel copies it.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, 2, &program, 0, 0) == 0
    }
}

fn map(address: usize, len: usize, flags: i32) -> std::io::Result<usize> {
    // SAFETY: a new mapping that replaces nothing (callers pass no MAP_FIXED).
    let p = unsafe {
        libc::mmap(
            address as *mut _,
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    if p == libc::MAP_FAILED || (address != 0 && p as usize != address) {
        return Err(std::io::Error::last_os_error());
    }
    Ok(p as usize)
}

fn fill(page: usize, byte: u8) {
    // SAFETY: the callers pass pages of Shared.
    unsafe { std::ptr::write_bytes(page as *mut u8, byte, PAGE) };
}

/// The end of the window at `base` and of the guard above it.
pub fn guard_end(base: u64) -> u64 {
    base + WINDOW_SIZE + u64::from(NULL_GUARD)
}
