/* Communication with those who do wrong: servers that end, loop, or are busy, ends of pipes that are killed or stopped, sleepers that
   have ended. Whoever has to do with them gets an error, and goes on. */
#include "check.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/doorbell.h>
#include <exos/lrpc.h>
#include <exos/memory.h>
#include <exos/pipe.h>
#include <exos/shared.h>
#include <exos/yield.h>

enum { ADDS = 1, ENDS, CRASHES, LOOPS, WAITS, CALLS };

static struct common {
	struct exos_doorbell bell, done;
	volatile unsigned server;
	volatile int until, waits, calls;
} *common;

static int status_of(pid_t child)
{
	int status = -1;

	return waitpid(child, &status, 0) == child ? status : -1;
}

static uint64_t procedure(unsigned caller, uint64_t what, uint64_t b, uint64_t c, uint64_t d)
{
	switch (what) {
	case ENDS:
		_exit(3);
	case CRASHES:
		*(volatile int *)8 = 1;
		return 0;
	case LOOPS:
		for (;;)
			;
	case WAITS:
		while (common->waits)
			exos_yield();
		return d;
	case CALLS:
		return exos_lrpc(caller, ADDS, 0, 0, 0).error;
	}
	common->calls++;
	return b + c + d;
}

static pid_t server(void)
{
	common->server = 0;
	common->until = 0;
	pid_t child = fork();
	if (child == 0) {
		common->server = exos_environment();
		exos_lrpc_serve(procedure, &common->until);
		_exit(0);
	}
	while (child > 0 && (!common->server || exos_lrpc(common->server, ADDS, 0, 0, 0).error))
		exos_yield();
	return child;
}

