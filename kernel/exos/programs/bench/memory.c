/* Tables 10 and 13: what operations on virtual memory take that collectors and databases live
   on, after Appel and Li's. A protected page may be read; what faults is a store. Linux cannot
   be asked whether a page is dirty. */
#define _GNU_SOURCE
#include "measure.h"

#include <sys/mman.h>

#define COUNT 100
#define READS PROT_READ
#define WRITES (PROT_READ | PROT_WRITE)

static char *place;
/* A random order of the pages, the same each time, and the places of it in that order. */
static char *order[COUNT];
/* The page that is not protected. */
static char *open_page;

#ifdef __exos__
#include <exos/memory.h>

typedef struct exos_fault fault;
#define HANDLER EXOS_HANDLER static int
#define DONE return 1
#define ADDRESS(fault) ((char *)(fault)->address)
#define SKIP(fault, bytes) ((fault)->rip += (bytes))
#define PROTECT(page, protection) exos_protect(page, protection)

static void on_fault(int (*handler)(fault *, void *))
{
	exos_on_fault(handler, NULL);
}
#else
#include <signal.h>
#include <ucontext.h>

typedef struct fault {
	siginfo_t *information;
	ucontext_t *context;
} fault;
#define HANDLER static int
#define DONE return 1
#define ADDRESS(fault) ((char *)(fault)->information->si_addr)
#define SKIP(fault, bytes) ((fault)->context->uc_mcontext.gregs[REG_RIP] += (bytes))
#define PROTECT(page, protection) mprotect(page, PAGE, protection)

static int (*handles)(fault *, void *);

static void caught(int number, siginfo_t *information, void *context)
{
	fault fault = { information, context };

	(void)number;
	handles(&fault, NULL);
}

static void on_fault(int (*handler)(fault *, void *))
{
	struct sigaction action = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO };

	handles = handler;
	if (sigaction(SIGSEGV, &action, NULL))
		fail("sigaction");
}
#endif

#define PAGE_OF(address) ((char *)((uintptr_t)(address) & -PAGE))

/* Instructions of three bytes each. */
static inline void stores(char *at)
{
	__asm__ volatile("movb $1, (%0)" : : "D"(at) : "memory");
}

static int faults;

HANDLER skips(fault *fault, void *unused)
{
	(void)unused;
	faults++;
	SKIP(fault, 3);
	DONE;
}

HANDLER swaps(fault *fault, void *unused)
{
	char *page = PAGE_OF(ADDRESS(fault));

	(void)unused;
	faults++;
	PROTECT(open_page, READS);
	PROTECT(page, WRITES);
	open_page = page;
	DONE;
}

HANDLER opens(fault *fault, void *unused)
{
	(void)unused;
	faults++;
	PROTECT(PAGE_OF(ADDRESS(fault)), WRITES);
	DONE;
}

static void protect_all(int protection)
{
	if (mprotect(place, COUNT * PAGE, protection))
		fail("mprotect");
}

static void store_all(void)
{
	for (int k = 0; k < COUNT; k++)
		stores(order[k]);
}

static void shuffle(void)
{
	uint32_t random = 1;

	for (int k = 0; k < COUNT; k++)
		order[k] = place + k * PAGE;
	for (int k = COUNT - 1; k > 0; k--) {
		char *page = order[k];
		int other;

		random = random * 1664525 + 1013904223;
		other = (random >> 16) % (k + 1);
		order[k] = order[other];
		order[other] = page;
	}
}

/* What it takes to change all pages, which were touched before. */
static uint64_t all(int from, int to)
{
	uint64_t least = ~0ull;

	for (int try = 0; try < TRIES; try++) {
		uint64_t took;

		protect_all(WRITES);
		store_all();
		protect_all(from);
		LEAST(took, 1, protect_all(to));
		least = took < least ? took : least;
	}
	return least;
}

static void expect(const char *what, int wanted)
{
	if (faults == wanted)
		return;
	fprintf(stderr, "%s: %d faults, not %d\n", what, faults, wanted);
	exit(1);
}

#ifdef __exos__
static void dirty(void)
{
	uint64_t took;
	int stored = 0;

	LEAST(took, TRIES, {
		stored = 0;
		for (int k = 0; k < COUNT; k++)
			stored += exos_dirty(order[k]);
	});
	if (stored != COUNT)
		fail("dirty");
	row("dirty", took, COUNT);
}
#endif

int main(void)
{
	uint64_t took;
	int wrong = 0;

	place = mmap(NULL, COUNT * PAGE, WRITES, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (place == MAP_FAILED)
		fail("mmap");
	shuffle();
	store_all();
#ifdef __exos__
	dirty();
#endif
	LEAST(took, TRIES, {
		wrong |= PROTECT(order[7], READS);
		wrong |= PROTECT(order[7], WRITES);
	});
	if (wrong)
		fail("prot1");
	row("prot1", took, 2);
	row("prot100", all(WRITES, READS), 1);
	row("unprot100", all(READS, WRITES), 1);

	on_fault(skips);
	PROTECT(order[3], READS);
	faults = 0;
	LEAST(took, TRIES, stores(order[3]));
	expect("trap", TRIES);
	row("trap", took, 1);

	on_fault(swaps);
	protect_all(READS);
	open_page = order[COUNT - 1];
	PROTECT(open_page, WRITES);
	faults = 0;
	LEAST(took, TRIES, store_all());
	expect("appel1", TRIES * COUNT);
	row("appel1", took, COUNT);

	on_fault(opens);
	protect_all(WRITES);
	faults = 0;
	LEAST(took, TRIES, {
		protect_all(READS);
		store_all();
	});
	expect("appel2", TRIES * COUNT);
	row("appel2", took, COUNT);
	return 0;
}
