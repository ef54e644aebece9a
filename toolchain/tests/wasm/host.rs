//! A module and what is around it: its host's services and memory, C, limits, WASI.

use std::sync::{Arc, Mutex};

use postern::policy::{Policy, Sink};
use postern::{Caller, Domain, FaultKind, InstantiateError, Offset};

use super::{build, folder, from_text};

#[test]
fn a_host_and_a_module() {
    let (_, image) = from_text(
        "host",
        r#"(module
          (import "env" "mix" (func $mix (param i32 i64 f32 f64) (result i64)))
          (import "env" "mix" (func $again (param i32 i64 f32 f64) (result i64)))
          (import "env" "pair" (func $pair (param i32) (result i32 f64)))
          (import "env" "base" (global $base i32))
          (import "env" "memory" (memory 1 2))
          (global (export "answer") i64 (i64.const 42))
          (func (export "through") (param i32) (result i64)
            (i64.add (call $mix (local.get 0) (i64.const -2) (f32.const 0.5) (f64.const 0.25))
                     (call $again (i32.const 0) (i64.const 0) (f32.const 0) (f64.const 0))))
          (func (export "add pair") (result f64) (local f64)
            (call $pair (i32.const 6)) (local.set 0) (f64.add (f64.convert_i32_s) (local.get 0)))
          (func (export "both") (param i64) (result i64 f32) (local.get 0) (f32.const 1.5))
          (func (export "base") (result i32) (global.get $base))
          (func (export "malloc") (param i32) (result i32) (i32.add (i32.const 1024) (local.get 0)))
          (func (export "sum") (param $at i32) (param $n i32) (result i32) (local $s i32)
            (block $done (loop $next
              (br_if $done (i32.eqz (local.get $n)))
              (local.set $s (i32.add (local.get $s) (i32.load8_u (local.get $at))))
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $n (i32.sub (local.get $n) (i32.const 1)))
              (br $next)))
            (local.get $s)))"#,
    );
    let image = image.unwrap();
    let imports: Vec<String> = image
        .tables()
        .imports
        .iter()
        .map(|import| {
            format!(
                "{} {}",
                import.name,
                import.signature.map(|s| s.to_string()).unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(
        imports,
        [
            "env_base i()",
            "env_mix l(ilfd)",
            "env_pair v(ip)",
            "__postern_abort v(p)",
            "__postern_memmove p(ppL)",
            "__postern_memset p(piL)"
        ]
    );
    let domain = Domain::builder(&image)
        .service("env_base", |_: &Caller<'_>| 7i32)
        .service(
            "env_mix",
            |_: &Caller<'_>, a: i32, b: i64, c: f32, d: f64| -> i64 {
                i64::from(a) * 1000 + b * 100 + (c * 2.0) as i64 * 10 + (d * 4.0) as i64
            },
        )
        .service(
            "env_pair",
            |caller: &Caller<'_>, x: i32, results: Offset| {
                let mut bytes = [0; 16];
                bytes[..4].copy_from_slice(&(x * 2).to_le_bytes());
                bytes[8..].copy_from_slice(&0.5f64.to_le_bytes());
                caller.domain().write(results, &bytes).unwrap();
            },
        )
        .build()
        .unwrap();
    assert_eq!(
        domain
            .func::<fn(i32) -> i64>("through")
            .unwrap()
            .call(3)
            .unwrap(),
        2811
    );
    assert_eq!(
        domain
            .func::<fn() -> f64>("add_pair")
            .unwrap()
            .call()
            .unwrap(),
        12.5
    );
    assert_eq!(
        domain.func::<fn() -> i32>("base").unwrap().call().unwrap(),
        7
    );
    assert_eq!(
        domain
            .func::<fn() -> i64>("wasm_global_answer")
            .unwrap()
            .call()
            .unwrap(),
        42
    );
    let results = domain.alloc(16).unwrap();
    domain
        .func::<fn(i64, Offset)>("both")
        .unwrap()
        .call(-9, results)
        .unwrap();
    let mut bytes = [0; 16];
    domain.read(results, &mut bytes).unwrap();
    assert_eq!(bytes[..8], (-9i64).to_le_bytes());
    assert_eq!(bytes[8..12], 1.5f32.to_le_bytes());
    // A buffer of the module: the memory's base and the module's address.
    let base = domain
        .func::<fn() -> Offset>("wasm_memory")
        .unwrap()
        .call()
        .unwrap();
    let at = domain
        .func::<fn(i32) -> i32>("wasm_malloc")
        .unwrap()
        .call(3)
        .unwrap();
    domain
        .write(Offset(base.0 + at as u32), &[1, 2, 250])
        .unwrap();
    assert_eq!(
        domain
            .func::<fn(i32, i32) -> i32>("sum")
            .unwrap()
            .call(at, 3)
            .unwrap(),
        253
    );
    assert_eq!(
        domain
            .func::<fn() -> u64>("wasm_memory_size")
            .unwrap()
            .call()
            .unwrap(),
        65536
    );
}

#[test]
fn together_with_c() {
    let at = folder("mixed");
    let (wat, source) = (at.join("m.wat"), at.join("c.c"));
    // A function with the name of one of C's own does not take its place.
    let text = "(module (memory (export \"memory\") 1) (func (export \"twice\") (param i32) (result i32) (i32.shl (local.get 0) (i32.const 1)))\n\
        (func (export \"memcpy\") (param i32 i32 i32) (result i32) unreachable))";
    std::fs::write(&wat, text).unwrap();
    let text = "int twice(int);\nint call(int x) { char a[100] = {1}, b[100]; __builtin_memcpy(b, a, (unsigned)x); return twice(x) + b[0]; }\n";
    std::fs::write(&source, text).unwrap();
    let image = build(&[&wat, &source], "-O1 -fno-builtin").unwrap();
    let domain = Domain::builder(&image).build().unwrap();
    assert_eq!(
        domain
            .func::<fn(i32) -> i32>("call")
            .unwrap()
            .call(50)
            .unwrap(),
        101
    );
    assert!(image.tables().export("wasm_memcpy").is_some());
}

#[test]
fn growth_has_an_end() {
    let at = folder("growth");
    let wat = at.join("m.wat");
    let text = "(module (memory (export \"memory\") 1) (func (export \"grow\") (param i32) (result i32) (memory.grow (local.get 0)))\n\
        (func (export \"touch\") (param i32) (result i32) (i32.load (local.get 0))))";
    std::fs::write(&wat, text).unwrap();
    let image = build(&[&wat], "-fpostern-wasm-memory=256K").unwrap();
    let domain = Domain::builder(&image).build().unwrap();
    let grow = domain.func::<fn(i32) -> i32>("grow").unwrap();
    assert_eq!(
        [
            grow.call(2).unwrap(),
            grow.call(2).unwrap(),
            grow.call(1).unwrap()
        ],
        [1, -1, 3]
    );
    let touch = domain.func::<fn(i32) -> i32>("touch").unwrap();
    assert_eq!(touch.call(0x3fffc).unwrap(), 0);
    assert!(touch.call(0x3fffd).is_err());
    domain.reset().unwrap();
    assert!(touch.call(0x10000).is_err());
}

#[test]
fn endless_recursion_is_a_fault() {
    // Through a table, so that the compiler makes no loop of it.
    let text = r#"(module (type $t (func (param i32) (result i32))) (table 1 funcref) (elem (i32.const 0) $f)
        (func $f (export "f") (type $t)
          (i32.add (call_indirect (type $t) (i32.add (local.get 0) (i32.const 1)) (i32.const 0)) (i32.const 1))))"#;
    let image = from_text("recursion", text).1.unwrap();
    let domain = Domain::builder(&image).build().unwrap();
    let error = domain
        .func::<fn(i32) -> i32>("f")
        .unwrap()
        .call(0)
        .unwrap_err();
    let kind = error.fault().unwrap().kind;
    assert!(
        matches!(
            kind,
            FaultKind::DataStackOverflow | FaultKind::ControlStackOverflow
        ),
        "{error}"
    );
}

