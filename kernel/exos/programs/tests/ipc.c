/* Communication, as one process sees both of its sides, and what others may have written there. */
#include "check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/doorbell.h>
#include <exos/lrpc.h>
#include <exos/memory.h>
#include <exos/pipe.h>
#include <exos/process.h>
#include <exos/shared.h>

#define PAGE EXOS_PAGE

static uint64_t seed = 88172645463325252ull;

static uint64_t any(void)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed;
}

static void pipes(void)
{
	struct exos_pipe ends[2];
	uint64_t word;

	CHECK(exos_pipe_create(ends) == 0);
	for (uint64_t round = 0; round < 3000; round++) {
		for (uint64_t k = 0; k <= round % 7; k++)
			CHECK(exos_pipe_write(&ends[1], round * k) == 0);
		for (uint64_t k = 0; k <= round % 7; k++)
			CHECK(exos_pipe_read(&ends[0], &word) == 0 && word == round * k);
	}
	for (int k = 0; k < EXOS_PIPE_SIZE / 8; k++)
		CHECK(exos_pipe_write(&ends[1], k) == 0);
	/* What was written last comes before the end. */
	exos_pipe_close(&ends[1]);
	for (uint64_t k = 0; k < EXOS_PIPE_SIZE / 8; k++)
		CHECK(exos_pipe_read(&ends[0], &word) == 0 && word == k);
	CHECK(exos_pipe_read(&ends[0], &word) == -1);
	exos_pipe_close(&ends[0]);
}

/* Counts that the other side has made up: words, or an error, and nobody else's pipe is touched. */
static void counts(void)
{
	struct exos_pipe ends[2], good[2];
	uint64_t word;

	CHECK(exos_pipe_create(ends) == 0 && exos_pipe_create(good) == 0);
	CHECK(exos_pipe_write(&good[1], 42) == 0);
	for (int round = 0; round < 20000; round++) {
		ends[0].ring->head = any();
		ends[0].ring->tail = seed + 8 + (any() >> (seed % 64));
		ends[0].ring->writer = any();
		ends[0].ring->reader = any();
		if (exos_pipe_read(&ends[0], &word))
			CHECK(ends[0].ring->tail - ends[0].ring->head > EXOS_PIPE_SIZE);
	}
	CHECK(exos_pipe_read(&good[0], &word) == 0 && word == 42);
	for (int end = 0; end < 2; end++)
		exos_pipe_close(&ends[end]), exos_pipe_close(&good[end]);
}

/* The same for descriptors, whose pipes stand where others stood. */
static void descriptors(void)
{
	struct exos_pipe before[2];
	static char bytes[3 * EXOS_PIPE_SIZE];
	int ends[2];

	CHECK(exos_pipe_create(before) == 0);
	struct exos_ring *ring = before[0].ring;
	exos_pipe_close(&before[0]), exos_pipe_close(&before[1]);
	CHECK(pipe(ends) == 0);
	CHECK(write(ends[1], "x", 1) == 1 && ring->tail - ring->head == 1);
	CHECK(read(ends[0], bytes, sizeof bytes) == 1 && bytes[0] == 'x');
	for (int round = 0; round < 2000; round++) {
		uint64_t more = any() >> (any() % 64);

		ring->head = any();
		ring->tail = ring->head + (more ? more : 1);
		ring->writer = any();
		errno = 0;
		long got = read(ends[0], bytes, sizeof bytes);
		if (ring->tail - ring->head > EXOS_PIPE_SIZE)
			CHECK(got == -1 && errno == EIO);
		else
			CHECK(got > 0 && (unsigned long)got <= EXOS_PIPE_SIZE);
	}
	ring->head = 1 << 20, ring->tail = 5;
	CHECK(write(ends[1], bytes, 9) == -1 && errno == EIO);
	/* Nobody writes any more, whatever was left: there is an end, or an error. */
	close(ends[1]);
	CHECK(read(ends[0], bytes, sizeof bytes) == -1 && errno == EIO);
	ring->head = ring->tail = 77;
	CHECK(read(ends[0], bytes, sizeof bytes) == 0);
	close(ends[0]);
}

