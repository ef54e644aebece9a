/* How the rows of this program are measured. The emulator counts: a step of the time stamp counter
 * is an instruction. Timers of the kernel's come between, so each row keeps the least of its tries. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE 4096l
#define MANY 100
#define TRIES 60

static inline uint64_t now(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* A system call without a library between. */
static inline long call6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;

	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return number;
}

#define call3(number, a, b, c) call6(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)

/* Instructions that do nothing, by which count.c knows what is measured. */
#define MARK(which) __asm__ volatile("nopl " which "(%%rax)" ::: "memory")
#define BEGIN "0x41450001"
#define END "0x41450002"
#define ROW "0x41450003"

/* Says a row and how often it was done in each measurement; the host reads it. */
void row(const char *name, uint64_t instructions, unsigned repeats);
/* Ends the machine with a reason. */
__attribute__((noreturn)) void fail(const char *what);

/* What `now` twice in a row takes. */
uint64_t clock_itself(void);

void calls(void);
void exceptions(void);
void transfers(void);
void memory(void);
void filters(void);
void network(void);

/* Keeps the least of what some statements take, without the clock's own part. */
#define LEAST(result, statements)                                 \
	do {                                                      \
		uint64_t least_ = ~0ull, clock_ = clock_itself(); \
		for (int try_ = 0; try_ < TRIES; try_++) {        \
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
