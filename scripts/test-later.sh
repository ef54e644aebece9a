#!/usr/bin/env bash
# What `cargo test` runs in place of each test program when scripts/test.sh asks for all: notes the
# program, its words, environment and folder, to be run later beside others.
set -euo pipefail
program=$(basename "$1")
# What a test asks of cargo is to be done, and not to be noted.
for variable in "${!CARGO_TARGET_@}"; do
	[[ $variable != *_RUNNER ]] || unset "$variable"
done
{
	export -p
	printf 'cd %q\nexec' "$PWD"
	printf ' %q' "$@"
	printf '\n'
} >"$POSTERN_TEST_QUEUE/$CARGO_PKG_NAME.${program%-*}.job"
