/* Memory that several processes have. It is there until nobody has it attached: who made it may end
   before. Copies of a process (fork) have it at the same address; others attach it by three words,
   which they are told in any way. */
#ifndef EXOS_SHARED_H
#define EXOS_SHARED_H

#include <stddef.h>
#include <stdint.h>

/* The page with the numbers of the pages, a capability, and how many pages there are, twice; plus
   1, if it is to be written. */
struct exos_shared {
	uint64_t page;
	uint64_t capability;
	uint64_t count;
};

/* Zeros, up to 2 MiB. NULL: errno says why (EINVAL, ENOMEM). The words are for others to write
   there, too. */
void *exos_shared_create(size_t length, struct exos_shared *words);
/* Words for others that may only read. */
int exos_shared_reader(const void *memory, struct exos_shared *words);
/* NULL: EACCES, if the words are not of shared memory, or not any more. */
void *exos_shared_attach(const struct exos_shared *words);
int exos_shared_detach(void *memory);

#endif
