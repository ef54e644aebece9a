/* One of two programs of different versions of ExOS, which start each other and have everything in
   common that processes can have. This is linked with the library as it is, and once more with
   other pieces (pieces.c). What it says is compared by the test. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exos/pager.h>
#include <exos/process.h>
#include <exos/schedule.h>
#include <exos/shared.h>

extern char **environ;

static volatile sig_atomic_t got;
static volatile uintptr_t nowhere = 0x200000001000;

static void note(int number)
{
	got = number;
}

static void fault(int number)
{
	_exit(number);
}

/* What becomes of a store where nobody has anything: asked by a child, since it may end. */
static const char *policy(void)
{
	int status = 0;

	fflush(stdout);
	if (fork() == 0) {
		signal(SIGSEGV, fault);
		*(volatile int *)nowhere = 1;
		_exit(*(volatile int *)nowhere == 1 ? 0 : 99);
	}
	wait(&status);
	return WEXITSTATUS(status) == SIGSEGV ? "a signal" : status == 0 ? "memory" : "wrong";
}

static unsigned long misses(void)
{
	struct exos_pager pager;
	unsigned long count;

	if (exos_pager_begin(&pager, 16, 12, NULL))
		return 0;
	for (int round = 0; round < 5; round++)
		for (int page = 0; page < 16; page++)
			pager.region[page * EXOS_PAGE]++;
	count = pager.misses;
	exos_pager_end(&pager);
	return count;
}

/* Which of two clients a schedule without a policy begins with. */
static int begins_with(void)
{
	struct exos_client clients[2] = { { 0 } };
	struct exos_schedule schedule = EXOS_SCHEDULE(NULL, clients, 2);
	int first;

	for (int place = 0; place < 2; place++) {
		clients[place].pid = fork();
		if (clients[place].pid == 0) {
			exos_without_slices();
			for (;;)
				continue;
		}
	}
	/* Only when both have given their slices back do they run by this schedule alone. */
	while ((first = exos_schedule_slice(&schedule)) < 0 && errno == EAGAIN)
		continue;
	for (int place = 0; place < 2; place++) {
		kill(clients[place].pid, SIGKILL);
		waitpid(clients[place].pid, NULL, 0);
	}
	return first;
}

static void tell(void)
{
	printf("%s: a fault is %s, %lu misses, the %s client first\n", exos_version, policy(), misses(),
	       begins_with() ? "last" : "first");
	fflush(stdout);
}

static pid_t start(const char *name, const char *role, const struct exos_shared *words)
{
	char text[64];
	pid_t pid;

	snprintf(text, sizeof text, "%lx %lx %lx", (unsigned long)words->page,
		 (unsigned long)words->capability, (unsigned long)words->count);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		char *arguments[] = { (char *)name, (char *)role, text, NULL };

		execve(name, arguments, environ);
		_exit(100 + errno);
	}
	return pid;
}

static long *attached(char *text, struct exos_shared *words)
{
	words->page = strtoul(text, &text, 16);
	words->capability = strtoul(text, &text, 16);
	words->count = strtoul(text, &text, 16);
	return exos_shared_attach(words);
}

/* Starts the other, talks to it, and waits for it. */
static int first(const char *other)
{
	struct exos_shared words;
	long *shared = exos_shared_create(EXOS_PAGE, &words);
	int in[2], out[2], status = 0;
	char line[64] = "";
	pid_t pid;

	tell();
	if (!shared || pipe(in) || pipe(out))
		return 1;
	shared[0] = 42;
	signal(SIGUSR1, note);
	fcntl(in[0], F_SETFD, FD_CLOEXEC);
	fcntl(out[1], F_SETFD, FD_CLOEXEC);
	/* By these numbers the other finds its ends. */
	dup2(out[0], 9);
	dup2(in[1], 10);
	pid = start(other, "second", &words);
	close(in[1]);
	close(10);
	if (write(out[1], "ping", 4) != 4 || read(in[0], line, sizeof line - 1) <= 0)
		return 2;
	printf("by pipe: %s\n", line);
	while (got != SIGUSR1)
		usleep(1000);
	kill(pid, SIGUSR2);
	if (waitpid(pid, &status, 0) != pid)
		return 3;
	printf("by signals and its end: %d; by memory: %ld, %ld\n", WEXITSTATUS(status), shared[0],
	       shared[1]);
	fflush(stdout);
	return WEXITSTATUS(status) != 2;
}

/* Was started by a program of the other version, and starts it again from a copy of itself. */
static int second(const char *other, char *text)
{
	struct exos_shared words;
	long *shared = attached(text, &words);
	char line[64] = "";
	int status = 0;
	pid_t pid;

	if (!shared)
		return 11;
	signal(SIGUSR2, note);
	tell();
	if (read(9, line, 4) != 4 || strcmp(line, "ping"))
		return 12;
	shared[0]++;
	snprintf(line, sizeof line, "this is %s", exos_version);
	if (write(10, line, strlen(line)) != (ssize_t)strlen(line))
		return 13;
	kill(getppid(), SIGUSR1);
	while (got != SIGUSR2)
		usleep(1000);
	pid = start(other, "third", &words);
	if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 3)
		return 14;
	return 2;
}

static int third(char *text)
{
	struct exos_shared words;
	long *shared = attached(text, &words);

	if (!shared)
		return 21;
	shared[1] = strlen(exos_version);
	return 3;
}

int main(int count, char **arguments)
{
	const char *other = strcmp(arguments[0], "sides") ? "sides" : "sides-other";

	if (count < 3) {
		/* Nobody may signal the first process of all. */
		int status = 0;

		if (fork() == 0)
			_exit(first(other));
		wait(&status);
		return status != 0;
	}
	return strcmp(arguments[1], "second") ? third(arguments[2]) : second(other, arguments[2]);
}
