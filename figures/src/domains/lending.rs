//! What it costs to borrow a domain from a pool, and to call a module, which can be replaced,
//! instead of a domain.

use super::{Touch, entry, instance};
use crate::clock::best_of;
use crate::figure::{Figure, Goal};
use postern::{Image, Module, Placement, Pool, PoolBuilder, Recycle};

const CALLS: usize = 20_000;

/// A pool of one domain's entry.
fn pool(image: &Image) -> PoolBuilder<Touch> {
    let image = image.clone();
    Pool::builder(move || entry(&instance(&image)?)).size(1)
}

/// The figures, of an image with `i(i) touch`.
pub fn figures(image: &Image) -> Result<Vec<Figure>, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let plain = entry(&instance(image)?)?;
    let module = Module::new(image, |builder| builder.placement(Placement::Cold));
    let module = module.map_err(|e| text(&e))?;
    let followed = module
        .func::<fn(i32) -> i32>("touch")
        .map_err(|e| text(&e))?;
    let kept = pool(image).recycle(Recycle::Keep);
    let own = kept.per_thread().build().map_err(|e| text(&e))?;
    let kept = pool(image).recycle(Recycle::Keep);
    let kept = kept.build().map_err(|e| text(&e))?;
    let reset = pool(image).build().map_err(|e| text(&e))?;
    let mut failed = None;
    let mut note = |result: Result<i32, postern::CallError>| {
        if let Err(error) = result {
            failed = Some(error.to_string());
        }
    };
    let mut lost = 0;
    let mut borrow = |pool: &Pool<Touch>, times: usize| {
        for _ in 0..times {
            match pool.with(|touch| touch.call(1)) {
                Ok(Ok(2)) => {}
                _ => lost += 1,
            }
        }
    };
    let borrow = std::cell::RefCell::new(&mut borrow);
    let note = std::cell::RefCell::new(&mut note);
    let [one, module, own, kept, reset] = best_of(
        20,
        [
            &mut || (0..CALLS).for_each(|_| note.borrow_mut()(plain.call(1))),
            &mut || (0..CALLS).for_each(|_| note.borrow_mut()(followed.call(1))),
            &mut || borrow.borrow_mut()(&own, CALLS),
            &mut || borrow.borrow_mut()(&kept, CALLS),
            &mut || borrow.borrow_mut()(&reset, CALLS / 10),
        ],
    );
    if let Some(error) = failed {
        return Err(error);
    }
    if lost != 0 {
        return Err(format!("{lost} loans of a pool failed"));
    }
    let ns = |seconds: f64| seconds * 1e9 / CALLS as f64;
    Ok(vec![
        Figure::plain(
            "domains.module-call",
            ns(module),
            "ns",
            "a call of a module's function, over the same call of a domain's",
        )
        .against(ns(one))
        .goal(Goal::RatioAtMost(1.2)),
        Figure::plain(
            "domains.pool-own",
            ns(own),
            "ns",
            "borrow the thread's own domain, call it, give it back, over the call alone",
        )
        .against(ns(one)),
        Figure::plain(
            "domains.pool-kept",
            ns(kept),
            "ns",
            "the same with a pool that all threads share",
        )
        .against(ns(one)),
        Figure::plain(
            "domains.pool-reset",
            ns(reset) * 10.0,
            "ns",
            "the same with a reset between two loans: two dirty pages each",
        )
        .against(ns(one))
        .goal(Goal::AtMost(4000.0)),
    ])
}
