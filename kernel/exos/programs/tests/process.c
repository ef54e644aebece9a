/* Processes: copies, programs, how they end, who waits. */
#include "check.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/process.h>

extern char **environ;

static const char *own;
static int written = 1;
/* An address that is nobody's, unknown to the compiler. */
static volatile uintptr_t null = 16;

static int status_of(pid_t pid)
{
	int status = -1;
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static void copies_have_their_own_memory(void)
{
	char *heap = malloc(100000);
	volatile int local = 1;
	memset(heap, 1, 100000);
	pid_t pid = fork();
	if (pid == 0) {
		if (written != 1 || local != 1 || heap[99999] != 1)
			_exit(1);
		written = 2, local = 2;
		memset(heap, 2, 100000);
		_exit(heap[5] == 2 ? 42 : 2);
	}
	heap[7] = 3;
	int status = status_of(pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	CHECK(written == 1 && local == 1 && heap[0] == 1 && heap[7] == 3);
	free(heap);
}

static void copies_of_copies(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		int sum = 0;
		for (int child = 1; child <= 3; child++) {
			pid_t below = fork();
			if (below == 0)
				_exit(child);
			sum += WEXITSTATUS(status_of(below));
		}
		_exit(sum);
	}
	CHECK(WEXITSTATUS(status_of(pid)) == 6);
}

static void vectors_stay(void)
{
	double before = 1.5;
	__asm__ volatile("" : "+x"(before));
	pid_t pid = fork();
	if (pid == 0)
		_exit(before * 2 == 3.0 ? 0 : 1);
	CHECK(status_of(pid) == 0);
}

static void programs_are_called(void)
{
	char *words[] = {(char *)own, "called", "two words", "", NULL};
	char *variables[] = {"COLOUR=blue", NULL};
	pid_t pid = fork();
	if (pid == 0) {
		execve(own, words, variables);
		_exit(1);
	}
	CHECK(WEXITSTATUS(status_of(pid)) == 77);
	pid = exos_spawn(own, words, variables);
	CHECK(pid > 0 && WEXITSTATUS(status_of(pid)) == 77);
}

static int called(int count, char **words)
{
	const char *colour = getenv("COLOUR");
	int well = count == 4 && !strcmp(words[2], "two words") && !words[3][0] && words[4] == NULL && colour && !strcmp(colour, "blue");
	return well ? 77 : 1;
}

static void no_such_program(void)
{
	char *words[] = {"nothing", NULL};
	errno = 0;
	CHECK(execve("nothing", words, environ) == -1 && errno == ENOENT);
	CHECK(exos_spawn("nothing", words, environ) == -1 && errno == ENOENT);
	char *many[600];
	static char longer[100];
	memset(longer, 'x', sizeof longer - 1);
	for (int at = 0; at < 599; at++)
		many[at] = longer;
	many[599] = NULL;
	CHECK(execve(own, many, environ) == -1);
}

static void ends_by_signals(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		*(volatile int *)null = 1;
		_exit(0);
	}
	int status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	pid = fork();
	if (pid == 0) {
		__asm__ volatile("ud2");
		_exit(0);
	}
	CHECK(WTERMSIG(status_of(pid)) == SIGILL);
	pid = fork();
	if (pid == 0) {
		volatile int zero = 0, seven = 7;
		_exit(seven / zero);
	}
	CHECK(WTERMSIG(status_of(pid)) == SIGFPE);
	pid = fork();
	if (pid == 0)
		abort();
	CHECK(WTERMSIG(status_of(pid)) == SIGABRT);
	pid = fork();
	if (pid == 0)
		for (;;)
			continue;
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
}

static void waits(void)
{
	int status;
	CHECK(wait(&status) == -1 && errno == ECHILD);
	pid_t pid = fork();
	if (pid == 0) {
		usleep(20000);
		_exit(3);
	}
	pid_t early = waitpid(pid, &status, WNOHANG);
	CHECK(early == 0 || early == pid);
	if (early == 0)
		CHECK(wait(&status) == pid);
	CHECK(WEXITSTATUS(status) == 3);
	CHECK(waitpid(pid, &status, 0) == -1 && errno == ECHILD);
	/* Not somebody else's child. */
	CHECK(waitpid(1, &status, 0) == -1 && errno == ECHILD);
}

static void orphans(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			usleep(50000);
			_exit(5);
		}
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
	/* It is nobody's to wait for, and goes by itself. */
	CHECK(wait(NULL) == -1 && errno == ECHILD);
}

static void table_says_it(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		const volatile struct exos_process *mine = exos_find(getpid());
		_exit(mine && mine->parent == (uint32_t)getppid() ? 0 : 1);
	}
	CHECK(status_of(pid) == 0);
	const volatile struct exos_process *record = exos_find(getpid());
	CHECK(record && record->state == EXOS_LIVES && record->parent == (uint32_t)getppid());
	CHECK(exos_find(60000) == NULL);
}

static void times_are_counted(void)
{
	struct tms before, after;
	times(&before);
	pid_t pid = fork();
	if (pid == 0) {
		struct tms now;
		do
			times(&now);
		while (now.tms_utime < 5);
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
	times(&after);
	CHECK(after.tms_cutime - before.tms_cutime >= 5);
}

static void many_one_after_the_other(void)
{
	for (int round = 0; round < 300; round++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(round & 127);
		CHECK(WEXITSTATUS(status_of(pid)) == (round & 127));
	}
}

/* Under a parent that is not the first process: what is kept for each is given back to those who may have it. */
static void pipes_one_after_the_other(void)
{
	for (int round = 0; round < 200; round++) {
		int ends[2];
		char byte = 0;
		CHECK(pipe(ends) == 0);
		pid_t pid = fork();
		if (pid == 0)
			_exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
		CHECK(pid > 0);
		close(ends[1]);
		CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x');
		CHECK(status_of(pid) == 0);
		close(ends[0]);
	}
}

int main(int count, char **words)
{
	own = words[0];
	if (count > 1 && !strcmp(words[1], "called"))
		return called(count, words);
	RUN(copies_have_their_own_memory);
	RUN(copies_of_copies);
	RUN(vectors_stay);
	RUN(programs_are_called);
	RUN(no_such_program);
	RUN(ends_by_signals);
	RUN(waits);
	RUN(orphans);
	RUN(table_says_it);
	RUN(times_are_counted);
	RUN(many_one_after_the_other);
	RUN(pipes_one_after_the_other);
	return failures != 0;
}
