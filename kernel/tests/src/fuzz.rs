//! Requests at random, at every entrance of the device: structures whose fields are mostly likely
//! ones, lengths and addresses of every kind, and any bytes at all; reading, mapping and waiting.
//!
//! Root does so, and so does another user whom root has handed the open device, and one who has to
//! open it. Nothing is expected of the answers but that a stranger gets none. What is expected of
//! the kernel is that it goes on: whoever booted it looks for complaints, and afterwards everything
//! can be unloaded and an extension loads and is unloaded as before.

use std::fs::File;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};

use fastrand::Rng;
use postern_image::{ImageBuilder, Segment};
use postern_kernel::abi;
use postern_kernel::{Device, Error, Id, Image, LoadOptions};

use crate::trusted::{self, Handling, Playground};

/// What is likely in a field.
#[derive(Clone, Copy)]
enum Field {
    /// The number of an extension.
    Id,
    /// The number of an attachment.
    Attachment,
    /// A name in 64 bytes.
    Function,
    /// What a hook is about, in 64 bytes.
    Target,
    /// An address of the process's.
    Address,
    /// The image's address.
    File,
    /// The image's length.
    Length,
    /// A number below this, mostly.
    Below(u32),
    /// 64 bits.
    Word,
}

/// A request: its number, the size of its structure, and fields that are likely at offsets. The
/// others are 0, mostly.
type Shape = (u64, usize, &'static [(usize, Field)]);

macro_rules! shape {
    ($number:ident, $type:ty: $($field:ident $kind:expr),*) => {
        (abi::$number, size_of::<$type>(), &[$((offset_of!($type, $field), $kind)),*])
    };
}

const LOAD: &[(usize, Field)] = &[
    (offset_of!(abi::Load, file), Field::File),
    (offset_of!(abi::Load, size), Field::Length),
    (offset_of!(abi::Load, name), Field::Function),
    (offset_of!(abi::Load, segment), Field::Below(2)),
    (offset_of!(abi::Load, rights), Field::Below(16)),
    (offset_of!(abi::Load, on_fault), Field::Below(3)),
    (offset_of!(abi::Load, flags), Field::Below(2)),
    (offset_of!(abi::Load, heap), Field::Below(20_000)),
    (offset_of!(abi::Load, limit), Field::Below(4)),
    (offset_of!(abi::Load, id), Field::Id),
];

const SHAPES: [Shape; 13] = [
    (abi::LOAD, size_of::<abi::Load>(), LOAD),
    (abi::REPLACE, size_of::<abi::Load>(), LOAD),
    (abi::UNLOAD, 4, &[(0, Field::Id)]),
    (abi::OPEN, 4, &[(0, Field::Id)]),
    (abi::DETACH, 4, &[(0, Field::Attachment)]),
    shape!(JUDGE_TEXT, abi::Text: text Field::File, size Field::Length, imports Field::Below(5000)),
    shape!(CALL, abi::Call: id Field::Id, queued Field::Below(2), function Field::Function, arguments Field::Word),
    shape!(STATISTICS, abi::Statistics: id Field::Id),
    shape!(ATTACH, abi::Attach: id Field::Id, hook Field::Below(6), function Field::Function, target Field::Target, number Field::Below(6), family Field::Below(11), capture Field::Below(5000), otherwise Field::Below(2)),
    shape!(ATTACHMENT, abi::Attachment: attachment Field::Attachment, next Field::Below(2)),
    shape!(MAP_MAKE, abi::Map: id Field::Id, map Field::Below(17), key_size Field::Below(66), value_size Field::Below(300), entries Field::Below(500)),
    shape!(MAP_SIZES, abi::Map: id Field::Id, map Field::Below(17)),
    shape!(MAP_ACCESS, abi::MapAccess: id Field::Id, map Field::Below(17), operation Field::Below(5), key Field::Address, value Field::Address, next_key Field::Address),
];

/// Functions of the extension, and none.
const FUNCTIONS: [&str; 5] = ["ret", "spin", "touch", "absent", ""];
/// What hooks are about.
const TARGETS: [&str; 6] = [
    "sched_process_exit",
    "sys_enter",
    "do_exit",
    "vfs_fsync",
    "no_such_name",
    "",
];

/// An image whose functions return, loop without an end, and touch what is not there.
fn image() -> Vec<u8> {
    // ret; jmp to itself; mov %fs:(%edi),%eax and ret.
    let code = [0xc3, 0xeb, 0xfe, 0x64, 0x67, 0x8b, 0x07, 0xc3];
    let mut builder = ImageBuilder::new(code);
    builder.segment(Segment::Fs).stack_log2(12);
    builder
        .export("ret", 0, "l(lll)".parse().ok())
        .export("spin", 1, "l()".parse().ok())
        .export("touch", 3, "l(I)".parse().ok())
        .rodata(*b"read-only data")
        .data([7; 100], 9000);
    builder.build().unwrap_or_default()
}

/// Somebody who asks at random.
struct Player {
    random: Rng,
    ground: Playground,
    image: Vec<u8>,
    opened: Vec<OwnedFd>,
    counts: [u64; 2],
}

/// Offset of the image in the playground; structures lie before it.
const IMAGE_AT: usize = 1 << 14;

impl Player {
    fn new(seed: u64) -> Result<Player, String> {
        Ok(Player {
            random: Rng::with_seed(seed),
            ground: Playground::new(1 << 16).map_err(|error| format!("memory: {error}"))?,
            image: image(),
            opened: Vec::new(),
            counts: [0; 2],
        })
    }

    /// An address: of memory, at its edge, of what cannot be written, of nobody, of the kernel.
    fn address(&mut self) -> u64 {
        let (start, end) = (self.ground.start(), self.ground.end());
        match self.random.u8(..16) {
            0 => 0,
            1 => self.random.u64(..4096),
            2 => end - self.random.u64(1..200),
            // Memory that can be read only, and then none at all, lie behind the end.
            3 => end + self.random.u64(..8192),
            4 => 0xffff_8880_0000_0000 | self.random.u64(..1 << 30),
            5 => u64::MAX - self.random.u64(..300),
            6 => 0x7fff_ffff_f000 + self.random.u64(..4096),
            7 => 1 << 47 | self.random.u64(..),
            _ => start + self.random.u64(..1 << 13),
        }
    }

    fn value(&mut self, field: Field) -> Vec<u8> {
        let number = |value: u32| value.to_ne_bytes().to_vec();
        let name = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.resize(abi::NAME, 0);
            bytes
        };
        match field {
            Field::Id => number(self.random.u32(..12)),
            Field::Attachment => number(self.random.u32(..40)),
            Field::Function => name(self.random.choice(FUNCTIONS).unwrap_or_default()),
            Field::Target => name(self.random.choice(TARGETS).unwrap_or_default()),
            Field::Address => self.address().to_ne_bytes().to_vec(),
            Field::File => (self.ground.start() + IMAGE_AT as u64)
                .to_ne_bytes()
                .to_vec(),
            Field::Length => number(match self.random.u8(..4) {
                0 => self.random.u32(..self.image.len() as u32 + 100),
                _ => self.image.len() as u32,
            }),
            Field::Below(most) => number(match self.random.u8(..32) {
                0 => most,
                1 => u32::MAX - self.random.u32(..2),
                2 => 1 << self.random.u32(..32),
                _ => self.random.u32(..most),
            }),
            Field::Word => self.random.u64(..).to_ne_bytes().to_vec(),
        }
    }

    /// A structure for the request.
    fn structure(&mut self, size: usize, fields: &[(usize, Field)]) -> Vec<u8> {
        let mut bytes = vec![0; size.max(8)];
        for &(at, field) in fields {
            let value = self.value(field);
            let end = bytes.len().min(at + value.len());
            bytes[at..end].copy_from_slice(&value[..end - at]);
        }
        if self.random.u8(..5) == 0 {
            for _ in 0..self.random.usize(1..4) {
                let at = self.random.usize(..bytes.len());
                bytes[at] = self.random.u8(..);
            }
        }
        if self.random.u8(..30) == 0 {
            bytes.fill_with(|| self.random.u8(..));
        }
        bytes
    }

    /// Asks once; whether the device did it.
    fn ask(&mut self, device: &impl AsRawFd) -> bool {
        let (number, size, fields) = SHAPES[self.random.usize(..SHAPES.len())];
        let number = match self.random.u8(..40) {
            0 => self.random.u32(..).into(),
            1 => number ^ 1 << self.random.u32(..32),
            _ => number,
        };
        let mut file = self.image.clone();
        if self.random.u8(..8) == 0 {
            let at = self.random.usize(..file.len());
            file[at] = self.random.u8(..);
        }
        let structure = self.structure(size, fields);
        self.ground.put(IMAGE_AT, &file);
        // At most places it is whole; at others the kernel has to find out that it is not.
        let at = match self.random.u8(..12) {
            0 => self.address(),
            _ => {
                let at = 8 * self.random.usize(..900);
                self.ground.put(at, &structure);
                self.ground.start() + at as u64
            }
        };
        let answer = trusted::ask_at_random(device, number, at, &self.ground);
        self.counts[usize::from(answer.is_ok())] += 1;
        match answer {
            Ok(descriptor) => {
                self.opened.extend(descriptor);
                true
            }
            Err(_) => false,
        }
    }

    /// Reads, maps and waits, at the device or at something that was opened.
    fn handle(&mut self, device: &File) {
        let length = match self.random.u8(..4) {
            0 => self.random.usize(..100_000),
            1 => 4096 << self.random.u32(..5),
            _ => self.random.usize(..5000),
        };
        let how = Handling {
            way: self.random.u8(..7),
            at: self.address(),
            length,
            offset: match self.random.u8(..3) {
                0 => u64::from(self.random.u32(..)) << 12,
                1 => self.random.u64(..),
                _ => 0,
            },
            protection: self.random.i32(..8),
            shared: self.random.bool(),
        };
        let one = self.random.usize(..self.opened.len().max(1));
        match self.opened.get(one) {
            Some(opened) => trusted::handle_at_random(opened, &self.ground, how),
            None => trusted::handle_at_random(device, &self.ground, how),
        }
        if self.opened.len() > 20 {
            self.opened.swap_remove(one);
        }
    }
}

