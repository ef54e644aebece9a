//! The gates' labels, by which a place in them is known.

use postern::testing;

/// The label whose range holds `pc`.
pub fn label(labels: &[(&'static str, usize)], pc: u64) -> Option<&'static str> {
    let after = labels.partition_point(|l| l.1 as u64 <= pc);
    let name = (0 < after && after < labels.len()).then(|| labels[after - 1].0);
    name.filter(|name| !is_end(name))
}

/// Whether what is behind the label is not the gates' any more.
pub fn is_end(label: &str) -> bool {
    label.ends_with("_end")
}

/// A place as it is told: in gates behind the label before it.
pub fn place(pc: u64) -> String {
    let labels = testing::labels();
    let Some(name) = label(&labels, pc) else {
        return format!("{pc:#x}");
    };
    let start = labels.iter().find(|l| l.0 == name).map_or(0, |l| l.1);
    format!("{name}+{:#x}", pc - start as u64)
}
