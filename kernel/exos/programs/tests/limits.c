/* Limits of a tree: who takes too much ends, or is told so, and others go on. */
#include "check.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/process.h>
#include <exos/schedule.h>

static int status_of(pid_t pid)
{
	int status = -1;
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

/* Whether others can still be made. */
static int others_go_on(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(9);
	return WEXITSTATUS(status_of(pid)) == 9;
}

static void bombs(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		int children = 0;
		pid_t child;
		if (exos_limit(EXOS_LIMIT_PROCESSES, 6))
			_exit(1);
		while ((child = fork()) > 0)
			children++;
		if (child == 0)
			for (;;)
				pause();
		int error = errno;
		if (others_go_on())
			_exit(3);
		for (int pids = 1; pids < EXOS_PROCESSES; pids++) {
			const volatile struct exos_process *record = &exos_table()->processes[pids];
			if (record->state == EXOS_LIVES && record->parent == (unsigned)getpid())
				kill(record->pid, SIGKILL);
		}
		for (int left = children; left > 0; left--)
			wait(NULL);
		_exit(children == 5 && error == EAGAIN ? 0 : 2);
	}
	int status = status_of(pid);
	if (status)
		printf("bombs: %#x\n", status);
	CHECK(status == 0);
	CHECK(others_go_on());
}

static void groups_end(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		for (int at = 0; at < 3; at++)
			if (fork() == 0)
				for (;;)
					pause();
		kill(0, SIGKILL);
		_exit(1);
	}
	CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
	CHECK(others_go_on());
}

static void hogs(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		unsigned long got = 0;
		char *block;
		if (exos_limit(EXOS_LIMIT_PAGES, 1500))
			_exit(1);
		while ((block = malloc(1 << 16))) {
			memset(block, 1, 1 << 16);
			got += 1 << 16;
		}
		_exit(got > 1 << 20 && got < 1500 * 4096 ? 0 : 2);
	}
	int status = status_of(pid);
	/* Told by malloc, or, where only a touch could tell it, ended. */
	CHECK(status == 0 || WIFSIGNALED(status));
	CHECK(others_go_on());
}

/* Without an end, which the compiler does not know. */
static volatile int deepest = -1;

__attribute__((noinline, noclone)) static int deeper(volatile int depth)
{
	volatile char frame[512];
	frame[0] = (char)depth;
	return depth == deepest ? 0 : deeper(depth + 1) + frame[0];
}

static void recursion(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(deeper(0));
	CHECK(WTERMSIG(status_of(pid)) == SIGSEGV);
	CHECK(others_go_on());
}

static void loops(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			continue;
	CHECK(others_go_on());
	CHECK(kill(pid, SIGKILL) == 0 && WTERMSIG(status_of(pid)) == SIGKILL);
}

static void limits_only_fall(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		if (exos_limit(EXOS_LIMIT_PROCESSES, 3) || exos_limit(EXOS_LIMIT_PROCESSES, 2))
			_exit(1);
		_exit(exos_limit(EXOS_LIMIT_PROCESSES, 50) == -1 && errno == EPERM ? 0 : 2);
	}
	CHECK(status_of(pid) == 0);
	/* What is refused costs no tree. */
	for (int round = 0; round < 100; round++)
		CHECK(exos_limit(EXOS_LIMIT_PROCESSES, 1000) == -1 && errno == EPERM);
	/* Trees are given back. */
	for (int round = 0; round < 100; round++) {
		pid = fork();
		if (pid == 0)
			_exit(exos_limit(EXOS_LIMIT_PROCESSES, 3) ? 1 : 0);
		CHECK(status_of(pid) == 0);
	}
}

/* Slices of an environment, by the kernel's books. */
static uint32_t slices_of(pid_t pid)
{
	const volatile struct exos_process *record = exos_find(pid);
	return record ? *(volatile uint32_t *)(0x7f8000000000 + 2816 + 256 * record->environment + 52) : 0;
}

/* Clients of a scheduler have none: they count for nobody. */
static void slices_come_back(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		pid_t clients[6];
		if (exos_limit(EXOS_LIMIT_SLICES, 2))
			_exit(1);
		for (int at = 0; at < 6; at++) {
			clients[at] = fork();
			if (clients[at] == 0) {
				exos_without_slices();
				for (;;)
					pause();
			}
			if (clients[at] < 0)
				_exit(2);
			while (slices_of(clients[at]))
				usleep(100);
		}
		/* Two that keep theirs are one too many. */
		pid_t keeps = fork();
		if (keeps == 0)
			for (;;)
				pause();
		if (keeps < 0 || fork() != -1 || errno != EAGAIN)
			_exit(3);
		kill(0, SIGKILL);
	}
	CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
	CHECK(others_go_on());
}

int main(void)
{
	RUN(bombs);
	RUN(groups_end);
	RUN(hogs);
	RUN(recursion);
	RUN(loops);
	RUN(limits_only_fall);
	RUN(slices_come_back);
	return failures != 0;
}
