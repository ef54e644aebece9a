/* Runs programs one after the other, each as a process of its own, and says how they end: the first process where `exos-machine`
   tests. `each LIST SECONDS`: names stand in the file LIST, a line each; who takes longer is ended. The host reads

	begin NAME
	ended NAME exit STATUS
	ended NAME signal NUMBER
	ended NAME late
	ended NAME lost WHY */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 256, NOT_STARTED = 126 };

extern char **environ;

static volatile sig_atomic_t late;

static void ring(int number)
{
	(void)number;
	late = 1;
}

/* Waits for a child that has so long; whether its status is known. */
static int ends(pid_t child, unsigned seconds, int *status)
{
	late = 0;
	alarm(seconds);
	while (waitpid(child, status, 0) != child) {
		if (errno != EINTR)
			return 0;
		if (late)
			kill(child, SIGKILL);
	}
	alarm(0);
	return 1;
}

static void run(char *name, unsigned seconds)
{
	char *words[] = { name, NULL };
	int status;
	pid_t child;

	printf("begin %s\n", name);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		execve(name, words, environ);
		_exit(NOT_STARTED);
	}
	/* Whatever the program has written, this begins a line. */
	if (child < 0 || !ends(child, seconds, &status))
		printf("\nended %s lost %s\n", name, strerror(errno));
	else if (late)
		printf("\nended %s late\n", name);
	else if (WIFSIGNALED(status))
		printf("\nended %s signal %d\n", name, WTERMSIG(status));
	else
		printf("\nended %s exit %d\n", name, WEXITSTATUS(status));
	fflush(stdout);
}

int main(int count, char **words)
{
	struct sigaction action = { .sa_handler = ring };
	char line[LINE];
	FILE *list;

	if (count != 3)
		return fputs("each: LIST SECONDS\n", stderr), 2;
	list = fopen(words[1], "r");
	if (!list)
		return fprintf(stderr, "each: %s: %s\n", words[1], strerror(errno)), 2;
	sigaction(SIGALRM, &action, NULL);
	while (fgets(line, sizeof line, list)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0])
			run(line, (unsigned)atoi(words[2]));
	}
	return 0;
}
