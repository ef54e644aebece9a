//! Random programs: what they compute by E-code is what they compute by gcc.
//!
//! `ECODE_SEEDS=FROM-TO` runs other programs, as many as wanted.
mod support;
use support::{differential, generate};

/// Functions of one program, so that gcc is started once for many.
const FUNCTIONS: usize = 70;

#[test]
fn random_programs_compute_what_gcc_computes() {
    let seeds = std::env::var("ECODE_SEEDS").unwrap_or("0-30".into());
    let (from, to) = seeds.split_once('-').expect("ECODE_SEEDS is FROM-TO");
    let folder = tempfile::tempdir().unwrap();
    let mut bad = Vec::new();
    for seed in from.parse::<u64>().unwrap()..to.parse().unwrap() {
        let source = generate::program(seed, FUNCTIONS);
        let path = folder.path().join(format!("p{seed}.c"));
        std::fs::write(&path, &source).unwrap();
        let mut names: Vec<String> = (0..FUNCTIONS).map(|n| format!("f{n}")).collect();
        names.push("everything".into());
        let expected = differential::native(&path, &names);
        match differential::confined(&source, &names) {
            Err(error) => bad.push(format!("seed {seed}: {error}")),
            Ok(found) => {
                if let Some(at) = (0..expected.len()).find(|at| expected[*at] != found[*at]) {
                    let per = differential::ARGUMENTS.len();
                    bad.push(format!(
                        "seed {seed}: {}({})",
                        names[at / per],
                        differential::ARGUMENTS[at % per]
                    ));
                }
            }
        }
        if bad.len() > 5 {
            break;
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
