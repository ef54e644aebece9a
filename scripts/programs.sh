#!/usr/bin/env bash
# Builds programs that others wrote, from Debian's sources and with their own configure or cmake,
# and runs their tests confined.
#
#     scripts/programs.sh [NAME…]
#
# Without names all of scripts/programs/*.sh, of which each is one program. Ends with a table: how
# many tests passed, and why the others cannot. The exit status is 0 only if no tests fail but
# those that are named, with a reason, as ones that cannot pass.
#
# Sources come by apt from where the machine's packages come from, by a private list of sources,
# into target/programs; nothing of the system's apt changes.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$root/target/programs
export POSTERN=${POSTERN:-$root/target/release/postern} PROGRAMS_FOLDER=$work
export cc=$root/scripts/programs/cc
names=("$@")
((${#names[@]})) || mapfile -t names < <(basename -s .sh "$root"/scripts/programs/*.sh)
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"

# The machine's own sources of packages, asked for sources of programs. Not those of security, which
# drop what the next point release has: the sources as their authors published them are the same.
apt_options=(-o Dir::Etc::sourcelist="$work/apt/src.sources" -o Dir::Etc::sourceparts=/nonexistent
	-o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root)
sources_known() {
	local keyring='/debian-archive-keyring' file
	for file in /etc/apt/sources.list.d/*.sources; do
		grep -q "$keyring" "$file" || continue
		sed -e '/^#/d' -e 's/^Types:.*/Types: deb deb-src/' "$file" | awk -v RS= -v ORS='\n\n' '!/URIs:[^\n]*security/'
	done >"$work/apt/src.sources" || true
	if [[ ! -s $work/apt/src.sources ]]; then
		sed -n -e /security/d -e p -e 's/^deb /deb-src /p' /etc/apt/sources.list >"$work/apt/src.list"
		apt_options[1]="Dir::Etc::sourcelist=$work/apt/src.list"
	fi
	apt-get -q "${apt_options[@]}" update
}

# Fetches the newest version that can still be had: an index may name one that is gone.
fetch_source() {
	local version
	sources_known
	for version in $(apt-cache "${apt_options[@]}" showsrc --only-source "$1" | sed -n 's/^Version: //p' | sort -rVu); do
		apt-get -q "${apt_options[@]}" source --download-only "$1=$version" && return
	done
	echo "no version of the source package $1 can be fetched"
	return 1
}

# Unpacks a package's source as its authors published it, afresh, and enters it.
unpack() {
	mkdir -p "$work/sources/$1"
	cd "$work/sources/$1"
	compgen -G '*.orig.tar.*' >/dev/null || fetch_source "$1"
	rm -rf "${work:?}/$1"
	mkdir -p "$work/$1"
	cd "$work/$1"
	tar xf "$work/sources/$1/"*.orig.tar.* --strip-components=1
	basename "$work/sources/$1/"*.orig.tar.* | sed 's/.*_//; s/\.orig.*//' >"$work/$1.version"
}

# The same of a package that has the source for others to build with: its name, its folder inside.
unpack_binary() {
	mkdir -p "$work/sources/$1"
	cd "$work/sources/$1"
	if ! compgen -G '*.deb' >/dev/null; then
		sources_known
		apt-get -q "${apt_options[@]}" download "$1"
	fi
	rm -rf "${work:?}/$name"
	mkdir -p "$work/$name"
	cd "$work/$name"
	dpkg -x "$work/sources/$1/"*.deb .
	cd $2
	dpkg-deb -f "$work/sources/$1/"*.deb Version | sed 's/-[^-]*$//' >"$work/$name.version"
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

# Tests print lines of the Test Anything Protocol, "ok NAME" and "not ok NAME".
by_ctest() {
	ctest --test-dir build --output-on-failure "$@" | tee "$work/$name.ctest" |
		sed -nE -e 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*Passed.*/ok \1/p' \
			-e 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*\*\*\*.*/not ok \1/p' || true
}

by_make_check() {
	make -k check "$@" 2>&1 | tee "$work/$name.check" |
		sed -nE -e 's/^PASS: (.*)/ok \1/p' -e 's/^FAIL: (.*)/not ok \1/p' || true
}

# A command as a test: its name, the command.
check() {
	local test=$1
	shift
	if "$@" >&2; then echo "ok $test"; else echo "not ok $test"; fi
}

# Builds and tests one program, in a shell of its own.
program() {
	set -e
	name=$1
	declare -A cannot=()
	source "$root/scripts/programs/$name.sh"
	rm -f "$work/$name.tap"
	build
	tests >"$work/$name.tap"
}

# A row of the table; false if other tests fail than those that cannot pass.
row() {
	local name=$1 ended=$2 passed all test verdict=ok why=() notes=()
	declare -A cannot=()
	source "$root/scripts/programs/$name.sh"
	touch "$work/$name.tap" "$work/$name.version"
	passed=$(grep -c '^ok ' "$work/$name.tap" || true)
	all=$(grep -cE '^(not )?ok ' "$work/$name.tap" || true)
	((ended == 0)) || { verdict=FAILED && why+=("it does not build; all: $work/$name.log"); }
	((all > 0)) || { verdict=FAILED && why+=("no test ran"); }
	while read -r test; do
		if [[ -n ${cannot[$test]:-} ]]; then
			why+=("$test: ${cannot[$test]}")
		else
			verdict=FAILED && why+=("$test fails; all: $work/$name.log")
		fi
	done < <(sed -n 's/^not ok //p' "$work/$name.tap")
	for test in "${!cannot[@]}"; do
		grep -qxF "ok $test" "$work/$name.tap" || continue
		why+=("$test passes here")
	done
	printf '%-6s %-9s %-8s %4d of %4d' "$verdict" "$name" "$(<"$work/$name.version")" "$passed" "$all"
	why+=("${notes[@]}")
	((${#why[@]})) && printf '\n       %s' "${why[@]}"
	echo
	[[ $verdict == ok ]]
}

rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
failed=0
for name in "${names[@]}"; do
	start=$SECONDS
	# Not in a condition: there, no failure would end the function.
	set +e
	(program "$name") >"$work/$name.log" 2>&1
	ended=$?
	set -e
	((ended == 0)) || tail -40 "$work/$name.log"
	echo "$name: $((SECONDS - start)) s" >&2
	row "$name" $ended >>"$rows" || failed=1
done
cat "$rows"
exit $failed
