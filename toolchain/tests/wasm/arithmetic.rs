//! Every operation on numbers over pairs of values at the edges of their types, against wabt's
//! interpreter.

use std::fmt::Write as _;

use super::{compare, folder};

const I32: &[u64] = &[
    0,
    1,
    2,
    31,
    32,
    33,
    0x7f,
    0x80,
    0xffff,
    0x8000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0xffff_fffe,
    0x1234_5678,
];
const I64: &[u64] = &[
    0,
    1,
    2,
    63,
    64,
    65,
    0x7f,
    0x80,
    0x8000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
    u64::MAX - 1,
    0x0123_4567_89ab_cdef,
    0x0020_0000_0000_0001,
    0x8000_0080_0000_0001,
];
const F32: &[f32] = &[
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    1.5,
    -1.5,
    2.5,
    -2.5,
    0.499_999_97,
    8_388_607.5,
    8_388_609.0,
    -4_194_304.5,
    1e-45,
    -1e-40,
    f32::MAX,
    f32::MIN_POSITIVE,
    f32::INFINITY,
    f32::NEG_INFINITY,
    2_147_483_648.0,
    -2_147_483_648.0,
    4_294_967_296.0,
    1.8e19,
    f32::NAN,
];
const F64: &[f64] = &[
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    1.5,
    -1.5,
    2.5,
    -2.5,
    0.499_999_999_999_999_94,
    4_503_599_627_370_495.5,
    4_503_599_627_370_497.0,
    -2_251_799_813_685_248.5,
    5e-324,
    -1e-310,
    f64::MAX,
    f64::MIN_POSITIVE,
    f64::INFINITY,
    f64::NEG_INFINITY,
    2_147_483_647.5,
    -2_147_483_648.5,
    4_294_967_295.5,
    9.3e18,
    1.9e19,
    1e-50,
    3.5e38,
    f64::NAN,
];

/// What each operation takes and gives; all but those that may trap.
const OPERATIONS: &[(&str, &str, &str)] = &[
    ("i32", "i32", "clz ctz popcnt eqz extend8_s extend16_s"),
    (
        "i64",
        "i64",
        "clz ctz popcnt extend8_s extend16_s extend32_s",
    ),
    ("i64", "i32", "eqz"),
    (
        "i32i32",
        "i32",
        "add sub mul and or xor shl shr_s shr_u rotl rotr eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u",
    ),
    (
        "i64i64",
        "i64",
        "add sub mul and or xor shl shr_s shr_u rotl rotr",
    ),
    (
        "i64i64",
        "i32",
        "eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u",
    ),
    ("f32", "f32", "abs neg ceil floor trunc nearest sqrt"),
    ("f64", "f64", "abs neg ceil floor trunc nearest sqrt"),
    ("f32f32", "f32", "add sub mul div min max copysign"),
    ("f64f64", "f64", "add sub mul div min max copysign"),
    ("f32f32", "i32", "eq ne lt gt le ge"),
    ("f64f64", "i32", "eq ne lt gt le ge"),
    ("i64", "i32", "i32.wrap_i64"),
    ("i32", "i64", "i64.extend_i32_s i64.extend_i32_u"),
    (
        "i32",
        "f32",
        "f32.convert_i32_s f32.convert_i32_u f32.reinterpret_i32",
    ),
    ("i64", "f32", "f32.convert_i64_s f32.convert_i64_u"),
    ("i32", "f64", "f64.convert_i32_s f64.convert_i32_u"),
    (
        "i64",
        "f64",
        "f64.convert_i64_s f64.convert_i64_u f64.reinterpret_i64",
    ),
    ("f64", "f32", "f32.demote_f64"),
    ("f32", "f64", "f64.promote_f32"),
    (
        "f32",
        "i32",
        "i32.reinterpret_f32 i32.trunc_sat_f32_s i32.trunc_sat_f32_u",
    ),
    ("f64", "i32", "i32.trunc_sat_f64_s i32.trunc_sat_f64_u"),
    ("f32", "i64", "i64.trunc_sat_f32_s i64.trunc_sat_f32_u"),
    (
        "f64",
        "i64",
        "i64.reinterpret_f64 i64.trunc_sat_f64_s i64.trunc_sat_f64_u",
    ),
];

/// The operations that trap for some operands, with the condition (on `$a` and `$b`) under which
/// they are left out.
const PARTIAL: &[(&str, &str, &str)] = &[
    ("i32i32", "div_u rem_u rem_s", "(i32.eqz (local.get $b))"),
    ("i64i64", "div_u rem_u rem_s", "(i64.eqz (local.get $b))"),
    (
        "i32i32",
        "div_s",
        "(i32.or (i32.eqz (local.get $b)) (i32.eq (local.get $b) (i32.const -1)))",
    ),
    (
        "i64i64",
        "div_s",
        "(i32.or (i64.eqz (local.get $b)) (i64.eq (local.get $b) (i64.const -1)))",
    ),
];

