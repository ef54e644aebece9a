#!/usr/bin/env bash
# dkms.sh [FOLDER]: makes FOLDER/postern-dkms-VERSION (target/dkms by default), which DKMS builds for
# each kernel that is installed, and beside it a package for Debian, where dpkg-deb is.
#
# The judge goes with it as an object: machines that install the package need no Rust, and run the
# object that the tests have disassembled. Its sources are those of this version.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
to=${1:-$root/target/dkms}
name=postern-dkms-$version
./judge.sh
rm -rf "${to:?}/$name"
mkdir -p "$to/$name"
cp Kbuild ./*.c ./*.h ./*.S "$to/$name"
# Those in assembly, if there are any.
find . -maxdepth 1 -name '*.S' -exec cp {} "$to/$name" \;
cp "$root/target/kernel/judge.o" "$to/$name/judge.o_shipped"
cp "$root/LICENSE" "$to/$name/LICENSE.judge"
cat >"$to/$name/Makefile" <<'END'
# SPDX-License-Identifier: GPL-2.0
# make KERNEL=HEADERS: builds postern.ko for the kernel whose headers are in HEADERS.
KERNEL ?= /lib/modules/$(shell uname -r)/build

all:
	@# Kbuild asks how each object was made.
	: >.judge.o.cmd
	@# Types for tracers would ask for the kernel's own, and for pahole.
	$(MAKE) -C $(KERNEL) M=$(CURDIR) CONFIG_DEBUG_INFO_BTF_MODULES= modules

clean:
	$(MAKE) -C $(KERNEL) M=$(CURDIR) clean
END
cat >"$to/$name/dkms.conf" <<END
PACKAGE_NAME="postern"
PACKAGE_VERSION="$version"
BUILT_MODULE_NAME[0]="postern"
DEST_MODULE_LOCATION[0]="/updates/dkms"
MAKE[0]="make KERNEL=\${kernel_source_dir}"
CLEAN="make clean KERNEL=\${kernel_source_dir}"
# The versions that the module is tested with.
BUILD_EXCLUSIVE_KERNEL="^6\\.(1|12)\\..*"
BUILD_EXCLUSIVE_ARCH="x86_64"
AUTOINSTALL="yes"
END
echo "$to/$name"

command -v dpkg-deb >/dev/null || exit 0
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
mkdir -p "$package"/{DEBIAN,usr/src,usr/share/doc/postern-dkms}
cp -r "$to/$name" "$package/usr/src/postern-$version"
cat >"$package/usr/share/doc/postern-dkms/copyright" <<'END'
The module's C and assembly are under the GNU General Public License, version 2
(/usr/share/common-licenses/GPL-2). The judge (judge.o_shipped), made of Postern's
crates verifier, image and kernel/judge, is under the Apache License 2.0
(LICENSE.judge) or the GPL 2, as you choose, and has parts of Rust's core and alloc
libraries and of thiserror, which are under the MIT license, among others. All
sources are in Postern's tree of this version.
END
cat >"$package/DEBIAN/control" <<END
Package: postern-dkms
Version: $version
Architecture: amd64
Section: kernel
Priority: optional
Depends: dkms (>= 3.0)
Recommends: linux-headers-amd64
Maintainer: Postern <postern@localhost>
Description: extensions of the Linux kernel, judged before they run (module sources)
 The module postern runs confined extensions in the kernel. DKMS builds it for
 each kernel 6.1 and 6.12 that is installed.
END
cat >"$package/DEBIAN/postinst" <<END
#!/bin/sh
set -e
if [ "\$1" = configure ]; then
	if [ -x /usr/lib/dkms/common.postinst ]; then
		/usr/lib/dkms/common.postinst postern $version "" "" "\$2"
	else
		dkms add -m postern -v $version
		dkms autoinstall || echo "postern-dkms: no kernel that is installed has headers here" >&2
	fi
fi
END
cat >"$package/DEBIAN/prerm" <<END
#!/bin/sh
set -e
case "\$1" in
remove | upgrade | deconfigure)
	dkms remove -m postern -v $version --all || true
	;;
esac
END
chmod 755 "$package"/DEBIAN/{postinst,prerm}
chmod -R u=rwX,go=rX "$package/usr" "$package"
dpkg-deb --root-owner-group --build "$package" "$to/postern-dkms_${version}_amd64.deb" >/dev/null
echo "$to/postern-dkms_${version}_amd64.deb"
