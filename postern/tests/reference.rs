//! The page of system calls is made from the table in the code. `POSTERN_UPDATE=1 cargo test -p
//! postern --test reference` writes it anew.

use postern::policy::SYSTEM_CALLS;
use std::fmt::Write;

const PAGE: &str = "../docs/src/reference/system-calls.md";
const HEAD: &str = "# System calls

<!-- Printed from the table in the code by `POSTERN_UPDATE=1 cargo test -p postern --test reference`. Do not edit. -->

The system calls that the service `sys` knows, and what each policy does with them. `none` refuses every one with `EPERM`,
but for `exit` and `exit_group`, which end the call in every policy. `custom` shows the host each call, but for those two,
before the policy that it is built on decides. A number that is not in the table is refused with `ENOSYS`. Refused calls
are counted, and the last one's number is kept: see `Domain::counters` and `pt_domain_system_calls`.

[Policies](../guide/policies.md) tells how a domain gets one, and what a granted call lets through.

The import is `long sys(long number, long a, long b, long c, long d, long e)`. Numbers, flags and structures are those of
Linux on x86-64; pointers are window offsets; the result is the value or `-errno`. One call moves at most 1 MiB: longer
reads and writes are done in part. A pointer to memory that is not there, or not writable where the call writes, is
`EFAULT`, and nothing was done.

";

#[test]
fn the_page_is_the_table() {
    let mut page = HEAD.to_owned();
    page += "| number | call | `compute` | `files` |\n|---|---|---|---|\n";
    for call in SYSTEM_CALLS {
        let (number, name) = (call.number, call.name);
        let _ = writeln!(
            page,
            "| {number} | `{name}` | {} | {} |",
            call.compute, call.files
        );
    }
    if std::env::var_os("POSTERN_UPDATE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let found = std::fs::read_to_string(PAGE).unwrap();
    assert!(
        found == page,
        "{PAGE} differs from the table: POSTERN_UPDATE=1 cargo test -p postern --test reference"
    );
}

#[test]
fn the_table_is_in_order() {
    let numbers: Vec<i64> = SYSTEM_CALLS.iter().map(|call| call.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b));
}
