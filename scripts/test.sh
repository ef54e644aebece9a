#!/usr/bin/env bash
# Every test. `make test` and continuous integration run it.
#
# Everything is built once, with the features that tests need, and then all test programs run side
# by side, longest first by what they took the last time (target/test-times; before the first time
# scripts/test-times): some compute, some wait for deadlines. A line tells the end of each; what a
# failed one said stands at the end. JOBS=N runs N at a time.
#
# Some tests watch clocks that a busy machine stops for them. So what failed beside others is run
# once more alone. Where it passes then the whole passes, and what it said first is printed
# nevertheless: to be looked into, since it may be a race that is met seldom.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(($(nproc) + 1))}
times=target/test-times
queue=$(mktemp -d)
trap 'rm -rf "$queue"' EXIT
export POSTERN_TEST_QUEUE=$queue

step() {
	printf '\n== %s\n' "$1"
	shift
	"$@"
}

# What a manifest leaves out of the tests has none.
nothing_left_out() {
	local manifest folder file wrong=0
	while read -r manifest; do
		folder=$(dirname "$manifest")
		if grep -q '^autotests = false' "$manifest"; then
			for file in "$folder"/tests/*.rs; do
				file=$(basename "$file" .rs)
				grep -q "^mod $file;" "$folder/tests/all.rs" || grep -q "\"tests/$file.rs\"" "$manifest" ||
					{ echo "$folder/tests/$file.rs is in no test program" && wrong=1; }
			done
		fi
		if sed -n '/^\[lib\]/,/^$/p' "$manifest" | grep -q '^test = false' && grep -rqE '#\[(tokio::)?test\]' "$folder/src"; then
			echo "$manifest says that $folder/src has no tests" && wrong=1
		fi
		if grep -q '^doctest = false' "$manifest" && grep -rqE '^\s*//[/!] ```' "$folder/src"; then
			echo "$manifest says that $folder/src has no code in its documentation" && wrong=1
		fi
	done < <(git ls-files '*Cargo.toml')
	return $wrong
}

# Notes a command for later: name, command.
later() {
	printf '%s\n' "$2" >"$queue/$1.job"
}

# Asks cargo for all test programs; it hands each to the runner, which notes it.
find_programs() {
	local triple
	triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
	env "CARGO_TARGET_${triple}_RUNNER=$PWD/scripts/test-later.sh" \
		cargo test --release --workspace --tests
	echo "$(find "$queue" -name '*.job' | wc -l) test programs"
}

# Runs a noted command; says when it has ended.
run_job() {
	local name=$1 verdict=ok TIMEFORMAT='%R %U %S' passed
	{ time bash "$POSTERN_TEST_QUEUE/$name.job" >"$POSTERN_TEST_QUEUE/$name.log" 2>&1 </dev/null || verdict=FAILED; } \
		2>"$POSTERN_TEST_QUEUE/$name.time"
	[[ $verdict == ok ]] || touch "$POSTERN_TEST_QUEUE/$name.failed"
	passed=$(awk '/^test result:/ { sum += $4 } END { if (sum) print sum " tests" }' "$POSTERN_TEST_QUEUE/$name.log")
	{ grep -E '^test (result: |.* \.\.\. )' "$POSTERN_TEST_QUEUE/$name.log" || true; }
	awk -v verdict="$verdict" -v name="$name" -v passed="$passed" \
		'{ printf "%-6s %7.1f s, of processors %7.1f s  %s  %s\n", verdict, $1, $2 + $3, name, passed }' "$POSTERN_TEST_QUEUE/$name.time"
}
export -f run_job

# The names of all jobs, the longest first. What no file names is short.
order() {
	local known=scripts/test-times job name
	[[ ! -e $times ]] || known=$times
	for job in "$queue"/*.job; do
		name=$(basename "$job" .job)
		awk -v name="$name" '$1 == name { seconds = $2 } END { print seconds + 0, name }' "$known"
	done | sort -rn | cut -d' ' -f2
}

run_jobs() {
	order | xargs -P "$jobs" -I{} bash -c 'run_job {}'
	local file
	for file in "$queue"/*.time; do
		echo "$(basename "$file" .time) $(cat "$file")"
	done | sort -k2 -rn >"$times"
}

# Runs what failed once more. So many that fail at once are no accident of the load.
readonly again_at_most=3
run_again() {
	local failed=("$queue"/*.failed) file name
	[[ -e ${failed[0]} && ${#failed[@]} -le $again_at_most ]] || return 0
	for file in "${failed[@]}"; do
		name=$(basename "$file" .failed)
		# What a fuzzer found once it may not find again.
		[[ $name != fuzzing ]] || continue
		mv "$queue/$name.log" "$queue/$name.first"
		rm "$file"
		run_job "$name"
	done
}

report() {
	grep -hs '^SKIPPED' "$queue"/*.log || true
	local file name
	for file in "$queue"/*.first; do
		[[ -e $file ]] || continue
		name=$(basename "$file" .first)
		printf '\n== beside others: %s\n' "$name"
		cat "$file"
		[[ -e $queue/$name.failed ]] || printf '\nfailed beside others, passed alone: %s\n' "$name"
	done
	local failed=("$queue"/*.failed)
	[[ -e ${failed[0]} ]] || return 0
	for file in "${failed[@]}"; do
		name=$(basename "$file" .failed)
		printf '\n== failed: %s\n' "$name"
		cat "$queue/$name.log"
	done
	printf '\nfailed:'
	for file in "${failed[@]}"; do
		printf ' %s' "$(basename "$file" .failed)"
	done
	printf '\n'
	return 1
}

step "no test is left out" nothing_left_out
step "build" cargo build --release --workspace --all-targets --quiet
step "the image parser and E-code without the standard library" \
	cargo build --release --package postern-image --package postern-ecode --no-default-features --quiet
# Tests that run the command and the library find them built.
export POSTERN_BUILT=1
step "test programs" find_programs
later documentation "cargo test --release --workspace --doc --no-fail-fast"
later demonstration demo/run.sh
later programs "scripts/programs.sh cjson"
later netstack "cd interpose/netstack && cargo test --release --locked --quiet --lib"
later fuzzing "fuzz/run.sh 4"
step "tests, $jobs programs at a time" run_jobs
step "once more, alone, what failed" run_again
report
