# A hash function in C with widths of vectors from 16 bytes on, among which it chooses by cpuid: the
# flags of the link allow up to 32 bytes. Its test compares with test vectors, which the package has
# not: the authors' reference program makes them.
notes=("without its file for AVX-512, as its own switch BLAKE3_NO_AVX512 has it: extensions have no vectors so wide")

build() {
	unpack_binary librust-blake3-dev usr/share/cargo/registry/blake3-*/c
	make -f Makefile.testing BLAKE3_NO_AVX512=1 CC="$cc" CFLAGS="-O3 -std=c11 -DBLAKE3_TESTING" LDFLAGS=-mavx2
	mkdir ../test_vectors
	rustc --edition 2021 -O --crate-type rlib --out-dir ../test_vectors ../reference_impl/reference_impl.rs
	rustc --edition 2021 -O --extern reference_impl=../test_vectors/libreference_impl.rlib \
		-o ../test_vectors/make "$root/scripts/programs/blake3-vectors.rs"
}

tests() {
	../test_vectors/make >../test_vectors/test_vectors.json
	check test.py python3 test.py
}
