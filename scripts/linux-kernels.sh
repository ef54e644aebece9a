#!/usr/bin/env bash
# Debian's kernels 6.1 and 6.12 with what modules for them are built against, unpacked below
# target/linux and not installed: the machine keeps the kernel, the package lists and the sources
# that it has. Each kernel gets a folder, target/linux/6.1 and target/linux/6.12, with `vmlinuz` and
# `headers` in it, whose names lead to this version's files, and `modules`, the few that tests load.
set -euo pipefail
cd "$(dirname "$0")/.."

here=$PWD/target/linux
. /etc/os-release
if [[ $ID != debian || ${VERSION_CODENAME:-} != bookworm ]]; then
	echo "postern: kernels for the module's tests are fetched on Debian 12 only; those tests will be skipped"
	exit 0
fi
wanted() {
	[[ -e $here/$1/vmlinuz && -e $here/$1/headers/Makefile && -e $here/$1/modules/virtio_net.ko ]]
}
wanted 6.1 && wanted 6.12 && exit 0
# A mirror without backports, or none: everything else is tested without them.
if [[ ${1:-} != --now ]]; then
	scripts/linux-kernels.sh --now || echo "postern: the kernels cannot be had; the module's tests in machines will be skipped" >&2
	exit 0
fi

mkdir -p "$here"/{lists,cache/archives/partial}
# The mirror that the machine uses anyway, with the suite that has newer kernels.
site=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | awk '$2 == "bookworm" && !found++ { print $1 }')
keys=/usr/share/keyrings/debian-archive-keyring.gpg
for suite in bookworm bookworm-backports; do
	echo "deb [arch=amd64 signed-by=$keys] $site $suite main"
done >"$here/sources.list"
apt=(-qq -o "Dir::Etc::sourcelist=$here/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$here/lists"
	-o "Dir::Cache=$here/cache" -o Dir::State::status=/dev/null -o "APT::Sandbox::User=$(id -un)" -o APT::Architecture=amd64)
echo "postern: fetching kernels into target/linux"
apt-get "${apt[@]}" update

# The packages that a package of a suite depends on and whose names match.
needs() {
	apt-cache "${apt[@]}" show "$1" | sed -n "1,/^\$/s/^Depends: //p" | tr ',' '\n' | sed 's/^ *//' | grep -oE "^$2[^ ]*" || true
}

# fetch VERSION SUITE: unpacks the kernel that the suite's linux-image-amd64 names.
fetch() {
	local version=$1 suite=$2 pin release image headers packages package folder
	wanted "$version" && return
	pin=$(apt-cache "${apt[@]}" madison linux-image-amd64 | awk -F'[| ]+' -v suite="$suite/main" '$4 == suite && !found++ { print $2 }')
	image=$(needs "linux-image-amd64=$pin" 'linux-image-[0-9]')
	[[ -n $image ]] || { echo "postern: $suite has no linux-image-amd64" >&2 && exit 1; }
	release=${image#linux-image-}
	headers=linux-headers-$release
	packages=("$image" "$headers" $(needs "$headers" 'linux-(headers|kbuild|compiler)-'))
	folder=$here/$release
	rm -rf "$folder" && mkdir -p "$folder"
	(
		cd "$folder"
		apt-get "${apt[@]}" download "${packages[@]}"
		for package in *.deb; do
			dpkg-deb -x "$package" .
		done
		rm -- *.deb
		# Only what tests load: a boot needs no other module.
		mkdir modules
		for module in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net; do
			find lib/modules -name "$module.ko*" -exec cp -t modules {} +
		done
		find modules -name '*.xz' -exec xz -d {} +
		rm -rf lib/modules
		# The headers' makefile names the places where its package would be installed.
		sed -i "s|/usr/src/|$folder/usr/src/|" "usr/src/linux-headers-$release/Makefile"
	)
	rm -rf "${here:?}/$version" && mkdir "$here/$version"
	ln -s "../$release/boot/vmlinuz-$release" "$here/$version/vmlinuz"
	ln -s "../$release/usr/src/linux-headers-$release" "$here/$version/headers"
	ln -s "../$release/modules" "$here/$version/modules"
	wanted "$version" || { echo "postern: $image and $headers have not what was expected" >&2 && exit 1; }
}
fetch 6.1 bookworm
fetch 6.12 bookworm-backports
rm -rf "$here"/{lists,cache,sources.list}
