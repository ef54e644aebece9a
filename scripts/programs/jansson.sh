# Another one.
cannot[test_dump]="writes to a pipe() of its own, and a program alone has no pipes"

build() {
	unpack jansson
	by_cmake -DJANSSON_BUILD_DOCS=OFF
}

tests() {
	by_ctest
}
