//! What turns sources into confined objects, as text: libraries that were made by another rewriter,
//! or with other flags, are made anew.

/// The texts.
pub const MAKER: &[&str] = &[
    include_str!("../assembly.rs"),
    include_str!("../assembly/expression.rs"),
    include_str!("../assembly/macros.rs"),
    include_str!("../assembly/macros/condition.rs"),
    include_str!("../assembly/parse.rs"),
    include_str!("../assembly/register.rs"),
    include_str!("../assembly/scan.rs"),
    include_str!("../rewrite.rs"),
    include_str!("../rewrite/directive.rs"),
    include_str!("../rewrite/emit.rs"),
    include_str!("../rewrite/emit/branch.rs"),
    include_str!("../rewrite/emit/frame.rs"),
    include_str!("../rewrite/emit/plain.rs"),
    include_str!("../rewrite/examine.rs"),
    include_str!("../rewrite/flags.rs"),
    include_str!("../rewrite/flow.rs"),
    include_str!("../rewrite/instruction_set.rs"),
    include_str!("../rewrite/operand.rs"),
    include_str!("../rewrite/program.rs"),
    include_str!("../rewrite/stack.rs"),
    include_str!("../rewrite/strings.rs"),
    include_str!("../rewrite/thread_local.rs"),
    include_str!("flags.rs"),
];
