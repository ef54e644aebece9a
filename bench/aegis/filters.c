/* Table 7: who of ten listeners a frame is for, by classic BPF: each has a filter of its own, and the
 * kernel asks one after the other. What is sent to a socket of this machine is shown to its filter, too; so
 * the frame is sent to ten of them, and what the same takes with filters that say no at once is taken
 * off. All of them drop it in the end, so that only the filters differ. */
#include "measure.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LISTENERS 10
#define PORT 2000

/* As libpcap compiles `tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port
 * …`, with its optimizer. */
#define FILTER(port, accepted)                                                        \
	{                                                                             \
		{ 0x28, 0, 0, 12 }, { 0x15, 0, 14, 0x800 }, { 0x30, 0, 0, 23 },       \
		{ 0x15, 0, 12, 6 }, { 0x20, 0, 0, 26 }, { 0x15, 0, 10, 0x0a000001 },  \
		{ 0x20, 0, 0, 30 }, { 0x15, 0, 8, 0x0a000002 }, { 0x28, 0, 0, 20 },   \
		{ 0x45, 6, 0, 0x1fff }, { 0xb1, 0, 0, 14 }, { 0x48, 0, 0, 14 },       \
		{ 0x15, 0, 3, 1000 }, { 0x48, 0, 0, 16 }, { 0x15, 0, 1, port },       \
		{ 0x06, 0, 0, accepted }, { 0x06, 0, 0, 0 },                          \
	}

/* To the last of the ten. */
static const unsigned char frame[60] = {
	2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6,
	0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1000 >> 8, 1000 & 255, (PORT + LISTENERS - 1) >> 8,
	(PORT + LISTENERS - 1) & 255,
};

static int pair[2];

static void attach(struct sock_filter *program, unsigned short length)
{
	struct sock_fprog whole = { length, program };

	if (setsockopt(pair[1], SOL_SOCKET, SO_ATTACH_FILTER, &whole, sizeof whole))
		fail("a filter");
}

static uint64_t sent(void)
{
	uint64_t took;

	LEAST(took, call6(SYS_sendto, pair[0], (long)frame, sizeof frame, 0, 0, 0));
	return took;
}

/* Ten filters less ten that say no. */
static uint64_t classified(void)
{
	struct sock_filter none[] = { { 0x06, 0, 0, 0 } };
	uint64_t before, all = 0;

	attach(none, 1);
	before = sent();
	for (int listener = 0; listener < LISTENERS; listener++) {
		struct sock_filter program[] = FILTER(PORT + listener, 0);

		attach(program, sizeof program / sizeof *program);
		all += sent() - before;
	}
	return all;
}

/* The last one accepts the frame, and the one before it does not. */
static void tested(void)
{
	char got[64];

	for (int listener = LISTENERS - 2; listener < LISTENERS; listener++) {
		struct sock_filter program[] = FILTER(PORT + listener, 0x40000);

		attach(program, sizeof program / sizeof *program);
		if (send(pair[0], frame, sizeof frame, 0) != sizeof frame)
			fail("a frame");
		if ((recv(pair[1], got, sizeof got, MSG_DONTWAIT) == sizeof frame) != (listener == LISTENERS - 1))
			fail("a filter's verdict");
	}
}

void filters(void)
{
	int compiler;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		fail("sockets");
	tested();
	mkdir("/proc", 0755);
	mount("none", "/proc", "proc", 0, NULL);
	compiler = open("/proc/sys/net/core/bpf_jit_enable", O_RDWR);
	if (compiler < 0)
		fail("whether filters are compiled");
	/* Filters are compiled when they are attached. */
	if (write(compiler, "1", 1) != 1)
		fail("filters are compiled");
	row("classify", classified(), 1);
	if (pwrite(compiler, "0", 1, 0) == 1)
		row("classify-interpreted", classified(), 1);
	else
		printf("note classic BPF is always compiled by this kernel\n");
	close(compiler);
	close(pair[0]);
	close(pair[1]);
}
