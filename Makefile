# Postern's commands for people: `make demo`, `make test`, `make bench`, `make fuzz`, `make docs`, `make install`.
# Each installs what it needs and says so first; nothing else has to be done by hand but having a Rust toolchain.

SHELL := /bin/bash
CARGO ?= cargo
PREFIX ?= /usr/local
SECONDS_EACH ?= 300
STRESS_SECONDS ?= 60
N ?= 1000
PROCESSORS ?= 2
BIN := target/release/postern

.PHONY: all build demo netstack test test-rust lint bench bench-build ablations fuzz stress soak conformance csmith linux-test linux-demo linux-bench dkms docs install setup setup-docs setup-bench setup-conformance setup-browser setup-programs setup-kernel setup-linux-demo setup-linux-bench setup-aegis aegis aegis-demo aegis-test aegis-bench aegis-gdb setup-exos setup-exos-nfs setup-nginx setup-llvm exos exos-web-bench exos-demo exos-test exos-bench conformance-exos programs clean

all: build

# What Debian 12 and Ubuntu 24.04 lack on a fresh machine.
setup:
	@scripts/setup.sh gcc g++ make binutils pkg-config wabt clang lld tar xz-utils newlib-source gdb strace libpcap-dev libfcgi-dev iproute2 util-linux
	@scripts/setup.sh gcc-$$(g++ -dumpversion | cut -d. -f1)-source

build: setup
	$(CARGO) build --release --workspace

demo: build
	@demo/run.sh

test: setup setup-conformance setup-browser setup-programs setup-kernel setup-exos-nfs setup-llvm
	@scripts/test.sh

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	cd kernel/aegis && $(CARGO) fmt --all --check && $(CARGO) clippy --release --quiet -- -D warnings
	cd kernel/exos && $(CARGO) fmt --all --check && $(CARGO) clippy --release --quiet -- -D warnings
	cd interpose/loader && $(CARGO) fmt --check && $(CARGO) clippy --release --quiet -- -D warnings
	cd interpose/netstack && $(CARGO) fmt --check && $(CARGO) clippy --release --quiet --all-targets -- -D warnings

# What `postern llvm install` fetches LLVM 23 with.
setup-llvm:
	@scripts/setup.sh python3 python3-pip

# The network stack of the guide, an agent.
netstack: build setup-llvm
	$(BIN) llvm install
	mkdir -p build
	POSTERN=$(CURDIR)/$(BIN) interpose/netstack/build.sh build/netstack.px

setup-bench:
	@scripts/setup.sh gcc g++ make binutils clang lld tcc wabt wasi-libc libclang-rt-dev-wasm32 libfcgi-dev libpcap-dev tcpdump nftables iproute2 wrk nginx strace sqlite3 lua5.4 ethtool

# The groups of figures that `postern bench` has not by itself, and finds there.
bench-build: setup
	cd bench && $(CARGO) build --release

# All figures, then other systems beside Postern.
bench: build setup-bench bench-build
	$(BIN) bench --all
	cd bench && $(CARGO) run --release -p postern-peers -- calls kernels programs ecode
	cd bench && $(CARGO) run --release -p postern-filter-peers

# The programs with one part of the confinement left out at a time.
ablations: setup setup-bench
	cd bench && $(CARGO) run --release -p postern-peers -- ablations

fuzz: setup
	fuzz/run.sh $(SECONDS_EACH)

# Threads, faults, resets, reloads, pools and forks at random for a minute.
stress: setup
	POSTERN_STRESS_SECONDS=$(STRESS_SECONDS) $(CARGO) test --release -p postern --test stress -- --nocapture

