#!/usr/bin/env bash
# Boots one of Debian's kernels (6.12, or the one that is named) in an emulator, and filters packets there with C: demo/linux/init
# says what is done. Nothing of this machine's kernel is touched.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${1:-6.12}
kernel=target/linux/$version
postern=target/release/postern
out=build/demo/linux
files=$out/files
[[ -e $kernel/vmlinuz ]] || { echo "demo: no kernel $version: make setup-kernel fetches it on Debian 12" >&2 && exit 1; }
rm -rf "$files"
mkdir -p "$files/bin"

"$postern" cc --kernel -O2 -g -o "$files/rules.pst" demo/linux/rules.c
"$postern" cc --kernel -O2 -g -DBUG -o "$files/buggy.pst" demo/linux/rules.c
"$postern" cc --kernel -O2 -g -DSTRICT -o "$files/strict.pst" demo/linux/rules.c
gcc -O2 -static -o "$files/bin/traffic" demo/linux/traffic.c
kernel/linux/judge.sh
kernel/linux/build.sh "$kernel/headers" "$out/$version"
cp "$out/$version/postern.ko" "$files/"
cp demo/linux/init "$files/init"
cp "$(command -v busybox)" "$files/bin/busybox"
cp "$postern" "$files/bin/postern"
strip "$files/bin/postern"
kernel/linux/first-files.sh "$files" "$postern"
# The emulator with two processors may execute an instruction of the kernel's that was just patched away: then it is begun again.
for _ in 1 2 3; do
	timeout -k 5 300 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 1024 -smp 2 -nodefaults -no-user-config -display none -no-reboot \
		-serial stdio -kernel "$kernel/vmlinuz" -initrd "$files.cpio" \
		-append "console=ttyS0 quiet loglevel=3 panic=-1 oops=panic reboot=t" </dev/null | tee "$out/shown.txt"
	grep -q 'int3: 0000' "$out/shown.txt" || break
done
grep -q '^demo: done' "$out/shown.txt"