/* Locks that name somebody who lives and has them not: the root, whose birth is one of these. */
static void locks(void)
{
	struct exos_pipe before[2];
	int ends[2];
	char byte = 1;

	CHECK(exos_pipe_create(before) == 0);
	struct exos_ring *ring = before[0].ring;
	exos_pipe_close(&before[0]), exos_pipe_close(&before[1]);
	CHECK(pipe(ends) == 0);
	for (uint64_t birth = 0; birth < 16; birth++) {
		ring->writing = birth << 8 | 1;
		ring->reading = birth << 8 | 1;
		CHECK(write(ends[1], &byte, 1) == 1);
		CHECK(read(ends[0], &byte, 1) == 1);
		ring->writing = any(), ring->reading = any();
		CHECK(write(ends[1], &byte, 1) == 1);
		CHECK(read(ends[0], &byte, 1) == 1);
	}
	close(ends[0]), close(ends[1]);
}

static void shared(void)
{
	struct exos_shared words, reader;
	size_t length = 300 * PAGE;
	char *first = exos_shared_create(length, &words), *second, *third;

	CHECK(first);
	for (size_t at = 0; at < length; at += PAGE) {
		CHECK(first[at] == 0);
		first[at] = (char)(at >> 12);
	}
	second = exos_shared_attach(&words);
	CHECK(second && second != first && !memcmp(first, second, length));
	second[5] = 'x';
	CHECK(first[5] == 'x');
	CHECK(exos_shared_reader(first, &reader) == 0);
	third = exos_shared_attach(&reader);
	CHECK(third && third[5] == 'x');
	/* Who may read only has no words for more. */
	CHECK(exos_shared_detach(second) == 0 && exos_shared_detach(first) == 0);
	CHECK(third[5] == 'x' && third[299 * PAGE] == (char)299);
	struct exos_shared more = reader;
	CHECK(exos_shared_reader(third, &more) == 0 && more.capability == reader.capability);
	more.count |= 1;
	CHECK(!exos_shared_attach(&more) && errno == EACCES);
	CHECK(exos_shared_detach(third) == 0);
	CHECK(exos_shared_detach(third) == -1 && errno == EINVAL);
	CHECK(!exos_shared_create(0, &words) && errno == EINVAL);
	CHECK(!exos_shared_create(513 * PAGE, &words) && errno == EINVAL);
}

/* Words that nobody gave. */
static void forged(void)
{
	struct exos_shared words, other, wrong;
	char *memory = exos_shared_create(3 * PAGE, &words), *another = exos_shared_create(3 * PAGE, &other);

	CHECK(memory && another);
	for (int bit = 0; bit < 64; bit++) {
		wrong = words;
		wrong.capability ^= 1ull << bit;
		CHECK(!exos_shared_attach(&wrong) && errno == EACCES);
		wrong = words;
		wrong.page ^= 1ull << bit;
		CHECK(!exos_shared_attach(&wrong));
	}
	wrong = words;
	wrong.capability = other.capability;
	CHECK(!exos_shared_attach(&wrong));
	for (uint64_t page = 0; page < 64; page++) {
		wrong = (struct exos_shared){page, words.capability, 3};
		CHECK(!exos_shared_attach(&wrong) || page == words.page);
	}
	const uint64_t counts[] = {0, 1, 1026, 1ull << 32, ~0ull};
	for (unsigned k = 0; k < sizeof counts / sizeof *counts; k++) {
		wrong = words;
		wrong.count = counts[k];
		CHECK(!exos_shared_attach(&wrong) && errno == EINVAL);
	}
	/* More pages than there are, which would be others'. */
	wrong = words;
	wrong.count = 2 * 512 + 1;
	CHECK(!exos_shared_attach(&wrong));
	/* A page of numbers that its owner has written: those of others are not bound by it. */
	for (uint64_t page = 0; page < PAGE / 4; page++)
		((uint32_t *)memory)[page] = page;
	wrong = words;
	wrong.page = exos_page_number(memory);
	wrong.count = 2 * 512 + 1;
	CHECK(!exos_shared_attach(&wrong));
	memset(memory, 7, 3 * PAGE);
	CHECK(another[0] == 0 && another[3 * PAGE - 1] == 0);
	CHECK(exos_shared_detach(memory) == 0 && exos_shared_detach(another) == 0);
}

