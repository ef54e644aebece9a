# An encoder of MP3. It has no tests with a verdict: its sample is encoded in several ways and
# compared with what gcc's build of the same source with the same flags makes.
build() {
	unpack lame
	mkdir native
	(cd native && ../configure --disable-shared --disable-decoder && make -j2)
	CC=$cc ./configure --host=x86_64-elf --disable-shared --disable-decoder
	make -j2
}

same() {
	frontend/lame --quiet "$@" testcase.wav confined.mp3 && native/frontend/lame --quiet "$@" testcase.wav native.mp3 &&
		cmp confined.mp3 native.mp3
}

tests() {
	check nores same --nores
	check cbr same -b 128
	check vbr same -V2
	check vbr-old same --vbr-old -V4
	check abr same --abr 160
	check insane same --preset insane
	check mono same -m m -b 64
	check resample same --resample 22.05 -b 48
	check best same -q 0 -b 192
	check fast same -q 9 -b 192
}
