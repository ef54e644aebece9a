/* The machine's first and only program: has both sides called from the same hooks and tells how many
 * instructions a call takes. The emulator counts: a nanosecond of the machine's is an instruction.
 *
 * What one call takes is a slope: the same program is attached once, then nine times, and the
 * difference is eight calls. So what the hook itself takes with one more program counts, for both
 * sides, and what the event takes does not. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "packet.h"
#include "postern.h"

/* How often an event happens, and how many more programs there are than one. */
#define EVENTS 200
#define MORE 8
/* linux/netfilter.h of 6.4 and later. */
#define NETFILTER_TYPE 32
#define NETFILTER_ATTACH 45
#define LOCAL_OUT 3

static int device, sender, receiver;
/* 6.4 and later have programs of netfilter's type. */
static int has_netfilter;

static void end(void)
{
	sync();
	reboot(RB_AUTOBOOT);
	_exit(1);
}

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
	int error = errno;
	va_list arguments;

	va_start(arguments, format);
	printf("failed: ");
	vprintf(format, arguments);
	printf(": %s\n", strerror(error));
	va_end(arguments);
	end();
}

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		fail("%s", path);
	close(file);
}

static void *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "r");
	char *bytes = malloc(8 << 20);

	if (!file || !bytes)
		fail("%s", path);
	*size = fread(bytes, 1, 8 << 20, file);
	fclose(file);
	return bytes;
}

/* Postern's side. */

static u32 load(const char *path)
{
	struct postern_load load = { .rights = POSTERN_MAY_SEE_PACKETS | POSTERN_MAY_OBSERVE, .limit = 1000 };
	size_t size;
	void *bytes = read_file(path, &size);

	load.file = (u64)bytes;
	load.size = size;
	snprintf(load.name, sizeof load.name, "%.60s", path);
	if (ioctl(device, POSTERN_LOAD, &load))
		fail("loading %s", path);
	if (!load.id)
		printf("%s: refused, verdict %u rule %u at %llx\n", path, load.verdict.verdict, load.verdict.rule, (u64)load.verdict.at), end();
	free(bytes);
	return load.id;
}

static u64 call(u32 id, const char *function, u64 argument, u32 *kind)
{
	struct postern_call call = { .id = id, .arguments = { argument } };

	snprintf(call.function, sizeof call.function, "%s", function);
	if (ioctl(device, POSTERN_CALL, &call))
		fail("calling %s", function);
	*kind = call.outcome.kind;
	return call.value;
}

static u32 attach(u32 id, const char *function, u32 hook, int number, u32 capture)
{
	struct postern_attach attach = {
		.id = id, .hook = hook,
	};

	snprintf(attach.function, sizeof attach.function, "%s", function);
	if (hook == POSTERN_NETFILTER)
		attach.family = 2, attach.number = LOCAL_OUT, attach.priority = number, attach.capture = capture;
	else
		strcpy(attach.target, "sys_enter");
	if (ioctl(device, POSTERN_ATTACH, &attach))
		fail("attaching %s", function);
	return attach.attachment;
}

/* eBPF's side. */

static int attach_netfilter(int program, int number)
{
	union bpf_attr attr;
	/* link_create.netfilter of 6.4 and later: family, hook, priority, flags behind the first 16 bytes. */
	struct {
		u32 program, target, type, flags, family, hook;
		int priority;
		u32 more;
	} link = { program, 0, NETFILTER_ATTACH, 0, 2, LOCAL_OUT, number, 0 };
	int descriptor;

	memset(&attr, 0, sizeof attr);
	memcpy(&attr, &link, sizeof link);
	descriptor = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
	if (descriptor < 0)
		fail("attaching a program of eBPF's");
	return descriptor;
}

/* The events. */

static void packet(void)
{
	static char payload[PAYLOAD] = REQUEST;
	char back[PAYLOAD];

	if (!payload[PAYLOAD - 1]) {
		memset(payload + strlen(payload), 'x', PAYLOAD - strlen(payload));
		memcpy(payload + PAYLOAD - 4, "\r\n\r\n", 4);
	}
	if (send(sender, payload, PAYLOAD, 0) != PAYLOAD)
		fail("a packet");
	if (recv(receiver, back, PAYLOAD, MSG_DONTWAIT) != PAYLOAD)
		fail("a packet that was let pass");
}

static void system_call(void)
{
	syscall(SYS_getppid);
}

