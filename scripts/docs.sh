#!/usr/bin/env bash
# Builds the book into build/book.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v mdbook >/dev/null; then
	echo "postern: installing mdbook by cargo (a few minutes)"
	cargo install --locked --quiet mdbook
	export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
fi
mdbook build docs
echo "postern: the book is in build/book/index.html"
