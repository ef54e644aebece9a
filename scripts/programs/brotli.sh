# A compressor. Debian's source has few of the files that its tests compress, so its own sources
# are compressed, too: as many bytes as by gcc's build, and the same ones.
build() {
	unpack brotli
	by_cmake
	cmake -S . -B native -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF
	cmake --build native --parallel 2 --target brotli
}

same() {
	build/brotli --stdout "$@" >confined.br && native/brotli --stdout "$@" >native.br && cmp confined.br native.br &&
		build/brotli --stdout --decompress confined.br | cmp - "${!#}"
}

tests() {
	local file quality
	by_ctest
	for file in c/enc/encode.c c/common/dictionary.c c/common/transform.c tests/testdata/ukkonooa; do
		for quality in 0 5 9 11; do
			check "same/$file/$quality" same --quality=$quality "$file"
		done
	done
}
