#!/bin/sh
# Builds the network stack: build.sh OUTPUT, with `postern` in the PATH, or what POSTERN names.
set -e
case $1 in
/*) output=$1 ;;
*) output=$PWD/${1:?an output file is wanted} ;;
esac
cd "$(dirname "$0")"
bitcode=../../target/netstack/x86_64-unknown-linux-gnu/release/postern-netstack.bc
cargo rustc --release --quiet --lib --crate-type staticlib -- --emit=llvm-bc="$bitcode"
"${POSTERN:-postern}" cc -O2 -fpostern-heap=1G -o "$output" "$bitcode"