/* Instructions of an event, the least of a few tries: timers of the kernel's come between. */
static double event(void (*happen)(void))
{
	u64 least = ~0ull;

	for (int try = 0; try < 5; try++) {
		happen();
		u64 begun = now();
		for (int k = 0; k < EVENTS; k++)
			happen();
		u64 took = now() - begun;
		if (took < least)
			least = took;
	}
	return (double)least / EVENTS;
}

static double slope(void (*happen)(void), u32 id, const char *function, u32 hook, u32 capture, struct bpf_program *program)
{
	u32 numbers[MORE + 1];
	struct bpf_link *links[MORE + 1];
	double one = 0, all;
	int descriptors[MORE + 1];

	for (int k = 0; k <= MORE; k++) {
		if (!program)
			numbers[k] = attach(id, function, hook, k - 100, capture);
		else if (hook == POSTERN_NETFILTER)
			descriptors[k] = attach_netfilter(bpf_program__fd(program), k - 100);
		else if (!(links[k] = bpf_program__attach_raw_tracepoint(program, "sys_enter")))
			fail("a raw tracepoint");
		if (k == 0)
			one = event(happen);
	}
	all = event(happen);
	for (int k = 0; k <= MORE; k++) {
		if (!program) {
			if (ioctl(device, POSTERN_DETACH, &numbers[k]))
				fail("detaching %s", function);
		} else if (hook == POSTERN_NETFILTER) {
			close(descriptors[k]);
		} else {
			bpf_link__destroy(links[k]);
		}
	}
	return (all - one) / MORE;
}

/* The object with one program of it in the kernel; NULL if the kernel refuses that, with a reason in
 * errno. */
static struct bpf_object *theirs(const char *function, struct bpf_program **wanted)
{
	struct bpf_object *object = bpf_object__open("/works.bpf.o");
	struct bpf_program *program;
	static struct rule rules[RULES];

	if (!object)
		fail("works.bpf.o");
	for (u32 k = 0; k < RULES; k++)
		rules[k] = (struct rule){ 0x0a000000 + k * 256, 0xffffff00, 0 };
	rules[RULES - 1] = (struct rule){ 0x7f000000, 0xff000000, 1 };
	if (bpf_map__set_initial_value(bpf_object__find_map_by_name(object, ".data.rules"), rules, sizeof rules))
		fail("the rules");
	bpf_object__for_each_program(program, object) {
		bool this = !strcmp(bpf_program__name(program), function);

		bpf_program__set_autoload(program, this);
		if (this)
			*wanted = program;
		if (!strncmp(bpf_program__section_name(program), "netfilter", 9)) {
			bpf_program__set_type(program, NETFILTER_TYPE);
			bpf_program__set_expected_attach_type(program, NETFILTER_ATTACH);
		}
	}
	if (!bpf_object__load(object))
		return object;
	printf("    eBPF refuses %s: %s\n", function, strerror(errno));
	bpf_object__close(object);
	return NULL;
}

/* A line of the table; `goal` is empty where there is none. */
static void row(const char *what, double ours, double theirs, const char *goal)
{
	if (theirs > 0)
		printf("%-44s %10.0f %10.0f %8.2f  %s\n", what, ours, theirs, ours / theirs, goal);
	else
		printf("%-44s %10.0f %10s %8s  %s\n", what, ours, "-", "", goal);
	fflush(stdout);
}

