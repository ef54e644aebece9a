//! How fast the verifier judges, beside how fast a general decoder merely decodes.

use postern_figures::clock::best_of;
use postern_figures::figure::{Figure, Goal};
use postern_figures::kernels::Kernel;
use postern_image::ImageFile;
use postern_verifier::window::FILL;
use postern_verifier::{Layout, Profile, buffer_len, verify};
use std::hint::black_box;

/// The text is repeated to about this size, so that it does not stay in the first caches.
const BYTES: usize = 4 << 20;

/// The figures of the group, over the text of all kernels.
pub fn figures(kernels: &[Kernel]) -> Result<Vec<Figure>, String> {
    let mut once = Vec::new();
    for build in kernels.iter().filter_map(|kernel| kernel.builds.first()) {
        let bytes = std::fs::read(&build.extension).map_err(|e| e.to_string())?;
        let image = ImageFile::parse(&bytes).map_err(|e| e.to_string())?;
        if image.imports().is_empty() {
            // Without the filling of the last page: it is not code, and a repeated text would be
            // made of it.
            let text = image.text().bytes;
            let code = text
                .iter()
                .rposition(|byte| *byte != FILL)
                .map_or(0, |last| last + 1);
            once.extend_from_slice(&text[..code]);
            once.push(FILL);
        }
    }
    if once.is_empty() {
        return Err("no kernel without imports to verify".into());
    }
    // Direct branches are relative and stay inside their own copy, so copies are as good as the
    // first.
    let text = once.repeat(BYTES.div_ceil(once.len()));
    let layout = Layout::new(0);
    let mut buffer = vec![0; buffer_len(text.len())];
    let facts = verify(&text, &layout, Profile::User, &mut buffer).map_err(|e| e.to_string())?;
    let mut decoded = 0u64;
    let [ours, bare] = best_of(
        10,
        [
            &mut || {
                let verdict = verify(black_box(&text), &layout, Profile::User, &mut buffer);
                assert!(
                    black_box(verdict).is_ok(),
                    "the same text was accepted before"
                );
            },
            &mut || decoded = decode(&text),
        ],
    );
    if decoded != u64::from(facts.instructions) {
        return Err(format!(
            "the verifier counts {} instructions, iced-x86 {decoded}",
            facts.instructions
        ));
    }
    let rate = |seconds: f64| text.len() as f64 / seconds / 1e6;
    let how = format!(
        "over iced-x86 decoding alone; the text of {} kernels, repeated to {} MiB",
        kernels.len(),
        BYTES >> 20
    );
    let bytes = text.len() as f64 / decoded as f64;
    Ok(vec![
        Figure::plain("verifier.speed", rate(ours), "MB/s", how)
            .against(rate(bare))
            .goal(Goal::AtLeast(400.0)),
        Figure::plain(
            "verifier.instruction",
            ours * 1e9 / decoded as f64,
            "ns",
            format!("time for one instruction, {bytes:.1} bytes on average"),
        )
        .against(bare * 1e9 / decoded as f64),
    ])
}

fn decode(text: &[u8]) -> u64 {
    let mut decoder =
        iced_x86::Decoder::with_ip(64, text, 0x1_0000, iced_x86::DecoderOptions::NONE);
    let mut instruction = iced_x86::Instruction::default();
    let mut count = 0;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        black_box(&instruction);
        count += 1;
    }
    count
}
