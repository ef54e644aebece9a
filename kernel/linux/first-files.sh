#!/usr/bin/env bash
# first-files.sh FOLDER PROGRAM...: packs a folder as a kernel's first file system, FOLDER.cpio, with the libraries that the
# programs are linked with put into it.
set -euo pipefail
folder=$(realpath "$1")
shift
mkdir -p "$folder"/{dev,proc,sys}
for program in "$@"; do
	ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$folder$(dirname "$library")"
		cp -L "$library" "$folder$library"
	done
done
cd "$folder"
find . -print0 | cpio --quiet -0 -o -H newc >"$folder.cpio"
