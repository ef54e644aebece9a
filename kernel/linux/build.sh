#!/usr/bin/env bash
# build.sh HEADERS FOLDER: builds the module for the kernel whose headers are in HEADERS; the result
# is FOLDER/postern.ko. The judge must be there already (judge.sh).
set -euo pipefail
headers=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
cd "$(dirname "$0")"
cp Kbuild ./*.c ./*.h ./*.S "$folder"
cp ../../target/kernel/judge.o "$folder/judge.o_shipped"
# Kbuild asks how each object was made.
: >"$folder/.judge.o.cmd"
# Types for tracers would ask for the kernel's own, and for pahole.
make -s -C "$headers" M="$folder" CONFIG_DEBUG_INFO_BTF_MODULES= modules
