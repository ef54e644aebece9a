//! A debugger in few lines: one child with one traced thread, single steps, its memory.

use std::io::{Error, Result};

/// A traced child.
#[derive(Debug)]
pub struct Debugger {
    pid: libc::pid_t,
}

/// Why the child stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal is about to be delivered (SIGTRAP after a step).
    Signal(i32),
    /// It is gone, with this wait status.
    Gone(i32),
}

impl Debugger {
    /// Forks a child that runs `body` under this debugger. It stops at its first signal.
    ///
    /// # Safety
    /// The process must have one thread only.
    pub unsafe fn fork(body: impl FnOnce()) -> Result<Debugger> {
        // SAFETY: the caller's promise makes fork harmless; the child never returns from here.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(Error::last_os_error());
        }
        if pid == 0 {
            // SAFETY: plain system calls. The alarm ends a child that hangs.
            unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            }
            body();
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(0) };
        }
        Ok(Debugger { pid })
    }

    /// Waits for the next stop.
    pub fn wait(&self) -> Stop {
        let mut status = 0;
        // SAFETY: waits for our own child.
        let pid = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) };
        if pid == self.pid && libc::WIFSTOPPED(status) {
            Stop::Signal(libc::WSTOPSIG(status))
        } else {
            Stop::Gone(status)
        }
    }

    /// Lets it run, delivering `signal` if it is not 0.
    pub fn go(&self, signal: i32) {
        // SAFETY: our own stopped child.
        unsafe { libc::ptrace(libc::PTRACE_CONT, self.pid, 0, signal as usize) };
    }

    /// Lets it run on, delivering `signal` as one that the process sent to a thread of its own: so
    /// the watchdog asks for the end of a call, and a wish that comes too late is recognised by it.
    pub fn go_from_itself(&self, signal: i32) {
        // SAFETY: zeros are a valid siginfo_t; the sender's process id stands behind the three
        // common fields and padding to 16 bytes, within the structure. Our own stopped child.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (info.si_signo, info.si_code) = (signal, libc::SI_TKILL);
            (&raw mut info).cast::<i32>().add(4).write(self.pid);
            libc::ptrace(libc::PTRACE_SETSIGINFO, self.pid, 0, &raw mut info);
            libc::ptrace(libc::PTRACE_CONT, self.pid, 0, signal as usize);
        }
    }

    /// Lets it run on, delivering `signal` as one that was queued with this value.
    pub fn go_with(&self, signal: i32, value: u64) {
        self.queued(libc::PTRACE_CONT, signal, value);
    }

    /// The same, to the first instruction of the signal's handler.
    pub fn step_with(&self, signal: i32, value: u64) -> Stop {
        self.queued(libc::PTRACE_SINGLESTEP, signal, value);
        self.wait()
    }

    fn queued(&self, how: libc::c_uint, signal: i32, value: u64) {
        // SAFETY: zeros are a valid siginfo_t; the value stands behind the three common fields,
        // padding, and the sender's two. Our own stopped child.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (info.si_signo, info.si_code) = (signal, libc::SI_QUEUE);
            (&raw mut info).cast::<u64>().add(3).write(value);
            libc::ptrace(libc::PTRACE_SETSIGINFO, self.pid, 0, &raw mut info);
            libc::ptrace(how, self.pid, 0, signal as usize);
        }
    }

    /// Its general registers, flags and segment bases, as words.
    pub fn registers(&self) -> [u64; 27] {
        const _: () = assert!(size_of::<libc::user_regs_struct>() == 27 * 8);
        let mut registers = [0u64; 27];
        // SAFETY: the kernel fills the structure, of that size.
        unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid, 0, registers.as_mut_ptr()) };
        registers
    }

    /// Its x87 and vector state, as XSAVE lays it out.
    pub fn vectors(&self) -> Vec<u8> {
        const NT_X86_XSTATE: usize = 0x202;
        let mut bytes = vec![0u8; 16 << 10];
        let mut place = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        // SAFETY: the kernel fills at most that many bytes, and says how many.
        unsafe {
            libc::ptrace(
                libc::PTRACE_GETREGSET,
                self.pid,
                NT_X86_XSTATE,
                &raw mut place,
            )
        };
        bytes.truncate(place.iov_len);
        bytes
    }

    /// A range of its memory; shorter if not all can be read.
    pub fn read_range(&self, address: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; len];
        let to = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: len,
        };
        let from = libc::iovec {
            iov_base: address as *mut _,
            iov_len: len,
        };
        // SAFETY: reads the child's memory into the vector.
        let read = unsafe { libc::process_vm_readv(self.pid, &to, 1, &from, 1, 0) };
        bytes.truncate(usize::try_from(read).unwrap_or(0));
        bytes
    }

    /// Lets it execute one instruction.
    pub fn step(&self) -> Stop {
        // SAFETY: our own stopped child.
        unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, 0) };
        self.wait()
    }

    /// Lets it go along a path that it took before, of program counters, from the first, where it
    /// is, to near the last: at full speed to an instruction that is not the one before again, as
    /// the rounds of a string instruction are, for which a debug register stops it once. Returns
    /// the place on the path, from where single steps do the rest. It may be at `end` instead,
    /// where all paths end, if this one was another.
    ///
    /// # Errors
    /// It is gone. Signals that come on the way are delivered as `deliver` says: 0 is not at all.
    pub fn follow(
        &self,
        path: &[u64],
        end: u64,
        deliver: impl Fn(i32) -> i32,
    ) -> std::result::Result<usize, Stop> {
        let is_new = |&at: &usize| path[at - 1] != path[at];
        let Some(near) = (2..path.len()).rev().find(is_new) else {
            return Ok(0);
        };
        let pc = path[near];
        let times = (1..=near).filter(|at| path[*at] == pc && is_new(at));
        // Off the first, at which a breakpoint would stop it or not.
        let mut stop = self.step();
        self.break_at(Some(pc));
        let mut left = times.count();
        loop {
            match stop {
                Stop::Signal(libc::SIGTRAP) if left == 0 || self.pc() == end => break,
                Stop::Signal(libc::SIGTRAP) => self.go(0),
                Stop::Signal(signal) => self.go(deliver(signal)),
                Stop::Gone(_) => return Err(stop),
            }
            stop = self.wait();
            left -= usize::from(stop == Stop::Signal(libc::SIGTRAP) && self.pc() == pc);
        }
        self.break_at(None);
        self.forget_stop();
        Ok(near)
    }

    /// Clears the flag by which an instruction is executed that a debug register has stopped: it
    /// would be in the frame of the next signal, and keep the same stop from the way back.
    fn forget_stop(&self) {
        const RESUME: u64 = 1 << 16;
        let offset = std::mem::offset_of!(libc::user_regs_struct, eflags);
        // SAFETY: a word of the stopped child's registers.
        unsafe {
            let flags = libc::ptrace(libc::PTRACE_PEEKUSER, self.pid, offset, 0) as u64;
            libc::ptrace(libc::PTRACE_POKEUSER, self.pid, offset, flags & !RESUME);
        }
    }

    /// Its program counter.
    pub fn pc(&self) -> u64 {
        let offset = std::mem::offset_of!(libc::user_regs_struct, rip);
        // SAFETY: reads a word of the stopped child's registers.
        unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, self.pid, offset, 0) as u64 }
    }

    /// A word of its memory.
    pub fn read(&self, address: usize) -> u64 {
        // SAFETY: reads a word of the stopped child's memory.
        unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, self.pid, address, 0) as u64 }
    }

    /// Changes a word of its memory.
    pub fn write(&self, address: usize, value: u64) {
        // SAFETY: writes the stopped child's memory, not ours.
        unsafe { libc::ptrace(libc::PTRACE_POKEDATA, self.pid, address, value) };
    }

    /// Stops its execution when it comes to `pc` (a debug register, so that its text stays as it
    /// is); `None`: no more.
    pub fn break_at(&self, pc: Option<u64>) {
        let register = |n: usize| std::mem::offset_of!(libc::user, u_debugreg) + 8 * n;
        // SAFETY: the stopped child's debug registers.
        unsafe {
            libc::ptrace(libc::PTRACE_POKEUSER, self.pid, register(7), 0usize);
            if let Some(pc) = pc {
                libc::ptrace(libc::PTRACE_POKEUSER, self.pid, register(0), pc);
                libc::ptrace(libc::PTRACE_POKEUSER, self.pid, register(7), 1usize);
            }
        }
    }
}

impl Drop for Debugger {
    fn drop(&mut self) {
        // SAFETY: our own child, which may be gone already.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL);
        }
    }
}