/// `count` requests of root's on this thread.
fn play(device: &File, seed: u64, count: u64) -> Result<[u64; 2], String> {
    let mut player = Player::new(seed)?;
    for _ in 0..count {
        match player.random.u8(..8) {
            0 => player.handle(device),
            _ => {
                player.ask(device);
            }
        }
    }
    Ok(player.counts)
}

/// The same of another user, for whom the device does nothing.
fn strangers(device: &File, seed: u64, count: u64) -> Result<(), String> {
    trusted::become_user(1000).map_err(|error| error.to_string())?;
    let mut player = Player::new(seed)?;
    for _ in 0..count {
        if player.random.u8(..8) == 0 {
            player.handle(device);
        } else if player.ask(device) {
            return Err("another user's request was done".into());
        }
        if player.random.u8(..50) == 0 && File::open("/dev/postern").is_ok() {
            return Err("another user opened the device".into());
        }
    }
    Ok(())
}

/// Everything that is loaded is unloaded, and then loading and calling goes as before.
fn goes_on() -> Result<(), String> {
    let said = |error: Error| format!("after random requests: {error}");
    let device = Device::open().map_err(said)?;
    for number in 1..=256 {
        // Most are not there.
        let _ = device.unload(Id(number));
    }
    let list = device.list().map_err(said)?;
    let attachments = match device.attachments() {
        // A module without hooks.
        Err(Error::OtherVersion { .. }) => Vec::new(),
        attachments => attachments.map_err(said)?,
    };
    if !list.is_empty() || !attachments.is_empty() {
        return Err(format!(
            "after random requests is left: {list:?}, {attachments:?}"
        ));
    }
    let id = device.load(&Image::new(image(), "last"), &LoadOptions::default());
    let id = id.map_err(said)?.id;
    let ended = device.call(id, "ret", &[]).map_err(said)?;
    device.unload(id).map_err(said)?;
    match ended {
        postern_kernel::Ended::Returned(_) => Ok(()),
        other => Err(format!("after random requests: {}", other.told(None))),
    }
}

/// `count` requests at random, on all processors at once, of root and then of a stranger.
pub fn requests(device: &File, seed: u64, count: u64) -> Result<(), String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let counts = std::thread::scope(|scope| {
        let players = (0..threads)
            .map(|thread| scope.spawn(move || play(device, seed << 8 | thread, count / threads)));
        let players: Vec<_> = players.collect();
        let ends = players
            .into_iter()
            .map(|player| player.join().map_err(|_| "it panicked")?);
        ends.collect::<Result<Vec<_>, String>>()
    })?;
    let stranger = std::thread::scope(|scope| {
        scope
            .spawn(|| strangers(device, seed << 8 | 0xff, count / 4))
            .join()
    });
    stranger.map_err(|_| "it panicked")??;
    goes_on()?;
    let [refused, done] = counts
        .iter()
        .fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    println!("guest: {count} requests at random, {refused} refused, {done} done");
    match done * 20 >= count {
        true => Ok(()),
        false => Err("too few of the random requests were done to say much".into()),
    }
}
