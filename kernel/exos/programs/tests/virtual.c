/* Virtual memory at application level: each operation, protections as the processor has them,
   and random operations beside a model. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <exos/memory.h>

#define PAGE ((size_t)EXOS_PAGE)
#define READS PROT_READ
#define WRITES (PROT_READ | PROT_WRITE)

/* ---- accesses that may fault: they are told, and the program goes on behind them */

static volatile int faults, skip;
static volatile uint64_t fault_address, fault_code;

static EXOS_HANDLER int skips(struct exos_fault *fault, void *unused)
{
	(void)unused;
	faults++;
	fault_address = fault->address;
	fault_code = fault->code;
	if (fault->code & 16) {
		fault->rip = *(uint64_t *)fault->rsp;
		fault->rsp += 8;
	} else {
		fault->rip += skip;
	}
	return 1;
}

static bool stores(char *at, char value)
{
	int before = faults;

	skip = 2;
	__asm__ volatile("movb %%al, (%0)" : : "D"(at), "a"(value) : "memory");
	return faults == before;
}

static bool loads(const char *at, char *value)
{
	int before = faults;
	char found;

	skip = 2;
	__asm__ volatile("movb (%1), %%al" : "=a"(found) : "D"(at) : "memory");
	*value = found;
	return faults == before;
}

static bool runs(char *at)
{
	int before = faults;

	__asm__ volatile("call *%0" : : "r"(at) : "memory");
	return faults == before;
}

