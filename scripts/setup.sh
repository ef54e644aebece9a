#!/usr/bin/env bash
# Makes sure that the commands or files of the named Debian packages are there, says what is
# missing, and installs it by apt.
set -euo pipefail

missing=()
for package in "$@"; do
	case $package in
	binutils) command=as ;;
	xz-utils) command=xz ;;
	lld) command=wasm-ld ;;
	iproute2) command=ip ;;
	util-linux) command=unshare ;;
	wabt) command=wasm2c ;;
	qemu-system-x86) command=qemu-system-x86_64 ;;
	# Packages without commands.
	gcc-*-source) command=/usr/src/${package%-source} ;;
	newlib-source) command=/usr/src/newlib ;;
	wasi-libc) command=/usr/include/wasm32-wasi ;;
	libclang-rt-dev-wasm32) command=$(clang -print-resource-dir 2>/dev/null || echo /usr/lib/clang)/lib/wasi ;;
	libpcap-dev) command=/usr/include/pcap ;;
	libcsmith-dev) command=/usr/include/csmith ;;
	busybox-static) command=busybox ;;
	libbpf-dev) command=/usr/include/bpf ;;
	libfcgi-dev) command=/usr/include/fcgiapp.h ;;
	chromium-driver) command=chromedriver ;;
	nfs-ganesha) command=ganesha.nfsd ;;
	nfs-ganesha-vfs) command=$(compgen -G '/usr/lib/*/ganesha/libfsalvfs.so' || echo libfsalvfs) ;;
	nginx) command=/usr/sbin/nginx ;;
	python3-pip) command=$(python3 -m pip --version >/dev/null 2>&1 && echo python3 || echo no-pip) ;;
	*) command=$package ;;
	esac
	[[ $command == /* && -e $command ]] || command -v "$command" >/dev/null || missing+=("$package")
done
if ! command -v cargo >/dev/null; then
	echo "postern: a Rust toolchain (1.88 or later) is needed: install it with rustup, then run this again" >&2
	exit 1
fi
((${#missing[@]})) || exit 0

echo "postern: installing ${missing[*]} by apt-get"
as_root=()
if ((EUID != 0)); then
	as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
