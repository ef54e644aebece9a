/* The fault policy: what becomes of a fault that nothing has served, neither a promise of memory
   nor a copy nor the program's handler. A piece that a program replaces by defining it. */
#ifndef EXOS_FAULT_H
#define EXOS_FAULT_H

#include <exos/memory.h>

/* Why nothing has served it. */
enum exos_fault_reason {
	EXOS_FAULT_NOTHING = 1, /* the address is nobody's */
	EXOS_FAULT_PROTECTED,   /* the page may not be used so, and no handler has served it */
	EXOS_FAULT_STACK,       /* the stack has all that it may have */
	EXOS_FAULT_MEMORY,      /* there is no memory for what was promised */
	EXOS_FAULT_LOST,        /* the page was taken by force */
};

/* Not 0: it is served, and the program goes on with the registers as they are. 0: it is a signal
   (SIGSEGV). An EXOS_HANDLER; it may protect, map and unmap. The library's own leaves all to
   signals. */
int exos_fault_policy(struct exos_fault *fault, int reason);

#endif
