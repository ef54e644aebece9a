//! Endpoints: whose frame is whose. Frames come by `Matches` here, which asks the same code.

use postern_aegis::calls;

use crate::scenario::{Named, Outcome, Why, check, same};

crate::scenarios! {
    "endpoints.first" first;
}

/// A frame of UDP over IPv4 from and to these ports.
fn frame(source: u16, destination: u16) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&source.to_be_bytes());
    frame[36..38].copy_from_slice(&destination.to_be_bytes());
    frame[39] = 26;
    frame
}

/// Who gets a frame; 0: nobody.
fn gets(frame: &[u8]) -> Result<u64, Why> {
    let mut found = [0; 1];
    let count = calls::matches(frame, &mut found).named("who gets it")?;
    Ok(if count == 0 { 0 } else { found[0] })
}

/// The first of all that want a frame, the code says, too.
fn first() -> Outcome {
    let low = calls::bind("udp", 1, 0).named("low")?;
    let high = calls::bind("udp dst port 7", 2, 0).named("high")?;
    let late = calls::bind("dst port 7 or dst port 9", 2, 0).named("late")?;
    same("7", gets(&frame(1, 7))?, high as u64)?;
    same("9", gets(&frame(1, 9))?, late as u64)?;
    same("5", gets(&frame(1, 5))?, low as u64)?;
    same("no frame", gets(&[])?, 0)?;
    let mut all = [0; 8];
    let count = calls::matches(&frame(1, 7), &mut all).named("all")?;
    same("how many", count as u64, 3)?;
    check(
        all[..3] == [high as u64, late as u64, low as u64],
        "another order",
    )?;
    for holding in [high, low, late] {
        calls::drop_holding(holding, 0).named("dropping")?;
    }
    same("nobody", gets(&frame(1, 7))?, 0)
}
