#!/usr/bin/env bash
# Builds programs that others wrote, from Debian's sources and with their own configure or cmake,
# and runs their tests confined.
#
#     scripts/programs.sh [NAME…]
#
# Without names all of them. Sources come by apt from where the machine's packages come from, by a
# private list of sources, into target/programs; nothing of the system's apt changes.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$root/target/programs
export POSTERN=${POSTERN:-$root/target/release/postern} PROGRAMS_FOLDER=$work
cc=$root/scripts/programs/cc
names=("$@")
((${#names[@]})) || names=(cjson jansson brotli lame hunspell)
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"

# The machine's own sources of packages, asked for sources of programs.
apt_options=(-o Dir::Etc::sourcelist="$work/apt/src.sources" -o Dir::Etc::sourceparts=/nonexistent
	-o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root)
sources_known() {
	[[ -s $work/apt/src.sources ]] && return
	local keyring='/debian-archive-keyring' file
	for file in /etc/apt/sources.list.d/*.sources; do
		grep -q "$keyring" "$file" && sed -e '/^#/d' -e 's/^Types:.*/Types: deb-src/' "$file" && echo
	done >"$work/apt/src.sources" || true
	if [[ ! -s $work/apt/src.sources ]]; then
		sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$work/apt/src.list"
		apt_options[1]="Dir::Etc::sourcelist=$work/apt/src.list"
	fi
	apt-get -q "${apt_options[@]}" update
}

# Unpacks a package's source as its authors published it, afresh.
unpack() {
	mkdir -p "$work/sources/$1"
	cd "$work/sources/$1"
	if ! compgen -G '*.orig.tar.*' >/dev/null; then
		sources_known
		apt-get -q "${apt_options[@]}" source --download-only "$1"
	fi
	rm -rf "$work/$1"
	mkdir -p "$work/$1"
	cd "$work/$1"
	tar xf "$work/sources/$1/"*.orig.tar.* --strip-components=1
}

toolchain_file() {
	cat >"$work/postern.cmake" <<-END
		set(CMAKE_SYSTEM_NAME Generic)
		set(CMAKE_SYSTEM_PROCESSOR x86_64)
		set(CMAKE_C_COMPILER $cc)
		set(UNIX 1)
	END
	echo "$work/postern.cmake"
}

by_cmake() {
	cmake -S . -B build -DCMAKE_TOOLCHAIN_FILE="$(toolchain_file)" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF "$@"
	cmake --build build --parallel 2
}

program_cjson() {
	unpack cjson
	by_cmake
	ctest --test-dir build --output-on-failure
}

program_jansson() {
	unpack jansson
	by_cmake -DJANSSON_BUILD_DOCS=OFF
	ctest --test-dir build --output-on-failure
}

program_brotli() {
	unpack brotli
	by_cmake
	ctest --test-dir build --output-on-failure
}

program_lame() {
	unpack lame
	CC=$cc ./configure --host=x86_64-elf --disable-shared --disable-decoder
	make -j2
	frontend/lame --quiet -b 128 testcase.wav confined.mp3
	cmp confined.mp3 testcase.mp3
}

program_hunspell() {
	unpack hunspell
	[[ -x configure ]] || autoreconf -fi
	CC=$cc CXX="env POSTERN_LANGUAGE=c++ $cc" ./configure --host=x86_64-elf --disable-shared --disable-nls
	make -j2
	make check
}

for name in "${names[@]}"; do
	start=$SECONDS
	# Not in a condition: there, no failure would end the function.
	set +e
	(
		set -e
		"program_$name"
	) >"$work/$name.log" 2>&1
	ended=$?
	set -e
	if ((ended)); then
		tail -40 "$work/$name.log"
		echo "FAILED $name (all: $work/$name.log)"
		exit 1
	fi
	echo "ok     $name, $((SECONDS - start)) s"
done