static void calls(u32 id, u32 empty)
{
	static const struct {
		const char *function, *what;
		u32 hook, capture;
	} works[] = {
		{ "nothing", "tracepoint: empty", POSTERN_TRACEPOINT, 0 },
		{ "empty", "netfilter: empty", POSTERN_NETFILTER, 1 },
		{ "terms_1", "netfilter: 1 term", POSTERN_NETFILTER, HEADERS + 1 },
		{ "terms_8", "netfilter: 8 terms", POSTERN_NETFILTER, HEADERS + 8 },
		{ "terms_100", "netfilter: 100 terms", POSTERN_NETFILTER, HEADERS + 100 },
		{ "thousand", "netfilter: a thousand rules", POSTERN_NETFILTER, HEADERS },
		{ "http", "netfilter: head of a request, 540 bytes", POSTERN_NETFILTER, PACKET },
		{ "sha256", "netfilter: SHA-256 of 512 bytes", POSTERN_NETFILTER, PACKET },
	};
	u32 kind;

	call(id, "fill_rules", 0, &kind);
	for (size_t k = 0; k < sizeof works / sizeof *works; k++) {
		bool packets = works[k].hook == POSTERN_NETFILTER;
		void (*happen)(void) = packets ? packet : system_call;
		double ours = slope(happen, packets ? id : empty, works[k].function, works[k].hook, works[k].capture, NULL), others = 0;
		struct bpf_program *program;
		struct bpf_object *object = packets && !has_netfilter ? NULL : theirs(works[k].function, &program);

		if (object) {
			others = slope(happen, 0, NULL, works[k].hook, 0, program);
			bpf_object__close(object);
		}
		row(works[k].what, ours, others, strstr(works[k].what, "empty") ? "60 (Palladium: 142 cycles)" : "");
		if (has_netfilter && !strcmp(works[k].function, "http")) {
			object = theirs("http_plain", &program);
			if (object)
				printf("    eBPF takes the plain loop, too\n"), bpf_object__close(object);
		}
	}
	printf("found: %llu fields, Host of %llu bytes, hash %08llx\n", call(id, "found", 0, &kind), call(id, "found", 1, &kind),
	       call(id, "found", 2, &kind));
}

static void recovery(u32 id, u32 empty)
{
	double each[2];
	u32 kind;

	for (int faults = 0; faults < 2; faults++) {
		u64 begun = now();

		for (int k = 0; k < EVENTS; k++)
			call(faults ? id : empty, faults ? "fault" : "nothing", 0xfffffff0, &kind);
		each[faults] = (double)(now() - begun) / EVENTS;
		if (kind != (faults ? POSTERN_PAGE_FAULT : POSTERN_RETURNED))
			printf("the call ended by %u\n", kind), end();
	}
	row("from the device: empty", each[0], 0, "");
	row("from the device: a page fault more", each[1] - each[0], 0, "(Palladium: 1020 cycles)");
}

static void loads(void)
{
	static const char *shapes[] = { "straight", "branches" };

	for (int shape = 0; shape < 2; shape++)
		for (u32 lines = 50; lines <= 50000; lines *= 10) {
			char path[64], what[64];
			u64 begun, ours, theirs = 0;
			struct bpf_object *object;
			u32 id;

			snprintf(what, sizeof what, "load: %u lines, %s", lines, shapes[shape]);
			snprintf(path, sizeof path, "/%s-%u.pst", shapes[shape], lines);
			begun = now();
			id = load(path);
			ours = now() - begun;
			ioctl(device, POSTERN_UNLOAD, &id);
			snprintf(path, sizeof path, "/%s-%u.bpf.o", shapes[shape], lines);
			object = bpf_object__open(path);
			begun = now();
			if (object && !bpf_object__load(object))
				theirs = now() - begun;
			row(what, ours, theirs, "");
			if (!theirs)
				printf("    eBPF: %s, after %llu instructions\n", object ? strerror(errno) : "no object", now() - begun);
			if (object)
				bpf_object__close(object);
		}
}

static void network(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	sender = socket(AF_INET, SOCK_DGRAM, 0);
	receiver = socket(AF_INET, SOCK_DGRAM, 0);
	if (ioctl(sender, SIOCSIFFLAGS, &lo) || bind(receiver, (void *)&to, sizeof to) || connect(sender, (void *)&to, sizeof to))
		fail("the loopback");
}

int main(void)
{
	struct utsname kernel;
	int major, minor;
	u32 id, empty;

	setvbuf(stdout, NULL, _IOLBF, 0);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	write_file("/proc/sys/net/core/bpf_jit_enable", "1");
	int module = open("/postern.ko", O_RDONLY);
	if (syscall(SYS_finit_module, module, "", 0))
		fail("the module");
	device = open("/dev/postern", O_RDWR);
	if (device < 0)
		fail("/dev/postern");
	/* Its verifier says megabytes. */
	libbpf_set_print(NULL);
	uname(&kernel);
	has_netfilter = sscanf(kernel.release, "%d.%d", &major, &minor) == 2 && major * 100 + minor >= 604;
	network();
	printf("%-44s %10s %10s %8s  %s\n", "instructions", "Postern", "eBPF", "ratio", "goal");
	id = load("/works.pst");
	empty = load("/empty.pst");
	calls(id, empty);
	recovery(id, empty);
	loads();
	printf("bench: ok\n");
	end();
}
