#!/usr/bin/env bash
# Every test, in the order of layers; stops at the first that fails. `make test` and continuous integration run it.
set -euo pipefail
cd "$(dirname "$0")/.."

step() {
	printf '\n== %s\n' "$1"
	shift
	"$@"
}

step "build" cargo build --release --workspace --quiet
step "the image parser without the standard library" cargo build --release --package postern-image --no-default-features --quiet
step "unit, integration and documentation tests" cargo test --release --workspace --no-fail-fast
step "demonstration" demo/run.sh
step "fuzzing, briefly" fuzz/run.sh 10
