/* Exceptions that a handler of signals takes: how long to its first instruction, and how long until
 * the program goes on behind the instruction that raised it. */
#include "measure.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

/* Times as the handler and the program store them, and how long the instruction is that is left out. */
uint64_t exception_begun, exception_arrived, exception_ended, exception_skip;

/* Handlers, without what a compiler would put before their first instruction; for a row that ends with
 * that, and for one of the whole trip. At the entry the stack has the return address and the context, in
 * which rip is 168 bytes behind its start. */
#define HANDLER(name, mark)                                  \
	__asm__(".text\n" name ":\n"                         \
		"	rdtsc\n" mark                        \
		"	shl $32, %rdx\n"                     \
		"	or %rdx, %rax\n"                     \
		"	mov %rax, exception_arrived(%rip)\n" \
		"	mov exception_skip(%rip), %rax\n"    \
		"	add %rax, 176(%rsp)\n"               \
		"	ret\n")
HANDLER("exception_arrives", "nopl " END "(%rax)\n");
HANDLER("exception_returns", "");
void exception_arrives(int), exception_returns(int);

#define STAMP(where) "rdtsc\n shl $32, %%rdx\n or %%rdx, %%rax\n mov %%rax, " where "(%%rip)\n"

/* A function that raises an exception by one instruction between two stamps. */
#define RAISES(name, instruction)                                                                          \
	static void name(void *address)                                                                    \
	{                                                                                                  \
		__asm__ volatile(STAMP("exception_begun") instruction "\n" STAMP("exception_ended")        \
				 :: "D"(address), "c"(0) : "rax", "rdx", "xmm0", "memory", "cc");          \
	}

RAISES(raises_none, "")
RAISES(divides, "idivl %%ecx")
RAISES(moves_unaligned, "movaps (%%rdi), %%xmm0")
RAISES(stores, "movl %%ecx, (%%rdi)")

static void handle(int number, void (*handler)(int))
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = SA_SIGINFO;
	if (sigaction(number, &action, NULL))
		fail("sigaction");
}

/* What two stamps take with an instruction between that is left out by the handler; without one, what the
 * stamps take themselves. */
static uint64_t least(void (*raise_it)(void *), void *address, const uint64_t *end)
{
	uint64_t all = ~0ull;

	for (int try = 0; try < TRIES; try++) {
		if (raise_it != raises_none)
			MARK(BEGIN);
		raise_it(address);
		MARK(END);
		uint64_t took = *end - exception_begun;

		if (took < all)
			all = took;
	}
	return all;
}

static void measure(const char *name, int number, void (*raise_it)(void *), void *address, uint64_t length)
{
	uint64_t stamps = least(raises_none, address, &exception_ended);
	char trip[64];

	exception_skip = length;
	/* The handler's rdtsc ends the first row, as the second stamp's ends the other one. */
	handle(number, exception_arrives);
	row(name, least(raise_it, address, &exception_arrived) - stamps, 1);
	handle(number, exception_returns);
	snprintf(trip, sizeof trip, "%s-trip", name);
	row(trip, least(raise_it, address, &exception_ended) - stamps, 1);
	signal(number, SIG_DFL);
}

void exceptions(void)
{
	char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (page == MAP_FAILED)
		fail("mmap");
	measure("unaligned", SIGSEGV, moves_unaligned, page + 8, 3);
	measure("division", SIGFPE, divides, page, 2);
	measure("protection", SIGSEGV, stores, page, 2);
	munmap(page, PAGE);
}
