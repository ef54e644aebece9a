#!/usr/bin/env bash
# shapes.sh SHAPE LINES: C of a program with so many statements, for both sides, in functions of at most 500.
# `straight` has nothing but arithmetic; `branches` has a condition in every second statement.
set -euo pipefail
shape=$1 lines=$2
echo "typedef unsigned long long u64;"
awk -v shape="$shape" -v lines="$lines" 'BEGIN {
	for (k = 0; k < lines; k++) {
		if (k % 500 == 0) printf "static __attribute__((noinline)) u64 part_%d(u64 x, u64 y) {\n", k / 500
		if (shape == "branches" && k % 2) printf "if (x & %dull) y ^= x;\n", 2 ^ (k % 30)
		else if (k % 2) printf "y ^= x;\n"
		else printf "x += y + %d;\n", k
		if (k % 500 == 499 || k == lines - 1) print "return x ^ y; }"
	}
	print "#ifdef __bpf__\n#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nchar LICENSE[] SEC(\"license\") = \"GPL\";"
	print "SEC(\"raw_tracepoint/shape\") int shape(u64 *ctx) { u64 x = ctx[0], y = ctx[1];\n#else\nlong shape(u64 x, u64 y) {\n#endif"
	for (k = 0; k * 500 < lines; k++) printf "x = part_%d(x, y);\n", k
	print "return x ^ y; }"
}'
