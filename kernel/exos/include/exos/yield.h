/* The processor given away. */
#ifndef EXOS_YIELD_H
#define EXOS_YIELD_H

#include <stdint.h>

/* The own environment's number, by which others name this process. */
unsigned exos_environment(void);
/* The same for inline code, to be read only. */
extern uint64_t exos_own_environment;

/* Gives what is left of the slice to another, who goes on at once. Returns when this process goes
   on; -1: that one runs elsewhere, or cannot be entered. */
int exos_yield_to(unsigned environment);

/* Ends the slice. */
void exos_yield(void);

#endif
