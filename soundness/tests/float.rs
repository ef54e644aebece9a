//! MXCSR and the fact `float`: instructions that the verifier calls none of floating point do the
//! same whatever MXCSR says, and leave it as it was. So the gates need not keep it for them.

use postern_soundness::campaign::Campaign;

/// Rows that are called floating point for caution: on some processors nothing shows it.
const CAUTION: [&str; 4] = [
    "rsqrtps rsqrtss",
    "rcpps rcpss",
    "vrsqrtps vrcpps",
    "vrsqrtss vrcpss",
];

#[test]
fn only_instructions_of_floating_point_have_to_do_with_mxcsr() {
    let mut campaign = Campaign::new(11).expect("AVX2 and memory");
    let mut shown = vec![0; campaign.rows().len()];
    // So often that a row which wants its memory aligned finds it so a few times by chance.
    for _ in 0..16 {
        for float in [false, true] {
            let more = campaign.control_words(float);
            shown.iter_mut().zip(more).for_each(|(all, n)| *all += n);
        }
    }
    println!("{}", campaign.tally);
    assert!(campaign.tally.broken.is_empty(), "{}", campaign.tally);
    let rows = campaign.rows().iter().zip(&campaign.tally.rows).zip(shown);
    let gfni = std::arch::is_x86_feature_detected!("gfni");
    for ((row, tally), shown) in rows.filter(|((row, _), _)| row.xmm) {
        if !gfni && row.name.contains("gf2p8") {
            println!("SKIPPED {}: this processor has no GFNI", row.name);
            continue;
        }
        let opcodes = u64::from(row.last - row.first) + 1;
        let forms = opcodes * u64::from(row.prefixes.count_ones());
        // Some of those that only access memory want it aligned.
        let least = if row.register { 20 } else { 2 } * forms;
        assert!(tally.completed >= least, "{}: {tally:?}", row.name);
        // So a mark that is missing would have been seen.
        let seen = shown > 0 || CAUTION.contains(&row.name);
        assert_eq!(seen, row.float, "{}: {shown} of {tally:?}", row.name);
    }
}
