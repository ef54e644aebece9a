/* Virtual memory as the program itself has it: pages by their numbers, with what may be done to
   each. Protections are those of <sys/mman.h>. What fails returns -1, or NULL, with the reason
   in errno. */
#ifndef EXOS_MEMORY_H
#define EXOS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <exos/handler.h>

#define EXOS_PAGE 4096

/* What a fault interrupted, with all registers: changed by a handler, they are so when the
   program goes on. */
struct exos_fault {
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip, rflags, unused;
	uint64_t address; /* where it faulted */
	uint64_t code;    /* the processor's: 1 the page is there, 2 a store, 16 a fetch */
	uint64_t vector;  /* 14 */
};

/* Called at each fault at a page that the program has mapped and may not use so. Not 0: it is
   served, and the program goes on with the registers as they are. The function is an
   EXOS_HANDLER; it may protect, map and unmap. */
typedef int exos_fault_handler(struct exos_fault *fault, void *argument);

/* Registers the handler; NULL: none. Returns the former. */
exos_fault_handler *exos_on_fault(exos_fault_handler *handler, void *argument);

/* What may be done to one page, and to many, which need not be neighbours: one call of the
   kernel for hundreds. Unlike mprotect they ask for no lengths. Pages that were never touched
   are remembered so. */
int exos_protect(void *page, int protection);
int exos_protect_many(void *const *pages, size_t count, int protection);

/* Whether a page was stored to since it was mapped or cleaned: 1 or 0; -1 if the program has no
   such page. No call of the kernel. */
int exos_dirty(const void *address);
/* Whether it was touched at all since. */
int exos_touched(const void *address);
/* Forgets both. */
int exos_clean(void *page);

/* The number of the page at an address; -1 if there is none yet. */
long exos_page_number(const void *address);

/* The same pages at a second address, with a protection of their own. Unmapped by munmap, in any
   order. */
void *exos_alias(const void *from, size_t length, int protection);

/* One page at an address that the program has mapped: what was there is there no more. 0, or -1. */
int exos_alias_at(void *to, const void *from, int protection);

/* One page of somebody else's, by its number and a capability (0: an own page). */
void *exos_map_page(long number, uint64_t capability, int protection);

/* Fresh memory that the processor does not cache. */
void *exos_map_uncached(size_t length);

/* Fresh memory whose n-th page has a number with `number % colours == (first + n) % colours`:
   neighbours lie in different parts of a cache of so many colours. With `step` 0 all have the
   same. ENOMEM if no such pages are free. */
void *exos_map_coloured(size_t length, unsigned colours, unsigned first, unsigned step);

/* Has pages there that are never missing and never swapped by anybody but the program: touched
   now, all of them. */
int exos_wire(void *from, size_t length);

#endif
