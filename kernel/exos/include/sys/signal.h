/* Signals as POSIX has them: newlib's numbers and functions, with the structures that it leaves to
   systems. */
#ifndef EXOS_SYS_SIGNAL_H
#define EXOS_SYS_SIGNAL_H

/* A handler's frame has all registers of what was interrupted. */
#define MINSIGSTKSZ 4096
#define SIGSTKSZ 16384

#define siginfo_t newlib_siginfo_t
#define sigaction newlib_sigaction
#include_next <sys/signal.h>
#undef siginfo_t
#undef sigaction

#ifdef __cplusplus
extern "C" {
#endif

/* Why a signal came. Of signals of other processes only the last one's sender is known. */
typedef struct {
	int si_signo;
	int si_code;
	int si_errno; /* 0 */
	pid_t si_pid; /* who sent it, or the child that it is about */
	uid_t si_uid; /* 0 */
	int si_status; /* of SIGCHLD: the exit status, or the signal */
	void *si_addr; /* of exceptions: the address of the fault, or of the instruction */
	union sigval si_value;
	long si_band;
} siginfo_t;

/* Codes, beside SI_USER and SI_TIMER. */
#define SEGV_MAPERR 11 /* nothing is there */
#define SEGV_ACCERR 12 /* it may not be used so */
#define CLD_EXITED 21
#define CLD_KILLED 22
#define CLD_STOPPED 24
#define CLD_CONTINUED 25
#define ILL_ILLOPC 31
#define FPE_INTDIV 41
#define FPE_FLTINV 42
#define BUS_ADRALN 51
#define TRAP_BRKPT 61
#define TRAP_TRACE 62

struct sigaction {
	union {
		void (*sa_handler)(int);
		void (*sa_sigaction)(int, siginfo_t *, void *);
	} __handler;
	sigset_t sa_mask;
	int sa_flags;
};

#define sa_handler __handler.sa_handler
#define sa_sigaction __handler.sa_sigaction

int sigaction(int number, const struct sigaction *action, struct sigaction *former);

/* SA_NOCLDSTOP is 1. */
#define SA_SIGINFO 2
#define SA_ONSTACK 4
#define SA_RESTART 0x10000000
#define SA_NODEFER 0x40000000
#define SA_RESETHAND 0x80000000

#ifdef __cplusplus
}
#endif

#include <sys/ucontext.h>

#endif
