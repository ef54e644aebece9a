//! Extensions from C: faults name the function and the line, services and callbacks work through
//! the compiler's own code.
mod support;
use postern::{CallError, Caller, Domain, FaultKind, Image, Offset};
use std::sync::{Arc, Mutex};

const SOURCE: &str = r#"
extern int host_log(const char *text, int number);
static volatile int zero;
static int table[4] = {1, 2, 3, 4};

__attribute__((noinline)) static int inner(int *p) {
    return *p + 1; /* line 7 */
}
__attribute__((noinline)) int outer(int *p) {
    return inner(p) * 2; /* line 10 */
}
int divide(int x) { return x / zero; } /* line 12 */
int say(int n) { return host_log("number", n) + 1; }
int triple(int x) { return 3 * x; }
typedef int (*function)(int);
function give(void) { return triple; }
int apply(function f, int x) { return f(x); }
int fill(int i, int value) { table[i] = value; return table[i & 3]; } /* line 18 */
double mean(const double *v, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    return sum / n;
}
void give_up(void) { __builtin_trap(); } /* line 24 */
"#;

fn image() -> Image {
    support::compile("sample.c", SOURCE, &["-O1", "-g"])
}

#[test]
fn faults_name_function_and_line() {
    let d = Domain::builder(&image())
        .service("host_log", |_: &Caller<'_>, _: Offset, n: i32| n)
        .build()
        .unwrap();
    let outer = d.func::<fn(Offset) -> i32>("outer").unwrap();
    let e = outer.call(Offset(8)).unwrap_err();
    let fault = e.fault().unwrap();
    assert_eq!(fault.kind, FaultKind::NullPointer);
    assert!(
        fault.place().contains("inner") && fault.place().contains("sample.c:7:"),
        "{}",
        fault.place()
    );
    assert_eq!(fault.backtrace.len(), 1);
    let caller = fault.describe(Offset(fault.backtrace[0].0 - 1));
    assert!(
        caller.contains("outer") && caller.contains("sample.c:10:"),
        "{caller}"
    );
    let text = e.to_string();
    assert!(
        text.contains("null pointer") && text.contains("sample.c:7:"),
        "{text}"
    );
    for (name, kind, line) in [
        ("divide", FaultKind::Arithmetic, 12),
        ("give_up", FaultKind::Trap, 24),
    ] {
        d.reset().unwrap();
        let e = d
            .func_unchecked::<fn(i32)>(name)
            .unwrap()
            .call(5)
            .unwrap_err();
        let fault = e.fault().unwrap();
        assert_eq!(fault.kind, kind);
        assert!(
            fault.place().contains(name) && fault.place().contains(&format!("sample.c:{line}:")),
            "{}",
            fault.place()
        );
    }
    d.reset().unwrap();
    let fill = d.func::<fn(i32, i32) -> i32>("fill").unwrap();
    assert_eq!(fill.call(3, 9).unwrap(), 9);
    let e = fill.call(-(1 << 20), 9).unwrap_err();
    assert!(e.fault().unwrap().place().contains("sample.c:18:"), "{e}");
}

#[test]
fn services_callbacks_and_signatures() {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let s = said.clone();
    let d = Domain::builder(&image())
        .service(
            "host_log",
            move |caller: &Caller<'_>, text: Offset, n: i32| {
                let text = caller.domain().read_c_string(text, 100).unwrap();
                s.lock().unwrap().push(format!("{text} {n}"));
                n * 10
            },
        )
        .build()
        .unwrap();
    assert_eq!(
        d.func::<fn(i32) -> i32>("say").unwrap().call(4).unwrap(),
        41
    );
    assert_eq!(*said.lock().unwrap(), ["number 4"]);
    assert!(
        d.func::<fn(i64) -> i32>("say").is_err(),
        "the signature is known from debug information"
    );
    // A function pointer of the extension, called by the host and by the extension; and one that is
    // none.
    let f = d
        .func_unchecked::<fn() -> Offset>("give")
        .unwrap()
        .call()
        .unwrap();
    assert_eq!(
        d.func_at::<fn(i32) -> i32>(f).unwrap().call(14).unwrap(),
        42
    );
    let apply = d.func_unchecked::<fn(Offset, i32) -> i32>("apply").unwrap();
    assert_eq!(apply.call(f, 5).unwrap(), 15);
    let e = apply.call(Offset(f.0 + 8), 5).unwrap_err();
    assert!(
        matches!(&e, CallError::Fault(fault) if fault.kind == FaultKind::BadJump),
        "{e}"
    );
    d.reset().unwrap();
    let heap = d.image().tables().layout.heap_start;
    let values: Vec<u8> = [1.0f64, 2.0, 6.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    d.write(Offset(heap), &values).unwrap();
    assert_eq!(
        d.func::<fn(Offset, i32) -> f64>("mean")
            .unwrap()
            .call(Offset(heap), 3)
            .unwrap(),
        3.0
    );
}
