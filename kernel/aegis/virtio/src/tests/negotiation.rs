//! Capabilities and registers, of honest devices and of any.

use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::capabilities::{self, Area};
use crate::device::{self, Refusal, Registers, VERSION_1};

/// A configuration like that of an emulator's network device.
fn configuration() -> [u32; 64] {
    let mut words = [0; 64];
    words[1] = 1 << 20;
    words[0x34 / 4] = 0x98;
    let mut add = |at: usize, given: &[u32]| words[at / 4..][..given.len()].copy_from_slice(given);
    add(0x98, &[0x8003_0000 | 0x40 << 8 | 0x11, 1, 0x801]);
    add(0x40, &[0x0110_5009, 4, 0, 0x1000]);
    add(0x50, &[0x0310_6009, 4, 0x1000, 0x1000]);
    add(0x60, &[0x0410_7009, 4, 0x2000, 0x1000]);
    add(0x70, &[0x0214_0009, 4, 0x3000, 0x1000, 4]);
    words
}

#[test]
fn capabilities_are_read() {
    let words = configuration();
    let found = capabilities::read(|at| words[usize::from(at) / 4]).unwrap();
    let offsets = found.areas.map(|place| (place.base, place.offset));
    assert_eq!(offsets, [(4, 0), (4, 0x3000), (4, 0x1000), (4, 0x2000)]);
    assert_eq!((found.multiplier, found.switch), (4, 0x98));
    assert_eq!((found.vectors.base, found.vectors.length), (1, 4 * 16));
    let without = |at: u8| {
        if at == 4 {
            0
        } else {
            words[usize::from(at) / 4]
        }
    };
    assert_eq!(capabilities::read(without), None);
}

#[test]
fn any_configuration_is_read_to_an_end() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut found = 0;
    for _ in 0..200_000 {
        let mut words = configuration();
        for _ in 0..random.u8(..6) {
            words[random.usize(..64)] = random.u32(..);
        }
        let reads = Cell::new(0);
        let result = capabilities::read(|at| {
            assert!(at.is_multiple_of(4));
            reads.set(reads.get() + 1);
            words[usize::from(at) / 4]
        });
        assert!(reads.get() < 400);
        let Some(result) = result else { continue };
        found += 1;
        for place in result.areas.into_iter().chain([result.vectors]) {
            assert!(place.base < 6 && place.offset.checked_add(place.length).is_some());
        }
    }
    assert!(found > 1000);
    // A list that comes back to itself.
    let mut words = configuration();
    words[0x70 / 4] |= 0x40 << 8;
    assert!(capabilities::read(|at| words[usize::from(at) / 4]).is_some());
}

/// Registers that keep what is written, but for what a test says of them.
struct Model {
    values: RefCell<BTreeMap<u32, u32>>,
    features: u64,
    size: u32,
    notified: Cell<Option<(u32, u32)>>,
}

fn model() -> Model {
    Model {
        values: RefCell::default(),
        features: VERSION_1 | 1 << 5,
        size: 256,
        notified: Cell::new(None),
    }
}

impl Registers for Model {
    fn read(&self, area: Area, offset: u32, _bytes: u32) -> u32 {
        let value = |offset| self.values.borrow().get(&offset).copied();
        match (area, offset) {
            (Area::Common, 4) if value(0) == Some(1) => (self.features >> 32) as u32,
            (Area::Common, 4) => self.features as u32,
            (Area::Common, 24) => value(24).unwrap_or(self.size),
            (Area::Common, 30) => 7,
            (Area::Common, offset) => value(offset).unwrap_or(0),
            _ => u32::MAX,
        }
    }

    fn write(&self, area: Area, offset: u32, _bytes: u32, value: u32) {
        match area {
            Area::Common => _ = self.values.borrow_mut().insert(offset, value),
            _ => self.notified.set(Some((offset, value))),
        }
    }
}

#[test]
fn a_device_is_set_up() {
    let model = model();
    assert_eq!(
        device::start(&model, 1 << 5 | 1 << 6, 0),
        Ok(VERSION_1 | 1 << 5)
    );
    let pages = [0x1000, 0x1_0000_2000, 0x3000];
    assert_eq!(device::set_queue(&model, 1, 256, pages, 2), Ok(7));
    device::ready(&model);
    let value = |offset| model.values.borrow().get(&offset).copied();
    assert_eq!(
        (value(20), value(22), value(26), value(28)),
        (Some(15), Some(1), Some(2), Some(1))
    );
    assert_eq!((value(40), value(44)), (Some(0x2000), Some(1)));
    device::notify(&model, 1, 7, 4);
    assert_eq!(model.notified.get(), Some((28, 1)));
}

#[test]
fn what_is_missing_is_refused() {
    let mut lacks = model();
    lacks.features = 1 << 5;
    assert_eq!(device::start(&lacks, 0, 0), Err(Refusal::Features));
    assert_eq!(device::start(&model(), 0, 1 << 9), Err(Refusal::Features));
    let mut small = model();
    small.size = 128;
    assert_eq!(
        device::set_queue(&small, 0, 256, [0; 3], 0),
        Err(Refusal::Queue)
    );
}

/// Registers of which each reading is another number.
struct Mad(RefCell<fastrand::Rng>);

impl Registers for Mad {
    fn read(&self, _area: Area, _offset: u32, bytes: u32) -> u32 {
        let mut random = self.0.borrow_mut();
        match random.u8(..4) {
            0 => 0,
            1 => random.u32(..16),
            _ => random.u32(..) & (u64::MAX >> (64 - 8 * bytes)) as u32,
        }
    }

    fn write(&self, _area: Area, _offset: u32, _bytes: u32, _value: u32) {}
}

#[test]
fn a_mad_device_is_refused_or_set_up_but_never_waited_for() {
    for seed in 0..2000 {
        let mad = Mad(RefCell::new(fastrand::Rng::with_seed(seed)));
        let _ = device::start(&mad, u64::MAX, 0);
        let _ = device::set_queue(&mad, 0, 256, [u64::MAX; 3], 0);
        device::notify(&mad, u16::MAX, u16::MAX, u32::MAX);
    }
    struct Dead;
    impl Registers for Dead {
        fn read(&self, _area: Area, _offset: u32, _bytes: u32) -> u32 {
            u32::MAX
        }
        fn write(&self, _area: Area, _offset: u32, _bytes: u32, _value: u32) {}
    }
    assert_eq!(device::reset(&Dead), Err(Refusal::Reset));
}
