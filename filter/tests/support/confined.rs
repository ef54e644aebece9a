//! Filters as extensions in a domain.

use postern::{Domain, Image, Offset};
use postern_filter::{Code, Filter, SIGNATURE};
use postern_image::ImageBuilder;

/// The extension file of a filter, and where its room for a packet is.
pub fn file(code: &Code) -> (Vec<u8>, Offset) {
    let mut builder = ImageBuilder::new(code.text());
    builder.export("filter", 0, Some(SIGNATURE.parse().unwrap()));
    builder.data(vec![0; 16], ROOM as u64);
    let room = builder.layout().unwrap().data;
    (builder.build().unwrap(), Offset(room))
}

/// Room for a packet.
pub const ROOM: usize = 65536;

/// A filter that runs in its own domain.
pub struct Confined {
    domain: Domain,
    room: Offset,
}

impl Confined {
    pub fn new(filter: &Filter) -> Confined {
        Confined::of(&filter.code())
    }

    pub fn of(code: &Code) -> Confined {
        let facts = code.verify();
        let facts = facts.unwrap_or_else(|violation| panic!("{violation}: {:02x?}", code.text()));
        assert!(facts.longest_path.is_some() && !facts.gates && !facts.indirect);
        let (file, room) = file(code);
        let image = Image::from_bytes(&file).unwrap();
        let domain = Domain::builder(&image).build().unwrap();
        Confined { domain, room }
    }

    /// A call with a packet that is put in place now.
    pub fn prepared(&self, packet: &[u8]) -> impl Fn() -> u32 {
        let filter = self.domain.func::<fn(Offset, u32, u32) -> u32>("filter");
        let filter = filter.unwrap();
        self.domain.write(self.room, packet).unwrap();
        let (room, length) = (self.room, packet.len() as u32);
        move || filter.call(room, length, length).unwrap()
    }

    /// The verdicts of several packets.
    pub fn run<'a>(&self, packets: impl Iterator<Item = (&'a [u8], u32)>) -> Vec<u32> {
        let filter = self
            .domain
            .func::<fn(Offset, u32, u32) -> u32>("filter")
            .unwrap();
        packets
            .map(|(bytes, wire)| {
                self.domain.write(self.room, bytes).unwrap();
                filter.call(self.room, wire, bytes.len() as u32).unwrap()
            })
            .collect()
    }
}
