//! What E-code has beyond plain C11 functions, compared with gcc: the preprocessor, layouts,
//! arguments without names, arrays of variable length, and gcc's own.
use crate::support;
use std::fmt::Write;

use fastrand::Rng;
use postern::Domain;
use postern_ecode::{Compiler, Limits, Options, Rule, compile};
use support::differential::{ARGUMENTS, confined, native};

/// Compares the functions `f0`, `f1` … of a source.
fn same(source: &str) {
    let names: Vec<String> = (0..)
        .map(|n| format!("f{n}"))
        .take_while(|name| source.contains(&format!("long {name}(long p)")))
        .collect();
    assert!(!names.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("features.c");
    std::fs::write(&path, source).unwrap();
    let expected = native(&path, &names);
    let found = confined(source, &names).unwrap_or_else(|error| panic!("{error}"));
    for (at, (expected, found)) in expected.iter().zip(&found).enumerate() {
        let (name, argument) = (
            &names[at / ARGUMENTS.len()],
            ARGUMENTS[at % ARGUMENTS.len()],
        );
        assert_eq!(
            expected, found,
            "{name}({argument}) by gcc and by E-code\n{source}"
        );
    }
}

#[test]
fn features_compute_what_gcc_computes() {
    same(include_str!("files/features.c"));
}

/// Most of them travel on the stack; a function with more than 16 has no types for hosts.
#[test]
fn calls_have_many_arguments() {
    let count = |what: &str| {
        (0..40)
            .map(|n| what.replace('#', &n.to_string()))
            .collect::<Vec<_>>()
    };
    let (params, sum) = (
        count("long a#, double d#").join(", "),
        count("a# * (# + 1) + (long)(d# * #)").join(" + "),
    );
    let (given, open) = (
        count("p + #, # * 0.5").join(", "),
        count("p * #, # + 0.25f").join(", "),
    );
    same(&format!(
        r"
struct wide {{ long a[3]; }};
static long many(struct wide w, {params}, char last) {{ return w.a[2] + {sum} + last; }}
static long open(int n, ...)
{{
	__builtin_va_list l;
	long s = 0;
	__builtin_va_start(l, n);
	while (n--) {{ s = s * 3 + __builtin_va_arg(l, long); s += __builtin_va_arg(l, double) * 8; }}
	__builtin_va_end(l);
	return s;
}}
long f0(long p) {{ struct wide w = {{ {{ 1, 2, p }} }}; return many(w, {given}, p); }}
long f1(long p) {{ return open(40, {open}); }}
long f2(long p) {{ long (*f)(struct wide, {params}, char) = many; struct wide w = {{ {{ p }} }}; return f(w, {given}, p ^ 5) + p; }}
long f3(long p) {{ long x = p; return open(20, {}) + x; }}
",
        (0..20)
            .map(|n| format!("open(2, p, {n}.5, x, 3.0) ^ x, {n} + x * 0.5"))
            .collect::<Vec<_>>()
            .join(", ")
    ));
    let unit = postern_ecode::compile(format!(
        "long f({}) {{ return 0; }}",
        vec!["int"; 17].join(", ")
    ));
    assert_eq!(unit.unwrap().symbol("f").unwrap().signature, "");
}

#[test]
fn blocks_have_labels_of_their_own() {
    same(
        r"
#define FIND(array, n, x) ({ __label__ found, out; int at; for (at = 0; at < (n); at++) if ((array)[at] == (x)) goto found; at = -1; goto out; found: at *= 2; out: at; })
long f0(long p) {
    char a[] = { 5, p, 7, 9 };
    long s = FIND(a, 4, 7) * 100 + FIND(a, 4, 9) * 10 + FIND(a, 4, 11);
    goto out;
    s = 0;
out:
    { __label__ out; __label__ again, never; int n = 0; again: if (n++ > 3) goto out; s += n; goto again; out: s++; never:; }
    return s;
}
long f1(long p) {
    long s = 0;
    for (int i = 0; i < 3; i++) {
        __label__ a, b;
        void *to[] = { &&a, &&b };
        goto *to[(p + i) & 1];
    a: s += 10;
    b: s += 1;
    }
    return s;
}
",
    );
}

/// A range gives its value to each element; what comes later takes the place of single ones. (Where
/// that is a part of an element, and the range's value no constant, gcc 12 forgets the others.)
#[test]
fn ranges_of_elements() {
    same(
        r#"
struct t { int a, b; char c[4]; };
static const unsigned char class[256] = { [0 ... 255] = 9, ['0' ... '9'] = 1, ['a' ... 'z'] = 2, ['A' ... 'Z'] = 3, ['_'] = 4 };
static int unknown[] = { [2 ... 4] = 7, 8, [1] = 3 };
static struct t g[4] = { [0] = { 9, 9, "zz" }, [0 ... 2] = { 1, .c = "ab" }, [1].b = 4, { 5 } };
static int m[3][4] = { [0 ... 1] = { [1 ... 3] = 6 }, [1 ... 2][0] = 5 };
static char *names[4] = { [0 ... 2] = "none", "last" };
static struct { struct t k[3]; int z; } deep = { .k[0] = { 8, 8 }, .k[0 ... 2].b = 3, 'x', .k[1 ... 2].c[0 ... 0] = 'y' };
static struct { int n, v[5]; } q = { .v[1 ... 3] = 2, 6, .n = 1 };
long f0(long p) { long s = 0; for (int i = 0; i < 256; i++) s = s * 5 + class[i]; return s + p; }
long f1(long p) { long s = sizeof unknown; for (unsigned i = 0; i < sizeof unknown / 4; i++) s = s * 11 + unknown[i]; return s; }
long f2(long p) { long s = 0; for (int i = 0; i < 4; i++) s = s * 7 + g[i].a + g[i].b * 3 + g[i].c[0] + g[i].c[2]; return s; }
long f4(long p) { return names[0][0] + names[2][1] * 3 + names[3][3]; }
long f5(long p) { long s = q.n; for (int i = 0; i < 5; i++) s = s * 7 + q.v[i]; return s; }
long f6(long p) { int x[6] = { [1 ... 4] = p * 3, [2] = 5 }; long s = 0; for (int i = 0; i < 6; i++) s = s * 7 + x[i]; return s; }
long f7(long p) { struct t x[4] = { [0] = { 9, 9, "zz" }, [0 ... 2] = { p, .c = "ab" }, { 5 } }; long s = 0; for (int i = 0; i < 4; i++) s = s * 7 + x[i].a + x[i].b * 3 + x[i].c[0] + x[i].c[2]; return s; }
long f8(long p) { struct t one = { p, 2, "x" }, x[3] = { [0 ... 2] = one }; return x[0].a + x[1].a * 3 + x[2].b * 5 + x[1].c[0]; }
long f9(long p) { int x[5] = { [0 ... 3] = p ? p > 2 ? 3 : 4 : 5 && p }; return x[0] + x[1] * 3 + x[3] * 9 + x[4]; }
long f10(long p) {
    struct { int a; } r; union { int a; } u; _Bool b = 1; int v[3]; float f = 1;
    return __builtin_classify_type(p) + __builtin_classify_type(b) * 16 + __builtin_classify_type(v) * 256
        + __builtin_classify_type(f) * 4096 + __builtin_classify_type(r) * 65536 + __builtin_classify_type(u) * 1048576L
        + __builtin_classify_type(&f10) * 16777216L + __builtin_classify_type("") * 268435456L + __builtin_classify_type('a');
}
long f11(long p) { long s = deep.z; for (int i = 0; i < 3; i++) s = s * 7 + deep.k[i].a + deep.k[i].b * 3 + deep.k[i].c[0] * 5; return s; }
long f3(long p) { long s = 0; for (int i = 0; i < 12; i++) s = s * 7 + m[i / 4][i % 4]; return s; }
"#,
    );
}

/// An object that gets a value again has nothing left of the first one; what has none is zero,
/// whatever the stack holds.
#[test]
fn initialisers_take_the_place_of_others() {
    same(
        r#"
struct t { int a, b; char c[4]; };
static struct t g[3] = { [1] = { 1, 2, "abc" }, [1] = { 3 }, [2].b = 4, [2].a = 5 };
static struct t k = { .c = "xyz", .c = { 1 }, .a = 1, .b = 2, .a = 3 };
union u { int i; char c[4]; long l; };
static union u v = { .l = -1, .c = { 2 } };
static int arr[2][2] = { [0] = { 1, 2 }, [1] = { 3, 4 }, [0] = { 5 } };
static char s[2][8] = { "abcdef", [0] = "x", [1] = "longer", [1][1] = 'Q' };
long f0(long p) { return g[1].a + g[1].b * 10 + g[1].c[0] * 100 + g[2].a * 3 + g[2].b; }
long f1(long p) { struct t x[2] = { [1] = { p, 2, "abc" }, [1] = { 3 } }; return x[1].a + x[1].b * 10 + x[1].c[1] * 100; }
long f2(long p) { struct t x = { .c = "xyz", .c = { 1 }, .a = p }; return x.a + x.c[0] + x.c[1] * 10 + x.c[2] * 100 + k.c[0] + k.c[1] * 5 + k.a; }
long f3(long p) { union u w = { .l = -1, .c = { 2 } }; return w.c[0] + v.c[0] + v.c[1] * 3 + w.c[1] * 5; }
long f4(long p) { return arr[0][0] + arr[0][1] * 10 + arr[1][1] * 100; }
long f5(long p) { int a[2][2] = { [0] = { 1, p }, [1] = { 3, 4 }, [0] = { 5 } }; return a[0][0] + a[0][1] * 10 + a[1][1] * 100; }
long f6(long p) { long r = 0; for (int i = 0; i < 16; i++) r = r * 3 + s[i / 8][i % 8]; char t[2][8] = { "abcdef", [0] = "x", [1] = "longer", [1][1] = 'Q' }; for (int i = 0; i < 16; i++) r = r * 3 + t[i / 8][i % 8]; return r; }
struct bb { int a : 5, b : 6; unsigned c : 20; int d; };
static struct bb bs[2] = { [0] = { 1, 2, 3, 4 }, [0] = { 5 }, [1].b = 3, [1].a = 1 };
long f7(long p) { struct bb x[2] = { [0] = { 1, p, 3, 4 }, [0] = { 5 }, [1].b = 3, [1].a = 1 }; return bs[0].a + bs[0].b * 10 + bs[0].c * 100 + bs[0].d * 1000 + x[0].a + x[0].b * 7 + x[0].c * 11 + x[0].d * 13 + x[1].a + x[1].b + bs[1].b; }
long f8(long p) { union u w = { .l = -1, .i = 2 }, x[2] = { [1].c[0] = 1, [1].c[1] = 2 }; return w.l + x[1].i; }
union n { struct { int a, b; } s; char c[8]; union { long l; char k[8]; } m; };
long f14(long p) { union u x = { .l = -1 - p, .c[3] = 5 }; return x.l; }
long f15(long p) { union n x = { .s.a = 3 + p, .s.b = 4, .m.k[1] = 7, .m.k[2] = 9 }; return x.m.l; }
long f16(long p) { union n x[2] = { [1].c[1] = 1, [1] = { p, 2 }, [1].c[2] = 3, [0].m = { 5 }, [0].m.l = -2, [0].m.k[1] = 1 }; return x[0].m.l * 3 + x[1].m.l; }
static union n gn = { .s.b = 5, .s.a = 6, .c[1] = 7, .c[6] = 2 };
long f17(long p) { return gn.m.l; }
static long dirty(long p) { volatile long x[64]; for (int i = 0; i < 64; i++) x[i] = -1 - p; return x[5]; }
static long t1(void) { char t[8] = "x"; return t[1] + t[5] * 3 + t[7]; }
static long t2(void) { int a[3] = { [0] = 1, [0] = 2, [0] = 3 }; return a[0] + a[1] * 10 + a[2] * 100; }
static long t3(void) { struct { char n[6]; short k; } s = { "ab", 3 }; return s.n[3] + s.n[5] + s.k; }
static long t4(void) { struct { char n[2][4]; } s = { { "ab", "c" } }; return s.n[0][3] + s.n[1][2] + s.n[1][3]; }
static long t5(void) { return ({ char u[12] = "hello"; u[8] + u[11]; }) + ((char[9]){ "ab" })[7]; }
long f9(long p) { dirty(p); return t1(); }
long f10(long p) { dirty(p); return t2(); }
long f11(long p) { dirty(p); return t3(); }
long f12(long p) { dirty(p); return t4(); }
long f13(long p) { dirty(p); return t5(); }
"#,
    );
}

/// What gcc's own tests have found missing.
#[test]
fn old_designators_ranges_and_alignment_are_gccs() {
    same(
        r"
struct pair { char a, b; union { double d; int i[2]; } u; short c; };
static const struct pair GLOBAL = { b: 3, u: { d: -0.25 }, c: 7, };
static struct pair rows[2] = { [1] = { c: 5, a: 1 }, [0] = { 1, 2 } };
typedef struct { int a; } __attribute__((aligned(32))) wide;
static struct { wide x[3]; int c; } wides[2];
static char byte, line[3] __attribute__((aligned(64)));
static const char constant __attribute__((aligned(32))) = 3;
long f0(long p) {
    const struct pair local = { c: p, a: p + 1, };
    return GLOBAL.a + GLOBAL.b * 10 + GLOBAL.u.i[1] + GLOBAL.c + local.a + local.b + local.c + rows[1].c + rows[0].b + rows[1].a;
}
static long second(long, long b, struct pair) { return b; }
long f1(long p) { return second(1, p, GLOBAL); }
long f2(long p) {
    switch ((unsigned long)p) {
    case 0xfffffffffffffff0ul ... 0xfffffffffffffffful: return 1;
    case 0x7ffffffffffffffful ... 0x8000000000000003ul: return 2;
    case 5 ... 4: return 3;
    default: return 4;
    }
}
long f3(long p) {
    switch ((signed char)p) { case -3 ... 3: return 1; case 126 ... 127: return 2; default: return 0; }
}
long f4(long p) {
    return sizeof wides + ((unsigned long)&wides[1].x[p & 1] & 31) + ((unsigned long)line & 63) + ((unsigned long)&constant & 31) + byte + constant
        + (p == 77 ? p : 1) + __alignof__(wide);
}
",
    );
    let needs = |source: &str| compile(source).unwrap_err().list[0].message.clone();
    assert!(needs("int f(int a, int b[a++]) { return a; }").contains("effects"));
    assert!(
        needs("int f(void) { int a __attribute__((aligned(32))) = 1; return *&a; }").contains("16")
    );
    assert!(
        needs(
            "struct s { int a; } __attribute__((aligned(64))); int f(struct s x) { return x.a; }"
        )
        .contains("16")
    );
    assert!(needs("_Alignas(128) int x;").contains("64"));
    assert!(
        compile("void g(void); int f(void) { if (0) g(); return 0; }")
            .unwrap()
            .imports
            .is_empty()
    );
}

/// Numbers that macros made are spelled as they are read: `1 ## 2` is 12 for `#` and `##`, too.
#[test]
fn made_numbers_keep_their_spelling() {
    same(
        "#define CAT3(a, b, c) a##b##c
#define TEXT(x) #x
#define XTEXT(x) TEXT(x)
#define PASTE(a, b) a##b
#define XPASTE(a, b) PASTE(a, b)
static long hash(const char *s) { long h = 7; while (*s) h = h * 31 + *s++; return h; }
long f0(long p) { return CAT3(1, 2, 3) + p; }
long f1(long p) { return hash(XTEXT(__LINE__)) + hash(XTEXT(CAT3(0, x1, f))); }
long f2(long p) { int XPASTE(x, __LINE__) = p;
	int XPASTE(x, __LINE__) = 4; return x9 * 10 + x10; }
long f3(long p) { return XPASTE(1, __LINE__) + hash(XTEXT(__STDC_VERSION__)); }
",
    );
}

/// What follows a part of a part goes on behind it, not behind the whole.
#[test]
fn values_go_on_behind_the_innermost_designator() {
    same(
        "struct in { int a[3]; struct { char c; long l; union { int u; float f; }; }; short s; };
struct out { struct in x[2]; int y; struct { int v, w; } z; };
static const int table[2][3] = { [1] = { [2] = 9 }, [0][1] = 5, 6, 7 };
static const struct out known = { .x[0].a[1] = 1, 2, 3, 4, 5, 6, 7, .x[1].l = 8, 9, 10, 11, 12, 13 };
static long hash(const struct out *o) {
	long h = o->y * 3 + o->z.v * 5 + o->z.w * 7;
	for (int i = 0; i < 2; i++) h = h * 31 + o->x[i].a[0] + o->x[i].a[1] * 3 + o->x[i].a[2] * 5 + o->x[i].c * 7 + o->x[i].l * 11 + o->x[i].u * 13 + o->x[i].s * 17;
	return h; }
long f0(long p) { long h = p; for (int i = 0; i < 6; i++) h = h * 7 + ((const int *)table)[i]; return h; }
long f1(long p) { return hash(&known) + p; }
long f2(long p) { struct out o = { .x[1].c = p, 2, 3, 4, 5, 6, .y = 7, .x[0].a = { 1 }, { p } }; return hash(&o); }
long f3(long p) { struct out o = { .x[0].a[2] = p, 1, 2, .z.v = 3, 4 }; return hash(&o); }
long f4(long p) { int a[][2] = { [2][0] = p, 1, 2, 3, [0][1] = 4, 5 }; long h = sizeof a; for (int i = 0; i < sizeof a / 4; i++) h = h * 7 + a[0][i]; return h; }
long f5(long p) { union { int a; struct { int b, c; } d; } u = { .d.b = p, 3 }; return u.d.b + u.d.c; }
",
    );
}

/// What is assigned to a bit-field is promoted as the bit-field is; so are those of 64-bit types.
#[test]
fn values_of_bit_fields_are_promoted() {
    same(
        "struct b { unsigned z : 1, y : 31, x : 32; unsigned long w : 3; int s : 3; _Bool t : 1; };
long f0(long p) { struct b s = { 0 }; return (-1 < (s.z ^= 1)) + ((s.z = 1) - 2) + (s.z++ - 5) + (++s.z - 5) + ((0, s.z) - 3) + ((p ? s.z : s.z) - 3) + (({ s.z; }) - 7); }
long f1(long p) { struct b s = { 0 }; return ((s.y = 1) - 2) + ((s.x = 1) - 2) + ((s.t = p) - 2); }
long f2(long p) { struct b s = { 0 }; return ((s.w = 1) - 2 < 0) + (s.w - 2 < 0) * 2 + (-s.w < 0) * 4 + sizeof(+s.w) * 8 + (s.w << 31 < 0) * 128; }
long f3(long p) { struct b s = { 0 }; return ((s.z += 1) - 2 < 0) + (s.z-- - 2 < 0) * 2 + (--s.z - 2 < 0) * 4 + (+(s.z = 1) - 2 < 0) * 8 + (-(s.z = 1) < 0) * 16 + (~(s.z = 1) < 0) * 32 + ((s.z = 1) < -1) * 64; }
long f4(long p) { struct b s = { 0 }; switch (s.z = p) { case 1: p = 5; } return ((s.y, s.z = 1) - 3 < 0) + p + (s.s = p) * 3 + (s.w = p); }
",
    );
}

#[test]
fn conditions_compute_only_what_counts() {
    same(
        "#if 0 && 1 / 0 || 1 || 1 % 0
long f0(long p) { return p + 1; }
#endif
#if (1 ? 2 : 1 / 0) == 2 && (0 ? 1 / 0 : 3) == 3 && 1 << 64 == 0 && -1 >> 70 == -1 && 8 >> -1 == 16 && 1u << 63 >> 63 == 1
long f1(long p) { return p + 2; }
#endif
",
    );
}

/// One structure: its members, and what is done with each.
fn structure(random: &mut Rng, number: usize) -> String {
    const TYPES: &[(&str, u32)] = &[
        ("char", 8),
        ("unsigned char", 8),
        ("short", 16),
        ("unsigned short", 16),
        ("int", 32),
        ("unsigned", 32),
        ("long", 64),
        ("unsigned long", 64),
        ("_Bool", 1),
    ];
    let (mut members, mut writes, mut reads) = (String::new(), String::new(), String::new());
    for n in 0..1 + random.usize(..7) {
        let (ty, most) = TYPES[random.usize(..TYPES.len())];
        let attribute = match random.usize(..12) {
            0 => " __attribute__((packed))",
            1 => " __attribute__((aligned(4)))",
            2 => " __attribute__((aligned(16)))",
            _ => "",
        };
        match random.usize(..8) {
            0 => {
                let width = random.u32(..=most.min(32));
                writeln!(members, "\t{ty} : {width};").unwrap();
                continue;
            }
            1..=4 => {
                let width = 1 + random.u32(..most);
                writeln!(
                    members,
                    "\t{ty} m{n} : {width}{};",
                    if attribute.contains("packed") {
                        attribute
                    } else {
                        ""
                    }
                )
                .unwrap();
            }
            5 => writeln!(members, "\t{ty} m{n}[{}];", 1 + random.usize(..3)).unwrap(),
            _ => writeln!(members, "\t{ty} m{n}{attribute};").unwrap(),
        }
        let array = members.trim_end().ends_with("];");
        let index = if array { "[0]" } else { "" };
        writeln!(
            writes,
            "\tx.m{n}{index} = (p ^ {}) + {n}; x.m{n}{index} += p >> {n}; x.m{n}{index}++;",
            random.u16(..)
        )
        .unwrap();
        // As values of 64 bits, since gcc has types of other widths.
        writeln!(reads, "\th = h * 31 + (long)x.m{n}{index};").unwrap();
    }
    let (before, behind) = match random.usize(..5) {
        0 => (
            format!("#pragma pack(push, {})\n", 1 << random.usize(..4)),
            "#pragma pack(pop)\n",
        ),
        _ => (String::new(), ""),
    };
    let word = if random.usize(..5) == 0 {
        "union"
    } else {
        "struct"
    };
    let packed = [
        "",
        "",
        "",
        "__attribute__((packed)) ",
        "__attribute__((packed, aligned(2))) ",
    ][random.usize(..5)];
    format!(
        "{before}{word} {packed}s{number} {{\n{members}}};\n{behind}long f{number}(long p)\n{{\n\tunion {{ {word} s{number} s; unsigned char b[sizeof({word} s{number}) + 1]; }} u;\n\
         \t{word} s{number} x; long h = sizeof x * 100 + _Alignof({word} s{number});\n\
         \tfor (unsigned i = 0; i < sizeof u; i++) u.b[i] = 0;\n\tx = u.s;\n{writes}{reads}\tu.s = x;\n\
         \tfor (unsigned i = 0; i < sizeof x; i++) h = h * 31 + u.b[i];\n\treturn h;\n}}\n"
    )
}

#[test]
fn layouts_are_gcc_s() {
    let mut random = Rng::with_seed(7);
    let source: String = (0..300).map(|n| structure(&mut random, n)).collect();
    same(&source);
}

#[test]
fn headers_are_those_that_the_host_gives() {
    let mut compiler = Compiler::default();
    compiler.header(
        "scale.h",
        "#pragma once\n#define SCALE 3\nstatic inline int scaled(int x) { return x * SCALE; }\n",
    );
    compiler.header("twice.h", "#include \"scale.h\"\n#include <scale.h>\n");
    let source = "#include \"twice.h\"\n#include <limits.h>\nint f(void) { return scaled(5) + (INT_MAX == 2147483647) + __LINE__; }\n";
    let unit = compiler.compile(source).unwrap();
    let image = postern::Image::from_bytes(&support::file(&unit)).unwrap();
    let domain = Domain::builder(&image).build().unwrap();
    assert_eq!(domain.func::<fn() -> i32>("f").unwrap().call().unwrap(), 19);
    // An error in a header says so, and its code counts as that of the line that includes it.
    compiler.header("bad.h", "\n#define A 1\nint g(void) { return y; }\n");
    let errors = compiler.compile("int x;\n#include <bad.h>\n").unwrap_err();
    assert!(
        errors
            .to_string()
            .starts_with("bad.h:3:22: error: `y` is not declared"),
        "{errors}"
    );
    let missing = compiler.compile("#include <stdio.h>\n").unwrap_err();
    assert!(missing.list[0].message.contains("no header `stdio.h`"));
    compiler.header("self.h", "#include \"self.h\"\n#include \"self.h\"\n");
    assert_eq!(
        compiler.compile("#include \"self.h\"\n").unwrap_err().list[0].rule,
        Rule::Limit
    );
}

#[test]
fn arrays_that_are_too_long_are_faults() {
    for length in ["-1", "1l << 40", "1 << 30"] {
        let source =
            format!("long n = {length}; long f(void) {{ char a[n]; a[0] = 1; return a[0]; }}");
        let domain = Domain::builder(&support::image(&source)).build().unwrap();
        assert!(
            domain.func::<fn() -> i64>("f").unwrap().call().is_err(),
            "{length}"
        );
    }
}

#[test]
fn comments_hold_any_bytes() {
    let source = b"/* caf\xe9 */ int f(void) { return 3; } // \xff\n";
    assert!(compile(source).is_ok());
}

#[test]
fn too_many_errors_are_more_than_are_shown() {
    let limits = Limits {
        errors: 2,
        ..Limits::default()
    };
    let mut compiler = Compiler::new(Options {
        limits,
        ..Options::default()
    });
    let two = "int f(void) { return aa; }\nint g(void) { return bb; }\n";
    assert!(!compiler.compile(two).unwrap_err().more);
    let three = format!("{two}int h(void) {{ return cc; }}\n");
    let errors = compiler.compile(&three).unwrap_err();
    assert!(errors.more && errors.list.len() == 2);
}

#[test]
fn nothing_is_guessed_for_names_of_one_letter() {
    let errors = compile("int f(int n) { return m; }").unwrap_err();
    assert!(!errors.to_string().contains("meant"), "{errors}");
}
