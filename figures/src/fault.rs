//! From a fault in an extension to the value that the host gets, beside the bare delivery of the
//! same signal.

use crate::clock::{best_mean, time};
use crate::figure::{Figure, Goal};
use crate::trusted::signal::BareHandler;
use postern::{Domain, FaultKind, Image, Placement};
use postern_image::ImageBuilder;

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    // mov %gs:0, %eax; ret
    let mut builder = ImageBuilder::new([0x65, 0x67, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0xc3]);
    builder.export(
        "load_null",
        0,
        Some("i()".parse().map_err(|e| format!("{e}"))?),
    );
    let file = builder.build().map_err(|e| e.to_string())?;
    let image = Image::from_bytes(&file).map_err(|e| e.to_string())?;
    let domain = Domain::builder(&image)
        .placement(Placement::Cold)
        .build()
        .map_err(|e| e.to_string())?;
    let function = domain
        .func::<fn() -> i32>("load_null")
        .map_err(|e| e.to_string())?;
    let mut kind = None;
    let mut caught = || {
        let (spent, result) = time(|| function.call());
        let error = result.err().ok_or("a load from null returned")?;
        kind = error.fault().map(|fault| fault.kind);
        domain.reset().map_err(|e| e.to_string())?;
        Ok::<_, String>(spent)
    };
    let (mut ours, mut bare) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..20 {
        ours = ours.min(best_mean(1, 200, &mut caught)?);
        let handler = BareHandler::install();
        bare = bare.min(best_mean(1, 200, || {
            Ok::<_, String>(time(|| handler.fault()).0)
        })?);
    }
    let kind: Option<FaultKind> = kind;
    let kind = kind.ok_or("a load from null was no fault")?;
    Ok(vec![
        Figure::plain(
            "fault.caught",
            ours * 1e9,
            "ns",
            format!(
                "call, fault ({}), value in the host's hands; over a bare \
                 signal whose handler edits the context",
                kind.name()
            ),
        )
        .against(bare * 1e9)
        .goal(Goal::RatioAtMost(1.3)),
    ])
}
