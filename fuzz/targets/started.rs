//! Postern beside the fuzzer.

use std::sync::LazyLock;

/// Starts Postern once. The fuzzer's own signal handlers are without SA_ONSTACK.
pub static STARTED: LazyLock<()> = LazyLock::new(|| {
    let mut config = postern::Config::default();
    config.adopt_handlers = true;
    postern::init(config).expect("Postern starts");
});
