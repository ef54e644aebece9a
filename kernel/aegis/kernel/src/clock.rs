//! What the time of day follows from: how fast the processors' counter goes, and the battery's clock.

use crate::hardware::{interrupts, port, registers};

/// Cycles of the local controller's clock in a second: nanoseconds.
const BUS: u64 = 1_000_000_000;
/// Cycles of the counter, about, for which it is measured.
const WHILE: u64 = 4_000_000;

/// Cycles of the counter in a second, and the second since 1970 in which it was 0. Interrupts are
/// off, and the clock of slices has not started.
pub fn measure() -> (u64, u64) {
    // A host that stops the machine between two instructions lets both clocks go on, and how far is
    // read at two moments: the measurement that took the least time was disturbed least.
    let measured = [(); 5].map(|()| frequency());
    let (_, frequency) = measured.into_iter().min().unwrap_or((0, BUS));
    let passed = registers::time() / frequency;
    (frequency, battery().saturating_sub(passed))
}

/// How many cycles of the counter a measurement took, and how many are a second by it.
fn frequency() -> (u64, u64) {
    let start = registers::time();
    let passed = interrupts::measure(|| while registers::time() - start < WHILE {});
    let cycles = registers::time() - start;
    let second = u128::from(cycles) * u128::from(BUS) / u128::from(passed.max(1));
    (cycles, u64::try_from(second).unwrap_or(u64::MAX).max(1))
}

const SECONDS: u8 = 0;
const MINUTES: u8 = 2;
const HOURS: u8 = 4;
const DAY: u8 = 7;
const MONTH: u8 = 8;
const YEAR: u8 = 9;
const STATUS_A: u8 = 10;
const STATUS_B: u8 = 11;
const CENTURY: u8 = 0x32;

/// In status A: the registers change now.
const CHANGING: u8 = 0x80;
/// In status B: binary numbers, and 24 hours.
const BINARY: u8 = 4;
const WHOLE_DAY: u8 = 2;
/// Of an hour of 12: after noon.
const AFTERNOON: u8 = 0x80;

fn register(number: u8) -> u8 {
    port::write(0x70, number);
    port::read(0x71)
}

/// Seconds since 1970 by the battery's clock, which counts in UTC.
fn battery() -> u64 {
    let all = || [SECONDS, MINUTES, HOURS, DAY, MONTH, YEAR, CENTURY].map(register);
    let mut read = all();
    // Twice the same, so all are of one moment; a clock that never stands still is not waited for.
    for _ in 0..1000 {
        let before = read;
        read = all();
        if read == before && register(STATUS_A) & CHANGING == 0 {
            break;
        }
    }
    let status = register(STATUS_B);
    let number = |value: u8| match status & BINARY {
        0 => u64::from(value >> 4) * 10 + u64::from(value & 15),
        _ => u64::from(value),
    };
    let [second, minute, hour, day, month, year, century] = read;
    let hours = match status & WHOLE_DAY {
        0 => number(hour & !AFTERNOON) % 12 + if hour & AFTERNOON != 0 { 12 } else { 0 },
        _ => number(hour),
    };
    let century = match number(century) {
        century @ 19..=21 => century,
        _ => 20,
    };
    let days = days(century * 100 + number(year), number(month), number(day));
    ((days * 24 + hours) * 60 + number(minute)) * 60 + number(second)
}

/// Days from 1970 to a date.
fn days(year: u64, month: u64, day: u64) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let index = (month.clamp(1, 12) - 1) as usize;
    // The leap day of this year has passed from March on.
    let last = if month > 2 { year } else { year - 1 };
    let days = (year * 365 + leaps(last)).saturating_sub(1970 * 365 + leaps(1969));
    days + BEFORE[index] + day.clamp(1, 31) - 1
}
