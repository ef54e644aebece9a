/* Doorbells: words in memory that processes share. Ringing costs an instruction, and a transfer if
   somebody sleeps at it. */
#ifndef EXOS_DOORBELL_H
#define EXOS_DOORBELL_H

#include <stdint.h>

/* Zeros at first. */
struct exos_doorbell {
	uint64_t rings;
	uint64_t sleeper;
};

void exos_doorbell_wake(struct exos_doorbell *bell);

/* Rings. Who sleeps there goes on at once, in what is left of this slice. */
static inline void exos_doorbell_ring(struct exos_doorbell *bell)
{
	__atomic_fetch_add(&bell->rings, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&bell->sleeper, __ATOMIC_SEQ_CST))
		exos_doorbell_wake(bell);
}

/* Sleeps until one of some bells has rung more often than `seen` says, which is set to what it says
   now; its index. Waits for so many slices at most, 0: for ever; -1: none rang, or a signal came.
   */
int exos_doorbell_wait(struct exos_doorbell *const *bells, uint64_t *seen, int count, unsigned slices);

#endif
