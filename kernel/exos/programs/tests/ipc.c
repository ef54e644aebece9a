/* Communication, as one process sees both of its sides. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <exos/doorbell.h>
#include <exos/lrpc.h>
#include <exos/pipe.h>
#include <exos/shared.h>

static int failed;

static void check(int holds, const char *name, const char *why)
{
	if (!holds) {
		printf("FAILED %s: %s\n", name, why);
		failed = 1;
	}
}

static void pipes(void)
{
	struct exos_pipe ends[2];
	uint64_t word, sum = 0;

	check(!exos_pipe_create(ends), "pipe", "it is not made");
	for (uint64_t round = 0; round < 10000; round++) {
		for (uint64_t k = 0; k <= round % 7; k++)
			check(!exos_pipe_write(&ends[1], round * k), "pipe", "a word is not written");
		for (uint64_t k = 0; k <= round % 7; k++) {
			check(!exos_pipe_read(&ends[0], &word), "pipe", "a word is not read");
			sum += word - round * k;
		}
	}
	check(sum == 0, "pipe", "other words come");
	for (int k = 0; k < EXOS_PIPE_SIZE / 8; k++)
		exos_pipe_write(&ends[1], k);
	exos_pipe_close(&ends[1]);
	for (uint64_t k = 0; k < EXOS_PIPE_SIZE / 8; k++)
		check(!exos_pipe_read(&ends[0], &word) && word == k, "pipe", "what was written before the end is lost");
	check(exos_pipe_read(&ends[0], &word) == -1, "pipe", "no end, though nobody writes");
	exos_pipe_close(&ends[0]);
}

/* Indices that the other side has changed at random harm nobody else: words are wrong, that is all. */
static void hostile(void)
{
	struct exos_pipe ends[2], good[2];
	uint64_t word, seed = 88172645463325252ull;

	check(!exos_pipe_create(ends) && !exos_pipe_create(good), "hostile", "pipes are not made");
	exos_pipe_write(&good[1], 42);
	for (int round = 0; round < 100000; round++) {
		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		ends[0].ring->head = seed;
		ends[0].ring->tail = seed + 8 + (seed >> 50);
		ends[0].ring->writer = seed;
		exos_pipe_read(&ends[0], &word);
	}
	check(!exos_pipe_read(&good[0], &word) && word == 42, "hostile", "another pipe is changed");
	for (int end = 0; end < 2; end++)
		exos_pipe_close(&ends[end]), exos_pipe_close(&good[end]);
}

static void shared(void)
{
	struct exos_shared words, reader, wrong;
	size_t length = 300 * 4096;
	char *first = exos_shared_create(length, &words), *second, *third;

	check(first != NULL, "shared", "it is not made");
	if (!first)
		return;
	for (size_t at = 0; at < length; at += 4096)
		check(first[at] == 0, "shared", "pages are not zeros"), first[at] = (char)(at >> 12);
	second = exos_shared_attach(&words);
	check(second && second != first && !memcmp(first, second, length), "shared", "other memory is attached");
	second[5] = 'x';
	check(first[5] == 'x', "shared", "it is not the same");
	check(!exos_shared_reader(first, &reader), "shared", "no words to read with");
	third = exos_shared_attach(&reader);
	check(third && third[5] == 'x', "shared", "it cannot be read");
	reader.count |= 1;
	check(!exos_shared_attach(&reader), "shared", "a reader may write");
	wrong = words;
	wrong.capability ^= 1;
	check(!exos_shared_attach(&wrong), "shared", "a forged capability is taken");
	check(!exos_shared_detach(first) && second[4096] == 1, "shared", "it is gone while somebody has it");
	check(!exos_shared_detach(second) && !exos_shared_detach(third), "shared", "it is not detached");
	check(exos_shared_detach(third) == -1, "shared", "it is detached twice");
	for (int round = 0; round < 100; round++) {
		first = exos_shared_create(length, &words);
		check(first && !exos_shared_detach(first), "shared", "places or pages are not given back");
	}
}

static void others(void)
{
	struct exos_doorbell first = {0, 0}, second = {0, 0}, *both[] = {&first, &second};
	uint64_t seen[2] = {0, 0};

	exos_doorbell_ring(&second);
	check(exos_doorbell_wait(both, seen, 2, 0) == 1 && seen[1] == 1, "doorbell", "another bell");
	check(exos_doorbell_wait(both, seen, 2, 3) == -1, "doorbell", "no bell rang");
	exos_lrpc_patience(8);
	check(exos_lrpc(0, 1, 2, 3, 4).error < 0, "lrpc", "nobody answers");
	check(exos_lrpc(200, 1, 2, 3, 4).error == EXOS_GONE, "lrpc", "one answers that is not there");
	check(exos_lrpc(exos_environment(), 1, 2, 3, 4).error < 0, "lrpc", "it answers itself");
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("pipes"), pipes();
	puts("hostile"), hostile();
	puts("shared"), shared();
	puts("others"), others();
	if (!failed)
		puts("ok ipc");
	return failed;
}
