//! `postern run`: values, buffers, services, faults, as a user meets them. Extensions are compiled
//! by `postern cc`.

use crate::program;

use std::sync::LazyLock;

use program::{Run, extension, file, folder, postern};

static CALC: LazyLock<String> = LazyLock::new(|| {
    extension(
        "calc",
        r#"
extern void print_i64(long), print_u64(unsigned long), print_f64(double), print_str(const char *);
extern void print_bytes(const void *, unsigned long);
extern unsigned long clock_ns(void);
extern void __postern_exit(int);
extern void __postern_abort(const char *);
int add(int a, int b) { return a + b; }
unsigned char low(int a) { return a; }
double half(double x) { return x / 2; }
float mix(int a, float b, long c, double d) { return a + b + c + d; }
long many(long a, long b, long c, long d, long e, long f, long g, long h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
void nothing(void) {}
unsigned length(const char *text) { unsigned n = 0; while (text[n]) n++; return n; }
long sum(const unsigned char *p, unsigned long n) {
    long s = 0;
    for (unsigned long i = 0; i < n; i++) s += p[i];
    return s;
}
int upper(char *p, int n) {
    int changed = 0;
    for (int i = 0; i < n; i++)
        if (p[i] >= 'a' && p[i] <= 'z') { p[i] -= 32; changed++; }
    return changed;
}
void pattern(const char *in, int n, unsigned char out[4]) {
    for (int i = 0; i < 4; i++) out[i] = in[i % n] + i;
}
void hello(void) {
    print_str("hello");
    print_i64(-5);
    print_u64(-1ul);
    print_f64(0.5);
    print_bytes("ab\n", 3);
    if (clock_ns() > clock_ns()) print_str("the clock runs backwards");
}
void say(const char *text) { print_str(text); }
int load(int *p) { return *p; }
int divide(int a, int b) { return a / b; }
void spin(void) { for (;;) __asm__ volatile(""); }
void leave(int status) { __postern_exit(status); }
void give_up(void) { __postern_abort("no more"); }
"#,
    )
});

fn run(words: &[&str]) -> Run {
    postern(&[&["run", CALC.as_str()], words].concat())
}

#[test]
fn values_go_in_and_out_by_their_types() {
    for (words, printed) in [
        (&["add", "2", "3"][..], "5\n"),
        (&["add", "2", "-3"], "-1\n"),
        (&["add", "0xffffffff", "0"], "-1\n"),
        (&["low", "511"], "255\n"),
        (&["half", "3"], "1.5\n"),
        (
            &["half", "-1e3"],
            "-500
",
        ),
        (&["mix", "1", "2.5", "3", "4.25"], "10.75\n"),
        (&["many", "1", "2", "3", "4", "5", "6", "7", "8"], "204\n"),
        (&["nothing"], ""),
        (&["length", "=seven77"], "7\n"),
    ] {
        assert_eq!(run(words).good(), printed, "{words:?}");
    }
    let json = run(&["add", "--json", "2", "3"]).json(0);
    assert_eq!(
        (json["result"].as_str(), json["type"].as_str()),
        (Some("5"), Some("int32_t"))
    );
    let json = run(&["add", "--json", "--repeat", "1000", "2", "3"]).json(0);
    assert_eq!(json["nanoseconds"]["calls"], 1000);
    let repeated = run(&["add", "--repeat", "10", "2", "3"]);
    assert!(
        repeated.stdout == "5\n" && repeated.stderr.starts_with("10 calls: median "),
        "{repeated:?}"
    );
}

#[test]
fn files_become_buffers_and_come_back() {
    let bytes: Vec<u8> = (0..100_000u32)
        .map(|i| (i.wrapping_mul(i) >> 3) as u8)
        .collect();
    file("numbers", &bytes);
    let sum: u64 = bytes.iter().map(|&b| u64::from(b)).sum();
    assert_eq!(run(&["sum", "@numbers"]).good(), format!("{sum}\n"));
    assert_eq!(run(&["sum", "@numbers", "0"]).good(), "0\n");

    file("text", "some text");
    assert_eq!(run(&["upper", "@text", "-o", "upper.txt"]).good(), "8\n");
    assert_eq!(
        std::fs::read(folder().join("upper.txt")).expect("written"),
        b"SOME TEXT"
    );
    assert_eq!(run(&["upper", "@text", "-o", "-"]).good(), "SOME TEXT");
    assert_eq!(
        run(&["upper", "@text", "-o", "-", "--out-length", "4"]).good(),
        "SOME"
    );
    assert_eq!(
        run(&["upper", "@text", "-o", "-", "--out-length", "result"]).good(),
        "SOME TEX"
    );
    let complaint = run(&["upper", "@text", "-o", "-", "--out-length", "10"]).bad(2);
    assert!(
        complaint.contains("the buffer has 9 bytes, not 10"),
        "{complaint}"
    );

    assert_eq!(run(&["pattern", "=abc", "3", "@:4"]).good(), "61636564\n");
    assert_eq!(run(&["pattern", "@text", "@:4", "-o", "-"]).good(), "spoh");
    assert_eq!(
        run(&["pattern", "@text", "@:4", "-o", "-", "--out-buffer", "1"]).good(),
        "some text"
    );
    run(&["pattern", "@text", "@:4", "-o", "-", "--out-buffer", "3"]).bad(2);
    run(&["add", "1", "2", "-o", "none"]).bad(2);
    run(&["sum", "@no-such-file"]).bad(2);
}

#[test]
fn buffers_have_room_whatever_their_size() {
    // More than the usual heap, and more than the extension wished for.
    assert_eq!(run(&["sum", "@:100M"]).good(), "0\n");
    let complaint = run(&["sum", "@:10M", "--heap", "1M"]).bad(2);
    assert!(complaint.contains("try --heap"), "{complaint}");
}

#[test]
fn wishes_end_at_the_ceiling() {
    let complaint = run(&["add", "1", "2", "--heap-ceiling", "1"]).bad(2);
    assert!(complaint.contains("ceiling"), "{complaint}");
    assert_eq!(
        run(&["add", "1", "2", "--heap-ceiling", "1G"]).good(),
        "3\n"
    );
}

#[test]
fn stacks_are_chosen() {
    let source = r#"
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <stdlib.h>
__thread int own = 7;
__attribute__((noinline)) int deep(int n) { volatile char page[4096]; page[0] = 1; return n ? deep(n - 1) + page[0] : own; }
int main(int c, char **v) {
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    errno = 4;
    int n = deep(atoi(v[1]));
    return errno == 4 && limit.rlim_cur == strtoul(v[2], 0, 0) ? n & 127 : 1;
}
"#;
    let program = extension("deep", source);
    let run = |words: &[&str]| postern(&[&["run", &program], words].concat());
    assert_eq!(run(&["--", "200", "0x100000"]).code, 79);
    let complaint = run(&["--", "2000", "0x100000"]).bad(134);
    assert!(complaint.contains("1024 KiB") && complaint.contains("--stack SIZE"));
    assert_eq!(run(&["--stack", "9M", "--", "2000", "0x1000000"]).code, 87);
    let complaint = run(&["--stack", "16M", "--", "5000", "0x1000000"]).bad(134);
    assert!(complaint.contains("16384 KiB"), "{complaint}");
    assert!(
        run(&["--stack", "1G", "--", "1", "1"])
            .bad(2)
            .contains("64 MiB")
    );
}

#[test]
fn threads_are_granted() {
    let source = r#"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *adds(void *n) { return (void *)((long)n + 1); }
static void *ends(void *what) {
    usleep(1000);
    if (!strcmp(what, "exit")) exit(9);
    *(volatile int *)8 = 1;
    return 0;
}
int main(int c, char **v) {
    pthread_t threads[3];
    if (c > 2) {
        if (pthread_create(threads, 0, ends, v[2])) return 2;
        for (;;) pause();
    }
    int started = 0;
    while (started < 3 && !pthread_create(threads + started, 0, adds, (void *)(long)started)) started++;
    if (started < 3 && started != atoi(v[1])) return 1;
    long sum = 0;
    for (int i = 0; i < started; i++) {
        void *value;
        pthread_join(threads[i], &value);
        sum += (long)value;
    }
    printf("%d threads, %ld\n", started, sum);
    return 0;
}
"#;
    let program = extension("crowd", source);
    let run = |threads: &str, words: &[&str]| {
        postern(&[&["run", "--threads", threads, &program, "--"], words].concat())
    };
    assert_eq!(
        postern(&["run", &program, "--", "0"]).good(),
        "0 threads, 0\n"
    );
    assert_eq!(run("0", &["0"]).good(), "0 threads, 0\n");
    assert_eq!(run("3", &["3"]).good(), "3 threads, 6\n");
    // In a thread that is none of the command's own.
    assert_eq!(run("1", &["1", "exit"]).code, 9);
    let complaint = run("1", &["1", "fault"]).bad(134);
    assert!(complaint.contains("in ends"), "{complaint}");
    assert!(run("some", &["0"]).bad(2).contains("--threads"));
}

#[test]
fn extensions_without_malloc_take_buffers_too() {
    use postern_image::ImageBuilder;
    // movzbl %gs:1(%edi),%eax; ret
    let mut builder = ImageBuilder::new([0x65, 0x67, 0x0f, 0xb6, 0x47, 0x01, 0xc3]);
    builder.export("second", 0, Some("i(p)".parse().expect("signature")));
    file("bare.px", builder.build().expect("legal"));
    assert_eq!(
        postern(&["run", "bare.px", "second", "=abc"]).good(),
        "98\n"
    );
}

#[test]
fn services_speak() {
    assert_eq!(
        run(&["hello"]).good(),
        "hello\n-5\n18446744073709551615\n0.5\nab\n"
    );
    assert_eq!(run(&["say", "=a few words"]).good(), "a few words\n");
    let complaint = run(&["say", "8"]).bad(3);
    assert!(
        complaint.contains("fault (aborted): ") && complaint.contains("print_str: "),
        "{complaint}"
    );
    let image = extension("wishes", "void wish(int); void f(void) { wish(1); }");
    let complaint = postern(&["run", &image, "f"]).bad(2);
    assert!(
        complaint.contains("imports `wish`") && complaint.contains("offers print_i64, "),
        "{complaint}"
    );
}

#[test]
fn faults_are_reports_with_exit_code_3() {
    for (words, parts) in [
        (
            &["load", "8"][..],
            &["fault (null-pointer): ", " at 0x8", "load", "calc.c:"][..],
        ),
        (&["load", "0x90000000"], &["fault (read): "]),
        (&["divide", "1", "0"], &["fault (arithmetic): ", "divide"]),
        (
            &["spin", "--deadline", "20ms"],
            &["fault (deadline): ", "spin"],
        ),
        (&["give_up"], &["fault (aborted): ", "no more"]),
    ] {
        let complaint = run(words).bad(3);
        for part in parts {
            assert!(complaint.contains(part), "{words:?}: {complaint}");
        }
    }
    let complaint = run(&["load", "-v", "8"]).bad(3);
    assert!(complaint.contains("rdi 0000000000000008"), "{complaint}");
    let json = run(&["load", "--json", "8"]).json(3);
    assert_eq!(json["fault"]["kind"], "null-pointer");
    assert_eq!(json["fault"]["address"], 8);
    let left = run(&["leave", "7"]);
    assert_eq!((left.code, left.stdout.as_str()), (7, ""));
}

#[test]
fn wrong_words_are_explained() {
    for (words, part) in [
        (
            &["add", "2"][..],
            "`int32_t add(int32_t, int32_t)` takes 2 arguments, 1 are given",
        ),
        (
            &["add", "2", "x"],
            "argument `x` of `int32_t add(int32_t, int32_t)`: not an int32_t",
        ),
        (&["ad", "2", "3"], "exports no `ad`; did you mean `add`?"),
        (&["add", "@text", "1"], "a buffer is a pointer"),
    ] {
        let complaint = run(words).bad(2);
        assert!(complaint.contains(part), "{words:?}: {complaint}");
    }
    postern(&["run", "none.px", "f"]).bad(2);
    assert_eq!(run(&["add", "--deadline", "5", "1", "2"]).code, 2);
    file(
        "refused.px",
        postern_image::ImageBuilder::new([0x0f, 0x05])
            .build()
            .expect("legal form"),
    );
    let complaint = postern(&["run", "refused.px", "f"]).bad(1);
    assert!(
        complaint.contains("see `postern verify refused.px`"),
        "{complaint}"
    );
}