/// A module with one function for each operation, which takes it through all values (or pairs) of
/// its operands' types, which lie in memory, and mixes the results. A NaN counts as one, whatever
/// its bits, where WebAssembly leaves them open.
fn arithmetic() -> String {
    let (mut data, mut places) = (Vec::new(), Vec::new());
    let f32s: Vec<u64> = F32.iter().map(|f| u64::from(f.to_bits())).collect();
    let f64s: Vec<u64> = F64.iter().map(|f| f.to_bits()).collect();
    for (ty, values) in [("i32", I32), ("i64", I64), ("f32", &f32s), ("f64", &f64s)] {
        places.push((ty, data.len(), values.len()));
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    let mut text = "(module (memory 1) (data (i32.const 0) \"".to_owned();
    for byte in data {
        let _ = write!(text, "\\{byte:02x}");
    }
    text.push_str("\")\n");
    let place = |ty: &str| places.iter().find(|(name, ..)| *name == ty).unwrap();
    let mut function = |operands: &str, result: &str, operation: &str, left_out: Option<&str>| {
        let (first, second) = operands.split_at(3);
        let operation = match operation.contains('.') {
            true => operation.to_owned(),
            false => format!("{first}.{operation}"),
        };
        let (_, at, count) = place(first);
        let (_, at2, count2) = if second.is_empty() {
            &("", 0, 1)
        } else {
            place(second)
        };
        let b = if second.is_empty() {
            String::new()
        } else {
            format!(
                "(local.set $b ({second}.load offset={at2} (i32.shl (local.get $j) (i32.const 3))))"
            )
        };
        let operands = if second.is_empty() {
            "(local.get $a)"
        } else {
            "(local.get $a) (local.get $b)"
        };
        let exact = ["abs", "neg", "copysign", "reinterpret"]
            .iter()
            .any(|o| operation.contains(o));
        let bits = match result {
            "i32" => "(i64.extend_i32_u (local.get $r))".to_owned(),
            "i64" => "(local.get $r)".to_owned(),
            float => {
                let (bits, nan) = match float {
                    "f32" => ("(i64.extend_i32_u (i32.reinterpret_f32 (local.get $r)))", 1),
                    _ => ("(i64.reinterpret_f64 (local.get $r))", 2),
                };
                let is_number = format!("({float}.eq (local.get $r) (local.get $r))");
                let is_number = if exact { "(i32.const 1)" } else { &is_number };
                format!("(select {bits} (i64.const {nan}) {is_number})")
            }
        };
        let left_out = left_out.unwrap_or("(i32.const 0)");
        let b_type = if second.is_empty() { "i32" } else { second };
        let _ = writeln!(
            text,
            "(func (export \"{operation}\") (result i64) (local $i i32) (local $j i32) (local $a {first}) (local $b {b_type}) \
             (local $r {result}) (local $h i64)\n\
             (loop $outer (local.set $j (i32.const 0)) (loop $inner\n\
               (local.set $a ({first}.load offset={at} (i32.shl (local.get $i) (i32.const 3)))) {b}\n\
               (if {left_out} (then) (else\n\
                 (local.set $r ({operation} {operands}))\n\
                 (local.set $h (i64.add (i64.mul (local.get $h) (i64.const 6364136223846793005)) {bits}))))\n\
               (br_if $inner (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (i32.const {count2}))))\n\
             (br_if $outer (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {count}))))\n\
             (local.get $h))"
        );
    };
    for (operands, result, operations) in OPERATIONS {
        for operation in operations.split(' ') {
            function(operands, result, operation, None);
        }
    }
    for (operands, operations, left_out) in PARTIAL {
        for operation in operations.split(' ') {
            function(operands, &operands[..3], operation, Some(left_out));
        }
    }
    text.push(')');
    text
}

#[test]
fn arithmetic_at_the_edges() {
    let file = folder("arithmetic").join("arithmetic.wat");
    std::fs::write(&file, arithmetic()).unwrap();
    // The names have dots, which the extension's have not.
    let renamed = std::fs::read_to_string(&file).unwrap();
    let renamed: Vec<String> = renamed
        .lines()
        .map(|line| match line.strip_prefix("(func (export \"") {
            Some(rest) => format!("(func (export \"{}", rest.replacen('.', "_", 1)),
            None => line.to_owned(),
        })
        .collect();
    std::fs::write(&file, renamed.join("\n")).unwrap();
    for flags in ["-O0", "-O2", "-O3 -march=x86-64-v3"] {
        assert_eq!(compare(&file, flags), 128, "{flags}");
    }
}
