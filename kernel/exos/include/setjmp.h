/* Newlib's, and POSIX' jumps that keep the mask of signals. */
#ifndef EXOS_SETJMP_H
#define EXOS_SETJMP_H

#include_next <setjmp.h>

#if !defined(__STRICT_ANSI__) || defined(_POSIX_C_SOURCE)
#include <sys/signal.h>

typedef struct {
	jmp_buf registers;
	int saved;
	sigset_t mask;
} sigjmp_buf[1];

#define sigsetjmp(at, save)                                                           \
	((at)->saved = (save), sigprocmask(SIG_SETMASK, (sigset_t *)0, &(at)->mask), \
	 setjmp((at)->registers))

static inline __attribute__((__noreturn__)) void siglongjmp(sigjmp_buf at, int value)
{
	if (at->saved)
		sigprocmask(SIG_SETMASK, &at->mask, (sigset_t *)0);
	longjmp(at->registers, value);
}
#endif

#endif
