//! Random programs of the language, without undefined behaviour under gcc's `-fwrapv
//! -fno-strict-aliasing`.
//!
//! Every function has the type `long fK(long)`; what it computes depends on its parameter, on
//! globals, and on the functions before it. Side effects stand only where C orders them.
#![allow(dead_code, reason = "each program uses a part")]

use fastrand::Rng;
use std::fmt::Write;

const INTS: &[&str] = &[
    "char",
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "int",
    "unsigned",
    "_Bool",
];

/// What every program begins with: types and functions that change nothing.
const TYPES: &str = "
typedef unsigned char u8; typedef unsigned int u32; typedef unsigned long u64;
enum color { RED, GREEN = 5, BLUE = -3 };
struct small { char c; short s; };
struct point { int x; long y; unsigned char z; double d; };
struct nest { struct point p[2]; struct small s; int *q; union { int i; unsigned char b[4]; float f; } u; };
const int table[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
static long mix(long h, long v) { return (h ^ v) * 1099511628211l + (h >> 29); }
static struct point move(struct point p, int by) { p.x += by; p.y -= by; p.d = p.d * 0.5 + by; return p; }
static struct small flip(struct small s) { struct small r = { s.s, s.c }; return r; }
static int twice(int x) { return x * 2; }
static int negate(int x) { return -x; }
static int third(int x) { return x / 3; }
static int (*const functions[4])(int) = { twice, negate, third, twice };
static double many(int a, double b, long c, float d, char e, double f, unsigned g, int h, long i, short j) {
	return a + b * 2 + c % 1000 - d + e * f + g % 77 - h + i % 33 + j; }
";

/// The objects that the functions of a program work on.
const OBJECTS: &str = "
char gc = 3; short gs = -7; int gi = 1234567; unsigned gu = 4000000000u; long gl = -5; unsigned long gul = 1ul << 63;
double gd = 1.5; float gf = -0.25f; _Bool gb = 1; static int hidden = 17; volatile int gv = 9;
int ga[8] = { 1, -2, 3, [5] = 7, 9 }; unsigned char gbytes[16] = \"hello, world\"; long gm[4][4] = { { 1, 2 }, { 3 }, { [2] = 4 } };
double gds[4] = { 0.5, -1e10, 3 }; struct point gp = { 1, 2, 3, 4.5 }; struct nest gn = { .s = { 1, 2 }, .p[1].y = 99 };
";

/// Their names, those of the other functions aside.
const NAMES: [&str; 17] = [
    "gc", "gs", "gi", "gu", "gl", "gul", "gd", "gf", "gb", "hidden", "gv", "ga", "gbytes", "gm",
    "gds", "gp", "gn",
];

/// What every program ends with.
const EPILOGUE: &str = "
long everything(void) {
	long h = 7; int i, j;
	h = mix(h, gc); h = mix(h, gs); h = mix(h, gi); h = mix(h, gu); h = mix(h, gl); h = mix(h, gul); h = mix(h, gb); h = mix(h, gv);
	h = mix(h, hidden); h = mix(h, gd > 0 && gd < 1e9 ? (long)(gd * 16) : 5); h = mix(h, gf > 0 && gf < 1e9f ? (long)gf : 6);
	for (i = 0; i < 8; i++) h = mix(h, ga[i]);
	for (i = 0; i < 16; i++) h = mix(h, gbytes[i]);
	for (i = 0; i < 4; i++) for (j = 0; j < 4; j++) h = mix(h, gm[i][j]);
	h = mix(h, gp.x); h = mix(h, gp.y); h = mix(h, gp.z); h = mix(h, gn.s.c); h = mix(h, gn.s.s); h = mix(h, gn.u.i);
	for (i = 0; i < 2; i++) { h = mix(h, gn.p[i].x); h = mix(h, gn.p[i].y); h = mix(h, gn.p[i].z); }
	return h;
}
";

pub struct Program {
    random: Rng,
    out: String,
    /// Integer variables that may be read, and those that may be written.
    read: Vec<String>,
    write: Vec<String>,
    floats: Vec<String>,
    depth: usize,
    names: usize,
    functions: usize,
    loops: usize,
}

/// A program with `functions` functions `long fK(long)`.
pub fn program(seed: u64, functions: usize) -> String {
    String::from(TYPES) + &body(seed, functions)
}

/// Many programs (seed and functions) as one, so that gcc is started once: every name of program N
/// begins with `pN_`.
pub fn batch(programs: &[(u64, usize)]) -> String {
    let mut text = String::from(TYPES);
    for (seed, functions) in programs {
        let own = (0..*functions).map(|n| format!("f{n}"));
        let names = NAMES.map(String::from).into_iter().chain(own);
        let names: Vec<String> = names.chain(["everything".into()]).collect();
        for name in &names {
            writeln!(text, "#define {name} p{seed}_{name}").unwrap();
        }
        text += &body(*seed, *functions);
        for name in &names {
            writeln!(text, "#undef {name}").unwrap();
        }
    }
    text
}

/// A program without its types.
fn body(seed: u64, functions: usize) -> String {
    let mut program = Program {
        random: Rng::with_seed(seed),
        out: OBJECTS.into(),
        read: Vec::new(),
        write: Vec::new(),
        floats: Vec::new(),
        depth: 0,
        names: 0,
        functions: 0,
        loops: 0,
    };
    for _ in 0..functions {
        program.function();
    }
    program.out + EPILOGUE
}

impl Program {
    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.random.usize(..list.len())]
    }

    fn function(&mut self) {
        self.read = [
            "gc",
            "gs",
            "gi",
            "gu",
            "gl",
            "gul",
            "gb",
            "hidden",
            "gp.x",
            "gp.y",
            "gp.z",
            "gn.s.c",
            "gn.p[1].y",
            "gv",
            "p",
            "gn.u.i",
        ]
        .map(String::from)
        .to_vec();
        self.write = self.read.clone();
        self.floats = vec!["gd".into(), "gf".into(), "gp.d".into(), "gds[2]".into()];
        self.names = 0;
        self.loops = 0;
        let number = self.functions;
        writeln!(self.out, "long f{number}(long p) {{").unwrap();
        writeln!(self.out, "\tlong h = {number}; int t0 = 0; int la[8] = {{ 5, 4, 3 }}; int *lp = &la[2]; struct point sp = gp; u8 *bp = gbytes;").unwrap();
        writeln!(self.out, "\tint taken = p; int *tp = &taken; static int kept = 3; double ld = p % 100 * 0.25; struct nest *np = &gn;").unwrap();
        for name in [
            "la[1]",
            "lp[0]",
            "*lp",
            "sp.x",
            "sp.y",
            "sp.z",
            "*bp",
            "taken",
            "*tp",
            "kept",
            "np->s.s",
            "np->p[0].x",
            "np->u.b[2]",
        ] {
            self.read.push(name.into());
            self.write.push(name.into());
        }
        self.floats.push("ld".into());
        self.floats.push("sp.d".into());
        for _ in 0..2 + self.random.usize(..3) {
            self.declaration();
        }
        for _ in 0..3 + self.random.usize(..7) {
            self.statement();
        }
        let last = self.expression(2);
        writeln!(
            self.out,
            "\th = mix(h, {last}); h = mix(h, taken); h = mix(h, sp.x + la[3]); h = mix(h, t0);"
        )
        .unwrap();
        writeln!(
            self.out,
            "\th = mix(h, ld > -1e9 && ld < 1e9 ? (int)ld : 3);\n\treturn h;\n}}"
        )
        .unwrap();
        self.functions += 1;
    }

    fn declaration(&mut self) {
        let ty = self.pick(INTS);
        let value = self.expression(2);
        let name = format!("v{}", self.names);
        self.names += 1;
        writeln!(self.out, "\t{ty} {name} = {value};").unwrap();
        self.read.push(name.clone());
        self.write.push(name);
    }

    fn line(&mut self, text: String) {
        writeln!(self.out, "\t{text}").unwrap();
    }

    fn block(&mut self) {
        let (read, write) = (self.read.len(), self.write.len());
        self.depth += 1;
        for _ in 0..1 + self.random.usize(..3) {
            if self.random.usize(..6) == 0 {
                self.declaration();
            } else {
                self.statement();
            }
        }
        self.depth -= 1;
        self.read.truncate(read);
        self.write.truncate(write);
    }

    fn variable(&mut self) -> String {
        let n = self.random.usize(..self.write.len());
        self.write[n].clone()
    }

    fn statement(&mut self) {
        let simple = self.depth >= 3;
        match self.random.usize(..if simple { 12 } else { 20 }) {
            0..4 => {
                let (target, value) = (self.variable(), self.expression(3));
                self.line(format!("{target} = {value};"));
            }
            4 | 5 => {
                let target = self.variable();
                let (op, value) = match self.random.usize(..10) {
                    0..5 => (
                        self.pick(&["+=", "-=", "^=", "|=", "&=", "*="]),
                        self.expression(2),
                    ),
                    5 => (
                        self.pick(&["<<=", ">>="]),
                        format!("({}) & 7", self.expression(1)),
                    ),
                    6 => (
                        self.pick(&["/=", "%="]),
                        format!("(int)(({}) & 63) + 1", self.expression(1)),
                    ),
                    7 => (
                        self.pick(&["/=", "%="]),
                        self.pick(&["3", "7", "10", "1000", "8", "60", "255u", "100000"])
                            .into(),
                    ),
                    _ => ("+=", self.expression(1)),
                };
                self.line(format!("{target} {op} {value};"));
            }
            6 => {
                let n = self.variable();
                let op = self.pick(&["++", "--"]);
                let text = if self.random.bool() {
                    format!("t0 += ({n}){op};")
                } else {
                    format!("t0 ^= {op}({n});")
                };
                self.line(text);
            }
            7 => {
                let value = self.float(2);
                let n = self.random.usize(..self.floats.len());
                let target = self.floats[n].clone();
                self.line(format!("{target} = {value}; if (!({target} > -1e15 && {target} < 1e15)) {target} = 0.5;"));
            }
            8 => {
                let value = self.expression(2);
                self.line(format!("h = mix(h, {value});"));
            }
            9 => self.special(),
            10 => {
                let (a, b) = (self.index(8), self.index(8));
                self.line(format!(
                    "lp = la + {a}; bp = &gbytes[{b}]; t0 += lp - la + (bp > gbytes);"
                ));
            }
            11 if self.functions > 0 => {
                let (n, value) = (self.random.usize(..self.functions), self.expression(1));
                if self.loops == 0 && self.depth < 2 {
                    self.line(format!("if (gv++ < 400) h = mix(h, f{n}({value}));"));
                }
            }
            11 => {}
            12..15 => {
                let condition = self.condition();
                self.line(format!("if ({condition}) {{"));
                self.block();
                if self.random.bool() {
                    self.line("} else {".into());
                    self.block();
                }
                self.line("}".into());
            }
            15 | 16 => self.repeat(),
            17 => self.switch(),
            18 => {
                let label = format!("l{}", self.names);
                self.names += 1;
                let condition = self.condition();
                self.line(format!("if ({condition}) goto {label};"));
                self.statement();
                self.line(format!("{label}: t0++;"));
            }
            _ => {
                self.line("{".into());
                self.block();
                self.line("}".into());
            }
        }
    }

    fn special(&mut self) {
        let (e, k) = (self.expression(1), self.index(4));
        let text = match self.random.usize(..10) {
            0 => format!("sp = move(sp, {e});"),
            1 => format!("gp = move(move(gp, {e}), 3); gn.s = flip(gn.s);"),
            2 => format!("t0 += functions[{k}]({e});"),
            3 => format!(
                "ld = many({e}, ld, {e}, gf, 5, gd, {k}, t0, {e}, -3); if (!(ld > -1e12 && ld < 1e12)) ld = 1;"
            ),
            4 => format!("gm[{k}][{}] = {e};", self.index(4)),
            5 => format!("{{ struct nest copy = gn; copy.p[1].y ^= {e}; gn = copy; np = &gn; }}"),
            6 => format!("h = mix(h, ({e}, {k}));"),
            7 => format!(
                "{{ long e = {e}; *bp++ = e; bp--; t0 ^= *bp; t0 += sizeof(struct nest) + sizeof la; }}"
            ),
            8 => format!("sp = (struct point){{ {k}, .d = 0.5, .z = {e} }};"),
            _ => format!("{{ int *e = la + 8, *i = la; while (i != e) t0 += *i++ ^ {k}; }}"),
        };
        self.line(text);
    }

    fn repeat(&mut self) {
        let i = format!("i{}", self.names);
        self.names += 1;
        let most = 1 + self.random.usize(..7);
        self.loops += 1;
        self.read.push(i.clone());
        let kind = self.random.usize(..4);
        match kind {
            0 => self.line(format!("for (int {i} = 0; {i} < {most}; {i}++) {{")),
            1 => self.line(format!("for (unsigned {i} = {most}; {i} > 0; {i} -= 1) {{")),
            2 => self.line(format!("{{ int {i} = 0; while ({i}++ < {most}) {{")),
            _ => self.line(format!("{{ long {i} = {most}; do {{")),
        }
        self.block();
        if self.random.usize(..3) == 0 {
            let condition = self.condition();
            let word = if kind < 3 {
                self.pick(&["break", "continue"])
            } else {
                "break"
            };
            self.line(format!("if ({condition}) {word};"));
            self.statement();
        }
        self.line(match kind {
            0 | 1 => "}".into(),
            2 => "} }".into(),
            _ => format!("}} while (--{i} > 0); }}"),
        });
        if let Some(at) = self.read.iter().position(|name| *name == i) {
            self.read.remove(at);
        }
        self.loops -= 1;
    }

    fn switch(&mut self) {
        let value = self.expression(2);
        let spread = self.pick(&["& 7", "% 5", "& 0x30", ""]);
        self.line(format!("switch (({value}) {spread}) {{"));
        let mut used = Vec::new();
        for _ in 0..1 + self.random.usize(..8) {
            let case = match self.random.usize(..4) {
                0 => self.random.usize(..64) as i64 - 8,
                1 => (self.random.usize(..4) * 16) as i64,
                _ => self.random.usize(..8) as i64,
            };
            if !used.contains(&case) {
                used.push(case);
                self.line(format!("case {case}:"));
                self.statement();
                if self.random.usize(..3) > 0 {
                    self.line("break;".into());
                }
            }
        }
        if self.random.bool() {
            self.line("default:".into());
            self.statement();
        }
        self.line("}".into());
    }

    fn index(&mut self, size: usize) -> String {
        let e = self.expression(1);
        if self.random.bool() {
            format!("(({e}) & {})", size - 1)
        } else {
            self.random.usize(..size).to_string()
        }
    }

    fn condition(&mut self) -> String {
        match self.random.usize(..8) {
            0..4 => {
                let (a, b) = (self.expression(2), self.expression(2));
                let op = self.pick(&["<", ">", "<=", ">=", "==", "!="]);
                format!("{a} {op} {b}")
            }
            4 => format!(
                "({}) & {}",
                self.expression(2),
                1 << self.random.usize(..12)
            ),
            5 => {
                let op = self.pick(&["<", ">", "<=", ">=", "==", "!="]);
                format!("{} {op} {}", self.float(1), self.float(1))
            }
            6 => format!(
                "({}) {} !({})",
                self.condition(),
                self.pick(&["&&", "||"]),
                self.expression(1)
            ),
            _ => self.expression(2),
        }
    }

    fn float(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.usize(..3) == 0 {
            return match self.random.usize(..3) {
                0 => self
                    .pick(&["0.5", "-3.25", "1e3", "2.0f", "0.1", "7", "-0.0", "1e-3f"])
                    .into(),
                _ => {
                    let n = self.random.usize(..self.floats.len());
                    self.floats[n].clone()
                }
            };
        }
        match self.random.usize(..6) {
            0..4 => format!(
                "({} {} {})",
                self.float(depth - 1),
                self.pick(&["+", "-", "*"]),
                self.float(depth - 1)
            ),
            4 => format!(
                "({} / ({} & 15 | 1))",
                self.float(depth - 1),
                self.integer()
            ),
            _ => {
                let ty = self.pick(&["double", "float"]);
                format!("({ty})({})", self.expression(1))
            }
        }
    }

    /// An operand of an integer operator whose type is an integer type.
    fn integer(&mut self) -> String {
        let n = self.random.usize(..self.read.len());
        self.read[n].clone()
    }

    fn constant(&mut self) -> String {
        match self.random.usize(..8) {
            0..4 => format!("{}", self.random.usize(..20)),
            4 => format!("(-{})", self.random.usize(..1000)),
            5 => format!("{}u", self.random.u32(..)),
            6 => format!("0x{:x}l", self.random.u64(..1 << 48)),
            _ => self
                .pick(&[
                    "255",
                    "65535",
                    "'x'",
                    "GREEN",
                    "BLUE",
                    "0x7fffffff",
                    "1000000007",
                    "sizeof(int)",
                ])
                .into(),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.usize(..5) == 0 {
            return if self.random.usize(..3) == 0 {
                self.constant()
            } else {
                self.integer()
            };
        }
        let d = depth - 1;
        match self.random.usize(..20) {
            0..8 => {
                let op = self.pick(&["+", "-", "*", "&", "|", "^", "+", "-"]);
                format!("({} {op} {})", self.expression(d), self.expression(d))
            }
            8 => format!(
                "({} {} ({} & 31))",
                self.expression(d),
                self.pick(&["<<", ">>"]),
                self.expression(d)
            ),
            9 => format!(
                "({} {} {})",
                self.expression(d),
                self.pick(&["/", "%"]),
                self.pick(&["3", "-7", "10u", "16", "1000l", "641", "2", "0x10001ul"])
            ),
            10 => format!(
                "({} / (int)(({} & 255) + 1))",
                self.expression(d),
                self.expression(d)
            ),
            11 => format!(
                "({} {} {})",
                self.expression(d),
                self.pick(&["<", ">", "<=", ">=", "==", "!="]),
                self.expression(d)
            ),
            12 => format!("({}{})", self.pick(&["-", "~", "!"]), self.expression(d)),
            13 => format!("(({})({}))", self.pick(INTS), self.expression(d)),
            14 => format!(
                "({} ? {} : {})",
                self.condition(),
                self.expression(d),
                self.expression(d)
            ),
            15 => format!(
                "({} {} {})",
                self.expression(d),
                self.pick(&["&&", "||"]),
                self.expression(d)
            ),
            16 => {
                let array = self.pick(&["la", "ga", "table", "gbytes"]);
                let index = self.index(8);
                format!("{array}[{index}]")
            }
            17 => {
                let (a, b) = (self.index(4), self.index(4));
                format!("gm[{a}][{b}]")
            }
            18 => {
                let n = self.random.usize(..31) + 1;
                let v = self.pick(&["gu", "(u32)t0", "(u32)gl"]);
                format!("({v} << {n} | {v} >> {})", 32 - n)
            }
            _ => {
                let value = self.float(1);
                let n = self.random.usize(..4);
                format!(
                    "({value} > -1e6 && {value} < 1e6 ? ({})(int)({value}) : {n})",
                    self.pick(&["int", "long", "short", "char"])
                )
            }
        }
    }
}