/* A call that trusts, and whether registers that a function keeps were kept: the error, and what they were. */
struct kept {
	long error;
	uint64_t changed;
};
struct kept trusting(unsigned server, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
__asm__(".text\n"
	"trusting:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rsp\n"
	"	mov $0x1234567, %ebx; lea 1(%rbx), %rbp; lea 2(%rbx), %r12; lea 3(%rbx), %r13; lea 4(%rbx), %r14; lea 5(%rbx), %r15\n"
	"	call aegis_call_trusting\n"
	"	mov $0x1234567, %ecx; xor %rcx, %rbx\n"
	"	inc %ecx; xor %rcx, %rbp; or %rbp, %rbx\n"
	"	inc %ecx; xor %rcx, %r12; or %r12, %rbx\n"
	"	inc %ecx; xor %rcx, %r13; or %r13, %rbx\n"
	"	inc %ecx; xor %rcx, %r14; or %r14, %rbx\n"
	"	inc %ecx; xor %rcx, %r15; or %r15, %rbx\n"
	"	pop %rcx; mov %rbx, %rdx; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n");

/* What a call waits for an answer that comes. */
#define LONG (1u << 30)

/* A call by either way: its error, or 1 if registers were changed. */
static long try(int trusts, uint64_t what)
{
	if (!trusts)
		return exos_lrpc(common->server, what, 2, 3, 4).error;
	struct kept kept = trusting(common->server, what, 2, 3, 4);
	return kept.changed ? 1 : kept.error;
}

/* The same, again as long as the server is busy: it may run on another processor. */
static long call(int trusts, uint64_t what)
{
	long error;

	do
		error = try(trusts, what);
	while (error == EXOS_BUSY);
	return error;
}

static void failing(void)
{
	for (int trusts = 0; trusts < 2; trusts++) {
		exos_lrpc_patience(LONG);
		pid_t child = server();
		CHECK(call(trusts, ADDS) == 0);
		CHECK(call(trusts, CALLS) == 0);
		CHECK(call(trusts, ENDS) == EXOS_GONE);
		CHECK(WEXITSTATUS(status_of(child)) == 3);
		CHECK(call(trusts, ADDS) == EXOS_GONE);

		child = server();
		CHECK(call(trusts, CRASHES) == EXOS_GONE);
		CHECK(WTERMSIG(status_of(child)) == SIGSEGV);

		child = server();
		exos_lrpc_patience(16);
		CHECK(call(trusts, LOOPS) == EXOS_SILENT);
		long again = try(trusts, ADDS);
		CHECK(again == EXOS_BUSY || again == EXOS_SILENT);
		kill(child, SIGKILL);
		CHECK(WTERMSIG(status_of(child)) == SIGKILL);
		CHECK(call(trusts, ADDS) == EXOS_GONE);
	}
}

/* While it serves somebody else, calls are refused, at whatever moment they come, and its answer goes to who has asked. */
static void busy(void)
{
	exos_lrpc_patience(LONG);
	for (int trusts = 0; trusts < 2; trusts++) {
		pid_t child = server();
		int refused = 0, other = 0;

		common->waits = 1;
		pid_t client = fork();
		if (client == 0) {
			struct exos_answer answer;
			do
				answer = exos_lrpc(common->server, WAITS, 0, 0, 77);
			while (answer.error == EXOS_BUSY);
			_exit(answer.error == 0 && answer.value == 77 ? 9 : 1);
		}
		for (int round = 0; round < 3000; round++) {
			long error = try(trusts, ADDS);
			refused += error == EXOS_BUSY;
			other += error != EXOS_BUSY && error != 0;
			if (round % 8 == 0)
				exos_yield();
		}
		common->waits = 0;
		CHECK(WEXITSTATUS(status_of(client)) == 9);
		CHECK(refused > 1000 && other == 0);
		CHECK(call(trusts, ADDS) == 0);
		common->until = 1;
		CHECK(status_of(child) == 0);
		CHECK(call(trusts, ADDS) == EXOS_GONE);
	}
}

/* An answer that comes when nobody waits for it any more is lost, and the next is the next one's. */
static void late(void)
{
	struct exos_answer answer;
	pid_t child = server();

	exos_lrpc_patience(8);
	common->waits = 1;
	CHECK(call(0, WAITS) == EXOS_SILENT);
	common->waits = 0;
	exos_lrpc_patience(LONG);
	do
		answer = exos_lrpc(common->server, ADDS, 1, 2, 3);
	while (answer.error == EXOS_BUSY);
	CHECK(answer.error == 0 && answer.value == 6);
	kill(child, SIGKILL);
	CHECK(WTERMSIG(status_of(child)) == SIGKILL);
}

/* Bells: who sleeps there is killed, and others sleep there afterwards. */
static void sleepers(void)
{
	struct exos_doorbell *bell[] = { &common->bell }, *done[] = { &common->done };
	uint64_t seen = common->done.rings;

	for (int round = 0; round < 3; round++) {
		pid_t child = fork();
		if (child == 0) {
			uint64_t before = common->bell.rings;
			exos_doorbell_wait(bell, &before, 1, 0);
			_exit(1);
		}
		while (!common->bell.sleeper)
			exos_yield();
		kill(child, SIGKILL);
		CHECK(WTERMSIG(status_of(child)) == SIGKILL);
		exos_doorbell_ring(&common->bell);
		CHECK(!common->bell.sleeper);
	}
	pid_t child = fork();
	if (child == 0) {
		uint64_t before = common->bell.rings;
		exos_doorbell_ring(&common->done);
		_exit(exos_doorbell_wait(bell, &before, 1, 0) == 0 ? 5 : 1);
	}
	CHECK(exos_doorbell_wait(done, &seen, 1, 0) == 0);
	while (!common->bell.sleeper)
		exos_yield();
	exos_doorbell_ring(&common->bell);
	CHECK(WEXITSTATUS(status_of(child)) == 5);
}

/* The other end of an inline pipe is stopped, goes on, and is killed. */
static void ends(void)
{
	struct exos_pipe there[2], back[2];
	uint64_t word = 0;

	CHECK(exos_pipe_create(there) == 0 && exos_pipe_create(back) == 0);
	pid_t child = fork();
	if (child == 0) {
		exos_pipe_close(&there[1]), exos_pipe_close(&back[0]);
		while (exos_pipe_read(&there[0], &word) == 0)
			exos_pipe_write(&back[1], word + 1);
		_exit(0);
	}
	exos_pipe_close(&there[0]), exos_pipe_close(&back[1]);
	CHECK(exos_pipe_write(&there[1], 1) == 0 && exos_pipe_read(&back[0], &word) == 0 && word == 2);
	kill(child, SIGSTOP);
	/* Somebody else lets it go on, while this one waits for it. */
	pid_t other = fork();
	if (other == 0) {
		for (int k = 0; k < 40; k++)
			exos_yield();
		_exit(kill(child, SIGCONT));
	}
	CHECK(exos_pipe_write(&there[1], 5) == 0 && exos_pipe_read(&back[0], &word) == 0 && word == 6);
	CHECK(status_of(other) == 0);
	kill(child, SIGKILL);
	CHECK(exos_pipe_read(&back[0], &word) == -1);
	int written = 0;
	while (exos_pipe_write(&there[1], 7) == 0)
		written++;
	CHECK(written <= EXOS_PIPE_SIZE / 8);
	status_of(child);
	exos_pipe_close(&there[1]), exos_pipe_close(&back[0]);
}

static volatile int caught;

static void catches(int number)
{
	caught = number;
}

/* Who waits at an inline pipe acts on signals. */
static void signals(void)
{
	struct exos_pipe pipe[2];
	uint64_t word;

	CHECK(exos_pipe_create(pipe) == 0);
	signal(SIGUSR1, catches);
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		for (int k = 0; k < 20; k++)
			exos_yield();
		kill(parent, SIGUSR1);
		for (int k = 0; k < 20; k++)
			exos_yield();
		exos_pipe_write(&pipe[1], 1);
		_exit(0);
	}
	CHECK(exos_pipe_read(&pipe[0], &word) == 0 && word == 1);
	/* On another processor the word may have come before this one looked. */
	while (caught != SIGUSR1)
		usleep(100);
	CHECK(status_of(child) == 0);
	child = fork();
	if (child == 0) {
		exos_pipe_close(&pipe[1]);
		kill(parent, SIGUSR1);
		exos_pipe_read(&pipe[0], &word);
		_exit(1);
	}
	for (int k = 0; k < 20; k++)
		exos_yield();
	kill(child, SIGTERM);
	CHECK(WTERMSIG(status_of(child)) == SIGTERM);
	exos_pipe_close(&pipe[0]), exos_pipe_close(&pipe[1]);
}

