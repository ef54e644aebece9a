//! Extensions that share the windows of one segment, with their stack: Palladium's modules of a
//! segment. Whoever brought the stack may go before the others, whose calls then end.

use std::fs::File;

use postern_image::{ImageBuilder, ImageFile, Segment};
use postern_kernel::abi::{self, Outcome};

use crate::calls::call;
use crate::checks::request;
use crate::trusted::ask;

/// Pages that the second image lies above the first.
const APART: u32 = 64;

/// `set` and `get`: a word below the top of the data stack.
fn image(shift: u32) -> Result<Vec<u8>, String> {
    let set: &[u8] = &[0x64, 0x67, 0x49, 0x89, 0x7f, 0xf8, 0xc3, 0xcc];
    let get: &[u8] = &[0x64, 0x67, 0x49, 0x8b, 0x47, 0xf8, 0xc3];
    let mut builder = ImageBuilder::new([set, get].concat());
    builder
        .segment(Segment::Fs)
        .stack_log2(12)
        .shift(shift)
        .export("set", 0, None)
        .export("get", set.len() as u32, None);
    builder.build().map_err(|error| error.to_string())
}

fn load(device: &File, file: &[u8], segment: u32) -> Result<u32, String> {
    let mut asked = request(file);
    asked.segment = segment;
    ask(device, &mut asked).map_err(|error| format!("loading into {segment}: {error}"))?;
    match asked.id {
        0 => Err(format!("loading into {segment}: {:?}", asked.verdict)),
        id => Ok(id),
    }
}

/// What one leaves on the stack the other finds; when its owner is gone, so is the stack.
pub fn shared(device: &File) -> Result<(), String> {
    let (low, high) = (image(0)?, image(APART)?);
    let parsed = ImageFile::parse(&low).map_err(|error| error.to_string())?;
    let layout = parsed.layout();
    let owner = load(device, &low, 0)?;
    let guest = load(device, &high, owner)?;
    let none = [0; 6];
    for value in [5, 6] {
        call(device, owner, "set", [value, 0, 0, 0, 0, 0])?;
        let (outcome, found) = call(device, guest, "get", none)?;
        if (outcome.kind, found) != (abi::RETURNED, value) {
            return Err(format!("the other's word: {outcome:?}, {found}"));
        }
    }
    ask(device, &mut owner.clone()).map_err(|error| format!("unloading: {error}"))?;
    let (outcome, _) = call(device, guest, "get", none)?;
    let wanted = Outcome {
        kind: abi::PAGE_FAULT,
        address: layout.stack + layout.stack_size - 8,
        ..outcome
    };
    if outcome != wanted {
        return Err(format!("without its stack: {outcome:x?}, not {wanted:x?}"));
    }
    if load(device, &low, owner).is_ok() {
        return Err("a segment whose owner is gone took another one".into());
    }
    ask(device, &mut guest.clone()).map_err(|error| format!("unloading: {error}"))?;
    println!("guest: a segment of two");
    Ok(())
}
