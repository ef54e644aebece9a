//! The examples of the reference page: E-code and gcc make the same of them.
use crate::support;
use support::differential;

#[test]
fn examples_of_the_reference_compute_what_gcc_computes() {
    let page = include_str!("../../docs/src/reference/ecode.md");
    let folder = tempfile::tempdir().unwrap();
    let examples: Vec<&str> = page
        .split("```ecode\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(examples.len() >= 4);
    for (n, source) in examples.into_iter().enumerate() {
        let path = folder.path().join(format!("example{n}.c"));
        std::fs::write(&path, source).unwrap();
        let names = ["example".to_owned()];
        assert_eq!(
            differential::confined(source, &names).unwrap(),
            differential::native(&path, &names),
            "{source}"
        );
    }
}

/// The kernels, too, so that their speeds are of the same work.
#[test]
fn kernels_compute_what_gcc_computes() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels")).unwrap() {
        let path = entry.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("kernel.c");
        std::fs::write(
            &copy,
            source.replace(
                "kernel(long rounds)\n{",
                "kernel(long rounds)\n{\n\trounds &= 3;",
            ),
        )
        .unwrap();
        let source = std::fs::read_to_string(&copy).unwrap();
        let names = ["kernel".to_owned()];
        assert_eq!(
            differential::confined(&source, &names).unwrap(),
            differential::native(&copy, &names),
            "{}",
            path.display()
        );
    }
}
