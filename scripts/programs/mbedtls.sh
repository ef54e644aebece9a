# A library of cryptography and TLS, with its own tests.
cannot[net-suite]="opens sockets, and a program has none"
cannot[x509parse-suite]="certificates that have expired by now; gcc's build fails the same ones"
cannot[ssl-suite]="the same, and timers of DTLS, which are in the module timing"
cannot[random-suite]="wants two starts of a generator to differ, and reads a file here: there are no devices"
notes=("without its module timing, which reads the processor's clock: rdtsc is the host's")

build() {
	unpack mbedtls
	echo '#undef MBEDTLS_TIMING_C' >postern_config.h
	# The flags of the link are what cpuid answers: with them AES and GCM take the processor's ciphers.
	by_cmake -DENABLE_PROGRAMS=OFF -DENABLE_TESTING=ON -DCMAKE_EXE_LINKER_FLAGS="-maes -mpclmul" \
		-DCMAKE_C_FLAGS="-I$PWD -DMBEDTLS_USER_CONFIG_FILE='<postern_config.h>'"
}

tests() {
	# A program sees nothing but what its folder has: no link out of it, and of devices a file.
	rm build/tests/data_files
	cp -r tests/data_files build/tests/
	mkdir -p build/tests/dev
	head -c 65536 /dev/urandom >build/tests/dev/urandom
	by_ctest
}