static char *fresh(size_t pages, int protection)
{
	void *at = mmap(NULL, pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

#define CHECK(condition)                                             \
	do {                                                         \
		if (!(condition))                                    \
			return __FILE_NAME__ ": " #condition; \
	} while (0)

/* ---- each operation */

static const char *zero(void)
{
	char *at = fresh(9, WRITES), found;

	CHECK(at != NULL && ((uintptr_t)at & (PAGE - 1)) == 0);
	CHECK(exos_page_number(at) == -1);
	for (size_t byte = 0; byte < 9 * PAGE; byte += 61)
		CHECK(loads(at + byte, &found) && found == 0);
	memset(at, 7, 9 * PAGE);
	CHECK(munmap(at, 9 * PAGE) == 0);
	/* Pages come back, and with nothing of before in them. */
	for (int k = 0; k < 50; k++) {
		CHECK((at = fresh(64, WRITES)) != NULL);
		for (size_t page = 0; page < 64; page++)
			CHECK(at[page * PAGE + 99] == 0 && (at[page * PAGE + 99] = 1));
		CHECK(munmap(at, 64 * PAGE) == 0);
	}
	return NULL;
}

static const char *protections(void)
{
	char *at = fresh(4, WRITES), found;

	CHECK(at != NULL && stores(at, 5));
	CHECK(exos_protect(at, READS) == 0 && !stores(at + 9, 1));
	CHECK(fault_address == (uintptr_t)at + 9 && (fault_code & 2));
	CHECK(loads(at, &found) && found == 5);
	CHECK(exos_protect(at, PROT_NONE) == 0 && !loads(at, &found) && !stores(at, 1));
	CHECK(exos_protect(at, WRITES) == 0 && loads(at, &found) && found == 5 && stores(at, 6));
	/* What was never touched is remembered, and comes with its protection. */
	CHECK(exos_protect(at + PAGE, READS) == 0 && loads(at + PAGE, &found) && found == 0 && !stores(at + PAGE, 1));
	CHECK(exos_protect(at + 2 * PAGE, PROT_NONE) == 0 && !loads(at + 2 * PAGE, &found));
	CHECK(mprotect(at, 4 * PAGE, WRITES) == 0);
	for (size_t page = 0; page < 4; page++)
		CHECK(stores(at + page * PAGE, 1));
	/* Text: only where it may be fetched. */
	*(unsigned char *)at = 0xc3;
	CHECK(!runs(at) && (fault_code & 16));
	CHECK(exos_protect(at, PROT_READ | PROT_EXEC) == 0 && runs(at) && !stores(at, 0));
	return munmap(at, 4 * PAGE) ? "munmap" : NULL;
}

static const char *many(void)
{
	static void *odd[300];
	char *at = fresh(600, WRITES), found;

	CHECK(at != NULL);
	for (size_t page = 0; page < 600; page++)
		if (page % 5)
			at[page * PAGE] = (char)page;
	for (size_t k = 0; k < 300; k++)
		odd[k] = at + (599 - 2 * k) * PAGE;
	CHECK(exos_protect_many(odd, 300, READS) == 0);
	for (size_t page = 0; page < 600; page++) {
		CHECK(loads(at + page * PAGE, &found) && found == (page % 5 ? (char)page : 0));
		CHECK(stores(at + page * PAGE, found) == (page % 2 == 0));
	}
	CHECK(exos_protect_many(odd, 300, WRITES) == 0);
	for (size_t page = 0; page < 600; page++)
		CHECK(stores(at + page * PAGE, 3));
	CHECK(mprotect(at, 600 * PAGE, READS) == 0);
	for (size_t page = 0; page < 600; page++)
		CHECK(!stores(at + page * PAGE, 4) && loads(at + page * PAGE, &found) && found == 3);
	return munmap(at, 600 * PAGE) ? "munmap" : NULL;
}

static const char *dirty(void)
{
	char *at = fresh(3, WRITES), found;

	CHECK(at != NULL && loads(at, &found) && exos_touched(at) == 1 && stores(at, 1));
	CHECK(exos_dirty(at) == 1);
	CHECK(exos_clean(at) == 0 && exos_dirty(at) == 0 && exos_touched(at) == 0);
	CHECK(loads(at + 8, &found) && exos_dirty(at + 8) == 0 && exos_touched(at) == 1);
	CHECK(stores(at + 8, 1) && exos_dirty(at) == 1);
	CHECK(exos_dirty(at + PAGE) == 0 && exos_touched(at + PAGE) == 0);
	CHECK(munmap(at, 3 * PAGE) == 0 && exos_dirty(at) == -1);
	return NULL;
}

static const char *aliases(void)
{
	char *at = fresh(3, WRITES), *other, found;

	CHECK(at != NULL && stores(at, 1) && stores(at + PAGE, 2));
	CHECK((other = exos_alias(at, 3 * PAGE, READS)) != NULL && other != at);
	CHECK(exos_page_number(at) == exos_page_number(other) && exos_page_number(at) >= 0);
	CHECK(loads(other + PAGE, &found) && found == 2 && !stores(other, 9));
	CHECK(stores(at + 2 * PAGE, 3) && loads(other + 2 * PAGE, &found) && found == 3);
	CHECK(exos_protect(other, WRITES) == 0 && stores(other, 8) && loads(at, &found) && found == 8);
	/* The first goes, the page stays as long as the second. */
	CHECK(munmap(at, 3 * PAGE) == 0);
	CHECK(loads(other, &found) && found == 8 && stores(other, 7) && loads(other, &found) && found == 7);
	CHECK((at = fresh(3, WRITES)) != NULL && stores(at, 1) && stores(at + PAGE, 1) && stores(at + 2 * PAGE, 1));
	CHECK(loads(other, &found) && found == 7);
	CHECK(exos_alias_at(at, other, READS) == 0 && loads(at, &found) && found == 7 && !stores(at, 1));
	CHECK(munmap(other, 3 * PAGE) == 0 && loads(at, &found) && found == 7);
	return munmap(at, 3 * PAGE) ? "munmap" : NULL;
}

static const char *colours(void)
{
	char *at = exos_map_coloured(8 * PAGE, 8, 3, 1), *same = exos_map_coloured(4 * PAGE, 8, 5, 0), found;

	CHECK(at != NULL && same != NULL);
	for (size_t page = 0; page < 8; page++) {
		CHECK(exos_page_number(at + page * PAGE) % 8 == (long)(3 + page) % 8);
		CHECK(loads(at + page * PAGE, &found) && found == 0 && stores(at + page * PAGE, 1));
	}
	for (size_t page = 0; page < 4; page++)
		CHECK(exos_page_number(same + page * PAGE) % 8 == 5);
	CHECK(munmap(at, 8 * PAGE) == 0 && munmap(same, 4 * PAGE) == 0);
	CHECK(exos_map_coloured(PAGE, 0, 0, 1) == NULL && errno == EINVAL);
	/* There are not so many of one colour. */
	CHECK(exos_map_coloured(64 * PAGE, 1 << 30, 5, 0) == NULL && errno == ENOMEM);
	return NULL;
}

static const char *uncached(void)
{
	char *at = exos_map_uncached(2 * PAGE), found;
	const volatile uint64_t *tables = (const volatile uint64_t *)0x7f0000000000;

	CHECK(at != NULL && stores(at, 4) && loads(at, &found) && found == 4 && stores(at + PAGE, 1));
	CHECK(tables[(uintptr_t)at / PAGE] & 16);
	CHECK(exos_protect(at, READS) == 0 && !stores(at, 1) && (tables[(uintptr_t)at / PAGE] & 16));
	return munmap(at, 2 * PAGE) ? "munmap" : NULL;
}

static const char *holes(void)
{
	char *at = fresh(6, WRITES), *again, found;

	CHECK(at != NULL);
	memset(at, 1, 6 * PAGE);
	CHECK(munmap(at + 2 * PAGE, 2 * PAGE) == 0);
	CHECK(loads(at + PAGE, &found) && found == 1 && loads(at + 4 * PAGE, &found) && found == 1);
	CHECK(exos_page_number(at + 2 * PAGE) == -1 && mprotect(at, 6 * PAGE, READS) == -1 && errno == ENOMEM);
	again = mmap(at + PAGE, 2 * PAGE, WRITES, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(again == at + PAGE && loads(again, &found) && found == 0 && loads(again + PAGE, &found) && found == 0);
	return munmap(at, 6 * PAGE) ? "munmap" : NULL;
}

static const char *heap(void)
{
	char *first = sbrk(0), *more;

	CHECK((more = sbrk(5 * PAGE + 3)) == first && sbrk(0) == first + 5 * PAGE + 3);
	memset(more, 1, 5 * PAGE + 3);
	CHECK(sbrk(-(intptr_t)(5 * PAGE + 3)) == first + 5 * PAGE + 3 && sbrk(0) == first);
	CHECK((more = malloc(1 << 20)) != NULL);
	memset(more, 1, 1 << 20);
	free(more);
	return NULL;
}

__attribute__((noinline)) static int deep(int levels)
{
	volatile char room[PAGE];

	room[0] = (char)levels;
	return levels == 0 ? 0 : deep(levels - 1) + (room[0] == (char)levels);
}

static const char *stack(void)
{
	CHECK(deep(400) == 400);
	return NULL;
}

static const char *exhaustion(void)
{
	char *at, *small = fresh(1, WRITES);

	/* More pages than the machine has: those that were taken come back. */
	for (int k = 0; k < 3; k++) {
		at = fresh(1 << 18, WRITES);
		CHECK(at == NULL ? errno == ENOMEM : exos_wire(at, PAGE << 18) == -1 && errno == ENOMEM);
		CHECK(at == NULL || munmap(at, PAGE << 18) == 0);
		CHECK(small != NULL && stores(small, 1) && fresh(64, WRITES) != NULL);
	}
	CHECK(fresh((size_t)1 << 40, WRITES) == NULL && errno == ENOMEM);
	CHECK(malloc((size_t)1 << 45) == NULL);
	CHECK((at = malloc(1000)) != NULL);
	free(at);
	return NULL;
}

static const char *wrong(void)
{
	char *at = fresh(1, WRITES);

	CHECK(at != NULL && munmap(at + 1, PAGE) == -1 && errno == EINVAL);
	CHECK(mmap(NULL, 0, WRITES, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mprotect(at + 1, PAGE, READS) == -1 && errno == EINVAL);
	CHECK(exos_protect(at, 64) == -1 && errno == EINVAL);
	CHECK(munmap(at, PAGE) == 0 && exos_protect(at, READS) == -1 && errno == ENOMEM);
	/* What is the kernel's, and what Aegis keeps, is nobody's to map. */
	CHECK(mmap((void *)0x7f0000000000, PAGE, WRITES, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
	CHECK(mmap((void *)0xffff800000000000, PAGE, WRITES, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
	CHECK(munmap((void *)0x7e0000000000, PAGE) == -1 || true);
	CHECK(exos_alias((void *)0x5000, PAGE, READS) == NULL && exos_map_page(-1, 0, READS) == NULL);
	CHECK(exos_page_number((void *)UINTPTR_MAX) == -1 && exos_dirty((void *)UINTPTR_MAX) == -1);
	return NULL;
}

/* ---- random operations beside a model */

#define AREA 48
#define STEPS 6000

static uint32_t random_state = 2463534242u;

static uint32_t below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state % limit;
}

/* A page of the model: which contents it has, and what may be done. Contents are named by an
   index. */
static struct {
	int contents;
	int protection;
} model[AREA];
static char contents[AREA + STEPS * 8];
static int named;

static const char *at_random(void)
{
	char *area = fresh(AREA, WRITES), found;

	CHECK(area != NULL);
	for (int page = 0; page < AREA; page++)
		model[page].contents = named++, model[page].protection = WRITES;
	for (int step = 0; step < STEPS; step++) {
		int first = (int)below(AREA), count = 1 + (int)below(6), other = (int)below(AREA);
		int protection = (int[]){ PROT_NONE, READS, WRITES }[below(3)];
		char *at = area + first * PAGE;

		count = first + count > AREA ? AREA - first : count;
		switch (below(8)) {
		case 0:
			CHECK(mmap(at, count * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
			for (int page = first; page < first + count; page++)
				model[page].contents = named++, model[page].protection = protection;
			break;
		case 1:
			CHECK(mprotect(at, count * PAGE, protection) == 0);
			for (int page = first; page < first + count; page++)
				model[page].protection = protection;
			break;
		case 2:
			CHECK(exos_protect(at, protection) == 0);
			model[first].protection = protection;
			break;
		case 3:
			if (other != first) {
				CHECK(exos_alias_at(area + other * PAGE, at, protection) == 0);
				model[other].contents = model[first].contents, model[other].protection = protection;
			}
			break;
		case 4:
			if (model[first].protection != PROT_NONE)
				CHECK(exos_clean(at) == 0 && exos_dirty(at) == 0);
			break;
		default:
			CHECK(loads(at, &found) == (model[first].protection != PROT_NONE));
			CHECK(model[first].protection == PROT_NONE || found == contents[model[first].contents]);
			found = (char)step;
			if (stores(at, found))
				contents[model[first].contents] = found;
			CHECK(stores(at, found) == (model[first].protection == WRITES));
			CHECK(model[first].protection != WRITES || exos_dirty(at) == 1);
		}
	}
	return munmap(area, AREA * PAGE) ? "munmap" : NULL;
}

int main(void)
{
	static const struct {
		const char *name;
		const char *(*scenario)(void);
	} scenarios[] = {
		{ "zero", zero },         { "protections", protections }, { "many", many },     { "dirty", dirty },
		{ "aliases", aliases },   { "colours", colours },         { "uncached", uncached }, { "holes", holes },
		{ "heap", heap },         { "stack", stack },             { "wrong", wrong },   { "at_random", at_random },
		{ "exhaustion", exhaustion },
	};
	int failed = 0;

	exos_on_fault(skips, NULL);
	for (size_t k = 0; k < sizeof scenarios / sizeof *scenarios; k++) {
		const char *why = scenarios[k].scenario();

		failed += why != NULL;
		printf(why ? "FAILED %s: %s\n" : "ok %s\n", scenarios[k].name, why);
	}
	return failed != 0;
}
