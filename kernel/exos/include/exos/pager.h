/* A pager of the program's own: a region of memory of which only so many pages are physical at a
   time, the others are in a store. All of it is library code above <exos/memory.h>; a program
   replaces the choice of victims (for all pagers by defining exos_pager_victim, for one by naming a
   function), or reads this and writes another. */
#ifndef EXOS_PAGER_H
#define EXOS_PAGER_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <exos/memory.h>

struct exos_pager;

/* Which frame becomes free: an EXOS_HANDLER that returns its index. */
typedef size_t exos_victim(struct exos_pager *pager);

/* The choice of pagers that name none: a piece that a program replaces by defining it, an
   EXOS_HANDLER. The library's is the clock, which is nearly the least recently used. */
exos_victim exos_pager_victim, exos_pager_clock;

struct exos_pager_frame {
	size_t page; /* of the region */
	bool dirty;  /* stored to before it was last cleaned */
};

struct exos_pager {
	size_t pages, frames;           /* of the region; at most physical */
	char *region, *physical, *store; /* what the program uses; the frames; pages that are elsewhere */
	struct exos_pager_frame *frame; /* what is in each */
	size_t *of;                     /* the frame of each page of the region; `frames`: it has none */
	size_t used;                    /* frames that have a page */
	size_t wanted;                  /* the page that is missing, for the choice */
	size_t hand;                    /* for the choice */
	exos_victim *victim;
	unsigned long misses, written;
};

static inline EXOS_HANDLER void *exos_pager_at(struct exos_pager *pager, size_t frame)
{
	return pager->region + pager->frame[frame].page * EXOS_PAGE;
}

static inline EXOS_HANDLER void exos_pager_copy(char *to, const char *from)
{
	size_t words = EXOS_PAGE / 8;

	__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
}

/* Frees a frame: what was in it goes to the store, if it has changed. */
static inline EXOS_HANDLER void exos_pager_evict(struct exos_pager *pager, size_t frame)
{
	struct exos_pager_frame *what = &pager->frame[frame];
	bool dirty = what->dirty || exos_dirty(exos_pager_at(pager, frame)) == 1;

	exos_protect(exos_pager_at(pager, frame), PROT_NONE);
	if (dirty) {
		exos_pager_copy(pager->store + what->page * EXOS_PAGE, pager->physical + frame * EXOS_PAGE);
		pager->written++;
	}
	pager->of[what->page] = pager->frames;
}

static inline EXOS_HANDLER int exos_pager_fault(struct exos_fault *fault, void *argument)
{
	struct exos_pager *pager = argument;
	size_t page = (fault->address - (uintptr_t)pager->region) / EXOS_PAGE, frame;
	char *physical;

	if (page >= pager->pages || pager->of[page] != pager->frames)
		return 0;
	pager->misses++;
	pager->wanted = page;
	if (pager->used < pager->frames) {
		frame = pager->used++;
	} else {
		frame = pager->victim(pager);
		exos_pager_evict(pager, frame);
	}
	physical = pager->physical + frame * EXOS_PAGE;
	exos_pager_copy(physical, pager->store + page * EXOS_PAGE);
	pager->frame[frame] = (struct exos_pager_frame){ .page = page };
	pager->of[page] = frame;
	return exos_alias_at(pager->region + page * EXOS_PAGE, physical, PROT_READ | PROT_WRITE) == 0;
}

/* Ends a pager, and what was in its region. */
static inline void exos_pager_end(struct exos_pager *pager)
{
	exos_on_fault(NULL, NULL);
	if (pager->region)
		munmap(pager->region, pager->pages * EXOS_PAGE);
	if (pager->physical)
		munmap(pager->physical, pager->frames * EXOS_PAGE);
	if (pager->store)
		munmap(pager->store, pager->pages * EXOS_PAGE);
	free(pager->frame);
	free(pager->of);
	memset(pager, 0, sizeof *pager);
}

static inline char *exos_pager_map(size_t pages, int protection)
{
	void *at = mmap(NULL, pages * EXOS_PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Begins a pager of a region of so many pages, of which so many are physical, and makes it the
   program's handler of faults. `victim` NULL: exos_pager_victim. 0, or -1 if there is no memory. */
static inline int exos_pager_begin(struct exos_pager *pager, size_t pages, size_t frames, exos_victim *victim)
{
	*pager = (struct exos_pager){ .pages = pages, .frames = frames, .victim = victim ? victim : exos_pager_victim };
	pager->region = exos_pager_map(pages, PROT_NONE);
	pager->physical = exos_pager_map(frames, PROT_READ | PROT_WRITE);
	pager->store = exos_pager_map(pages, PROT_READ | PROT_WRITE);
	pager->frame = calloc(frames, sizeof *pager->frame);
	pager->of = calloc(pages, sizeof *pager->of);
	if (!pager->region || !pager->physical || !pager->store || !pager->frame || !pager->of ||
	    exos_wire(pager->physical, frames * EXOS_PAGE) || exos_wire(pager->store, pages * EXOS_PAGE)) {
		exos_pager_end(pager);
		return -1;
	}
	for (size_t page = 0; page < pages; page++)
		pager->of[page] = frames;
	exos_on_fault(exos_pager_fault, pager);
	return 0;
}

#endif
