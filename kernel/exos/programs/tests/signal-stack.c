/* What handlers are told, and where they run: siginfo_t, ucontext_t, sigaltstack. */
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static siginfo_t told;
static char *handler_stack;
static volatile sig_atomic_t count, on_other;
static sigjmp_buf back;
static stack_t other;

static void note(int number, siginfo_t *information, void *context)
{
	char here;
	stack_t now;

	(void)context;
	handler_stack = &here;
	told = *information;
	count += information->si_signo == number;
	sigaltstack(NULL, &now);
	on_other = (now.ss_flags & SS_ONSTACK) != 0;
}

static void leave(int number, siginfo_t *information, void *context)
{
	note(number, information, context);
	siglongjmp(back, 1);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | flags };

	action.sa_sigaction = handler;
	sigaction(number, &action, NULL);
	memset(&told, 0, sizeof told);
	count = 0;
}

static int recurse(int depth)
{
	volatile char frame[512];

	frame[0] = depth;
	return recurse(depth + 1) + frame[0];
}

static int is_other(const char *at)
{
	return at >= (char *)other.ss_sp && at < (char *)other.ss_sp + other.ss_size;
}

static void stacks_are_known(void)
{
	stack_t now, small = { .ss_sp = &now, .ss_size = 64 }, wrong = { .ss_flags = 64 };

	CHECK(sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_DISABLE);
	CHECK(sigaltstack(&small, NULL) == -1 && errno == ENOMEM);
	CHECK(sigaltstack(&wrong, NULL) == -1 && errno == EINVAL);
	other = (stack_t){ .ss_sp = malloc(SIGSTKSZ), .ss_size = SIGSTKSZ };
	CHECK(sigaltstack(&other, NULL) == 0);
	CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == other.ss_sp && now.ss_flags == 0);
}

static void handlers_run_on_it(void)
{
	handle(SIGUSR1, note, SA_ONSTACK);
	CHECK(raise(SIGUSR1) == 0 && count == 1 && is_other(handler_stack) && on_other);
	handle(SIGUSR1, note, 0);
	CHECK(raise(SIGUSR1) == 0 && count == 1 && !is_other(handler_stack) && !on_other);
	/* At the end of a slice, too: nothing of what is interrupted may change. */
	handle(SIGALRM, note, SA_ONSTACK);
	double sum = 0;
	long rounds = 0;
	ualarm(5000, 0);
	while (!count) {
		sum += 1.0;
		rounds++;
	}
	CHECK(is_other(handler_stack) && sum == (double)rounds && told.si_code == SI_TIMER);
}

static void a_stack_that_is_full(void)
{
	handle(SIGSEGV, leave, SA_ONSTACK);
	for (volatile int times = 1; times <= 3; times++) {
		if (sigsetjmp(back, 1) == 0) {
			recurse(0);
			CHECK(!"not here");
		}
		CHECK(count == times && is_other(handler_stack));
		CHECK(told.si_code == SEGV_MAPERR);
	}
}

static void overwrite(int number, siginfo_t *information, void *context)
{
	stack_t none = { .ss_flags = SS_DISABLE };

	note(number, information, context);
	on_other = sigaltstack(&none, NULL) == -1 && errno == EPERM;
}

static void it_is_not_changed_meanwhile(void)
{
	handle(SIGUSR1, overwrite, SA_ONSTACK);
	on_other = 0;
	CHECK(raise(SIGUSR1) == 0 && on_other);
}

static void faults_say_where(void)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	handle(SIGSEGV, leave, 0);
	if (sigsetjmp(back, 1) == 0)
		*(volatile char *)(page + 7) = 1;
	CHECK(told.si_signo == SIGSEGV && told.si_code == SEGV_ACCERR && told.si_addr == page + 7);
	munmap(page, 4096);
	if (sigsetjmp(back, 1) == 0)
		*(volatile char *)(page + 9) = 1;
	CHECK(told.si_code == SEGV_MAPERR && told.si_addr == page + 9);
	handle(SIGFPE, leave, 0);
	if (sigsetjmp(back, 1) == 0) {
		volatile int zero = 0, seven = 7;

		seven /= zero;
	}
	CHECK(told.si_code == FPE_INTDIV && told.si_addr);
}

