# A spell checker in C++: the library and its command.
build() {
	unpack hunspell
	[[ -x configure ]] || autoreconf -fi
	am_cv_func_iconv_works=yes CC=$cc CXX="env POSTERN_LANGUAGE=c++ $cc" ./configure --host=x86_64-elf --disable-shared --disable-nls
	make -j2
}

tests() {
	by_make_check
}
