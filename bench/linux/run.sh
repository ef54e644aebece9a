#!/usr/bin/env bash
# Postern's module beside eBPF with its compiler, in one of Debian's kernels under an emulator that counts instructions: what is
# printed is the same in every run. run.sh [KERNEL...]: 6.12 has both sides of all rows, 6.1 no eBPF programs for netfilter.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
out=$root/target/kernel/bench
cc=$root/target/release/postern
mkdir -p "$out/files"
bpf=(-O2 -g -target bpf "-I/usr/include/$(gcc -dumpmachine)")

echo "postern: compiling both sides of each program"
for image in works empty; do
	"$cc" cc --kernel -O2 -w -o "$out/files/$image.pst" $image.pst.c
done
clang "${bpf[@]}" -c works.bpf.c -o "$out/files/works.bpf.o"
for shape in straight branches; do
	for lines in 50 500 5000 50000; do
		source=$out/$shape-$lines.c
		[[ -e $out/files/$shape-$lines.pst ]] && continue
		./shapes.sh $shape $lines >"$source"
		clang "${bpf[@]}" -g0 -c "$source" -o "$out/files/$shape-$lines.bpf.o"
		"$cc" cc --kernel -O2 -o "$out/files/$shape-$lines.pst" "$source"
	done
done
gcc -O2 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -I"$root/kernel/linux" guest.c -o "$out/files/init" -lbpf
"$root/kernel/linux/judge.sh"
for version in "${@:-6.12}"; do
	kernel=$root/target/linux/$version
	[[ -e $kernel/vmlinuz ]] || { echo "postern: no kernel $version: make setup-kernel fetches it" >&2 && exit 1; }
	"$root/kernel/linux/build.sh" "$kernel/headers" "$out/$version"
	cp "$out/$version/postern.ko" "$out/files/"
	"$root/kernel/linux/first-files.sh" "$out/files" "$out/files/init"
	echo "Linux $version, instructions a call; ratio: Postern over eBPF"
	timeout -k 5 1200 qemu-system-x86_64 -accel tcg,thread=single -icount shift=0,sleep=off -cpu max -m 1024 -smp 1 \
		-nodefaults -no-user-config -display none -no-reboot -serial stdio -kernel "$kernel/vmlinuz" -initrd "$out/files.cpio" \
		-append "console=ttyS0 quiet loglevel=4 panic=-1 oops=panic reboot=t tsc=reliable" </dev/null | tee "$out/$version.txt"
	grep -q '^bench: ok' "$out/$version.txt"
done
