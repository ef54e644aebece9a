//! Where a device's registers are: the capabilities of its PCI configuration.
//!
//! Invariant: whatever stands in the configuration, the list is walked in so many steps as it has
//! room for, and a place names one of six base addresses.

/// Parts of a device's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Features, status, queues.
    Common = 0,
    /// Where the device is told that a queue has something.
    Notify = 1,
    /// What an interrupt was for; not used with vectors.
    Interrupt = 2,
    /// What is the kind of device's own.
    Device = 3,
}

/// Bytes behind a base address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Which of the base addresses, below 6.
    pub base: u8,
    /// The first byte.
    pub offset: u32,
    /// How many.
    pub length: u32,
}

/// What the capabilities say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// By [`Area`].
    pub areas: [Place; 4],
    /// Bytes between the places of two numbers in [`Area::Notify`].
    pub multiplier: u32,
    /// The table of vectors (MSI-X): 16 bytes each.
    pub vectors: Place,
    /// Where the configuration switches vectors on: the capability's own place.
    pub switch: u8,
}

/// Steps that a list of capabilities can have in 256 bytes.
const STEPS: usize = 48;
const MSIX: u32 = 0x11;
const VENDOR: u32 = 0x09;

/// Reads the list. `read` gives a word of the configuration, at a multiple of four.
pub fn read(read: impl Fn(u8) -> u32) -> Option<Capabilities> {
    const HAS_LIST: u32 = 1 << 20;
    if read(4) & HAS_LIST == 0 {
        return None;
    }
    let mut areas = [None; 4];
    let mut multiplier = 0;
    let mut vectors = None;
    let mut at = read(0x34) as u8 & !3;
    for _ in 0..STEPS {
        // A structure of virtio's is 16 bytes and one word.
        if !(0x40..=0xec).contains(&at) {
            break;
        }
        let head = read(at);
        match head & 0xff {
            VENDOR => {
                let kind = (head >> 24) as usize;
                let place = place(read(at + 4) as u8, read(at + 8), read(at + 12));
                // Kinds count from 1; the first of a kind is the one to use.
                let area = kind.checked_sub(1).and_then(|kind| areas.get_mut(kind));
                if let (Some(area @ None), Some(place)) = (area, place) {
                    *area = Some(place);
                    if kind == Area::Notify as usize + 1 {
                        multiplier = read(at + 16);
                    }
                }
            }
            MSIX => {
                let count = (head >> 16 & 0x7ff) + 1;
                let table = read(at + 4);
                let place = place(table as u8 & 7, table & !7, count * 16);
                vectors = place.map(|place| (place, at));
            }
            _ => {}
        }
        at = (head >> 8) as u8 & !3;
    }
    let [Some(common), Some(notify), Some(interrupt), Some(device)] = areas else {
        return None;
    };
    let (vectors, switch) = vectors?;
    Some(Capabilities {
        areas: [common, notify, interrupt, device],
        multiplier,
        vectors,
        switch,
    })
}

fn place(base: u8, offset: u32, length: u32) -> Option<Place> {
    let place = Place {
        base,
        offset,
        length,
    };
    (base < 6 && offset.checked_add(length).is_some()).then_some(place)
}
