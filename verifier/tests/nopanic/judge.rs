//! Not a test itself: `nopanic.rs` compiles this. All of the verifier's functions, and a panic
//! handler that leaves a trace in the linked file if anything can reach it.
#![no_std]

use postern_verifier::{Bounds, Layout, Profile, Segment, Starts, next, verify, verify_within};

/// Calls everything, with nothing known about the arguments.
#[unsafe(no_mangle)]
pub fn judge(text: &[u8], layout: &Layout, bounded: bool, segment: Segment, buffer: &mut [u64], at: usize) -> usize {
    let profile = if bounded { Profile::Bounded } else { Profile::User };
    let bounds = Bounds { instructions: at as u32, call_depth: text.len() as u32 };
    let verdict = if at == 0 { verify(text, layout, profile, buffer) } else { verify_within(text, layout, bounds, buffer) };
    let starts = Starts::new(buffer, text.len(), layout.text);
    let start = usize::from(starts.contains(at as u32)) + starts.iter().count();
    let instruction = next(text, at, segment).map_or(0, |instruction| instruction.length);
    let verdict = match verdict {
        Ok(facts) => facts.instructions as usize,
        Err(violation) => violation.rule.sentence().len() + violation.offset as usize,
    };
    #[cfg(control)]
    let verdict = verdict + usize::from(text[at]);
    verdict.wrapping_add(start).wrapping_add(instruction)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe extern "C" {
        fn the_verifier_can_panic() -> !;
    }
    // SAFETY: never linked into anything that runs.
    unsafe { the_verifier_can_panic() }
}
