# A hash function in C with four widths of vectors, which it chooses among by cpuid. Its test
# compares with test vectors, which the package has not: the authors' reference program makes them.
build() {
	unpack_binary librust-blake3-dev usr/share/cargo/registry/blake3-*/c
	make -f Makefile.testing CC="$cc" CFLAGS="-O3 -std=c11 -DBLAKE3_TESTING" LDFLAGS=
	mkdir ../test_vectors
	rustc --edition 2021 -O --crate-type rlib --out-dir ../test_vectors ../reference_impl/reference_impl.rs
	rustc --edition 2021 -O -L ../test_vectors -o ../test_vectors/make "$root/scripts/programs/blake3-vectors.rs"
}

tests() {
	../test_vectors/make >../test_vectors/test_vectors.json
	check test.py python3 test.py
}
