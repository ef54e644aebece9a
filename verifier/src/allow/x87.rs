//! x87 arithmetic. An image that uses it is flagged in its `Facts`, and its gates reset the unit.
//!
//! Absent on purpose: fldenv, fnstenv, fnsave, frstor (they move the whole state, old mantissas and
//! last addresses included); `fxam`, which tells the sign even of an empty register, that is, of a
//! value that the host left; fnop and the undocumented aliases.

use crate::row::{Row, x87};

pub(crate) const ROWS: &[Row] = &[
    x87("fwait", "9B", ""),
    x87(
        "fadd fmul fcom fcomp fsub fsubr fdiv fdivr",
        "D8 /0-7",
        "Md",
    ),
    x87(
        "fadd fmul fcom fcomp fsub fsubr fdiv fdivr",
        "D8 C0-FF",
        "S",
    ),
    x87("fld", "D9 /0", "Md"),
    x87("fst fstp", "D9 /2-3", "Md"),
    x87("fldcw", "D9 /5", "Mw"),
    x87("fnstcw", "D9 /7", "Mw"),
    x87("fld fxch", "D9 C0-CF", "S"),
    x87("fchs fabs", "D9 E0-E1", "S"),
    x87("ftst", "D9 E4", "S"),
    x87(
        "fld1 fldl2t fldl2e fldpi fldlg2 fldln2 fldz",
        "D9 E8-EE",
        "S",
    ),
    x87(
        "f2xm1 fyl2x fptan fpatan fxtract fprem1 fdecstp fincstp fprem fyl2xp1 fsqrt fsincos frndint fscale fsin fcos",
        "D9 F0-FF",
        "S",
    ),
    x87(
        "fiadd fimul ficom ficomp fisub fisubr fidiv fidivr",
        "DA /0-7",
        "Md",
    ),
    x87("fcmovb fcmove fcmovbe fcmovu", "DA C0-DF", "S"),
    x87("fucompp", "DA E9", "S"),
    x87("fild fisttp fist fistp", "DB /0-3", "Md"),
    x87("fld", "DB /5", "M"),
    x87("fstp", "DB /7", "M"),
    x87("fcmovnb fcmovne fcmovnbe fcmovnu", "DB C0-DF", "S"),
    x87("fnclex fninit", "DB E2-E3", "S"),
    x87("fucomi fcomi", "DB E8-F7", "S"),
    x87(
        "fadd fmul fcom fcomp fsub fsubr fdiv fdivr",
        "DC /0-7",
        "Mq",
    ),
    x87("fadd fmul", "DC C0-CF", "S"),
    x87("fsubr fsub fdivr fdiv", "DC E0-FF", "S"),
    x87("fld fisttp fst fstp", "DD /0-3", "Mq"),
    x87("fnstsw", "DD /7", "Mw"),
    x87("ffree", "DD C0-C7", "S"),
    x87("fst fstp", "DD D0-DF", "S"),
    x87("fucom fucomp", "DD E0-EF", "S"),
    x87(
        "fiadd fimul ficom ficomp fisub fisubr fidiv fidivr",
        "DE /0-7",
        "Mw",
    ),
    x87("faddp fmulp", "DE C0-CF", "S"),
    x87("fcompp", "DE D9", "S"),
    x87("fsubrp fsubp fdivrp fdivp", "DE E0-FF", "S"),
    x87("fild fisttp fist fistp", "DF /0-3", "Mw"),
    x87("fbld", "DF /4", "M"),
    x87("fild", "DF /5", "Mq"),
    x87("fbstp", "DF /6", "M"),
    x87("fistp", "DF /7", "Mq"),
    x87("fnstsw", "DF E0", "S"),
    x87("fucomip fcomip", "DF E8-F7", "S"),
];
