/* What it takes to make a process, have it end, and learn how: as a copy, and with another program in it. */
#include "measure.h"

#include <sys/wait.h>
#include <unistd.h>

#define STATUS 7

extern char **environ;

static void ends(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("a child");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != STATUS) {
		fprintf(stderr, "processes: a child ended with %#x\n", status);
		exit(1);
	}
}

static void copies(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(STATUS);
	ends(child);
}

static void executes(void)
{
	static char *words[] = { "small", NULL };
	pid_t child = fork();

	if (child == 0) {
		execve(words[0], words, environ);
		_exit(1);
	}
	ends(child);
}

int main(void)
{
	uint64_t took;

	LEAST(took, TRIES, copies());
	row("fork", took, 1);
	LEAST(took, TRIES, executes());
	row("fork-exec", took, 1);
	return 0;
}
