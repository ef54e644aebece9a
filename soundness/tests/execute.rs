//! Random accepted code on the processor, and the proof that the apparatus would notice if it
//! escaped.
//!
//! `POSTERN_SOUNDNESS_SECONDS=n` runs it for n seconds more, with another seed each time.

use fastrand::Rng;
use postern_soundness::batch::{STACK, Shared};
use postern_soundness::campaign::Campaign;
use postern_soundness::judge::{Case, End};
use postern_soundness::runner::{Input, TRACE};
use postern_soundness::window::{DATA, IMPORTS};
use postern_verifier::window::text_start;
use std::time::{Duration, Instant};

fn run(seed: u64, more: impl Fn(u64) -> bool) -> Campaign {
    let mut campaign = Campaign::new(seed).expect("AVX2 and memory");
    let mut round = 0;
    while more(round) && campaign.tally.broken.is_empty() {
        campaign.batch(true);
        campaign.batch(true);
        campaign.batch(false);
        round += 1;
    }
    println!("seed {seed}: {}", campaign.tally);
    assert!(campaign.tally.broken.is_empty(), "{}", campaign.tally);
    campaign
}

#[test]
fn accepted_code_stays_in_its_window() {
    let campaign = run(1, |round| round < 120);
    let tally = &campaign.tally;
    assert!(tally.singles > 900_000 && tally.sequences > 400_000 && tally.stepped > 150_000);
    assert!(
        tally.completed > tally.faulted,
        "most snippets must get somewhere"
    );
    let mut idle = campaign.rows_never_completed();
    if !std::arch::is_x86_feature_detected!("gfni") {
        idle.retain(|row| !row.contains("gf2p8"));
    }
    assert!(
        idle.is_empty(),
        "rows that never ran without a fault: {idle:?}"
    );

    let seconds = std::env::var("POSTERN_SOUNDNESS_SECONDS");
    if let Some(seconds) = seconds.ok().and_then(|s| s.parse().ok()) {
        drop(campaign);
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let end = Instant::now() + Duration::from_secs(seconds);
        run(now.as_nanos() as u64, |_| Instant::now() < end);
    }
}

const BASE: u64 = 0x2345_0000_0000;

/// Runs bytes that the verifier refuses.
fn verdict(
    shared: &Shared,
    code: &[u8],
    traced: bool,
    prepare: impl Fn(&mut Input),
) -> Result<End, String> {
    let offset = text_start(IMPORTS);
    let mut text = code.to_vec();
    text.resize(64, 0xcc);
    let mut input = Input {
        entry: BASE + u64::from(offset),
        rflags: if traced { 0x302 } else { 0x202 },
        vectors: shared.vectors(0),
        limit: TRACE as u64,
        mxcsr: 0x1f80,
        ..Input::default()
    };
    prepare(&mut input);
    let outputs = shared.run(BASE, &text, &[input]).map_err(|e| e.what)?;
    let case = Case {
        base: BASE,
        text: &text,
        text_offset: offset,
        entry: offset,
        traced,
        single: false,
        stack_top: shared.stack_top(),
        stack_len: STACK as u64,
    };
    case.check(&outputs[0])
}

#[test]
fn escapes_are_noticed() {
    let canary = BASE - 4096;
    let shared = Shared::new(&[canary as usize], &mut Rng::with_seed(3)).unwrap();
    let rax = |value: u64| move |input: &mut Input| input.gprs[0] = value;
    let try_one = |code: &[u8], value| verdict(&shared, code, false, rax(value));
    // The harmless ones end well.
    assert_eq!(try_one(&[0x90, 0xc3], 0), Ok(End::Completed));
    let store = [0x65, 0x67, 0x89, 0x08, 0xc3]; // mov %ecx, %gs:(%eax)
    assert_eq!(try_one(&store, u64::from(DATA)), Ok(End::Completed));
    assert_eq!(try_one(&store, 16), Ok(End::Faulted));
    // Each of these breaks one promise.
    let escapes: &[(&str, &[u8], u64, &str)] = &[
        ("a store to a canary", &[0x89, 0x08, 0xc3], canary, "canary"),
        (
            "a load without gs",
            &[0x8b, 0x08, 0xc3],
            0x5000_0000,
            "signal 11",
        ),
        (
            "a store below the window",
            &[0x65, 0x89, 0x08, 0xc3],
            u64::MAX - 8191,
            "signal 11",
        ),
        ("a system call", &[0x0f, 0x05, 0xc3], 39, "signal 31"),
        ("int 80h", &[0xcd, 0x80, 0xc3], 20, "signal 31"),
        ("a forged return", &[0x50, 0xc3], 0x4000, "signal 11"),
        ("cli", &[0xfa, 0xc3], 0, "signal 11"),
        ("rsp", &[0x48, 0x83, 0xec, 0x04, 0xcc], 0, "rsp"),
        ("std", &[0xfd, 0xcc], 0, "flags"),
        ("popf with AC", &[0x68, 0, 0, 4, 0, 0x9d, 0xcc], 0, "flags"),
        (
            "wrgsbase",
            &[0xf3, 0x48, 0x0f, 0xae, 0xd8, 0xc3],
            0x4000,
            "gs base",
        ),
        (
            "wrfsbase",
            &[0xf3, 0x48, 0x0f, 0xae, 0xd0, 0xc3],
            0x4000,
            "fs base",
        ),
        (
            "ldmxcsr",
            &[0x65, 0x67, 0x0f, 0xae, 0x10, 0xc3],
            u64::from(DATA),
            "MXCSR",
        ),
        (
            "cvttsd2si",
            &[0xf2, 0x0f, 0x2c, 0xc0, 0xc3],
            0,
            "flags of MXCSR",
        ),
        ("mov to ds", &[0x8e, 0xd8, 0xc3], 0x2b, "selector"),
        ("x87", &[0xd9, 0xe8, 0xc3], 0, "x87"),
        ("mmx", &[0x0f, 0xef, 0xc0, 0xc3], 0, "x87"),
        (
            "pxor",
            &[0x66, 0x0f, 0xef, 0xc9, 0xc3],
            0,
            "vector register",
        ),
    ];
    for (name, code, value, expected) in escapes {
        let verdict = try_one(code, *value);
        let seen = verdict.as_ref().is_err_and(|what| what.contains(expected));
        assert!(seen, "{name}: {verdict:?}");
    }
    // A jump that the verifier does not know of, found by stepping.
    let stray = verdict(
        &shared,
        &[0xff, 0xe0, 0x90, 0xc3],
        true,
        rax(BASE + u64::from(text_start(IMPORTS)) + 2),
    );
    assert!(stray.is_err(), "{stray:?}");
}
