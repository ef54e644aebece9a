/* Virtual memory: what comes at the first touch, what may be done to pages, who is told of faults. */
#include "check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <exos/memory.h>

#define PAGE EXOS_PAGE
#define FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)

static char image[3 * PAGE] __attribute__((aligned(PAGE)));
static volatile uintptr_t seen;
static volatile unsigned long seen_code;
static volatile int told;

/* Lets everything be done to the page of the fault. */
static EXOS_HANDLER int opens(struct exos_fault *fault, void *argument)
{
	seen = fault->address;
	seen_code = fault->code;
	told++;
	return exos_protect((void *)(seen & -PAGE), *(int *)argument) == 0;
}

static int protection = PROT_READ | PROT_WRITE;

static void heap(void)
{
	char *block = malloc(600000), *first = sbrk(0);

	CHECK(block);
	for (int at = 0; at < 600000; at += 1000)
		block[at] = (char)at;
	for (int at = 0; at < 600000; at += 1000)
		CHECK(block[at] == (char)at);
	free(block);
	CHECK(sbrk(5 * PAGE) != (void *)-1);
	first = sbrk(0);
	first[-1] = 7;
	CHECK(sbrk(-5 * PAGE) == first);
	CHECK(sbrk(5 * PAGE) == first - 5 * PAGE);
	CHECK(first[-1] == 0);
	CHECK(sbrk(-(1l << 40)) == (void *)-1 && errno == ENOMEM);
	CHECK(sbrk(1l << 40) == (void *)-1 && errno == ENOMEM);
}

__attribute__((noinline)) static int deep(int depth)
{
	volatile char frame[4000];
	frame[0] = (char)depth;
	return depth == 0 ? 0 : deep(depth - 1) + (frame[0] == (char)depth);
}

static void stack(void)
{
	CHECK(deep(1000) == 1000);
}

