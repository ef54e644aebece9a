#!/usr/bin/env bash
# Fuzzes each target for SECONDS (default 60; 0: until something is found): fuzz/run.sh [SECONDS
# [TARGET...]]
#
# The targets `random` and `random-filters` are no fuzzers: they compare what random programs
# compute by gcc and by E-code, and what random expressions mean to libpcap and here, as users build
# it.
#
# Builds with the coverage instrumentation that cargo-fuzz uses, by cargo alone: any toolchain that
# builds Postern will do, no nightly and nothing to install. Exits with 1 when an input crashes a
# target, takes over 10 s, or over 1 GiB; the input is kept under fuzz/artifacts and the command
# that replays it is printed. What was learnt stays in fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-60}
shift || true
if [[ ! $seconds =~ ^[0-9]+$ ]]; then
    echo "usage: fuzz/run.sh [SECONDS [TARGET...]]" >&2
    exit 2
fi
targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
    targets=(image object verifier debug policy ecode-parser ecode filter classic link capture-file random random-filters)
fi

given=${CARGO_TARGET_DIR:-$PWD/../target}
triple=$(rustc -vV | sed -n 's/^host: //p')
output=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$output
# As `cargo fuzz build --sanitizer none` sets them. The target is named so that build scripts are
# built without them.
instrumented="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-sanitizer-coverage-stack-depth
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0 --cfg fuzzing -Cdebug-assertions -Ccodegen-units=1"

build() {
    echo "fuzz: building (instrumented, no sanitizer)"
    RUSTFLAGS="$instrumented" cargo build --release --quiet --target "$triple" --bins
    cargo build --quiet --target "$triple" --example seeds
    "$output/$triple/debug/examples/seeds" corpus
}
# Whether a target is a program that compares, which is an example of its crate by this name.
is_example() {
    [[ $1 == random || $1 == random-filters ]]
}

examples=() fuzzers=()
for target in "${targets[@]}"; do
    if is_example "$target"; then examples+=(--example "$target"); else fuzzers+=("$target"); fi
done
[[ ${#fuzzers[@]} -eq 0 ]] || build
# Of the whole workspace, as everything else is built: of one crate they would have other features,
# and all below them with these.
[[ ${#examples[@]} -eq 0 ]] ||
    CARGO_TARGET_DIR=$given cargo build --release --quiet --manifest-path ../Cargo.toml --workspace "${examples[@]}"

status=0
for target in "${targets[@]}"; do
    echo "fuzz: $target for $seconds s"
    if is_example "$target"; then
        "$given/release/examples/$target" "$seconds" || status=1
        continue
    fi
    mkdir -p "corpus/$target" "artifacts/$target"
    log=$(mktemp)
    # The place of a panic says enough; a backtrace through the fuzzer does not fit on a screen.
    if RUST_BACKTRACE=0 "$output/$triple/release/$target" "corpus/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
        -max_len=65536 -artifact_prefix="artifacts/$target/" -print_final_stats=1 >"$log" 2>&1; then
        grep -E 'INITED|DONE|number_of_executed_units|peak_rss' "$log" | sed 's/^/  /'
    else
        status=1
        tail -n 40 "$log" >&2
        echo "fuzz: $target crashed; replay with: $output/$triple/release/$target fuzz/artifacts/$target/NAME" >&2
    fi
    rm -f "$log"
done
exit $status
