/* Signals: handlers, masks, what is interrupted. */
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/yield.h>

static volatile sig_atomic_t got, count;
static jmp_buf back;
/* An address that is nobody's, unknown to the compiler. */
static volatile uintptr_t null = 24;

static void note(int number)
{
	got = number;
	count++;
}

static void leave(int number)
{
	got = number;
	longjmp(back, 1);
}

static void handlers_are_called(void)
{
	got = 0;
	CHECK(signal(SIGUSR1, note) == SIG_DFL);
	CHECK(raise(SIGUSR1) == 0 && got == SIGUSR1);
	got = 0;
	CHECK(kill(getpid(), SIGUSR1) == 0 && got == SIGUSR1);
	got = 0;
	CHECK(signal(SIGUSR1, SIG_IGN) == note);
	CHECK(raise(SIGUSR1) == 0 && got == 0);
	CHECK(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
	CHECK(signal(SIGKILL, note) == SIG_ERR && errno == EINVAL);
}

static void masks_hold_back(void)
{
	sigset_t set, former, pending;
	signal(SIGUSR1, note);
	got = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(sigprocmask(SIG_BLOCK, &set, &former) == 0);
	CHECK(raise(SIGUSR1) == 0 && got == 0);
	CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
	CHECK(sigprocmask(SIG_SETMASK, &former, NULL) == 0 && got == SIGUSR1);
	signal(SIGUSR1, SIG_DFL);
}

/* A child that does nothing but add, in whose middle signals come: nothing of it may change. */
static void registers_stay(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGUSR2, note);
		double step = 1.0, sum = 0;
		uint64_t rounds = 0;
		while (count < 3) {
			sum += step;
			rounds++;
		}
		_exit(sum == (double)rounds ? 11 : 12);
	}
	int status;
	for (;;) {
		pid_t ended = waitpid(pid, &status, WNOHANG);
		if (ended == pid)
			break;
		CHECK(ended == 0);
		usleep(2000);
		kill(pid, SIGUSR2);
	}
	/* The first may have come before there was a handler. */
	CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 11);
}

static void faults_can_be_left(void)
{
	signal(SIGSEGV, leave);
	got = 0;
	if (setjmp(back) == 0) {
		*(volatile int *)null = 1;
		CHECK(!"not here");
	}
	CHECK(got == SIGSEGV);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGFPE, leave);
	got = 0;
	if (setjmp(back) == 0) {
		volatile int zero = 0, seven = 7;
		seven /= zero;
		CHECK(!"not here");
	}
	CHECK(got == SIGFPE);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
}

static void alarms(void)
{
	signal(SIGALRM, note);
	got = 0;
	ualarm(20000, 0);
	CHECK(pause() == -1 && errno == EINTR && got == SIGALRM);
	got = 0;
	ualarm(20000, 0);
	while (!got)
		continue;
	CHECK(got == SIGALRM);
	CHECK(alarm(100) == 0 && alarm(0) > 0);
	signal(SIGALRM, SIG_DFL);
}

static void children_tell(void)
{
	signal(SIGCHLD, note);
	got = 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	while (!got)
		usleep(1000);
	CHECK(got == SIGCHLD && wait(NULL) == pid);
	signal(SIGCHLD, SIG_DFL);
}

static void stop_and_go_on(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			usleep(1000);
	CHECK(kill(pid, SIGSTOP) == 0 && kill(pid, SIGCONT) == 0);
	CHECK(kill(pid, SIGTERM) == 0);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGTERM);
}

/* Its slices never end but by itself. */
static void who_yields_is_told(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			exos_yield();
	CHECK(kill(pid, SIGTERM) == 0);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGTERM);
}

static void nobody_there(void)
{
	CHECK(kill(50000, SIGTERM) == -1 && errno == ESRCH);
	CHECK(kill(getpid(), 77) == -1 && errno == EINVAL);
	CHECK(kill(getpid(), 0) == 0);
}

int main(void)
{
	RUN(handlers_are_called);
	RUN(masks_hold_back);
	RUN(registers_stay);
	RUN(faults_can_be_left);
	RUN(alarms);
	RUN(children_tell);
	RUN(stop_and_go_on);
	RUN(who_yields_is_told);
	RUN(nobody_there);
	return failures != 0;
}