static void mappings(void)
{
	char *some = mmap(0, 20 * PAGE, PROT_READ | PROT_WRITE, FLAGS, -1, 0);

	CHECK(some != MAP_FAILED);
	CHECK(exos_page_number(some) == -1);
	for (int at = 0; at < 20 * PAGE; at++)
		CHECK(some[at] == 0);
	memset(some, 3, 20 * PAGE);
	CHECK(exos_page_number(some) > 0);
	CHECK(munmap(some + 5 * PAGE, 3 * PAGE) == 0);
	CHECK(exos_page_number(some + 5 * PAGE) == -1);
	CHECK(some[5 * PAGE - 1] == 3 && some[8 * PAGE] == 3);
	CHECK(mprotect(some, 20 * PAGE, PROT_READ) == -1 && errno == ENOMEM);
	CHECK(mmap(some + 5 * PAGE, PAGE, PROT_READ | PROT_WRITE, FLAGS | MAP_FIXED, -1, 0) == some + 5 * PAGE);
	CHECK(some[5 * PAGE] == 0);
	some[5 * PAGE] = 1;
	CHECK(munmap(some, 20 * PAGE) == 0);
	CHECK(mmap(some, PAGE, PROT_READ, FLAGS, -1, 0) == some);
	CHECK(some[0] == 0);
	CHECK(munmap(some, PAGE) == 0);
	CHECK(munmap(some + 1, PAGE) == -1 && errno == EINVAL);
	CHECK(mmap(0, 0, PROT_READ, FLAGS, -1, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap((void *)0x7e0000000000, PAGE, PROT_READ, FLAGS | MAP_FIXED, -1, 0) == MAP_FAILED);
	CHECK(mmap(0, 1l << 45, PROT_READ, FLAGS, -1, 0) == MAP_FAILED && errno == ENOMEM);
}

/* Faults at one page, with each protection. */
static void watched(volatile char *page)
{
	exos_on_fault(opens, &protection);
	for (int from = PROT_NONE; from <= PROT_READ; from++) {
		page[1] = 5;
		CHECK(exos_protect((char *)page, from) == 0);
		told = 0;
		page[1] = 6;
		CHECK(told == 1 && seen == (uintptr_t)page + 1 && (seen_code & 2));
		CHECK(page[1] == 6);
	}
	CHECK(exos_protect((char *)page, PROT_NONE) == 0);
	protection = PROT_READ;
	told = 0;
	CHECK(page[1] == 6 && told == 1 && !(seen_code & 2));
	protection = PROT_READ | PROT_WRITE;
	page[1] = 7;
	CHECK(told == 2 && page[1] == 7);
	CHECK(exos_on_fault(NULL, NULL) == opens);
}

static void faults(void)
{
	char *some = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
	char *heap = malloc(3 * PAGE);

	watched(some);
	watched(image + PAGE);
	watched((char *)(((uintptr_t)heap + PAGE - 1) & -PAGE));
	free(heap);
	CHECK(munmap(some, 2 * PAGE) == 0);
}

static void untouched(void)
{
	volatile char *some = mmap(0, 100 * PAGE, PROT_NONE, FLAGS, -1, 0);

	protection = PROT_READ | PROT_WRITE;
	exos_on_fault(opens, &protection);
	told = 0;
	some[50 * PAGE] = 1;
	CHECK(told == 1);
	CHECK(mprotect((char *)some, 100 * PAGE, PROT_READ) == 0);
	CHECK(some[50 * PAGE] == 1 && some[51 * PAGE] == 0 && told == 1);
	some[50 * PAGE] = 2;
	some[52 * PAGE] = 2;
	CHECK(told == 3 && some[50 * PAGE] == 2);
	exos_on_fault(NULL, NULL);
	CHECK(munmap((char *)some, 100 * PAGE) == 0);
}

static void many(void)
{
	enum { COUNT = 700 };
	char *some = mmap(0, COUNT * PAGE, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
	static void *pages[COUNT];

	CHECK(some != MAP_FAILED);
	for (int k = 0; k < COUNT; k++) {
		pages[k] = some + (k * 37 % COUNT) * PAGE;
		*(int *)pages[k] = k;
	}
	for (int how = PROT_NONE; how <= PROT_READ; how++) {
		CHECK(exos_protect_many(pages, COUNT, how) == 0);
		exos_on_fault(opens, &protection);
		told = 0;
		for (int k = 0; k < COUNT; k++)
			*(volatile int *)pages[k] += 1;
		CHECK(told == COUNT);
		exos_on_fault(NULL, NULL);
	}
	CHECK(exos_protect_many(pages, COUNT, PROT_READ) == 0);
	CHECK(exos_protect_many(pages, COUNT, PROT_READ | PROT_WRITE) == 0);
	for (int k = 0; k < COUNT; k++) {
		CHECK(*(int *)pages[k] == k + 2);
		*(int *)pages[k] = 0;
	}
	pages[3] = (void *)16;
	CHECK(exos_protect_many(pages, COUNT, PROT_READ) == -1 && errno == ENOMEM);
	CHECK(munmap(some, COUNT * PAGE) == 0);
}

/* A range of pages of all kinds, more than one call of the kernel takes: each is what was asked for, and nothing else. */
static void ranges(void)
{
	enum { COUNT = 700, ALL = COUNT * PAGE };
	char *some = mmap(0, ALL, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
	char *alias;

	CHECK(some != MAP_FAILED);
	/* Every fourth has not come, every fifth is hidden, one is bound elsewhere, too. */
	for (int k = 0; k < COUNT; k++)
		if (k % 4)
			*(int *)(some + k * PAGE) = k;
	alias = exos_alias(some + 301 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	CHECK(alias);
	for (int k = 0; k < COUNT; k += 5)
		CHECK(mprotect(some + k * PAGE, PAGE, PROT_NONE) == 0);
	CHECK(mprotect(some, ALL, PROT_READ) == 0);
	protection = PROT_READ | PROT_WRITE;
	exos_on_fault(opens, &protection);
	told = 0;
	for (int k = 0; k < COUNT; k++) {
		volatile int *word = (int *)(some + k * PAGE);
		CHECK(*word == (k % 4 ? k : 0) && told == k);
		*word += 1;
		CHECK(told == k + 1 && seen == (uintptr_t)word);
	}
	CHECK(*(int *)alias == 302);
	CHECK(mprotect(some, ALL, PROT_READ) == 0 && mprotect(some, ALL, PROT_READ | PROT_WRITE) == 0);
	told = 0;
	for (int k = 0; k < COUNT; k++) {
		volatile int *word = (int *)(some + k * PAGE);
		*word += 1;
		CHECK(*word == (k % 4 ? k : 0) + 2 && told == 0);
	}
	exos_on_fault(NULL, NULL);
	CHECK(munmap(alias, PAGE) == 0 && munmap(some, ALL) == 0);
}

static void dirty(void)
{
	volatile char *some = mmap(0, 3 * PAGE, PROT_READ | PROT_WRITE, FLAGS, -1, 0);

	CHECK(exos_dirty((char *)some) == 0);
	CHECK(some[0] == 0);
	CHECK(exos_dirty((char *)some) == 0 && exos_touched((char *)some) == 1);
	some[9] = 1;
	CHECK(exos_dirty((char *)some) == 1);
	CHECK(exos_protect((char *)some, PROT_NONE) == 0 && exos_dirty((char *)some) == 1);
	CHECK(exos_dirty((void *)16) == -1 && errno == EFAULT);
	image[0] = 1;
	CHECK(exos_dirty(image) == 1);
	CHECK(exos_wire((char *)some + PAGE, 2 * PAGE) == 0 && exos_page_number((char *)some + 2 * PAGE) > 0);
	CHECK(munmap((char *)some, 3 * PAGE) == 0);
}

int main(void)
{
	RUN(heap);
	RUN(stack);
	RUN(mappings);
	RUN(faults);
	RUN(untouched);
	RUN(many);
	RUN(ranges);
	RUN(dirty);
	return failures != 0;
}
