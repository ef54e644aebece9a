//! What cannot be in code for ring 0, found in a function's intermediate form: floating point, for
//! vector registers are the interrupted program's, and calls through pointers, for then nobody
//! knows how deep calls nest on the kernel's own stack. Recursion is found when all functions are
//! together (`order`).

use alloc::string::ToString;

use crate::diagnostics::Rule;
use crate::ir::{Code, Inst, NONE, Op};
use crate::parse::Parser;

/// Reports what of the function cannot be, each with its place.
pub(crate) fn check(code: &Code, parser: &mut Parser) {
    for block in &code.blocks {
        let inside = code.ins.get(block.first as usize..block.last as usize);
        for ins in inside.into_iter().flatten().chain([&block.term]) {
            if floating(code, ins) {
                let help =
                    "compute in whole numbers; vector registers are the interrupted program's";
                report(
                    parser,
                    ins.at,
                    "floating point in code for the kernel",
                    help,
                );
            }
            if ins.op == Op::Call && ins.a != NONE {
                let help = "call functions by name, in a `switch` or a chain of `if`s: the depth of calls has to be known";
                report(
                    parser,
                    ins.at,
                    "a call through a pointer in code for the kernel",
                    help,
                );
            }
        }
    }
    if code.params.iter().any(|(_, ty)| ty.is_float()) {
        let help = "pass whole numbers; vector registers are the interrupted program's";
        report(
            parser,
            code.from,
            "a floating-point parameter in code for the kernel",
            help,
        );
    }
}

fn floating(code: &Code, ins: &Inst) -> bool {
    let of_floats = matches!(
        ins.op,
        Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FDiv
            | Op::FNeg
            | Op::FSet
            | Op::FCvt
            | Op::ToFloat
            | Op::ToInt
            | Op::FBranch
    );
    let passed = || {
        let args = code.args.get(ins.b as usize..(ins.b + ins.c) as usize);
        args.into_iter().flatten().any(|arg| arg.ty.is_float())
    };
    ins.op != Op::Nop && (ins.ty.is_float() || of_floats || ins.op == Op::Call && passed())
}

fn report(parser: &mut Parser, at: u32, what: &str, help: &str) {
    parser.error(Rule::Unsupported, at, what.to_string(), help);
}
