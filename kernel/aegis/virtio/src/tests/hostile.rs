//! A queue whose device writes whatever it likes to all three pages at any time.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::queue::{Device, pages, set_bytes};
use crate::queue::{Buffer, PATIENCE, Queue, SIZE};

fn buffers(random: &mut fastrand::Rng) -> Vec<Buffer> {
    (0..random.usize(1..=8))
        .map(|_| Buffer {
            address: random.u64(..),
            length: random.u32(..5000),
            written: random.bool(),
        })
        .collect()
}

/// What holds whatever the device does: chains come back once, with no more than there was room
/// for, and descriptors are neither lost nor had twice.
#[test]
fn nothing_that_a_device_writes_is_believed() {
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let size = 1 << random.u32(0..=8);
        let pages = pages();
        let mut queue = Queue::new(pages, size).unwrap();
        let mut device = Device::new(pages, size);
        let mut lent: BTreeMap<u16, (usize, u64)> = BTreeMap::new();
        for _ in 0..4000 {
            match random.u8(..8) {
                0..3 => {
                    let buffers = buffers(&mut random);
                    if let Some(chain) = queue.add(&buffers) {
                        let room = buffers.iter().filter(|buffer| buffer.written);
                        let room = room.map(|buffer| u64::from(buffer.length)).sum();
                        let before = lent.insert(chain, (buffers.len(), room));
                        assert!(before.is_none(), "a chain twice");
                    }
                }
                3 => {
                    let page = [pages.descriptors, pages.available, pages.used];
                    let word = &page[random.usize(..3)][random.usize(..512)];
                    word.store(random.u64(..), core::sync::atomic::Ordering::Relaxed);
                }
                4 => device.tell(random.u32(..), random.u32(..)),
                5 => device.tell(random.u32(..2 * u32::from(size)), random.u32(..9000)),
                6 => set_bytes(pages.used, 2, 2, random.u64(..)),
                // As an honest one would.
                _ if lent.is_empty() => {}
                _ => {
                    let chain = *lent.keys().nth(random.usize(..lent.len())).unwrap();
                    device.told = queue_count(&queue, &device);
                    device.tell(chain.into(), 0);
                }
            }
            // It comes to an end by itself: each chain comes back once.
            while let Some(done) = queue.take() {
                let (_, room) = lent.remove(&done.chain).expect("a chain that is not lent");
                assert!(u64::from(done.length) <= room);
            }
            let used: usize = lent.values().map(|(count, _)| count).sum();
            assert_eq!(queue.room() + used, size.into());
            assert_eq!(queue.under_way(), lent.len());
        }
        while let Some(chain) = queue.end() {
            assert!(lent.remove(&chain).is_some());
        }
        assert!(lent.is_empty());
        assert_eq!(queue.room(), size.into());
    }
}

/// The count that the queue expects next, as an honest device would have it.
fn queue_count(queue: &Queue<'_>, device: &Device) -> u16 {
    // Read back what it made of the last one: it has taken all or nothing.
    match queue.is_due() {
        true => device.told,
        false => (device.pages.used[0].load(core::sync::atomic::Ordering::Relaxed) >> 16) as u16,
    }
}

#[test]
fn a_count_beyond_what_is_under_way_is_nonsense_and_kills_in_the_end() {
    let pages = pages();
    let mut queue = Queue::new(pages, SIZE as u16).unwrap();
    let buffer = Buffer {
        address: 0x1000,
        length: 1,
        written: true,
    };
    let chain = queue.add(&[buffer]).unwrap();
    for count in 0..PATIENCE {
        assert!(!queue.is_dead(), "{count}");
        set_bytes(pages.used, 2, 2, 2 + count % 1000);
        assert_eq!(queue.take(), None);
    }
    assert!(queue.is_dead());
    assert_eq!(queue.add(&[buffer]), None);
    assert_eq!((queue.end(), queue.end()), (Some(chain), None));
}

#[test]
fn a_chain_told_twice_comes_back_once() {
    let pages = pages();
    let mut queue = Queue::new(pages, 4).unwrap();
    let mut device = Device::new(pages, 4);
    let buffer = Buffer {
        address: 0x1000,
        length: 8,
        written: true,
    };
    let chain = queue.add(&[buffer]).unwrap();
    let other = queue.add(&[buffer]).unwrap();
    device.tell(chain.into(), 9);
    device.tell(chain.into(), 8);
    let done = queue.take().unwrap();
    // More than there was room for: nothing of it is believed.
    assert_eq!((done.chain, done.length), (chain, 0));
    assert_eq!(queue.take(), None);
    assert_eq!((queue.nonsense(), queue.end()), (2, Some(other)));
}
