//! C programs that use the library as their authors would: each file of `tests/c` is a host.

use crate::support;

use postern::{Admission, Broker, CommonMemory, Image};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use support::extension;

#[test]
fn calls() {
    support::test("calls.c");
}

#[test]
fn what_a_file_claims_about_types() {
    support::test("claims.c");
}

#[test]
fn bad_arguments() {
    support::test("bad.c");
}

#[test]
fn two_copies_opened_at_run_time() {
    let root = support::installed();
    let program = support::compile_alone("copies.c", root, &["-ldl".to_owned()]);
    let files = ["kit.px", "libpostern.so.0", "another_copy.so"].map(|f| root.join(f));
    support::run(program, &files);
}

#[test]
fn coroutines_and_unguarded_stacks() {
    support::test("stacks.c");
}

#[test]
fn signals_of_the_host() {
    support::test("signals.c");
}

#[test]
fn a_host_that_owns_the_handlers() {
    support::test("own_signals.c");
}

#[test]
fn a_host_whose_handlers_set_a_flag() {
    support::test("safe_point.c");
}

#[test]
fn configurations_and_what_comes_of_forks() {
    support::test("process.c");
}

#[test]
fn longjmp_close_inside_and_fork() {
    support::test("leaving.c");
}

#[test]
fn a_host_in_c_plus_plus() {
    support::test("host.cpp");
}

#[test]
fn threads_closing_and_forking() {
    support::test("threads.c");
}

#[test]
fn threads_that_extensions_start() {
    let images = [extension("crowd")];
    support::run(support::compile("own_threads.c", &[]), &images);
}

#[test]
fn handlers_that_wait_and_functions_that_are_spawned() {
    support::run(
        support::compile("sandbox_threads.c", &[]),
        &[extension("waits")],
    );
}

#[test]
fn events_and_attached_threads() {
    support::run(support::compile("events.c", &[]), &[extension("events")]);
}

#[test]
fn handles_in_random_order() {
    support::test("lifecycle.c");
}

#[test]
fn counters_and_placement() {
    support::test("observe.c");
}

#[test]
fn memory_shared_with_domains() {
    support::test("shared.c");
}

#[test]
fn one_domain_in_several_processes() {
    let folder = tempfile::tempdir().unwrap();
    let images = [extension("common"), extension("tenant")];
    let kept = images.each_ref().map(|image| {
        let path = folder.path().join(image.file_stem().unwrap());
        let memory = CommonMemory::new(&Image::load(image).unwrap()).unwrap();
        let broker = Broker::begin(&path, &memory, Admission::default()).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let serves = move || while broker.serve_one(stopped.as_fd()).unwrap().is_some() {};
        (path, stop, std::thread::spawn(serves))
    });
    let [own, other] = &kept;
    let nobody = folder.path().join("nobody");
    support::run(
        support::compile("common.c", &[]),
        &[&images[0], &own.0, &other.0, &nobody],
    );
    for (_, stop, thread) in kept {
        drop(stop);
        thread.join().unwrap();
    }
}

#[test]
fn structures_rights_and_exposed_memory() {
    support::run(support::compile("areas.c", &[]), &[extension("tree")]);
}

#[test]
fn system_calls_by_policy() {
    support::run(support::compile("policy.c", &[]), &[extension("sys")]);
}

#[test]
fn deciders_and_revocation() {
    let images = [extension("tenant"), extension("judge")];
    support::run(support::compile("decider.c", &[]), &images);
}

#[test]
fn closing_in_every_function_of_the_host() {
    let images = ["tenant", "sys"].map(extension);
    let kit = support::installed().join("kit.px");
    let images = [images[0].clone(), images[1].clone(), kit];
    support::run(support::compile("closing.c", &[]), &images);
}

#[test]
fn domains_that_call_each_other() {
    let images = [extension("asks"), extension("answers")];
    support::run(support::compile("peers.c", &[]), &images);
}

#[test]
fn restarts_pools_and_modules() {
    let root = support::installed();
    let source = support::source("tests/extensions/version.c");
    let versions = ["1", "2", "3"].map(|version| {
        let image = root.join(format!("version{version}.px"));
        let arguments = [
            "-O1".into(),
            "-nolibc".into(),
            format!("-DVERSION={version}").into(),
            "-o".into(),
            image.clone().into(),
            source.clone().into_os_string(),
        ];
        let arguments: Vec<std::ffi::OsString> = arguments.into_iter().collect();
        postern_toolchain::run(postern_toolchain::Language::C, &arguments).expect("it compiles");
        image
    });
    support::run(support::compile("reload.c", &[]), &versions);
}

#[test]
fn namespaces() {
    support::run(support::compile("namespaces.c", &[]), &[] as &[&str]);
}

#[test]
fn extensions_of_the_kernel() {
    support::test("kernel.c");
}

/// Everything in one program, without the shared library.
#[test]
fn linked_statically() {
    let root = support::installed();
    let archive = root.join("libpostern.a").display().to_string();
    let mut flags = vec![archive, "-ldl".to_owned(), "-lm".to_owned()];
    let program = support::compile_alone("calls.c", root, &flags);
    support::run(program, &[root.join("kit.px")]);
    // Not position-independent: the low 4 GiB is the program's own, so there is no hot window.
    flags.push("-no-pie".to_owned());
    let program = support::compile_alone("calls.c", root, &flags);
    support::run(program, &[root.join("kit.px")]);
}
