//! A queue with an honest device, which completes chains in any order.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::boxed::Box;
use std::vec::Vec;

use crate::queue::{Buffer, Pages, Queue, SIZE, Words};

/// Three pages that stay.
pub fn pages() -> Pages<'static> {
    let page = || {
        let words: Box<Words> = Box::new([const { AtomicU64::new(0) }; 512]);
        &*Box::leak(words)
    };
    Pages {
        descriptors: page(),
        available: page(),
        used: page(),
    }
}

/// The device's side of the pages.
pub struct Device {
    pub pages: Pages<'static>,
    pub size: u16,
    /// Chains that it has seen, and that it has told.
    pub seen: u16,
    pub told: u16,
}

fn bytes(words: &Words, at: usize, count: usize) -> u64 {
    (0..count).fold(0, |value, index| {
        let place = at + index;
        let byte = words[place / 8].load(Acquire).to_le_bytes()[place % 8];
        value | u64::from(byte) << (8 * index)
    })
}

pub fn set_bytes(words: &Words, at: usize, count: usize, value: u64) {
    for index in 0..count {
        let (place, byte) = (at + index, (value >> (8 * index)) as u8);
        let mut word = words[place / 8].load(Relaxed).to_le_bytes();
        word[place % 8] = byte;
        words[place / 8].store(u64::from_le_bytes(word), Release);
    }
}

impl Device {
    pub fn new(pages: Pages<'static>, size: u16) -> Device {
        Device {
            pages,
            size,
            seen: 0,
            told: 0,
        }
    }

    /// The next chain and its buffers.
    pub fn next(&mut self) -> Option<(u16, Vec<Buffer>)> {
        if bytes(self.pages.available, 2, 2) as u16 == self.seen {
            return None;
        }
        let place = 4 + 2 * usize::from(self.seen % self.size);
        let head = bytes(self.pages.available, place, 2) as u16;
        self.seen = self.seen.wrapping_add(1);
        let mut buffers = Vec::new();
        let mut index = head;
        loop {
            let at = 16 * usize::from(index);
            let flags = bytes(self.pages.descriptors, at + 12, 2);
            buffers.push(Buffer {
                address: bytes(self.pages.descriptors, at, 8),
                length: bytes(self.pages.descriptors, at + 8, 4) as u32,
                written: flags & 2 != 0,
            });
            if flags & 1 == 0 {
                return Some((head, buffers));
            }
            index = bytes(self.pages.descriptors, at + 14, 2) as u16;
        }
    }

    /// Says that it is done with a chain.
    pub fn tell(&mut self, chain: u32, length: u32) {
        let place = 4 + 8 * usize::from(self.told % self.size);
        set_bytes(self.pages.used, place, 4, chain.into());
        set_bytes(self.pages.used, place + 4, 4, length.into());
        self.told = self.told.wrapping_add(1);
        set_bytes(self.pages.used, 2, 2, self.told.into());
    }
}

fn buffer(address: u64, length: u32, written: bool) -> Buffer {
    Buffer {
        address,
        length,
        written,
    }
}

#[test]
fn sizes_are_powers_of_two() {
    for size in 0..=1024 {
        let possible = size != 0 && size & (size - 1) == 0 && size <= SIZE as u16;
        assert_eq!(Queue::new(pages(), size).is_some(), possible, "{size}");
    }
}

#[test]
fn a_chain_is_what_was_lent_and_comes_back() {
    let pages = pages();
    let mut queue = Queue::new(pages, 8).unwrap();
    let mut device = Device::new(pages, 8);
    let lent = [
        buffer(0x1000, 12, false),
        buffer(0x123_4567_8000, 100, true),
    ];
    let chain = queue.add(&lent).unwrap();
    assert_eq!(queue.take(), None);
    let (head, seen) = device.next().unwrap();
    assert_eq!((head, seen.as_slice()), (chain, &lent[..]));
    device.tell(head.into(), 100);
    assert!(queue.is_due());
    let done = queue.take().unwrap();
    assert_eq!((done.chain, done.length), (chain, 100));
    assert_eq!(
        (queue.room(), queue.under_way(), queue.nonsense()),
        (8, 0, 0)
    );
    assert!(queue.add(&[]).is_none() && queue.add(&[lent[0]; 9]).is_none());
    assert_eq!(queue.room(), 8);
}

#[test]
fn quiet_is_told_and_chains_stay_as_they_are() {
    let pages = pages();
    let mut queue = Queue::new(pages, 2).unwrap();
    let mut device = Device::new(pages, 2);
    queue.add(&[buffer(1, 1, false)]).unwrap();
    let second = queue.add(&[buffer(2, 1, false)]).unwrap();
    queue.set_quiet(true);
    assert_eq!(bytes(pages.available, 0, 2), 1);
    device.next().unwrap();
    assert_eq!(device.next().unwrap().0, second);
    queue.set_quiet(false);
    assert_eq!(bytes(pages.available, 0, 2), 0);
}

/// All that is lent comes back once, whatever the order, and nothing else; counts go round.
#[test]
fn chains_at_random_come_back_once() {
    let mut random = fastrand::Rng::with_seed(1);
    for size in [1, 2, 16, 256] {
        let pages = pages();
        let mut queue = Queue::new(pages, size).unwrap();
        let mut device = Device::new(pages, size);
        let (mut lent, mut there) = (Vec::new(), Vec::new());
        for step in 0..200_000u64 {
            match random.u8(..3) {
                0 => {
                    let count = random.usize(1..=8);
                    let buffers: Vec<Buffer> = (0..count)
                        .map(|index| buffer(step * 8 + index as u64, step as u32, index % 2 == 1))
                        .collect();
                    let room = queue.room();
                    match queue.add(&buffers) {
                        Some(chain) => lent.push((chain, buffers)),
                        None => assert!(room < count),
                    }
                }
                1 => there.extend(device.next()),
                _ if there.is_empty() => {}
                _ => {
                    let (head, buffers) = there.swap_remove(random.usize(..there.len()));
                    let place = lent.iter().position(|(chain, _)| *chain == head).unwrap();
                    assert_eq!(lent.swap_remove(place).1, buffers);
                    let written = buffers.iter().filter(|buffer| buffer.written);
                    let length = written.map(|buffer| buffer.length).sum();
                    device.tell(head.into(), length);
                    let done = queue.take().unwrap();
                    assert_eq!((done.chain, done.length), (head, length));
                }
            }
            let under_way = lent.len();
            assert_eq!(queue.under_way(), under_way);
        }
        assert_eq!(queue.nonsense(), 0);
        while queue.end().is_some() {}
        assert_eq!(queue.room(), size.into());
    }
}
