/* Pipes without descriptors, whose operations are the program's own code: a word is read or written
   in a few instructions, and only who finds the ring empty or full calls the library, which gives
   the processor to the other end. Copies of a process have the ends that it has. An end is used by
   one process at a time. (Pipes with descriptors are those of <unistd.h>, in the same rings.) */
#ifndef EXOS_PIPE_H
#define EXOS_PIPE_H

#include <stdint.h>

#include <exos/yield.h>

#define EXOS_PIPE_SIZE 16384

struct exos_ring {
	uint64_t head, reader, reading, unused[5];
	uint64_t tail, writer, writing, unused_too[501];
	uint64_t words[EXOS_PIPE_SIZE / 8];
};

struct exos_pipe {
	struct exos_ring *ring;
	uint32_t slot, end;
};

/* A pipe: the end to read from, and the end to write to. -1: errno says why. */
int exos_pipe_create(struct exos_pipe ends[2]);
/* This process has the end no more. */
void exos_pipe_close(struct exos_pipe *end);
/* Gives the processor to the other end until there is something to read, or room. -1: there is no
   other end, and nothing to do. */
int exos_pipe_wait(const struct exos_pipe *end);

/* Writes a word; -1: nobody reads. */
static inline int exos_pipe_write(const struct exos_pipe *end, uint64_t word)
{
	struct exos_ring *ring = end->ring;
	uint64_t tail = ring->tail;
	/* Who this is, for the other end's waiting. */
	__atomic_store_n(&ring->writer, exos_own_environment, __ATOMIC_RELAXED);
	while (tail - __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) > EXOS_PIPE_SIZE - 8)
		if (exos_pipe_wait(end))
			return -1;
	ring->words[tail / 8 % (EXOS_PIPE_SIZE / 8)] = word;
	__atomic_store_n(&ring->tail, tail + 8, __ATOMIC_RELEASE);
	return 0;
}

/* Reads a word; -1: nobody writes, and none is left, or the counts are nonsense that somebody has
   written there. */
static inline int exos_pipe_read(const struct exos_pipe *end, uint64_t *word)
{
	struct exos_ring *ring = end->ring;
	uint64_t head, there;
	__atomic_store_n(&ring->reader, exos_own_environment, __ATOMIC_RELAXED);
	/* Both are looked at again, as the library does: the other end may have changed either. */
	while (!(there = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) - (head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED))))
		if (exos_pipe_wait(end))
			return -1;
	if (there > EXOS_PIPE_SIZE)
		return -1;
	*word = ring->words[head / 8 % (EXOS_PIPE_SIZE / 8)];
	__atomic_store_n(&ring->head, head + 8, __ATOMIC_RELEASE);
	return 0;
}

#endif
