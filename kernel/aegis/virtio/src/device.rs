//! A device's start: what it can do, which queues it has, and when it is told to go.

use crate::capabilities::Area;

/// A device's registers. What is beyond them reads as all ones, and cannot be written.
pub trait Registers {
    /// Reads so many bytes (1, 2 or 4).
    fn read(&self, area: Area, offset: u32, bytes: u32) -> u32;
    /// Writes so many bytes.
    fn write(&self, area: Area, offset: u32, bytes: u32, value: u32);
}

/// Why a device is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not come to rest.
    Reset,
    /// It lacks a feature, or does not take those that it was offered.
    Features,
    /// It has no such queue, or none of this size.
    Queue,
    /// It has no such vector.
    Vector,
}

/// It keeps to the standard's version 1 (bit of features).
pub const VERSION_1: u64 = 1 << 32;

/// No vector.
const NONE: u32 = 0xffff;
/// Times that the status is read until it is 0.
const PATIENCE: u32 = 10_000;

const FEATURES_WHICH: u32 = 0;
const FEATURES: u32 = 4;
const OURS_WHICH: u32 = 8;
const OURS: u32 = 12;
const CHANGES_VECTOR: u32 = 16;
const STATUS: u32 = 20;
const QUEUE: u32 = 22;
const QUEUE_SIZE: u32 = 24;
const QUEUE_VECTOR: u32 = 26;
const QUEUE_ENABLE: u32 = 28;
const QUEUE_NOTIFY: u32 = 30;
const QUEUE_PAGES: [u32; 3] = [32, 40, 48];

const ACKNOWLEDGE: u32 = 1;
const DRIVER: u32 = 2;
const READY: u32 = 4;
const FEATURES_TAKEN: u32 = 8;

fn common(registers: &impl Registers, offset: u32, bytes: u32) -> u32 {
    registers.read(Area::Common, offset, bytes)
}

fn set_common(registers: &impl Registers, offset: u32, bytes: u32, value: u32) {
    registers.write(Area::Common, offset, bytes, value);
}

/// Brings a device to rest: it uses no memory from then on.
pub fn reset(registers: &impl Registers) -> Result<(), Refusal> {
    set_common(registers, STATUS, 1, 0);
    let rests = (0..PATIENCE).any(|_| common(registers, STATUS, 1) == 0);
    rests.then_some(()).ok_or(Refusal::Reset)
}

/// Resets a device and agrees with it on features: those of `wanted` that it has, and all of
/// `needed`. These are the features then.
pub fn start(registers: &impl Registers, wanted: u64, needed: u64) -> Result<u64, Refusal> {
    reset(registers)?;
    set_common(registers, STATUS, 1, ACKNOWLEDGE);
    set_common(registers, STATUS, 1, ACKNOWLEDGE | DRIVER);
    let mut has = 0;
    for half in [0, 1] {
        set_common(registers, FEATURES_WHICH, 4, half);
        has |= u64::from(common(registers, FEATURES, 4)) << (32 * half);
    }
    let needed = needed | VERSION_1;
    let features = has & (wanted | needed);
    if features & needed != needed {
        return Err(Refusal::Features);
    }
    for half in [0, 1] {
        set_common(registers, OURS_WHICH, 4, half);
        set_common(registers, OURS, 4, (features >> (32 * half)) as u32);
    }
    let status = ACKNOWLEDGE | DRIVER | FEATURES_TAKEN;
    set_common(registers, STATUS, 1, status);
    if common(registers, STATUS, 1) != status {
        return Err(Refusal::Features);
    }
    set_common(registers, CHANGES_VECTOR, 2, NONE);
    Ok(features)
}

/// Gives a device a queue of `size` entries in three pages at physical addresses, with a vector of
/// its table. How the device is told of it ([`notify`]) is the result.
pub fn set_queue(
    registers: &impl Registers,
    queue: u16,
    size: u16,
    pages: [u64; 3],
    vector: u16,
) -> Result<u16, Refusal> {
    set_common(registers, QUEUE, 2, queue.into());
    let most = common(registers, QUEUE_SIZE, 2);
    if most == NONE || most < size.into() || common(registers, QUEUE_ENABLE, 2) != 0 {
        return Err(Refusal::Queue);
    }
    set_common(registers, QUEUE_SIZE, 2, size.into());
    if common(registers, QUEUE_SIZE, 2) != u32::from(size) {
        return Err(Refusal::Queue);
    }
    for (register, address) in QUEUE_PAGES.into_iter().zip(pages) {
        set_common(registers, register, 4, address as u32);
        set_common(registers, register + 4, 4, (address >> 32) as u32);
    }
    set_common(registers, QUEUE_VECTOR, 2, vector.into());
    if common(registers, QUEUE_VECTOR, 2) != u32::from(vector) {
        return Err(Refusal::Vector);
    }
    let notify = common(registers, QUEUE_NOTIFY, 2) as u16;
    set_common(registers, QUEUE_ENABLE, 2, 1);
    Ok(notify)
}

/// Lets a device go: its queues are set.
pub fn ready(registers: &impl Registers) {
    let status = ACKNOWLEDGE | DRIVER | FEATURES_TAKEN | READY;
    set_common(registers, STATUS, 1, status);
}

/// Tells a device that a queue has something. `multiplier` is what the capabilities say, `notify`
/// what [`set_queue`] gave.
pub fn notify(registers: &impl Registers, queue: u16, notify: u16, multiplier: u32) {
    let offset = u32::from(notify).saturating_mul(multiplier);
    registers.write(Area::Notify, offset, 2, queue.into());
}
