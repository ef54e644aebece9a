/* Exceptions that a handler of signals takes: how long to its first instruction, and how long until
 * the program goes on behind the instruction that raised it. */
#include "measure.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

/* Times as the handler and the program store them, and how long the instruction is that is left out. */
uint64_t exception_begun, exception_arrived, exception_ended, exception_skip;

/* The handler, without what a compiler would put before its first instruction. At its entry the stack
 * has the return address and the context, in which rip is 168 bytes behind its start. */
__asm__(".text\n"
	"exception_handler:\n"
	"	rdtsc\n"
	"	shl $32, %rdx\n"
	"	or %rdx, %rax\n"
	"	mov %rax, exception_arrived(%rip)\n"
	"	mov exception_skip(%rip), %rax\n"
	"	add %rax, 176(%rsp)\n"
	"	ret\n");
void exception_handler(int);

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

static void handle(int number)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = exception_handler;
	action.sa_flags = SA_SIGINFO;
	if (sigaction(number, &action, NULL))
		fail("sigaction");
}

static void measure(const char *name, void (*raise_it)(void *), void *address, uint64_t length)
{
	uint64_t to = ~0ull, trip = ~0ull, stamps = ~0ull;
	char trip_name[64];

	exception_skip = length;
	for (int try = 0; try < TRIES; try++) {
		uint64_t took;

		raises_none(address);
		took = exception_ended - exception_begun;
		stamps = took < stamps ? took : stamps;
		raise_it(address);
		took = exception_arrived - exception_begun;
		to = took < to ? took : to;
		took = exception_ended - exception_begun;
		trip = took < trip ? took : trip;
	}
	row(name, to - stamps);
	snprintf(trip_name, sizeof trip_name, "%s-trip", name);
	row(trip_name, trip - stamps);
}

void exceptions(void)
{
	char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (page == MAP_FAILED)
		fail("mmap");
	handle(SIGFPE);
	handle(SIGSEGV);
	measure("unaligned", moves_unaligned, page + 8, 3);
	measure("division", divides, page, 2);
	measure("protection", stores, page, 2);
	munmap(page, PAGE);
	signal(SIGFPE, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
}
