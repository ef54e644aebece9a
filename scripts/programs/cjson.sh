# A parser of JSON in C, with its own tests.
build() {
	unpack cjson
	by_cmake
}

tests() {
	by_ctest
}
