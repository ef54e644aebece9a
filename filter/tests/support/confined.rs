//! Filters as extensions in a domain.

use postern::{Prot, Shared};
use postern_filter::{Code, Filter, Loaded};

/// Room for a packet.
const ROOM: usize = 65536;

/// A filter that runs in its own domain, and an area for packets that it sees.
pub struct Confined {
    loaded: Loaded,
    area: Shared,
}

impl Confined {
    pub fn new(filter: &Filter) -> Confined {
        Confined::of(&filter.code())
    }

    pub fn of(code: &Code) -> Confined {
        let facts = code.verify();
        let facts = facts.unwrap_or_else(|violation| panic!("{violation}: {:02x?}", code.text()));
        assert!(facts.longest_path.is_some() && !facts.gates && !facts.indirect);
        let loaded = code.load(false).unwrap();
        let area = Shared::builder().zeroed(ROOM).unwrap();
        loaded.domain().share(&area, Prot::Read).unwrap();
        Confined { loaded, area }
    }

    /// A call with a packet that is put in place now.
    pub fn prepared(&self, packet: &[u8]) -> impl Fn() -> u32 {
        self.area.write(0, packet).unwrap();
        let length = packet.len() as u32;
        move || {
            let verdict = self.loaded.run_at(self.area.offset(), length, length);
            verdict.unwrap()
        }
    }

    /// The verdicts of several packets.
    pub fn run<'a>(&self, packets: impl Iterator<Item = (&'a [u8], u32)>) -> Vec<u32> {
        packets
            .map(|(bytes, wire)| {
                self.area.write(0, bytes).unwrap();
                let captured = bytes.len() as u32;
                let verdict = self.loaded.run_at(self.area.offset(), wire, captured);
                verdict.unwrap()
            })
            .collect()
    }
}
