/* The structure in which the library keeps what it knows of each page: a piece that a program
   replaces by defining `exos_page_table`, or chooses with `exos-cc --page-table=inverted`.
   Functions are EXOS_HANDLERs: they are called at faults, and may touch nothing but the words that
   they are given and EXOS_RESIDENT variables, and calls of `change` may touch the words of the
   entry alone.

   A page is an address divided by EXOS_PAGE; an entry is any word but 0. */
#ifndef EXOS_PAGE_TABLE_H
#define EXOS_PAGE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <exos/handler.h>

typedef uint64_t exos_change(uint64_t page, uint64_t entry, void *argument);

struct exos_page_table {
	/* Makes an empty table of words that hold anything. */
	void (*clear)(uint64_t *words, size_t count);
	/* Where the entry of a page stands; NULL: there is none. */
	uint64_t *(*find)(uint64_t *words, size_t count, uint64_t page);
	/* Makes or changes an entry: 0; -1: the table is full. Then the library makes another one
	   of twice the words, and asks again. */
	int (*insert)(uint64_t *words, size_t count, uint64_t page, uint64_t entry);
	/* Takes an entry away, which comes back; 0: there was none. */
	uint64_t (*remove)(uint64_t *words, size_t count, uint64_t page);
	/* Calls for each entry from page `first` to before `end`, in any order, and puts what comes
	   back in its place, or takes it away if that is 0. */
	void (*each)(uint64_t *words, size_t count, uint64_t first, uint64_t end, exos_change *change, void *argument);
};

extern const struct exos_page_table exos_page_table;
extern const struct exos_page_table exos_page_table_linear, exos_page_table_inverted;

#endif
