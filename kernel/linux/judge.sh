#!/usr/bin/env bash
# Builds the judge for ring 0: target/kernel/judge.o.
#
# Stable Rust has no target for the inside of Linux, so the host's is used with other settings: no
# vectors, no red zone. With fat LTO the compiler's own `core` and `alloc` are generated anew by
# these settings. The result is taken as assembly, in which the branches that the kernel protects
# get the kernel's names: returns, and calls through registers. What is left of others is found by
# the tests, which disassemble the object.
set -euo pipefail
cd "$(dirname "$0")/glue"
root=$(cd ../../.. && pwd)
flags=(-Crelocation-model=static -Ccode-model=kernel -Cno-redzone=yes -Crelro-level=off
	-Cforce-frame-pointers=yes -Cforce-unwind-tables=no -Cno-vectorize-loops -Cno-vectorize-slp
	-Ctarget-feature=-sse,-sse2 -Cllvm-args=-min-jump-table-entries=1000000)
log=$root/target/kernel/judge.log
mkdir -p "$root/target/kernel"
# One at a time: tests run side by side.
exec 9>"$root/target/kernel/lock"
flock 9
# The compiler warns that its target is meant to have vectors.
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}") \
	cargo rustc --release --target x86_64-unknown-linux-gnu --target-dir "$root/target/kernel" "$@" -- "--emit=asm=$root/target/kernel/compiled.s" \
	>"$log" 2>&1 || { cat "$log" >&2 && exit 1; }
cd "$root/target/kernel"
sed -E '
	/^\t\.(file\t[0-9]|loc\t|cfi_)/d
	s/^\tretq?$/\tjmp __x86_return_thunk/
	s/^\t(call|jmp)q?\t\*%(r[a-z0-9]+)$/\t\1 __x86_indirect_thunk_\2/
	s/^\t(call|jmp)q?\t\*([A-Za-z_][A-Za-z0-9_]*)@GOTPCREL\(%rip\)$/\t\1 \2/
	s/^\tmovq\t([A-Za-z_][A-Za-z0-9_]*)@GOTPCREL\(%rip\), (%r[a-z0-9]+)$/\tleaq\t\1(%rip), \2/
' compiled.s >judge.s
as --64 -o judge.new judge.s
objcopy --strip-debug judge.new
mv judge.new judge.o
