/* put-off.c: signals that come while calls are looked at: none is lost where the queue of signals
 * is full, and what a child of vfork does to its other stack is not its maker's. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long came, sum;

static void counts(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	came++;
	sum += info->si_value.sival_int;
}

/* A child fills the queue as fast as it can, with two signals; what it could send came. */
static void full_queue(int total)
{
	struct sigaction action = {.sa_sigaction = counts, .sa_flags = SA_SIGINFO};
	struct rlimit few;
	int told[2];
	getrlimit(RLIMIT_SIGPENDING, &few);
	/* The user's other processes may have some. */
	few.rlim_cur = few.rlim_max < 64 ? few.rlim_max : 64;
	if (pipe(told) != 0)
		exit(2);
	sigaction(SIGRTMIN + 1, &action, 0);
	sigaction(SIGRTMIN + 2, &action, 0);
	setrlimit(RLIMIT_SIGPENDING, &few);
	pid_t child = fork();
	if (child == 0) {
		pid_t parent = getppid();
		long wanted = 0;
		for (int sent = 0; sent < total;) {
			union sigval value = {.sival_int = sent + 1};
			if (sigqueue(parent, SIGRTMIN + 1 + sent % 2, value) == 0)
				wanted += ++sent;
		}
		_exit(write(told[1], &wanted, sizeof wanted) != sizeof wanted);
	}
	while (waitpid(child, 0, WNOHANG) == 0)
		for (int at = 0; at < 1000; at++)
			syscall(SYS_getppid);
	for (int at = 0; at < 1000 && came < total; at++)
		syscall(SYS_getppid);
	long wanted = 0;
	if (read(told[0], &wanted, sizeof wanted) != sizeof wanted)
		exit(3);
	printf("came: %ld, right: %d\n", came, sum == wanted);
}

static volatile int alarms, wrong;
static char other[64 << 10];

static void alarm_came(int signal)
{
	(void)signal;
	alarms++;
}

/* On the other stack, with calls and signals. */
static void long_handler(int signal)
{
	volatile char kept[8192];
	(void)signal;
	for (unsigned at = 0; at < sizeof kept; at++)
		kept[at] = 77;
	for (int before = alarms; alarms < before + 20;)
		for (int at = 0; at < 1000; at++)
			syscall(SYS_getppid);
	for (unsigned at = 0; at < sizeof kept; at++)
		wrong += kept[at] != 77;
}

/* What vfork's child has as its other stack is none. */
static void vfork_child(void)
{
	stack_t mine = {.ss_sp = other, .ss_size = sizeof other}, none = {.ss_flags = SS_DISABLE}, now;
	struct sigaction action = {.sa_handler = long_handler, .sa_flags = SA_ONSTACK};
	struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	sigaltstack(&mine, 0);
	sigaction(SIGUSR1, &action, 0);
	action.sa_handler = alarm_came;
	sigaction(SIGALRM, &action, 0);
	for (int at = 0; at < 100; at++)
		syscall(SYS_getppid);
	pid_t child, parent = getpid();
	setitimer(ITIMER_REAL, &often, 0);
	if ((child = vfork()) == 0) {
		syscall(SYS_sigaltstack, &none, 0);
		/* By the signal, and then not. */
		for (int at = 0; at < 100; at++)
			syscall(SYS_getppid);
		/* The handler's calls are the maker's first ones. */
		kill(parent, SIGUSR1);
		_exit(0);
	}
	setitimer(ITIMER_REAL, &never, 0);
	sigaltstack(0, &now);
	printf("wrong: %d, its own: %d\n", wrong, now.ss_sp == other && now.ss_flags == 0);
	waitpid(child, 0, 0);
}

int main(void)
{
	full_queue(20000);
	vfork_child();
	return 0;
}