# Load on all kinds of handlers of the web server, with faults and reloads at random, for a minute; then requests at random at the
# kernel module's device, half a million in machines of both kernels, and at Aegis for that minute on one processor and on two;
# servers of NFS that lie, random operations on a mounted folder, and frames that are nearly right at a machine that serves.
soak: setup setup-kernel setup-exos-nfs
	POSTERN_SOAK_SECONDS=$(STRESS_SECONDS) $(CARGO) test --release -p postern-server --test soak -- --nocapture
	POSTERN_CHAOS_SECONDS=$(STRESS_SECONDS) POSTERN_CHAOS_SEED=$$RANDOM $(CARGO) test --release -p postern --test common whatever -- --nocapture
	POSTERN_KERNEL_REQUESTS=120000 $(CARGO) test --release -p postern-kernel-tests --test boot -- --nocapture
	$(AEGIS) test --seconds $(STRESS_SECONDS) --seed $$RANDOM
	SEEDS=200 $(CARGO) test --release -p postern-exos-fs -- --nocapture
	POSTERN_CUTS_SECONDS=0 POSTERN_DAMAGED_DISKS=40 $(CARGO) test --release -p postern-exos-machine --test disk -- --nocapture --test-threads 1
	POSTERN_NFS_LIES=100000 $(CARGO) test --release -p postern-exos-nfs -- --nocapture
	POSTERN_NFS_SECONDS=$(STRESS_SECONDS) $(CARGO) test --release -p postern-exos-machine --test nfs -- --nocapture
	POSTERN_WIRE_SECONDS=$(STRESS_SECONDS) POSTERN_WIRE_SEED=$$RANDOM $(CARGO) test --release -p postern-exos-machine --test wire -- --nocapture

setup-conformance:
	@scripts/setup.sh gcc tar xz-utils gcc-12-source csmith libcsmith-dev

# The server's page is tested in a browser.
setup-browser:
	@scripts/setup.sh chromium chromium-driver

# GCC's own execution tests, native against confined: through E-code, then through the toolchain.
conformance: setup setup-conformance
	$(CARGO) run --release --quiet -p postern-ecode --example torture
	$(CARGO) run --release --quiet -p postern-conformance -- torture $(ARGS)

# Random programs of csmith: through E-code, then through the toolchain.
csmith: setup setup-conformance
	$(CARGO) run --release --quiet -p postern-ecode --example csmith $(N)
	$(CARGO) run --release --quiet -p postern-conformance -- csmith --count $(N) $(ARGS)

setup-programs:
	@scripts/setup.sh cmake meson autoconf

# Other people's programs, built from Debian's sources with their own cmake or configure, and their tests, confined.
programs: build setup-programs
	@scripts/programs.sh

# An emulator, and two of Debian's kernels, which are unpacked below target/ and not installed.
setup-kernel:
	@scripts/setup.sh gcc make binutils xz-utils qemu-system-x86
	@scripts/linux-kernels.sh

# The module for Linux: built, disassembled, booted, and 100,000 verdicts compared with user space's.
linux-test: setup-kernel
	POSTERN_KERNEL_SNIPPETS=25000 $(CARGO) test --release -p postern-kernel-tests -- --nocapture

# The module's sources as DKMS builds them for each kernel, and a package of them for Debian, below target/dkms.
dkms:
	@kernel/linux/dkms.sh

setup-linux-demo: setup-kernel
	@scripts/setup.sh busybox-static cpio

# Packets filtered by C in one of Debian's kernels, in an emulator.
linux-demo: build setup-linux-demo
	@demo/linux/run.sh $(ARGS)

# The module beside eBPF, in instructions, which an emulator counts.
setup-linux-bench: setup-kernel
	@scripts/setup.sh clang cpio libbpf-dev

linux-bench: build setup-linux-bench
	bench/linux/run.sh $(ARGS)

# An emulator for Aegis, the exokernel; its figures stand beside those of Debian's kernels.
setup-aegis:
	@scripts/setup.sh gcc qemu-system-x86

AEGIS = $(CARGO) run --release --quiet -p postern-aegis-machine --

# Boots to the monitor, with this terminal on the serial line. PROCESSORS=1: on one.
aegis: setup-aegis
	@$(AEGIS) boot --processors $(PROCESSORS) $(ARGS)

