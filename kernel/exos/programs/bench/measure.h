/* How the rows of a program are measured, on ExOS and on Linux. The emulator counts: a step of the time stamp counter is an
   instruction. What a kernel does of its own accord comes between, so each row keeps the least of its tries.

   A program says each row as `figure NAME INSTRUCTIONS REPEATS`, and ends with status 0:

	int main(void)
	{
		uint64_t took;

		LEAST(took, TRIES, getpid());
		row("getpid", took, 1);
		return 0;
	}

   What both kernels read (buffers, stacks of handlers) is to be aligned, so that a figure does not depend on where the linker has put
   it: ALIGNED for arrays. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE 4096l
#define TRIES 12
#define ALIGNED __attribute__((aligned(4096)))

static inline uint64_t now(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/* Instructions that do nothing, by which bench/aegis/count.c knows what is measured. */
#define MARK(which) __asm__ volatile("nopl " which "(%%rax)" ::: "memory")
#define BEGIN "0x41450001"
#define END "0x41450002"
#define ROW "0x41450003"

/* Says a row, and how often it was done in each measurement. */
static inline void row(const char *name, uint64_t instructions, unsigned repeats)
{
	MARK(ROW);
	printf("figure %s %lu %u\n", name, (unsigned long)(instructions / repeats), repeats);
	fflush(stdout);
}

/* Ends the program with a reason. */
__attribute__((noreturn)) static inline void fail(const char *what)
{
	fflush(stdout);
	perror(what);
	exit(1);
}

/* What `now` twice in a row takes. */
static inline uint64_t clock_itself(void)
{
	uint64_t least = ~0ull;

	for (int k = 0; k < 4; k++) {
		uint64_t begun = now(), took = now() - begun;

		if (took < least)
			least = took;
	}
	return least;
}

/* A whole slice is before the caller, where there is such a thing. */
int sched_yield(void) __attribute__((weak));
static inline void whole_slice(void)
{
	if (sched_yield)
		sched_yield();
}

/* Keeps the least of what some statements take, without the clock's own part. */
#define LEAST(result, tries, statements)                          \
	do {                                                      \
		uint64_t least_ = ~0ull, clock_ = clock_itself(); \
		for (int try_ = 0; try_ < (tries); try_++) {      \
			whole_slice();                            \
			MARK(BEGIN);                              \
			uint64_t begun_ = now();                  \
			statements;                               \
			uint64_t took_ = now() - begun_ - clock_; \
			MARK(END);                                \
			if (took_ < least_)                       \
				least_ = took_;                   \
		}                                                 \
		(result) = least_;                                \
	} while (0)

#endif