#[test]
fn a_start_function_that_traps() {
    let text = "(module (memory 1) (func $s (i32.store (i32.const -1) (i32.const 0))) (start $s) (func (export \"f\")))";
    let image = from_text("start", text).1.unwrap();
    let error = Domain::builder(&image).build().unwrap_err();
    assert!(
        matches!(error.cause(), InstantiateError::Initialisation(_)),
        "{error}"
    );
    assert!(
        error.to_string().contains("out of bounds memory access"),
        "{error}"
    );
}

#[test]
fn a_segment_outside_the_memory() {
    let text = "(module (memory 1) (data (i32.const 65535) \"ab\") (func (export \"f\")))";
    let image = from_text("segment", text).1.unwrap();
    let error = Domain::builder(&image).build().unwrap_err().to_string();
    assert!(error.contains("out of bounds memory access"), "{error}");
}

/// A command of WASI: it prints its last argument and ends with the number of its arguments.
#[test]
fn a_command_of_wasi() {
    let (_, image) = from_text(
        "wasi",
        r#"(module
          (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "path_open"
            (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
          (memory (export "memory") 1)
          (func (export "_start") (local $count i32) (local $at i32)
            (drop (call $sizes (i32.const 0) (i32.const 4)))
            (drop (call $args (i32.const 100) (i32.const 1000)))
            (local.set $count (i32.load (i32.const 0)))
            (local.set $at (i32.load (i32.add (i32.const 96) (i32.shl (local.get $count) (i32.const 2)))))
            (i32.store (i32.const 8) (local.get $at))
            (i32.store (i32.const 12)
              (i32.sub (i32.add (i32.const 1000) (i32.load (i32.const 4))) (local.get $at)))
            (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 16)))
            (if (i32.ne (i32.const 52) (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
                 (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 0))) (then unreachable))
            (call $exit (i32.add (i32.load (i32.const 16)) (i32.shl (local.get $count) (i32.const 4))))
            unreachable))"#,
    );
    let image = image.unwrap();
    let written = Arc::new(Mutex::new(Vec::new()));
    let domain = Domain::builder(&image)
        .policy(Policy::compute().stdout(Sink::buffer(&written)))
        .build()
        .unwrap();
    let status = domain
        .run_main(&["name", "two", "three"], &["A=B"])
        .unwrap();
    assert_eq!(status, (3 << 4) + 6);
    assert_eq!(*written.lock().unwrap(), b"three\0");
}
