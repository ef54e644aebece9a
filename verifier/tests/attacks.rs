//! The attack corpus: every case of `tests/attacks/*.txt` through the verifier. The files' README
//! says how a case is written.

mod corpus;
mod oracles;

use std::path::Path;

use corpus::{Case, parse};
use oracles::Oracles;
use postern_verifier::{Layout, bounded_buffer_len, next, verify, window};

fn judge(case: &Case, text: &[u8]) -> String {
    match verify(
        text,
        &case.layout,
        case.profile,
        &mut vec![0; bounded_buffer_len(text.len())],
    ) {
        Ok(_) => "accept".into(),
        Err(violation) => format!("refuse {}", violation.rule.name()),
    }
}

/// Fills the random bytes `count` times; whatever is accepted must be what other decoders see.
fn agree(case: &Case, count: usize) -> Result<usize, String> {
    let oracles = &mut Oracles::of(case.layout.segment);
    let mut random = fastrand::Rng::with_seed(1);
    let mut accepted = 0;
    for _ in 0..count {
        let mut text: Vec<u8> = Vec::new();
        for byte in &case.bytes {
            text.push(byte.unwrap_or_else(|| random.u8(..)));
        }
        if judge(case, &text) != "accept" {
            continue;
        }
        accepted += 1;
        let mut at = 0;
        while at < text.len() {
            let seen = next(&text, at, case.layout.segment)
                .map_err(|rule| format!("{text:02x?}: {}", rule.name()))?;
            oracles
                .check(&text[at..], &seen)
                .map_err(|what| format!("{text:02x?}: {what}"))?;
            at += seen.length;
        }
    }
    Ok(accepted)
}

#[test]
fn corpus_is_judged_as_it_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/attacks");
    let mut paths: Vec<_> = std::fs::read_dir(&directory)
        .expect("the corpus")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in &paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let mut kinds = [0; 3];
        for part in text.split("\n---\n") {
            let case = match parse(part) {
                Ok(case) => case,
                Err(error) => {
                    wrong.push(format!("{name}: {error}\n{part}"));
                    continue;
                }
            };
            count += 1;
            if let Some(times) = case.expect.strip_prefix("agree ") {
                kinds[2] += 1;
                match agree(&case, times.parse().unwrap()) {
                    Ok(accepted) => println!(
                        "{name}: {}: {accepted} of {times} random texts accepted",
                        case.name
                    ),
                    Err(error) => wrong.push(format!("{name}: {}: {error}", case.name)),
                }
                continue;
            }
            kinds[usize::from(case.expect != "accept")] += 1;
            let bytes: Vec<u8> = case
                .bytes
                .iter()
                .map(|byte| byte.expect("random bytes only in `agree`"))
                .collect();
            let verdict = judge(&case, &bytes);
            if verdict != case.expect {
                wrong.push(format!(
                    "{name}: {}: {verdict}, not {}: {bytes:02x?}",
                    case.name, case.expect
                ));
            }
        }
        if kinds.contains(&0) {
            wrong.push(format!(
                "{name}: has {kinds:?} accepted, refused and random cases; each is needed"
            ));
        }
    }
    println!("{count} cases in {} files", paths.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(paths.len() >= 20, "files are missing from the corpus");
}

#[test]
fn corpus_speaks_of_this_abi() {
    // The hexadecimal cases have these numbers in them.
    assert_eq!(
        (window::INFO, window::GATES, window::SLOT_SIZE),
        (0x1_0000, 0x1_1000, 32)
    );
    assert_eq!(Layout::new(2).text, 0x1_2000);
}
