/* postern/agent.h: what an agent of `postern interpose` is asked, and what it may call.
 *
 * An agent exports `pt_agent`, which is called before each system call of a program and of all its
 * children. All their processes have its data in common, and many threads may be in it at once. */
#ifndef POSTERN_AGENT_H
#define POSTERN_AGENT_H

#include <postern/extension.h>

/* A system call that is about to be made. What the agent writes here counts once it has returned. */
struct pt_call {
	unsigned long number;       /* Linux's number for x86-64 */
	unsigned long arguments[6]; /* as they are in the registers: addresses are the program's */
	long result;                /* the call's; errors are negative */
	unsigned long note;         /* the agent's own: 0, and behind the call as pt_agent left it */
};

/* What pt_agent returns. */
enum pt_verdict {
	PT_PASS = 0,  /* the call is made, with the words that the record has now */
	PT_ANSWER = 1, /* it is not: it has the record's result */
	PT_PASS_AFTER = 2 /* as PT_PASS, and pt_agent_after is called behind it */
};

/* Called before each system call. Where it faults, or returns something else, the program ends with
 * status 125. */
POSTERN_EXPORT int pt_agent(struct pt_call *call);

/* Called behind each call for which pt_agent returned PT_PASS_AFTER, with the record as it left it
 * then, and the call's result, which it may change. Calls that do not come back (exit, execve) are
 * not seen behind; those that make a process or thread, in the maker alone. */
POSTERN_EXPORT void pt_agent_after(struct pt_call *call);

/* Called once, if the agent has them: before the tree's first call, and when its last process has
 * ended. */
POSTERN_EXPORT void pt_agent_begin(void);
POSTERN_EXPORT void pt_agent_end(void);

/* Called before the first call of each program that is executed, if the agent has it: what it has
 * mapped is not there any more. */
POSTERN_EXPORT void pt_agent_program(void);

/* Called in a process of its own beside the tree, the keeper, if the agent has it: for what goes on
 * without calls. The keeper's standard input is the other end of pt_keeper(). It is called once
 * the tree has written something there, and is to return when that has an end: then the tree has. */
POSTERN_EXPORT void pt_agent_keep(void);

/* Copies from the program's memory, or to it, at most 1 MiB: 0, or -EFAULT if not all of it is
 * there, -EINVAL if it is too much. */
POSTERN_IMPORT int pt_program_read(unsigned long from, void *to, unsigned bytes);
POSTERN_IMPORT int pt_program_write(unsigned long to, const void *from, unsigned bytes);

/* Copies one of the agent's arguments, from 0 on, with its zero: its length, or -1 if there is none
 * or it has no room. */
POSTERN_IMPORT int pt_argument(unsigned number, char *to, unsigned room);

/* Writes to where the agent's output goes: `postern interpose -o`, or the standard error. */
POSTERN_IMPORT void pt_print(const char *text, unsigned bytes);

/* The process that makes the call, and its thread, by the kernel's numbers. */
POSTERN_IMPORT unsigned pt_process(void);
POSTERN_IMPORT unsigned pt_thread(void);

/* Whether there is a thread of this number. */
POSTERN_IMPORT int pt_thread_lives(unsigned thread);

/* A lock for what all threads of all processes write; one of zeros is free. A process may be killed
 * while it is in the agent: pt_lock says so to the next, who has the lock then and finds what the
 * other was doing half done. Not for a thread that has it already. */
struct pt_lock {
	unsigned owner; /* a thread's number, with the upper bit if others wait */
};

enum pt_locked {
	PT_LOCKED = 0,
	PT_OWNER_DIED = 1 /* who had it before was killed, or ended, in between */
};

POSTERN_IMPORT int __postern_wait(const void *word, unsigned value, long long nanoseconds);
POSTERN_IMPORT int __postern_wake(const void *word, unsigned most);

static inline int pt_lock(struct pt_lock *lock)
{
	/* How often is looked whether the owner lives. */
	const long long often = 20 * 1000 * 1000;
	const unsigned waits = 1u << 31;
	unsigned own = pt_thread();
	for (;;) {
		unsigned owner = 0;
		if (__atomic_compare_exchange_n(&lock->owner, &owner, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return PT_LOCKED;
		unsigned other = owner & ~waits;
		/* A thread's number may be another's later, and this one's. */
		if (other == (own & ~waits) || !pt_thread_lives(other)) {
			if (__atomic_compare_exchange_n(&lock->owner, &owner, own | waits, 0, __ATOMIC_ACQUIRE,
			                                __ATOMIC_RELAXED))
				return PT_OWNER_DIED;
			continue;
		}
		if (!(owner & waits) && !__atomic_compare_exchange_n(&lock->owner, &owner, owner | waits, 0,
		                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		__postern_wait(&lock->owner, other | waits, often);
		/* Others may wait still. */
		own |= waits;
	}
}

static inline void pt_unlock(struct pt_lock *lock)
{
	if (__atomic_exchange_n(&lock->owner, 0, __ATOMIC_RELEASE) >> 31)
		__postern_wake(&lock->owner, 1);
}

/* A system call of the agent's own, on the thread that asks: its result. It can do whatever the
 * program can; those that make or end processes and threads are refused with -EPERM. Addresses are
 * the process's: pt_address says where something of the agent's is. Signals wait until it is over. */
POSTERN_IMPORT long pt_syscall(const struct pt_call *call);

/* The same, for a call that does not wait: signals need not be blocked for it, which is two calls
 * fewer. */
POSTERN_IMPORT long pt_syscall_now(const struct pt_call *call);
POSTERN_IMPORT unsigned long pt_address(const void *of);

/* In the tree, the descriptor of a socket for messages (SOCK_SEQPACKET) to the keeper; -1 if there
 * is none. */
POSTERN_IMPORT int pt_keeper(void);

/* A descriptor is the agent's own from now on, in this process and its children: programs that
 * close it, or all that they do not know, find it not there. 0, or -EINVAL if there are eight. */
POSTERN_IMPORT int pt_keep(unsigned descriptor);

#endif