# Shares of the processor, revocation refused, a death, a secret, a transfer; the shares are drawn.
aegis-demo: setup-aegis
	@$(AEGIS) demo $(ARGS)

# The kernel's tests inside the machine, on one processor and on two, then calls at random.
aegis-test: setup-aegis
	@$(AEGIS) test $(ARGS)

# Instructions of Aegis and of Linux, which the emulator counts.
aegis-bench: setup-kernel setup-aegis
	@$(AEGIS) bench $(ARGS)

# Boots to the monitor, but waits for gdb before the first instruction.
aegis-gdb: setup-aegis
	@$(AEGIS) boot --gdb --processors $(PROCESSORS) $(ARGS)

# ExOS, a library operating system on Aegis; its programs are C, and gcc and newlib make them.
setup-exos: setup-aegis
	@scripts/setup.sh gcc binutils tar xz-utils newlib-source

# A server of NFS, which tests of ExOS' client start for themselves, in namespaces.
setup-exos-nfs:
	@scripts/setup.sh nfs-ganesha nfs-ganesha-vfs rpcbind iproute2 util-linux

# A web server beside which ExOS' is measured: Debian's packages, unpacked and not installed.
setup-nginx:
	@mkdir -p target/linux/nginx && cd target/linux/nginx && apt-get download -q nginx libc6 libcrypt1 libpcre2-8-0 libssl3 zlib1g && for file in *.deb; do dpkg-deb -x $$file .; done

EXOS = $(CARGO) run --release --quiet -p postern-exos-machine --bin exos-machine --

# Boots to a shell, with this terminal on the serial line. ARGS='-p 2': on two processors. The disk is a
# file that is made at the first boot, and stays.
DISK ?= target/exos/disk.img
exos: setup-exos
	@mkdir -p $(dir $(DISK))
	@$(EXOS) boot --disk $(DISK) $(ARGS)

# A shell with a disk, a web server with code of others, the paper's experiments, and programs as
# nobody wants them; it ends by itself.
exos-demo: setup-exos
	@$(EXOS) demo $(ARGS)

# ExOS' tests inside the machine, each as a process, on one processor and on two.
exos-test: setup-exos
	@$(EXOS) test $(ARGS)

# Instructions of ExOS and of Linux, which the emulator counts.
exos-bench: setup-kernel setup-exos
	@$(EXOS) bench $(ARGS)

# Instructions of requests to ExOS' web server, and of the same to nginx under Linux.
exos-web-bench: setup-kernel setup-exos setup-nginx
	@$(EXOS) web $(ARGS)

# GCC's own execution tests, each as a process of ExOS.
conformance-exos: setup-exos setup-conformance
	@$(EXOS) conformance $(ARGS)

docs:
	@scripts/docs.sh

install: build
	# The library by itself, without the parts that the command has.
	$(CARGO) build --release -p postern-capi
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m755 $(BIN) $(DESTDIR)$(PREFIX)/bin/postern
	install -m755 target/release/libpostern_capi.so $(DESTDIR)$(PREFIX)/lib/libpostern.so.0
	ln -sf libpostern.so.0 $(DESTDIR)$(PREFIX)/lib/libpostern.so
	install -m644 target/release/libpostern_capi.a $(DESTDIR)$(PREFIX)/lib/libpostern.a
	# Symbols stay: GDB finds by one of them where it is told of domains.
	strip -g $(DESTDIR)$(PREFIX)/bin/postern $(DESTDIR)$(PREFIX)/lib/libpostern.so.0 $(DESTDIR)$(PREFIX)/lib/libpostern.a
	install -m644 capi/include/postern.h capi/include/postern-events.h capi/include/postern-modules.h capi/include/postern-policy.h capi/include/postern-types.h capi/include/postern-filter.h capi/include/postern-kernel.h $(DESTDIR)$(PREFIX)/include/
	install -m644 server/include/libcgi.h $(DESTDIR)$(PREFIX)/include/libcgi.h
	sed 's|@PREFIX@|$(PREFIX)|' capi/postern.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/postern.pc

clean:
	$(CARGO) clean
