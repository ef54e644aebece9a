//! What crossing a protection boundary costs without Postern: the kernel, another process.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;

/// A null system call, `count` times.
pub fn system_calls(count: u64) {
    for _ in 0..count {
        // SAFETY: getppid touches no memory.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}

fn pipe() -> Result<(File, File), String> {
    let mut ends = [0; 2];
    // SAFETY: the array holds the two descriptors, which nobody else owns.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(format!("pipe: {}", std::io::Error::last_os_error()));
        }
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

/// Seconds that one byte takes to another process on the same core and back, the best of `rounds` rounds of `count` trips.
pub fn pipe_round_trip(rounds: usize, count: u32) -> Result<f64, String> {
    let (mut to_child_read, mut to_child) = pipe()?;
    let (mut from_child, mut from_child_write) = pipe()?;
    // SAFETY: the sets are plain data; the calls concern this thread only, and its affinity is restored below.
    let (old, pinned) = unsafe {
        let mut old: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut old);
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut one);
        let rc = libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one);
        (old, rc == 0)
    };
    // SAFETY: the child makes system calls on descriptors only, and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(to_child);
        drop(from_child);
        let mut byte = [0];
        while to_child_read.read_exact(&mut byte).is_ok()
            && from_child_write.write_all(&byte).is_ok()
        {}
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(0) };
    }
    drop(to_child_read);
    drop(from_child_write);
    let mut best = f64::INFINITY;
    let mut result = if child < 0 {
        Err("fork failed".to_owned())
    } else {
        Ok(())
    };
    'rounds: for _ in 0..rounds {
        let start = std::time::Instant::now();
        for _ in 0..count {
            let mut byte = [0];
            result = result.and_then(|()| {
                to_child
                    .write_all(&[1])
                    .and_then(|()| from_child.read_exact(&mut byte))
                    .map_err(|e| e.to_string())
            });
            if result.is_err() {
                break 'rounds;
            }
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(count));
    }
    drop(to_child);
    // SAFETY: waits for our own child, whose pipe is closed; restores the affinity read above.
    unsafe {
        if child > 0 {
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        if pinned {
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &old);
        }
    }
    result.map(|()| best)
}
