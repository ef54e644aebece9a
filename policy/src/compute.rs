//! What a program may do that touches no file: look at clocks, wait, take random bytes, and ask who
//! it is.

use super::layout;
use super::waiting::waiting;
use crate::{Call, Identity, TimeForm};
use postern_runtime::Caller;
use postern_runtime::system::{Answer, Done, Failure};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, clock_getres, clock_gettime};
use std::time::{Duration, Instant};

/// Clock ticks per second of `times`, as in Linux.
const TICKS: i64 = 100;
/// Process number in the extension's eyes. 1 would be init's, which some programs treat apart.
pub(super) const PROCESS: i32 = 2;

/// Answers a call that touches no file.
pub(super) fn apply(caller: &Caller<'_>, call: &Call) -> Answer {
    Ok(match call {
        Call::Time { clock, form } => time(clock_of(*clock)?, *form),
        Call::Resolution { clock } => {
            let time = clock_getres(clock_of(*clock)?);
            Done::bytes(layout::time(time.tv_sec, time.tv_nsec))
        }
        Call::Usage { rusage } => usage(*rusage),
        Call::Sleep {
            clock,
            absolute,
            seconds,
            nanoseconds,
        } => sleep(*clock, *absolute, *seconds, *nanoseconds)?,
        Call::Yield => {
            rustix::thread::sched_yield();
            Done::value(0)
        }
        Call::Random { length } => {
            let mut bytes = Vec::with_capacity(*length);
            if *length > 0 {
                let room = rustix::buffer::spare_capacity(&mut bytes);
                getrandom(room, GetRandomFlags::empty())?;
                bytes.truncate(*length);
            }
            Done::counted(bytes)
        }
        Call::Identity(what) => Done::value(i64::from(match what {
            Identity::Process | Identity::Thread | Identity::Group => PROCESS,
            Identity::Parent => 1,
            Identity::User
            | Identity::EffectiveUser
            | Identity::UserGroup
            | Identity::EffectiveUserGroup => layout::USER as i32,
        })),
        Call::SystemName => Done::bytes(layout::system_name()),
        Call::Signal { to, signal } => raise(caller, *to, *signal)?,
        _ => return Err(Failure::Refused(Errno::NOSYS)),
    })
}

/// Clocks that may be read. Processor time is that of the calling thread: the rest of the process
/// is the host's affair.
fn clock_of(clock: i32) -> Result<ClockId, Errno> {
    Ok(match clock {
        libc::CLOCK_REALTIME => ClockId::Realtime,
        libc::CLOCK_MONOTONIC => ClockId::Monotonic,
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => ClockId::ThreadCPUTime,
        libc::CLOCK_MONOTONIC_RAW => ClockId::MonotonicRaw,
        libc::CLOCK_REALTIME_COARSE => ClockId::RealtimeCoarse,
        libc::CLOCK_MONOTONIC_COARSE => ClockId::MonotonicCoarse,
        libc::CLOCK_BOOTTIME => ClockId::Boottime,
        _ => return Err(Errno::INVAL),
    })
}

fn time(clock: ClockId, form: TimeForm) -> Done {
    let now = clock_gettime(clock);
    match form {
        TimeForm::Timespec => Done::bytes(layout::time(now.tv_sec, now.tv_nsec)),
        TimeForm::Timeval => Done::bytes(layout::time(now.tv_sec, now.tv_nsec / 1000)),
        TimeForm::Seconds => Done {
            value: now.tv_sec,
            bytes: now.tv_sec.to_le_bytes().into(),
        },
    }
}

fn usage(rusage: bool) -> Done {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    if rusage {
        return Done::bytes(layout::rusage(spent.tv_sec, spent.tv_nsec / 1000));
    }
    let ticks = |seconds: i64, nanoseconds: i64| {
        let parts = nanoseconds / (1_000_000_000 / TICKS);
        seconds.saturating_mul(TICKS).saturating_add(parts)
    };
    let now = clock_gettime(ClockId::Monotonic);
    Done {
        value: ticks(now.tv_sec, now.tv_nsec),
        bytes: layout::tms(ticks(spent.tv_sec, spent.tv_nsec)),
    }
}

/// Sleeps, but not past the end that the call's deadline or an interruption asks for.
fn sleep(clock: i32, absolute: bool, seconds: i64, nanoseconds: i64) -> Answer {
    let clock = clock_of(clock)?;
    let parts = u32::try_from(nanoseconds)
        .ok()
        .filter(|&n| n < 1_000_000_000);
    let (Ok(whole), Some(parts)) = (u64::try_from(seconds), parts) else {
        return Err(Errno::INVAL.into());
    };
    let mut length = Duration::new(whole, parts);
    if absolute {
        let now = clock_gettime(clock);
        let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32);
        length = length.saturating_sub(now);
    }
    let start = Instant::now();
    waiting(|most| {
        let left = length.saturating_sub(start.elapsed());
        std::thread::sleep(left.min(most));
        Ok(left.is_zero().then_some(()))
    })?;
    Ok(Done::value(0))
}

/// A signal that a program sends to itself ends the call, as the default action would end the
/// process.
fn raise(caller: &Caller<'_>, to: i32, signal: i32) -> Answer {
    const HARMLESS: [i32; 4] = [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH, libc::SIGCONT];
    if to != PROCESS && to != 0 {
        return Err(Failure::Refused(Errno::PERM));
    }
    match signal {
        0 => {}
        1..=64 if HARMLESS.contains(&signal) => {}
        1..=64 => caller.abort(format!("signal {signal} ({})", signal_name(signal))),
        _ => return Err(Errno::INVAL.into()),
    }
    Ok(Done::value(0))
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGABRT => "SIGABRT: abort() was called",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGINT => "SIGINT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGTERM => "SIGTERM",
        _ => "raised by the program",
    }
}