static void senders_are_known(void)
{
	int status;
	pid_t parent = getpid(), pid;

	handle(SIGUSR1, note, 0);
	raise(SIGUSR1);
	CHECK(told.si_code == SI_USER && told.si_pid == parent);
	handle(SIGUSR1, note, 0);
	pid = fork();
	if (pid == 0)
		_exit(kill(parent, SIGUSR1) != 0);
	while (count == 0)
		usleep(1000);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(told.si_code == SI_USER && told.si_pid == pid);
	handle(SIGCHLD, note, 0);
	pid = fork();
	if (pid == 0)
		_exit(5);
	while (count == 0)
		usleep(1000);
	CHECK(told.si_code == CLD_EXITED && told.si_pid == pid && told.si_status == 5);
	CHECK(waitpid(pid, NULL, 0) == pid);
	signal(SIGCHLD, SIG_DFL);
}

/* A child that was waited for before there was a handler is none of its affair, on two processors
   either; and what is ignored while it is held back has never come. */
static void a_handler_is_told_of_what_comes_later(void)
{
	sigset_t some, none;

	for (int round = 0; round < 40; round++) {
		signal(SIGCHLD, SIG_DFL);
		pid_t pid = fork();
		if (pid == 0)
			_exit(3);
		CHECK(waitpid(pid, NULL, 0) == pid);
		handle(SIGCHLD, note, 0);
		usleep(100);
		CHECK(count == 0);
	}
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigprocmask(SIG_SETMASK, &some, NULL);
	handle(SIGUSR1, note, 0);
	raise(SIGUSR1);
	signal(SIGUSR1, SIG_IGN);
	handle(SIGUSR1, note, 0);
	sigprocmask(SIG_SETMASK, &none, NULL);
	CHECK(count == 0);
	signal(SIGUSR1, SIG_DFL);
}

/* Passes by a store of two bytes: `movb $1, (%rax)` is three. */
static void pass_by(int number, siginfo_t *information, void *context)
{
	ucontext_t *interrupted = context;

	note(number, information, context);
	interrupted->uc_mcontext.gregs[REG_RIP] += 3;
	interrupted->uc_mcontext.gregs[REG_RBX] = 77;
	sigaddset(&interrupted->uc_sigmask, SIGUSR2);
}

static void registers_can_be_changed(void)
{
	uint64_t changed = 5;
	sigset_t mask;

	handle(SIGSEGV, pass_by, SA_ONSTACK);
	__asm__ volatile("movb $1, (%1)" : "+b"(changed) : "a"(24L) : "memory");
	CHECK(count == 1 && changed == 77);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	CHECK(sigismember(&mask, SIGUSR2));
	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

static void again(int number, siginfo_t *information, void *context)
{
	note(number, information, context);
	if (count < 3)
		raise(number);
}

static void flags_hold(void)
{
	struct sigaction now;

	handle(SIGUSR1, again, SA_NODEFER | SA_RESETHAND | SA_ONSTACK);
	sigaction(SIGUSR1, NULL, &now);
	CHECK(now.sa_flags == (int)(SA_SIGINFO | SA_NODEFER | SA_RESETHAND | SA_ONSTACK));
	CHECK(now.sa_sigaction == again);
	handle(SIGUSR1, again, SA_NODEFER);
	CHECK(raise(SIGUSR1) == 0 && count == 3);
}

int main(void)
{
	RUN(stacks_are_known);
	RUN(handlers_run_on_it);
	RUN(a_stack_that_is_full);
	RUN(it_is_not_changed_meanwhile);
	RUN(faults_say_where);
	RUN(senders_are_known);
	RUN(a_handler_is_told_of_what_comes_later);
	RUN(registers_can_be_changed);
	RUN(flags_hold);
	return failures != 0;
}
