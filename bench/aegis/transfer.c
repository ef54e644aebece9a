/* From one process into another and back, by what Linux has for it; a row is half of that. The machine
 * has one processor, so whoever waits lets the other one run. */
#include "measure.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* What both processes see. */
static struct shared {
	uint32_t turn;
	uint32_t stop;
} *shared;

static int there[2], back[2], there_event, back_event;
static pid_t peer;

static void pipe_ask(void)
{
	char byte = 0;

	call3(SYS_write, there[1], &byte, 1);
	call3(SYS_read, back[0], &byte, 1);
}

static void pipe_answer(void)
{
	char byte;

	call3(SYS_read, there[0], &byte, 1);
	call3(SYS_write, back[1], &byte, 1);
}

static void event_ask(void)
{
	uint64_t one = 1;

	call3(SYS_write, there_event, &one, 8);
	call3(SYS_read, back_event, &one, 8);
}

static void event_answer(void)
{
	uint64_t one;

	call3(SYS_read, there_event, &one, 8);
	call3(SYS_write, back_event, &one, 8);
}

/* Gives the turn to `whose`, and waits until it is the other one again. */
static void pass(uint32_t whose)
{
	shared->turn = whose;
	call3(SYS_futex, &shared->turn, FUTEX_WAKE, 1);
	while (__atomic_load_n(&shared->turn, __ATOMIC_RELAXED) == whose)
		call6(SYS_futex, (long)&shared->turn, FUTEX_WAIT, whose, 0, 0, 0);
}

static void futex_ask(void)
{
	pass(1);
}

static void futex_answer(void)
{
	pass(0);
}

static void arrives(int number)
{
	(void)number;
}

/* SIGUSR1 is blocked but while somebody waits for it. */
static void signal_ask(void)
{
	uint64_t none = 0;

	call3(SYS_kill, peer, SIGUSR1, 0);
	call3(SYS_rt_sigsuspend, &none, 8, 0);
}

static void yield(void)
{
	call3(SYS_sched_yield, 0, 0, 0);
}

static void prepare_nothing(void)
{
}

/* Both wait by turns: whoever runs second begins by waiting. */
static void prepare_futex(void)
{
	while (__atomic_load_n(&shared->turn, __ATOMIC_RELAXED) == 0)
		call6(SYS_futex, (long)&shared->turn, FUTEX_WAIT, 0, 0, 0, 0);
}

static void prepare_signal(void)
{
	uint64_t none = 0;

	peer = getppid();
	call3(SYS_rt_sigsuspend, &none, 8, 0);
}

/* Yielding goes around among those of one priority. */
static void in_turn(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		fail("sched_setscheduler");
}

static void measure(const char *name, void (*prepare)(void), void (*answer)(void), void (*ask)(void))
{
	uint64_t took;

	memset(shared, 0, sizeof *shared);
	peer = fork();
	if (peer < 0)
		fail("fork");
	if (peer == 0) {
		prepare();
		for (;;)
			answer();
	}
	for (int k = 0; k < 10; k++)
		ask();
	LEAST(took, for (int k = 0; k < 10; k++) ask());
	row(name, took, 20);
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
}

void transfers(void)
{
	struct sigaction action = { .sa_handler = arrives };
	struct sched_param usual = { 0 };
	sigset_t blocked;

	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	there_event = eventfd(0, 0);
	back_event = eventfd(0, 0);
	if (shared == MAP_FAILED || pipe(there) || pipe(back) || there_event < 0 || back_event < 0)
		fail("pipes");
	measure("pipe", prepare_nothing, pipe_answer, pipe_ask);
	measure("eventfd", prepare_nothing, event_answer, event_ask);
	measure("futex", prepare_futex, futex_answer, futex_ask);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGUSR1, &action, NULL);
	measure("signal", prepare_signal, signal_ask, signal_ask);
	in_turn();
	measure("sched_yield", prepare_nothing, yield, yield);
	sched_setscheduler(0, SCHED_OTHER, &usual);
}
