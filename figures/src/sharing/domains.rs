//! Domains that have a memory with others, beside one that has not.

use postern::{CommonMemory, Domain, Func, Image, Placement};
use std::hint::black_box;

/// One of this process alone.
pub fn private(image: &Image) -> Result<Domain, String> {
    let builder = Domain::builder(image).placement(Placement::Cold);
    builder.build().map_err(|error| error.to_string())
}

/// One that has the memory.
pub fn common(image: &Image, memory: &CommonMemory) -> Result<Domain, String> {
    let builder = Domain::builder(image).common(memory);
    builder.build().map_err(|error| error.to_string())
}

/// As these figures' functions are.
pub type Function = Func<fn(i32) -> i32>;

/// One of its functions.
pub fn function(domain: &Domain, name: &str) -> Result<Function, String> {
    domain.func(name).map_err(|error| error.to_string())
}

/// Calls it so often, each time with what the last one returned.
pub fn repeat(count: u64, mut call: impl FnMut(i32) -> i32) {
    let mut x = 0;
    for _ in 0..count {
        x = call(x);
    }
    black_box(x);
}
