//! Images that programs in the machine ask the kernel's judge about, each with what the same judge
//! says here: the kernel is to say the same.

use postern_image::builder::ImageBuilder;
use postern_kernel_judge::{Verdict, image};
use postern_verifier::Segment;

/// The images by the names of their files in the archive.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    let built = |text: &[u8]| {
        let mut builder = ImageBuilder::new(text);
        builder.segment(Segment::Fs).export("f", 0, None);
        builder.build().unwrap_or_default()
    };
    // lea 2(%rdi), %eax; ret
    let accepted = built(&[0x8d, 0x47, 0x02, 0xc3]);
    // mov (%rdi), %rax; ret: an address that nothing bounds
    let refused = built(&[0x48, 0x8b, 0x07, 0xc3]);
    // Something long, so that the judge has work: ten thousand additions.
    let mut long = [0x83, 0xc0, 0x01].repeat(10_000);
    long.push(0xc3);
    let long = built(&long);
    let mut broken = accepted.clone();
    broken.truncate(accepted.len() / 2);
    vec![
        ("judge.accepted", accepted),
        ("judge.long", long),
        ("judge.refused", refused),
        ("judge.broken", broken),
        ("judge.empty", Vec::new()),
    ]
}

/// What the judge says of an image, as the kernel stores it: four words.
pub fn verdict(file: &[u8]) -> Vec<u8> {
    let Verdict {
        verdict,
        rule,
        place,
        depth,
        at,
        instructions,
        longest_path,
    } = image(file);
    let halves = [verdict, rule, place, depth];
    let mut bytes: Vec<u8> = halves.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.extend(at.to_le_bytes());
    bytes.extend(instructions.to_le_bytes());
    bytes.extend(longest_path.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_what_the_names_say() {
        for (name, file) in all() {
            let accepted = image(&file).verdict == postern_kernel_judge::ACCEPTED;
            let named = matches!(name, "judge.accepted" | "judge.long");
            assert_eq!(accepted, named, "{name}: {:?}", image(&file));
            assert_eq!(verdict(&file).len(), 32);
        }
    }
}
