#!/usr/bin/env bash
# Compiles the example extensions, natively and confined, and runs the demonstration on them. It
# ends with a web server: on a terminal that stays until Control-C, without one it is asked for its
# pages and told to end.
set -euo pipefail
cd "$(dirname "$0")/.."

postern=target/release/postern
out=build/demo
mkdir -p "$out"

for name in add gray sha256; do
	"$postern" cc -O2 -o "$out/$name.px" "examples/extensions/$name.c"
	"$postern" cc --native -O2 -o "$out/$name.so" "examples/extensions/$name.c"
done
"$postern" cc -O2 -o "$out/hostile.px" examples/hostile/hostile.c

echo "── What the compiler says of a system call ──────────────────────"
if "$postern" cc -c -o "$out/syscall.pto" examples/hostile/syscall.s; then
	echo "demo: a system call was compiled" >&2
	exit 1
fi
# Past the compiler: the same code as raw bytes, for the verifier to judge.
as -o "$out/syscall.o" examples/hostile/syscall.s
objcopy -O binary -j .text "$out/syscall.o" "$out/syscall.bin"
split=$((16#$(nm "$out/syscall.o" | awk '$3 == "by_int80" { print $1 }')))
head -c "$split" "$out/syscall.bin" >"$out/by_syscall.bin"
tail -c +$((split + 1)) "$out/syscall.bin" >"$out/by_int80.bin"
echo
target/release/postern-demo "$out"
echo
echo "── A web server ─────────────────────────────────────────────────"
exec target/release/postern-demo --site "$postern" examples/site
