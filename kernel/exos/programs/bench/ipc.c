/* Tables 8 and 12: a word from one process to another, one way (a counter goes to and fro), and a call of a procedure in another process,
   there and back. Linux has pipes, memory with sched_yield, and calls by pipes. */
#include "measure.h"

#include <signal.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __exos__
#include <exos/lrpc.h>
#include <exos/pipe.h>
#include <exos/shared.h>
#endif

#define ROUNDS 16

struct common {
	uint64_t counter;
	unsigned parent, child;
	volatile int until;
};

static struct common *common;
static int there[2], back[2];

static pid_t begin(void (*serve)(void))
{
	pid_t child = fork();

	if (child < 0)
		fail("fork");
	if (child == 0) {
		serve();
		_exit(0);
	}
	return child;
}

static void finish(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void say(const char *name, uint64_t took, unsigned ways)
{
	row(name, took, ROUNDS * ways);
}

static void send_word(int descriptor, uint64_t word)
{
	if (write(descriptor, &word, sizeof word) != sizeof word)
		fail("write");
}

static uint64_t receive_word(int descriptor)
{
	uint64_t word;

	if (read(descriptor, &word, sizeof word) != sizeof word)
		_exit(0);
	return word;
}

static void pipe_serves(void)
{
	for (;;)
		send_word(back[1], receive_word(there[0]) + 1);
}

static void pipe_rounds(void)
{
	for (uint64_t round = 0; round < ROUNDS; round++) {
		send_word(there[1], round);
		if (receive_word(back[0]) != round + 1)
			fail("another word");
	}
}

static void pipes(void)
{
	uint64_t took;

	if (pipe(there) || pipe(back))
		fail("pipe");
	pid_t child = begin(pipe_serves);
	pipe_rounds();
	LEAST(took, TRIES, pipe_rounds());
	say("pipe", took, 2);
#ifndef __exos__
	say("lrpc", took, 1);
#endif
	finish(child);
}

#ifdef __exos__
static struct exos_pipe inline_there[2], inline_back[2];

static void inline_serves(void)
{
	uint64_t word;

	while (!exos_pipe_read(&inline_there[0], &word))
		exos_pipe_write(&inline_back[1], word + 1);
}

static void inline_rounds(void)
{
	uint64_t word;

	for (uint64_t round = 0; round < ROUNDS; round++)
		if (exos_pipe_write(&inline_there[1], round) || exos_pipe_read(&inline_back[0], &word) || word != round + 1)
			fail("another word");
}

static void inlined(void)
{
	uint64_t took;

	if (exos_pipe_create(inline_there) || exos_pipe_create(inline_back))
		fail("exos_pipe_create");
	pid_t child = begin(inline_serves);
	inline_rounds();
	LEAST(took, TRIES, inline_rounds());
	say("pipe-inline", took, 2);
	finish(child);
}

static uint64_t increments(unsigned caller, uint64_t by, uint64_t b, uint64_t c, uint64_t d)
{
	(void)caller, (void)b, (void)c, (void)d;
	return common->counter += by;
}

static void serves(void)
{
	common->child = exos_environment();
	exos_lrpc_serve(increments, &common->until);
}

static void calls(void)
{
	for (int round = 0; round < ROUNDS; round++)
		if (exos_lrpc(common->child, 1, 0, 0, 0).error)
			fail("exos_lrpc");
}

static void trusting_calls(void)
{
	for (int round = 0; round < ROUNDS; round++)
		if (exos_tlrpc(common->child, 1, 0, 0, 0).error)
			fail("exos_tlrpc");
}

static void procedures(void)
{
	uint64_t took;

	common->child = 0;
	pid_t child = begin(serves);
	while (!common->child || exos_lrpc(common->child, 1, 0, 0, 0).error)
		exos_yield();
	LEAST(took, TRIES, calls());
	say("lrpc", took, 1);
	LEAST(took, TRIES, trusting_calls());
	say("tlrpc", took, 1);
	finish(child);
}

#define GIVE_TO(whom) exos_yield_to(whom)
#else
#define GIVE_TO(whom) sched_yield()
#define exos_environment() 1
#endif

static volatile uint64_t *shared_counter(void)
{
	return &common->counter;
}

static void memory_serves(void)
{
	common->child = exos_environment();
	for (;;) {
		while (!(*shared_counter() & 1))
			GIVE_TO(common->parent);
		++*shared_counter();
	}
}

static void memory_rounds(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		++*shared_counter();
		while (*shared_counter() & 1)
			GIVE_TO(common->child);
	}
}

static void memory(void)
{
	uint64_t took;

	common->child = 0;
	common->counter = 0;
	common->parent = exos_environment();
	pid_t child = begin(memory_serves);
	while (!common->child)
		sched_yield();
	memory_rounds();
	LEAST(took, TRIES, memory_rounds());
	say("shm", took, 2);
	finish(child);
}

int main(void)
{
#ifdef __exos__
	struct exos_shared words;

	common = exos_shared_create(sizeof *common, &words);
	if (!common)
		fail("exos_shared_create");
#else
	common = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common == MAP_FAILED)
		fail("mmap");
#endif
	pipes();
	memory();
#ifdef __exos__
	inlined();
	procedures();
#endif
	return 0;
}