/* A peer that writes nonsense into the ring of a pipe that the other end reads by its descriptor. */
static void nonsense(void)
{
	struct exos_pipe before[2];
	static char bytes[1000];
	int both[2];

	CHECK(exos_pipe_create(before) == 0);
	struct exos_ring *ring = before[0].ring;
	exos_pipe_close(&before[0]), exos_pipe_close(&before[1]);
	CHECK(pipe(both) == 0);
	pid_t child = fork();
	if (child == 0) {
		uint64_t seed = 1;
		close(both[0]);
		for (int round = 0; round < 200000; round++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			switch (seed >> 61) {
			case 0: ring->tail = seed; break;
			case 1: ring->tail += seed >> 50; break;
			case 2: ring->writer = seed; break;
			case 3: ring->writing = seed; break;
			case 4: ring->reading = (seed >> 40) << 8 | 1; break;
			case 5: ring->head = ring->tail; break;
			case 6: ring->reader = seed; break;
			default: ring->words[seed % (EXOS_PIPE_SIZE / 8)] = seed; break;
			}
		}
		_exit(0);
	}
	close(both[1]);
	long got, errors = 0, rounds = 0;
	do {
		got = read(both[0], bytes, sizeof bytes);
		errors += got < 0 && errno != EIO;
		/* What is left behind by the dead may be nonsense for ever. */
	} while ((got > 0 || waitpid(child, NULL, WNOHANG) == 0) && ++rounds < 10000000);
	CHECK(errors == 0 && rounds < 10000000);
	close(both[0]);
}

int main(void)
{
	struct exos_shared words;

	common = exos_shared_create(4096, &words);
	if (!common)
		return 1;
	RUN(failing);
	RUN(busy);
	RUN(late);
	RUN(sleepers);
	RUN(ends);
	RUN(signals);
	RUN(nonsense);
	return failures != 0;
}