/* What nobody has any more is free again, though nobody has ended: a tree that may have little has much one after the other. */
static void freed(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct exos_shared words;
		int ends[2];

		if (exos_limit(EXOS_LIMIT_PAGES, 2500))
			_exit(1);
		for (int round = 0; round < 60; round++) {
			char *memory = exos_shared_create(300 * PAGE, &words);
			if (!memory || memory[299 * PAGE])
				_exit(2);
			memory[299 * PAGE] = 1;
			if (exos_shared_detach(memory))
				_exit(3);
		}
		for (int round = 0; round < 800; round++) {
			if (pipe(ends))
				_exit(4);
			close(ends[0]), close(ends[1]);
		}
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* And it is free for other use. */
static void reused(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		enum { PAGES = 500, MANY = 4 };
		struct exos_shared words;
		char *memory[MANY];

		if (exos_limit(EXOS_LIMIT_PAGES, PAGES * MANY + 1200))
			_exit(1);
		for (int k = 0; k < MANY; k++)
			if (!(memory[k] = exos_shared_create(PAGES * PAGE, &words)))
				_exit(2);
		for (int k = 0; k < MANY; k++)
			if (exos_shared_detach(memory[k]))
				_exit(3);
		char *own = malloc(PAGES * MANY * PAGE);
		if (!own)
			_exit(4);
		memset(own, 1, PAGES * MANY * PAGE);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status));
	errno = WEXITSTATUS(status);
	CHECK(!errno);
}

/* Bells whose sleeper has ended, never was, or is somebody else. */
static void bells(void)
{
	struct exos_doorbell first = {0, 0}, second = {0, 0}, *both[] = {&first, &second};
	uint64_t seen[2] = {0, 0};

	exos_doorbell_ring(&second);
	CHECK(exos_doorbell_wait(both, seen, 2, 0) == 1 && seen[1] == 1);
	CHECK(exos_doorbell_wait(both, seen, 2, 3) == -1);
	for (uint64_t sleeper = 1; sleeper < 256; sleeper += sleeper < 4 ? 1 : 50) {
		first.sleeper = sleeper;
		exos_doorbell_ring(&first);
	}
	first.sleeper = ~0ull;
	exos_doorbell_ring(&first);
	CHECK(first.rings > 5);
}

static void nobody(void)
{
	exos_lrpc_patience(8);
	CHECK(exos_lrpc(0, 1, 2, 3, 4).error < 0);
	CHECK(exos_lrpc(200, 1, 2, 3, 4).error == EXOS_GONE);
	CHECK(exos_lrpc(exos_environment(), 1, 2, 3, 4).error < 0);
	CHECK(exos_tlrpc(200, 1, 2, 3, 4).error == EXOS_GONE);
	CHECK(exos_tlrpc(exos_environment(), 1, 2, 3, 4).error < 0);
	CHECK(exos_own_environment == exos_environment());
}

int main(void)
{
	RUN(pipes);
	RUN(counts);
	RUN(descriptors);
	RUN(locks);
	RUN(shared);
	RUN(forged);
	RUN(freed);
	RUN(reused);
	RUN(bells);
	RUN(nobody);
	return failures != 0;
}
