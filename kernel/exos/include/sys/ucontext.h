/* What a handler interrupted: its third argument. Registers that it changes are so when the program
   goes on, and so is the mask. All are 0 when the signal came while the program was waiting in a
   call of the library. */
#ifndef EXOS_SYS_UCONTEXT_H
#define EXOS_SYS_UCONTEXT_H

#include <sys/signal.h>

enum {
	REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
	REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	REG_RIP, REG_EFL, NGREG
};

typedef long long greg_t;
typedef greg_t gregset_t[NGREG];

typedef struct {
	gregset_t gregs;
} mcontext_t;

typedef struct ucontext {
	struct ucontext *uc_link; /* NULL */
	sigset_t uc_sigmask;      /* as it was, and will be */
	stack_t uc_stack;         /* the other stack, if there is one */
	mcontext_t uc_mcontext;
} ucontext_t;

#endif
